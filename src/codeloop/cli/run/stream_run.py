"""Runs `codeloop run` in the format stream-json: one session,
and a turn for each message of stdin.
"""

import asyncio
import sys
from functools import partial

from codeloop import __version__
from codeloop.cli import exit_codes
from codeloop.cli.follow.subagents import BackgroundPolicy
from codeloop.cli.option_values import Options
from codeloop.cli.output.result import Outcome, make_unfinished
from codeloop.cli.output.stream_json.stream_json_view import StreamJsonView
from codeloop.cli.output.streams import OutputQueue, can_ask_user, open_standard_streams
from codeloop.cli.questions.answerer import Answerer
from codeloop.cli.questions.host_answerer import HostAnswerer
from codeloop.cli.run.message import (
    OutgoingMessage,
    RunMessage,
    make_outgoing_message,
    parse_command,
    read_message,
    send_message,
)
from codeloop.cli.run.one_shot import check_structured_output, delete_unused_session
from codeloop.cli.run.signals import SignalHandlers
from codeloop.cli.run.stream_input import (
    PERMISSION_MODES,
    StreamControls,
    StreamInput,
    StreamMessage,
)
from codeloop.cli.run.turn import RunTurn
from codeloop.cli.target.open_target import OpenTarget
from codeloop.cli.target.selection import check_agent, choose_session, parse_model, prepare_session
from codeloop.client.client import Client
from codeloop.client.target import Target
from codeloop.schema.api.agents import AGENT_LIST, COMMAND_LIST
from codeloop.schema.api.config import CONFIG_GET
from codeloop.schema.api.mcp import MCP_STATUS
from codeloop.schema.api.project import TOOL_IDS
from codeloop.schema.api.providers import CONFIG_PROVIDERS, UsableProviders
from codeloop.schema.api.session_inputs import MessageWithParts, TextPartInput
from codeloop.schema.api.session_requests import SESSION_GET, SessionId
from codeloop.schema.errors import CodeloopError
from codeloop.schema.ids import new_id
from codeloop.schema.message import Session
from codeloop.schema.operation import NoArguments
from codeloop.schema.permission import PROFILE_KEY, parse_profile
from codeloop.schema.wire import replace


async def run_stream(options: Options, open_target: OpenTarget) -> int:
    """Run a turn for each message, and return the exit code.
    Each message gets a result, also when its turn fails.
    """
    output = OutputQueue(asyncio.get_running_loop())
    task = asyncio.current_task()
    signals = SignalHandlers(
        task.cancel if task is not None else lambda: False, output.shorten_waits
    )
    stream_run = StreamRun(options, open_target, signals, output)
    try:
        try:
            await stream_run.serve()
        except CodeloopError as error:
            stream_run.finish(
                make_unfinished("error", exit_codes.choose_error_code(error), str(error))
            )
        except asyncio.CancelledError:
            # Only a signal cancels the task; a second one ends the process without
            # waiting for anything.
            if not signals.name or signals.is_second:
                raise
            stream_run.interrupt(f"Interrupted ({signals.name}).")
        # The turns are over, so a signal has nothing to stop;
        # only a slow reader of stdout is waited for.
        signals.on_first = lambda: None
        await output.drain()
        signals.is_over = True
        return stream_run.exit_code
    finally:
        # A reader that has stopped reading must not keep the process from ending.
        output.abandon()


class StreamRun:
    """A run with its session. `exit_code`: that of the last turn that failed,
    unless the host interrupted it.
    """

    def __init__(
        self,
        options: Options,
        open_target: OpenTarget,
        signals: SignalHandlers,
        output: OutputQueue,
    ) -> None:
        self.exit_code = exit_codes.DONE
        self._options = options
        self._open_target = open_target
        self._signals = signals
        self._stdout, stderr = open_standard_streams(output)
        self._view = StreamJsonView(
            self._stdout,
            stderr,
            session_id="",
            is_result_only=options.format == "result",
            shows_deltas=options.partial,
        )
        self._answerer = Answerer(None, auto=options.auto)
        if options.permission_tool is not None:
            self._answerer = HostAnswerer(
                self._view.write_line, self._view.calls.get, auto=options.auto
            )
        self._controls = StreamControls(self._view, self._answerer, options)
        self._input = StreamInput(self._controls.handle_message, self._controls.refuse_questions)
        self._has_result = False

    def finish(self, outcome: Outcome) -> None:
        """Show the result of a turn."""
        self._has_result = True
        self._view.finish(outcome)
        if outcome.exit_code != exit_codes.DONE and not self._controls.is_interrupted:
            self.exit_code = outcome.exit_code

    def interrupt(self, message: str) -> None:
        """End the run by a signal that came while no turn ran."""
        # Every run has a result, also one without a message.
        if not self._has_result:
            self.finish(make_unfinished("interrupted", exit_codes.INTERRUPTED, message))
        self.exit_code = exit_codes.INTERRUPTED

    async def serve(self) -> None:
        """Open the project and the session, and answer every message. Raises CodeloopError."""
        options = self._options
        message = read_message(options) if options.input_format == "text" else None
        self._stdout.watch(asyncio.get_running_loop())
        async with self._open_target(options, None) as target:
            for note in target.notes:
                self._view.note(note)
            # Raises for an invalid name before a session is created.
            parse_model(options.model)
            chosen_session = await choose_session(target, options)
            client = (
                target.client
                if chosen_session is None
                else target.get_session_client(chosen_session)
            )
            await check_agent(client, options.agent)
            session = await prepare_session(client, options, chosen_session)
            self._view.session_id = session.id
            self._controls.client, self._controls.session = client, session
            try:
                await self._write_init(client, session)
                if message is not None:
                    await self._run_turn(target, message)
                elif sys.stdin is not None:
                    await self._run_all_turns(target, sys.stdin.fileno())
            finally:
                await delete_unused_session(client, session.id)
                for problem in target.list_problems():
                    self._view.note(f"codeloop: {problem}")

    async def _run_all_turns(self, target: Target, descriptor: int) -> None:
        """Run a turn for each message of a descriptor, until its end,
        a signal or the loss of the reader.
        """
        self._input.start(descriptor)
        while not (self._signals.name or self._stdout.is_closed):
            if (message := await self._input.queue.get()) is None:
                return
            await self._run_turn(target, message)

    async def _run_turn(self, target: Target, message: StreamMessage | RunMessage) -> None:
        """Run the turn of a message and show its result."""
        self._controls.is_interrupted = False
        if isinstance(message, StreamMessage) and message.problem:
            self._view.note(f"codeloop: {message.problem}")
            self.finish(make_unfinished("error", exit_codes.USAGE, message.problem))
            return
        if isinstance(message, StreamMessage) and self._options.replay_messages:
            self._view.write(
                "user", message=message.line["message"], parent_tool_use_id=None, isReplay=True
            )
        client, session = self._controls.require_session()
        attach_flag = (
            f" --attach {self._options.attach}" if self._options.attach is not None else ""
        )
        background = BackgroundPolicy(
            waits=not self._options.no_wait, on_server=self._options.attach is not None
        )
        prompt_id = new_id("msg")
        self._answerer.refusal = ""
        try:
            # The turn's cost is the growth of the session's sums, so they have to be up to date.
            session = await client.call(SESSION_GET, SessionId(session_id=session.id))
            turn = RunTurn(
                client,
                session,
                self._view,
                self._answerer,
                stdout=self._stdout,
                resume_command=f"codeloop run{attach_flag} --session {session.id}",
                background=background,
            )
            self._controls.turn = turn
            send = partial(self._send_message, target, session.id, message, prompt_id)
            outcome = await turn.run(prompt_id, send, self._options.timeout, self._signals)
            if self._options.schema is not None:
                outcome = check_structured_output(outcome)
        except CodeloopError as error:
            outcome = make_unfinished(
                "error", exit_codes.choose_error_code(error), str(error), session_id=session.id
            )
        finally:
            self._controls.turn = None
        self.finish(outcome)

    async def _send_message(
        self, target: Target, session_id: str, message: StreamMessage | RunMessage, prompt_id: str
    ) -> MessageWithParts:
        """Send a message, or the command that it calls; return the answer when the turn ends."""
        # Read for each message: the host may have changed the model.
        options, client = self._controls.options, self._controls.require_session()[0]
        answer_format = None
        if options.schema is not None:
            from codeloop.cli.run.output_schema import read_answer_format

            answer_format = await read_answer_format(options.schema)
        if isinstance(message, StreamMessage):
            # Only a message of one text can call a command.
            # Nothing is attached: stream-json input excludes --file.
            text = (
                message.parts[0].text
                if len(message.parts) == 1 and isinstance(message.parts[0], TextPartInput)
                else ""
            )
            command, arguments = await parse_command(
                client, replace(options, message=(text,)), text
            )
            outgoing = OutgoingMessage(
                parts=message.parts if command is None else [],
                is_attended=can_ask_user(),
                command=command,
                arguments=arguments,
                format=answer_format,
            )
        else:
            outgoing = await make_outgoing_message(
                client,
                options,
                message,
                await parse_command(client, options, message.words),
                [target.attach_file(path) for path in options.files],
                answer_format,
                note=lambda text: self._view.note(f"codeloop: {text}"),
            )
        return await send_message(client, session_id, prompt_id, options, outgoing)

    async def _write_init(self, client: Client, session: Session) -> None:
        """Write the first line: the session's tools, commands, agents and MCP servers,
        its model and permissions.
        """
        no_arguments = NoArguments()
        tools, servers, commands, agents, settings, providers = await asyncio.gather(
            client.call(TOOL_IDS, no_arguments),
            client.call(MCP_STATUS, no_arguments),
            client.call(COMMAND_LIST, no_arguments),
            client.call(AGENT_LIST, no_arguments),
            client.call(CONFIG_GET, no_arguments),
            client.call(CONFIG_PROVIDERS, no_arguments),
        )
        profile = (session.metadata or {}).get(PROFILE_KEY) or settings.get(PROFILE_KEY) or "auto"
        modes_by_profile = {mode_profile: mode for mode, mode_profile in PERMISSION_MODES.items()}
        mode = (
            "bypassPermissions"
            if self._options.auto
            else modes_by_profile.get(parse_profile(profile) or "", "default")
        )
        self._view.write(
            "system",
            subtype="init",
            cwd=session.directory,
            model=self._options.model or settings.get("model") or _find_default_model(providers),
            tools=tools,
            mcp_servers=[
                {"name": name, "status": status.status} for name, status in servers.items()
            ],
            slash_commands=[command.name for command in commands],
            agents=[agent.name for agent in agents if not agent.hidden],
            permissionMode=mode,
            apiKeySource="none",
            output_style="default",
            codeloop_version=__version__,
        )


def _find_default_model(providers: UsableProviders) -> str:
    """Return the `PROVIDER/MODEL` that is used if none was chosen; "" if there is none."""
    provider_id = providers.providers[0].id if providers.providers else ""
    return (
        f"{provider_id}/{providers.default[provider_id]}"
        if provider_id in providers.default
        else ""
    )
