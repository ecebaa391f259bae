"""Runs `codeloop run` in the format stream-json: one session,
and a turn for each message of stdin.
"""

import asyncio
import sys
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, NamedTuple

from codeloop import __version__
from codeloop.cli import exit_codes
from codeloop.cli.follow.subagents import BackgroundPolicy
from codeloop.cli.options import Options
from codeloop.cli.output.result import Outcome, make_unfinished
from codeloop.cli.output.stream_json.stream_json_view import StreamJsonView
from codeloop.cli.output.streams import OutputQueue, can_ask_user, open_standard_streams
from codeloop.cli.questions.answerer import Answerer
from codeloop.cli.questions.host_answerer import HostAnswerer
from codeloop.cli.run.message import RunMessage, make_outgoing_message, parse_command, read_message
from codeloop.cli.run.one_shot import check_structured_output, delete_unused_session
from codeloop.cli.run.send import OutgoingMessage, send_message
from codeloop.cli.run.signals import SignalHandlers
from codeloop.cli.run.stream_control import PERMISSION_MODES, StreamControls
from codeloop.cli.run.turn import RunTurn
from codeloop.cli.target.open_target import OpenTarget
from codeloop.cli.target.selection import check_agent, choose_session, parse_model, prepare_session
from codeloop.client.client import Client
from codeloop.client.target import Target
from codeloop.client.wire.stdio_lines import start_line_reader
from codeloop.kit.jsonc import is_list, is_object
from codeloop.schema.api.agents import AGENT_LIST, COMMAND_LIST
from codeloop.schema.api.config import CONFIG_GET
from codeloop.schema.api.mcp import MCP_STATUS
from codeloop.schema.api.project import TOOL_IDS
from codeloop.schema.api.providers import CONFIG_PROVIDERS, UsableProviders
from codeloop.schema.api.session_inputs import (
    FilePartInput,
    MessageWithParts,
    PartInput,
    TextPartInput,
)
from codeloop.schema.api.session_requests import SESSION_GET, SessionId
from codeloop.schema.bounds.automation import STREAM_WAITING
from codeloop.schema.errors import CodeloopError, UsageProblem
from codeloop.schema.ids import new_id
from codeloop.schema.message import Session
from codeloop.schema.operation import NoArguments
from codeloop.schema.permission import PROFILE_KEY, parse_profile
from codeloop.schema.wire import DECODE_ERRORS, JSON, decode_json, replace

_EXAMPLE_LINE = '{"type":"user","message":{"role":"user","content":"fix the failing test"}}'

_ControlHandler = Callable[[JSON], Coroutine[Any, Any, None]]


class _StreamMessage(NamedTuple):
    """A line of stdin: the `parts` of its prompt and the decoded `line`,
    or the `problem` that makes it invalid.
    """

    parts: list[PartInput]
    line: JSON
    problem: str = ""


class StreamInput:
    """Reads lines of stdin. `queue`: the messages that wait for their turn;
    None in it is the end of stdin.

    `handle_control`: called with each control message. `on_end`: called at the end of stdin.
    """

    def __init__(self, handle_control: _ControlHandler, on_end: Callable[[], None]) -> None:
        self.queue: asyncio.Queue[_StreamMessage | None] = asyncio.Queue(STREAM_WAITING.value)
        self._handle_control = handle_control
        self._on_end = on_end
        # The number of the current line, for errors about it.
        self._line_number = 0

    def start(self, descriptor: int) -> None:
        """Start to read from a descriptor. While STREAM_WAITING messages wait, it is not read."""
        start_line_reader(descriptor, self._handle_line)

    async def _handle_line(self, line: bytes | None) -> None:
        if line is None:
            # Called first: a turn that waits for a permission would never get to
            # the end of the queue.
            self._on_end()
            await self.queue.put(None)
            return
        self._line_number += 1
        try:
            document = _decode(line)
            if document.get("type") in {
                "control_request",
                "control_response",
                "control_cancel_request",
            }:
                await self._handle_control(document)
                return
            if document.get("type") == "keep_alive":
                return
            message = _StreamMessage(_read_parts(document), document)
        except UsageProblem as error:
            message = _StreamMessage(
                [], {}, f"Message {self._line_number} of stdin was not sent: {error}"
            )
        await self.queue.put(message)


def _decode(line: bytes) -> JSON:
    try:
        message = decode_json(line)
    except DECODE_ERRORS as error:
        raise UsageProblem(
            f"the line is not JSON ({error}). A message is one line, as {_EXAMPLE_LINE}"
        ) from None
    if not is_object(message):
        raise UsageProblem(f"the line is not an object. A message is one, as {_EXAMPLE_LINE}")
    return message


def _read_parts(line: JSON) -> list[PartInput]:
    """Return the parts of the prompt in a line of the type `user`.
    Raises UsageProblem for any other line.
    """
    if line.get("type") != "user":
        raise UsageProblem(
            f"its type is {line.get('type')!r}. It is `user` for a message, as {_EXAMPLE_LINE}"
        )
    message = line.get("message")
    content = message.get("content") if is_object(message) else None
    if isinstance(content, str):
        content = [{"type": "text", "text": content}]
    if not is_list(content):
        raise UsageProblem(
            f"`message.content` is neither a text nor a list of blocks, as in {_EXAMPLE_LINE}"
        )
    parts = [_read_block(block, index) for index, block in enumerate(content)]
    if not any(not isinstance(part, TextPartInput) or part.text.strip() for part in parts):
        raise UsageProblem("`message.content` is empty. Give it a text.")
    return parts


def _read_block(block: Any, index: int) -> PartInput:
    """Convert a content block to a part of a prompt. Raises UsageProblem;
    `index` is for its message.
    """
    location = f"`message.content[{index}]`"
    kind = block.get("type") if is_object(block) else None
    if kind == "text" and isinstance(text := block.get("text"), str):
        return TextPartInput(text=text)
    if kind not in {"image", "document"}:
        raise UsageProblem(f"{location} is not a block of the type `text`, `image` or `document`.")
    match block.get("source"):
        case {"type": "base64", "media_type": str(mime), "data": str(data)}:
            return FilePartInput(
                mime=mime, url=f"data:{mime};base64,{data}", filename=block.get("title")
            )
        case {"type": "text", "data": str(data)}:
            return TextPartInput(text=data)
        case _:
            form = '{"type":"base64","media_type":"...","data":"..."}'
            raise UsageProblem(f"{location} has no source of the form {form}.")


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

    async def _run_turn(self, target: Target, message: _StreamMessage | RunMessage) -> None:
        """Run the turn of a message and show its result."""
        self._controls.is_interrupted = False
        if isinstance(message, _StreamMessage) and message.problem:
            self._view.note(f"codeloop: {message.problem}")
            self.finish(make_unfinished("error", exit_codes.USAGE, message.problem))
            return
        if isinstance(message, _StreamMessage) and self._options.replay_messages:
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
        self, target: Target, session_id: str, message: _StreamMessage | RunMessage, prompt_id: str
    ) -> MessageWithParts:
        """Send a message, or the command that it calls; return the answer when the turn ends."""
        # Read for each message: the host may have changed the model.
        options, client = self._controls.options, self._controls.require_session()[0]
        answer_format = None
        if options.schema is not None:
            from codeloop.cli.run.output_schema import read_answer_format

            answer_format = await read_answer_format(options.schema)
        if isinstance(message, _StreamMessage):
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
