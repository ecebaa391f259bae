"""Runs the checks of a goal as calls of the tool `bash`: in the sandbox,
in a shell of their own.
"""

import asyncio
from collections.abc import Sequence

from codeloop.agent.answer.answer_lifecycle import make_answer
from codeloop.agent.calls.call_context import CallContext
from codeloop.agent.engine import Engine
from codeloop.permission.gate import Denied, Rejected
from codeloop.permission.rules import judge_need
from codeloop.schema.api.agents import Agent
from codeloop.schema.errors import HookRefused
from codeloop.schema.event import make_message_updated, make_part_updated
from codeloop.schema.ids import new_id, now_ms
from codeloop.schema.message import AssistantMessage
from codeloop.schema.part import (
    CHECK_KEY,
    TextPart,
    ToolPart,
    ToolStart,
    ToolStateCompleted,
    ToolStateError,
    ToolStateRunning,
    ToolTime,
)
from codeloop.schema.permission import Need
from codeloop.schema.wire import JSON, replace
from codeloop.store.conversation import make_next_prompt
from codeloop.tool.builtin.shell.bash import BashParams, bash
from codeloop.tool.tool import ToolFailure
from codeloop.tool.truncate import truncate_output

CHECKS_NOTE = "codeloop ran the checks of the goal itself; the results below are what they printed."

# Added to a session's id to name the shell in which its checks run.
_SHELL_SUFFIX = ".checks"


class CheckContext(CallContext):
    """The context of a check. The user's command is not asked about, only denied;
    the model's has to be allowed.

    The check runs in a shell of its own, because the model may have set directory and
    variables of the session's shell.
    `is_stored`: whether the run is stored, so that clients know the call whose
    progress they are shown.
    `is_from_user`: whether the command comes from the user.
    `home`: the name of a home that only checks see.
    """

    def __init__(
        self,
        engine: Engine,
        agent: Agent,
        part: ToolPart,
        *,
        is_stored: bool,
        is_from_user: bool,
        home: str,
    ) -> None:
        super().__init__(engine, agent, part)
        self.session.private_home = home
        self.session_id = f"{part.session_id}{_SHELL_SUFFIX}"
        self._is_stored = is_stored
        self._is_from_user = is_from_user

    async def ask(self, *needs: Need) -> bool:
        """Return whether somebody was asked. Raises Denied, Rejected."""
        if self._is_from_user:
            # The user wrote the command, which answers every question;
            # what rules deny stays denied.
            for need in needs:
                verdict, _ = judge_need(need, self._rules.current.lists)
                if verdict.action == "deny":
                    raise Denied(need, verdict)
            return False
        # The question is one of the session; only its shell has another id.
        shell_session_id, self.session_id = (
            self.session_id,
            self.session_id.removesuffix(_SHELL_SUFFIX),
        )
        try:
            return await super().ask(*needs)
        finally:
            self.session_id = shell_session_id

    def report(self, *, title: str | None = None, metadata: JSON | None = None) -> None:
        """Show progress, unless nothing of the run is stored."""
        if self._is_stored:
            super().report(title=title, metadata=metadata)


async def end_background(engine: Engine, session_id: str) -> None:
    """Wait for subagents at work, and end background commands: nothing may change
    files while a check runs.
    """

    def is_in_tree(other_session_id: str) -> bool:
        """Return whether a session is this one or below it."""
        return any(
            session.id == session_id for session in engine.store.walk_ancestors(other_session_id)
        )

    # Subagents are awaited, since their work belongs to the turn; commands may never end.
    working: Sequence[asyncio.Task[object]] = [
        task
        for each in engine.supervisor.list_busy_sessions()
        if is_in_tree(each) and (task := engine.supervisor.find_task(each))
    ]
    if working:
        await asyncio.wait(working)
    for job in engine.workspace.shells.jobs.list_jobs():
        if is_in_tree(job.session):
            await job.kill()


async def run_checks_unstored(
    engine: Engine, session_id: str, agent: str, commands: Sequence[str], *, home: str = ""
) -> list[ToolPart]:
    """Run the user's checks before the first round, without storing them;
    return a completed or failed part of each.

    `home`: as in CheckContext; "": the home of all commands.
    """
    parts = [_make_part(session_id, new_id("msg"), command) for command in commands]
    return [await _run(engine, agent, part, is_stored=False, home=home) for part in parts]


async def run_and_store_checks(
    engine: Engine, session_id: str, commands: Sequence[str], *, is_from_user: bool, home: str = ""
) -> list[ToolPart]:
    """Run checks, store them in an answer of their own to a note that codeloop writes,
    and return their parts.

    The model reads both. A cancelled run completes the answer, too.
    `is_from_user`: the commands come from the user, not from the model.
    `home`: as in `run_checks_unstored`.
    """
    message = make_next_prompt(engine.store.read_context(session_id))
    note = TextPart(
        id=new_id("prt"),
        session_id=session_id,
        message_id=message.id,
        text=CHECKS_NOTE,
        synthetic=True,
    )
    engine.store.append(make_message_updated(message), make_part_updated(note))
    info = make_answer(engine, session_id, message)
    engine.store.append(make_message_updated(info))
    parts: list[ToolPart] = []
    try:
        for command in commands:
            part = _make_part(session_id, info.id, command)
            engine.store.append(make_part_updated(part))
            try:
                part = await _run(engine, info.agent, part, is_from_user=is_from_user, home=home)
            except asyncio.CancelledError:
                engine.store.append(
                    make_part_updated(_complete(part, "", {"exit": None, "interrupted": True}))
                )
                raise
            # An extension ends the turn.
            except HookRefused as error:
                engine.store.append(make_part_updated(_make_failed_part(part, error)))
                raise
            engine.store.append(make_part_updated(part))
            parts.append(part)
    finally:
        engine.store.append(make_message_updated(_close(info)))
    return parts


def _close(info: AssistantMessage) -> AssistantMessage:
    return replace(info, time=replace(info.time, completed=max(now_ms(), info.time.created)))


def _make_part(session_id: str, message_id: str, command: str) -> ToolPart:
    state = ToolStateRunning(input={"command": command}, time=ToolStart(start=now_ms()))
    return ToolPart(
        id=new_id("prt"),
        session_id=session_id,
        message_id=message_id,
        call_id=new_id("tool"),
        tool="bash",
        state=state,
    )


async def _run(
    engine: Engine,
    agent: str,
    part: ToolPart,
    *,
    is_stored: bool = True,
    is_from_user: bool = True,
    home: str,
) -> ToolPart:
    is_user, called_agent = is_from_user, engine.get_agent(agent)
    context = CheckContext(
        engine, called_agent, part, is_stored=is_stored, is_from_user=is_user, home=home
    )
    workspace = engine.workspace
    command = str(part.state.input["command"])
    params = BashParams(
        command=command,
        timeout=workspace.bounds.max_timeout_ms,
        reset=True,
        workdir=str(workspace.directory),
    )
    try:
        result = await bash.run(params, context)
    except HookRefused as error:
        if error.ends:
            raise
        return _make_failed_part(part, error)
    except (ToolFailure, Denied, Rejected) as error:
        return _make_failed_part(part, error)
    finally:
        context.close()
    # Nothing may change files while other checks run, so it does not go on in the background.
    if (job := workspace.shells.jobs.find_job(str(result.metadata.get("id") or ""))) is not None:
        await job.kill()
    result = truncate_output(
        result,
        workspace.scratch,
        "tail",
        lines=workspace.bounds.output_lines,
        size=workspace.bounds.output_bytes,
    )
    return _complete(part, result.output, result.metadata)


def _make_failed_part(
    part: ToolPart, error: ToolFailure | Denied | HookRefused | Rejected
) -> ToolPart:
    """Return the part of a check that could not be run, or was refused (`denied`).

    A bare no counts as refused, too: unlike a no to a call of the model, it does not end the turn.
    """
    time = ToolTime(start=_get_start_time(part), end=max(now_ms(), _get_start_time(part)))
    metadata: JSON = (
        {CHECK_KEY: True} if isinstance(error, ToolFailure) else {CHECK_KEY: True, "denied": True}
    )
    state = ToolStateError(input=part.state.input, error=str(error), metadata=metadata, time=time)
    return replace(part, state=state)


def _complete(part: ToolPart, output: str, metadata: JSON) -> ToolPart:
    time = ToolTime(start=_get_start_time(part), end=max(now_ms(), _get_start_time(part)))
    metadata = {**metadata, CHECK_KEY: True}
    state = ToolStateCompleted(
        input=part.state.input, output=output, title="", metadata=metadata, time=time
    )
    return replace(part, state=state)


def _get_start_time(part: ToolPart) -> int:
    return part.state.time.start if isinstance(part.state, ToolStateRunning) else now_ms()
