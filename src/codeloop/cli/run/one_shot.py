"""What `codeloop run` does: opens the project, finds or creates the session, runs the turn, shows how it ended."""

import asyncio
import time
from contextlib import suppress
from functools import partial

from codeloop.cli import exit_codes
from codeloop.cli.follow.subagents import Background
from codeloop.cli.options import Options
from codeloop.cli.output.result import Outcome, make_unfinished
from codeloop.cli.output.streams import Outlet, has_terminal, standard
from codeloop.cli.output.view import View, ViewAbove, view_of
from codeloop.cli.questions.answerer import Answerer
from codeloop.cli.questions.prompter import QuestionPrompter
from codeloop.cli.run.message import RunMessage, is_stdin_unread, make_piped_file, parse_words, parts_of
from codeloop.cli.run.send import Sending, goal_of, send
from codeloop.cli.run.signals import Signals
from codeloop.cli.run.turn import RunTurn
from codeloop.cli.target.selection import check_agent, choose_session, model_of, session_of
from codeloop.cli.target.target import OpenTarget, asks_trust
from codeloop.client.client import Client
from codeloop.client.target import Target
from codeloop.extend.commands import COMPACT
from codeloop.schema.api.session_inputs import FilePartInput
from codeloop.schema.api.session_requests import ListMessages, SessionId
from codeloop.schema.errors import CodeloopError, UsageProblem
from codeloop.schema.ids import new_id
from codeloop.schema.operation import SESSION_DELETE, SESSION_MESSAGES
from codeloop.schema.wire import JSON, replace

NO_OUTPUT = "The turn ended without the output that --schema asks for."
UNREAD = "codeloop: stdout was closed before the answer was read."


async def execute(options: Options, message: RunMessage, open_target: OpenTarget) -> int:
    """Run one turn as the options say and return the exit code. A result is always shown, whatever happens."""
    outlet = Outlet(asyncio.get_running_loop())
    try:
        return await _execute(options, message, open_target, outlet)
    finally:
        outlet.abandon()


async def _execute(options: Options, message: RunMessage, open_target: OpenTarget, outlet: Outlet) -> int:
    start = time.monotonic()
    task = asyncio.current_task()
    signals = Signals(task.cancel if task is not None else lambda: False, outlet.shorten_waits)
    running = OneShot(options, open_target, signals, outlet)
    running.stdout.watch(asyncio.get_running_loop())
    try:
        outcome = await running.turn(message)
    except CodeloopError as error:
        outcome = make_unfinished("error", exit_codes.of_error(error), str(error), session_id=running.session_id)
    except asyncio.CancelledError:
        if not signals.name or signals.is_second:
            raise
        outcome = make_unfinished(
            "interrupted", exit_codes.INTERRUPTED, f"Interrupted ({signals.name}).", session_id=running.session_id
        )
    if not outcome.duration_ms:
        outcome = replace(outcome, duration_ms=int((time.monotonic() - start) * 1000))
    signals.act = lambda: None  # only waiting for a reader is left
    running.view.finish(outcome)
    await outlet.drain()
    signals.is_over = True
    if not running.stdout.has_lost:
        return outcome.exit_code
    if signals.name:
        return exit_codes.INTERRUPTED
    if outcome.exit_code == exit_codes.DONE:
        running.view.note(f"{UNREAD} Show it with: codeloop session show {outcome.session_id}")
        await outlet.drain()
    return outcome.exit_code or exit_codes.ERROR


class OneShot:
    """A run in progress: `view`, `stdout` and `session_id` as far as they are known."""

    def __init__(self, options: Options, open_target: OpenTarget, signals: Signals, outlet: Outlet) -> None:
        self._options = options
        self._open_target = open_target
        self._signals = signals
        self.stdout, self._stderr = standard(outlet)
        self._terminal = self._stderr if has_terminal() else None
        self._schema: JSON | None = None
        self.session_id = ""
        self._prompt_id = new_id("msg")
        self.view = self._view()

    async def turn(self, message: RunMessage) -> Outcome:
        """Open the project, find or create the session, run the turn. Raises CodeloopError."""
        if self._options.schema is not None:
            from codeloop.cli.run.schema import read_format

            self._schema = await read_format(self._options.schema)
        async with self._open_target(self._options, asks_trust(self._terminal)) as target:
            if target.link is not None:
                target.link.on_report = lambda text: self.view.note(f"codeloop: {text}")
            for note in target.notes:
                self.view.note(note)
            if is_stdin_unread(self._options):
                self.view.note("codeloop: stdin was not read. Add `-` to the message to read it.")
            try:
                return await self._turn(message, target)
            finally:
                for problem in target.problems():
                    self.view.note(f"codeloop: {problem}")

    async def _turn(self, message: RunMessage, target: Target) -> Outcome:
        options = self._options
        attachments = [target.attachment(path) for path in options.files]
        model_of(options.model)  # refuses an invalid name before a session is made
        choice = await choose_session(target, options)
        client = target.client if choice is None else target.client_of(choice)
        await check_agent(client, options.agent)
        command, arguments = await parse_words(client, options, message.words)
        if command == COMPACT.name and self._schema is not None:
            raise UsageProblem("`compact` gives no answer. Leave --schema out.")
        if command == COMPACT.name and choice is None:
            raise UsageProblem("`compact` summarizes a session: choose one with --continue or --session ID.")
        try:
            session = await session_of(client, options, choice)
            self.session_id = session.id
            self.view = self._view()
            prompter = QuestionPrompter(self._stderr)
            answerer = Answerer(prompter if self._terminal is not None else None, auto=options.auto)
            background = Background(waits=not options.no_wait, on_server=options.attach is not None)
            attach_flag = f" --attach {options.attach}" if options.attach is not None else ""
            resume = f"codeloop run{attach_flag} --session {session.id}"
            turn = RunTurn(client, session, ViewAbove(self.view, prompter), answerer, self.stdout, resume, background)
            sending = await self._read_message(client, message, command, arguments, attachments)
            call = partial(send, client, session.id, self._prompt_id, options, sending)
            outcome = await turn.run(self._prompt_id, call, options.timeout, self._signals)
            return outcome if self._schema is None else check_output(outcome)
        finally:
            if await discard_unused(client, self.session_id):
                self.session_id = ""

    async def _read_message(
        self,
        client: Client,
        message: RunMessage,
        command: str | None,
        arguments: str,
        attachments: list[FilePartInput],
    ) -> Sending:
        if command is not None:
            parts = [*([make_piped_file(message.piped)] if message.piped else []), *attachments]
        else:
            words = await parts_of(client, message, lambda text: self.view.note(f"codeloop: {text}"))
            parts = [*words, *attachments]
        return Sending(parts, has_terminal(), command, arguments, goal_of(self._options), self._schema)

    def _view(self) -> View:
        options = self._options
        return view_of(
            options.format,
            self.stdout,
            self._stderr,
            self.session_id,
            thinking=options.thinking,
            prompt_id=self._prompt_id,
            as_data=options.schema is not None,
        )


async def discard_unused(client: Client, session_id: str) -> bool:
    """Delete a session that was created for a prompt that could not be stored; return whether it was."""
    with suppress(CodeloopError):
        if session_id and not await client.call(SESSION_MESSAGES, ListMessages(session_id=session_id, limit=1)):
            await client.call(SESSION_DELETE, SessionId(session_id=session_id))
            return True
    return False


def check_output(outcome: Outcome) -> Outcome:
    """Return an outcome that is not done when the output that was asked for is missing."""
    if outcome.structured is not None or outcome.exit_code != exit_codes.DONE:
        return outcome
    return replace(outcome, reason="error", exit_code=exit_codes.UNSTRUCTURED, message=NO_OUTPUT)
