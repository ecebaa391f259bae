"""Handler of shell commands that the user runs. They are stored like calls of `bash`,
so that the model sees them.
"""

import asyncio

from codeloop.agent.answer.answer_lifecycle import make_answer
from codeloop.agent.calls.call_context import CallContext
from codeloop.agent.engine import TurnSettings
from codeloop.agent.title import store_command_title
from codeloop.app.handlers.changes.final_undo import make_discard_events
from codeloop.app.handlers.session.store_prompt import check_ids, make_user_message
from codeloop.app.handlers.session.turn_settings import (
    choose_agent,
    choose_model,
    make_turn_settings,
)
from codeloop.app.project import Project
from codeloop.schema.api.agents import Agent
from codeloop.schema.api.session_inputs import MessageWithParts, RunShell
from codeloop.schema.errors import CodeloopError, OperationError
from codeloop.schema.event import make_message_updated, make_part_updated
from codeloop.schema.ids import new_id, now_ms
from codeloop.schema.live_events import make_session_diff
from codeloop.schema.message import AssistantMessage, UserMessage
from codeloop.schema.part import (
    TextPart,
    ToolPart,
    ToolStart,
    ToolStateCompleted,
    ToolStateError,
    ToolStateRunning,
    ToolTime,
)
from codeloop.schema.permission import Need
from codeloop.schema.turns import COMMAND_NOTE
from codeloop.schema.wire import replace
from codeloop.tool.builtin.shell.bash import BashParams, bash
from codeloop.tool.tool import ToolFailure
from codeloop.tool.truncate import truncate_output


async def run_shell_command(project: Project, args: RunShell) -> MessageWithParts:
    """Run a command line in the session's shell; return the message with the call and its result.
    No model is asked.

    Since the user runs the command, no permission is asked, and undo does not touch its changes.
    Raises OperationError: no such session or agent, a command or an id that can't be used;
    SessionBusyError while a turn runs.
    """
    session = project.store.get_session(args.session_id)
    check_ids(project, args.message_id, ())
    if not args.command.strip() or "\0" in args.command:
        raise OperationError("BadRequest", "command is empty or holds a NUL character.")
    agent = choose_agent(project, session, args.agent)
    model = await choose_model(project, args, session, agent)
    if project.runs.is_running(session.id) or session.id in project.store.statuses:
        raise OperationError(
            "SessionBusyError", f"Session {session.id} is busy. Abort its turn first."
        )
    message = make_user_message(project, session.id, agent.name, model, args.message_id)
    command = _UserCommand(project, agent, message, args)
    try:
        settings = make_turn_settings(None, message, project)
    except CodeloopError:
        # No model is asked: a model that is not available only matters to a later prompt.
        settings = TurnSettings()
    stop = await asyncio.shield(project.runs.start_or_join_turn(session.id, settings, command.run))
    if command.result_message is None:
        raise OperationError(
            "UnknownError", f"The command was not run: {stop.message or stop.reason}"
        )
    return command.result_message


class _UserCommandContext(CallContext):
    """The context of a command that the user runs, which needs no permission."""

    async def ask(self, *_needs: Need) -> bool:
        """Return False: no question was asked."""
        return False


class _UserCommand:
    """One command of the user. `result_message`: the message with the result;
    None until the command has ended.
    """

    def __init__(
        self, project: Project, agent: Agent, message: UserMessage, args: RunShell
    ) -> None:
        self.result_message: MessageWithParts | None = None
        self._project = project
        self._agent = agent
        self._message = message
        self._line = args.command
        self._unsandboxed_reason = None if args.sandboxed else "a person runs it"

    async def run(self) -> None:
        """Store the messages, run the command and store its result.
        A cancelled command is stored as interrupted.
        """
        info, part = self._store_running_call()
        context = _UserCommandContext(self._project.engine, self._agent, part)
        params = BashParams(
            command=self._line,
            timeout=self._project.workspace.bounds.max_timeout_ms,
            outside=self._unsandboxed_reason,
            # A line in the sandbox checks what a model has written, and must not depend on the
            # directory and variables that earlier commands set.
            reset=not self._unsandboxed_reason,
        )
        try:
            result = await bash.run(params, context)
            bounds = self._project.workspace.bounds
            scratch = self._project.workspace.scratch
            result = truncate_output(
                result, scratch, "tail", lines=bounds.output_lines, size=bounds.output_bytes
            )
            self._store_result(info, _make_completed(part, result.output, result.metadata))
        except asyncio.CancelledError:
            state = context.part.state
            display = (state.metadata or {}) if isinstance(state, ToolStateRunning) else {}
            self._store_result(
                info,
                _make_completed(
                    part,
                    str(display.get("output", "")),
                    {**display, "exit": None, "interrupted": True},
                ),
            )
            raise
        except ToolFailure as error:
            time = ToolTime(start=info.time.created, end=max(now_ms(), info.time.created))
            state = ToolStateError(
                input=part.state.input, error=str(error), time=time, metadata=error.metadata
            )
            self._store_result(info, replace(part, state=state))
        finally:
            context.close()

    def _store_running_call(self) -> tuple[AssistantMessage, ToolPart]:
        """Store the user's message, then the answer with the running call;
        an undo before them becomes final.
        """
        store, message = self._project.store, self._message
        note = TextPart(
            id=new_id("prt"),
            session_id=message.session_id,
            message_id=message.id,
            text=COMMAND_NOTE,
            synthetic=True,
        )
        event = make_message_updated(message)
        discarded = make_discard_events(store, message.session_id)
        store.append(*discarded, event, make_part_updated(note))
        # The undo became final, so its diff is empty now.
        if discarded:
            store.publish_live(make_session_diff(message.session_id, []))
        store_command_title(self._project.engine, message.session_id, self._line)
        info = make_answer(self._project.engine, message.session_id, message)
        part = ToolPart(
            id=new_id("prt"),
            session_id=info.session_id,
            message_id=info.id,
            call_id=new_id("tool"),
            tool="bash",
            state=ToolStateRunning(
                input={"command": self._line}, time=ToolStart(start=info.time.created)
            ),
        )
        store.append(make_message_updated(info), make_part_updated(part))
        return info, part

    def _store_result(self, info: AssistantMessage, part: ToolPart) -> None:
        info = replace(info, time=replace(info.time, completed=max(now_ms(), info.time.created)))
        self._project.store.append(make_message_updated(info), make_part_updated(part))
        self.result_message = MessageWithParts(info=info, parts=[part])


def _make_completed(part: ToolPart, output: str, metadata: dict[str, object]) -> ToolPart:
    start = part.state.time.start if isinstance(part.state, ToolStateRunning) else now_ms()
    time = ToolTime(start=start, end=max(now_ms(), start))
    state = ToolStateCompleted(
        input=part.state.input, output=output, title="", metadata=metadata, time=time
    )
    return replace(part, state=state)
