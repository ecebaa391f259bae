"""What `codeloop run` does: opens the project, finds or makes the session, runs the turn, tells how it ended."""

import asyncio
import sys
import time
from contextlib import suppress
from functools import partial

from codeloop.cli import exit_codes
from codeloop.cli.exit_codes import UsageProblem
from codeloop.cli.lazy import load
from codeloop.cli.output.shown import view_of
from codeloop.cli.output.standing import Standing
from codeloop.cli.output.streams import Outlet, standard
from codeloop.cli.output.view import View
from codeloop.cli.questions.answerer import Answerer
from codeloop.cli.run.background import Background
from codeloop.cli.run.message import Message, is_stdin_unread, message_of
from codeloop.cli.run.options import Options
from codeloop.cli.run.result import Outcome, unfinished
from codeloop.cli.run.signals import Signals, to_the_end
from codeloop.cli.run.turn import Turn
from codeloop.cli.run.typed import Typed, pieces, piped_file, typed
from codeloop.cli.target.selection import check_agent, known, model_of, session_of
from codeloop.cli.target.target import Reach, Reached
from codeloop.client.client import Client
from codeloop.extend.commands import COMPACT
from codeloop.schema.api.session_inputs import (
    FilePartInput,
    InvokeCommand,
    MessageWithParts,
    Prompt,
    RunLimits,
)
from codeloop.schema.api.session_requests import ListMessages, SessionId
from codeloop.schema.errors import CodeloopError
from codeloop.schema.ids import new_id
from codeloop.schema.operation import COMMAND, PROMPT, SESSION_DELETE, SESSION_MESSAGES
from codeloop.schema.wire import replace

LOCAL_ONLY = ("trust", "config", "record", "replay", "force")
"""Flags that change how a project is opened, which a server has done already."""
UNREAD = "codeloop: Nobody read the answer: stdout was closed."
ATTACHED_ONLY = ("username", "password")


def check_flags(options: Options) -> None:
    """See that the flags go together with where the turn runs. Raises UsageProblem."""
    for name in LOCAL_ONLY if options.attach is not None else ATTACHED_ONLY:
        if getattr(options, name):
            other = "works in this process only" if options.attach is not None else "belongs to --attach"
            raise UsageProblem(
                f"--{name} {other}. Leave it out, or run {'without' if options.attach else 'with'} --attach."
            )
    if options.record is not None and options.replay is not None:
        raise UsageProblem("--record and --replay exclude each other: a replay asks no model. Leave one of them out.")
    if options.force and options.record is None:
        raise UsageProblem("--force belongs to --record. Leave it out.")


def run_once(options: Options) -> int:
    """Run one turn as the flags say and return the exit code; how it ended is always shown."""

    def command() -> int:
        check_flags(options)
        reach: Reach = load("target.local:here" if options.attach is None else "target.remote:there")
        return asyncio.run(execute(options, message_of(options), reach))

    return to_the_end(options.format, command)


async def execute(options: Options, message: Message, reach: Reach) -> int:
    """Run one turn as the flags say and give the exit code. A result is always shown, whatever happened.

    `reach`: where the turn runs.
    """
    outlet = Outlet(asyncio.get_running_loop())
    try:
        return await _executed(options, message, reach, outlet)
    finally:
        outlet.abandon()


async def _executed(options: Options, message: Message, reach: Reach, outlet: Outlet) -> int:
    start = time.monotonic()
    task = asyncio.current_task()
    signals = Signals(task.cancel if task is not None else lambda: False, outlet.hurry)
    running = Running(options, reach, signals, outlet)
    running.stdout.watch(asyncio.get_running_loop())
    try:
        outcome = await running.turn(message)
    except CodeloopError as error:
        outcome = unfinished("error", exit_codes.of_error(error), str(error), session_id=running.session_id)
    except asyncio.CancelledError:
        if not signals.name or signals.is_second:
            raise
        outcome = unfinished(
            "interrupted", exit_codes.INTERRUPTED, f"Interrupted ({signals.name}).", session_id=running.session_id
        )
    if not outcome.duration_ms:
        outcome = replace(outcome, duration_ms=int((time.monotonic() - start) * 1000))
    signals.act = lambda: None  # only the wait for a reader is left to end
    running.view.finish(outcome)
    await outlet.drain()
    signals.is_told = True
    if not running.stdout.has_lost:
        return outcome.exit_code
    if signals.name:
        return exit_codes.INTERRUPTED
    if outcome.exit_code == exit_codes.DONE:
        running.view.note(f"{UNREAD} It is stored: codeloop session show {outcome.session_id}")
        await outlet.drain()
    return outcome.exit_code or exit_codes.ERROR


class Running:
    """A command on its way: `view`, `stdout` and `session_id` are what is known of it so far."""

    def __init__(self, options: Options, reach: Reach, signals: Signals, outlet: Outlet) -> None:
        self._options = options
        self._reach = reach
        self._signals = signals
        self.stdout, self._stderr = standard(outlet)
        self._terminal = self._stderr if has_terminal() else None
        self.session_id = ""
        self._prompt_id = new_id("msg")
        self.view = self._view()

    async def turn(self, message: Message) -> Outcome:
        """Reach the project, find or make the session, run the turn. Raises CodeloopError."""
        async with self._reach(self._options, self._terminal) as reached:
            if reached.link is not None:
                reached.link.heard = lambda text: self.view.note(f"codeloop: {text}")
            for note in reached.notes:
                self.view.note(note)
            if is_stdin_unread(self._options):
                self.view.note("codeloop: stdin was not read; a message of `-`, beside other words too, reads it.")
            try:
                return await self._turn(message, reached)
            finally:
                for problem in reached.problems():
                    self.view.note(f"codeloop: {problem}")

    async def _turn(self, message: Message, reached: Reached) -> Outcome:
        options = self._options
        attachments = [reached.attachment(path) for path in options.files]
        model_of(options.model)  # a name of another form is refused before a session is made
        found = await known(reached, options)
        client = reached.client if found is None else reached.client_of(found)
        await check_agent(client, options.agent)
        meant = await typed(client, options, message.words)
        if meant.command == COMPACT.name and found is None:
            raise UsageProblem("`compact` summarises a session: say which one with --continue or --session ID.")
        try:
            session = await session_of(client, options, found)
            self.session_id = session.id
            self.view = self._view()
            standing = Standing(self.view, self._stderr)
            answerer = Answerer(self._terminal, auto=options.auto, asker=standing.ask)
            background = Background(waits=not options.no_wait, on_server=options.attach is not None)
            attached = f" --attach {options.attach}" if options.attach is not None else ""
            resume = f"codeloop run{attached} --session {session.id}"
            turn = Turn(client, session, standing, answerer, self.stdout, resume, background)
            send = partial(self._send, client, message, meant, attachments)
            return await turn.run(self._prompt_id, send, options.timeout, self._signals)
        finally:
            await self._keep(client)

    async def _send(
        self, client: Client, message: Message, meant: Typed, attachments: list[FilePartInput]
    ) -> MessageWithParts:
        """Send what the flags say, a prompt or a command, and return what is answered when the turn ends."""
        options = self._options
        if meant.command is None:
            parts = await pieces(client, message, lambda text: self.view.note(f"codeloop: {text}"))
            prompt = Prompt(
                session_id=self.session_id,
                message_id=self._prompt_id,
                parts=[*parts, *attachments],
                model=model_of(options.model),
                agent=options.agent,
                limits=_limits(options),
            )
            return await client.call(PROMPT, prompt)
        command = InvokeCommand(
            session_id=self.session_id,
            message_id=self._prompt_id,
            command=meant.command,
            arguments=meant.words,
            parts=[*([piped_file(message.piped)] if message.piped else []), *attachments],
            model=options.model,
            agent=options.agent,
            limits=_limits(options),
        )
        return await client.call(COMMAND, command)

    async def _keep(self, client: Client) -> None:
        """Remove a session that was made for a prompt that could not even be stored."""
        with suppress(CodeloopError):
            if self.session_id and not await client.call(
                SESSION_MESSAGES, ListMessages(session_id=self.session_id, limit=1)
            ):
                await client.call(SESSION_DELETE, SessionId(session_id=self.session_id))
                self.session_id = ""

    def _view(self) -> View:
        options = self._options
        return view_of(
            options.format,
            self.stdout,
            self._stderr,
            self.session_id,
            thinking=options.thinking,
            prompt_id=self._prompt_id,
        )


def has_terminal() -> bool:
    """Return whether somebody is there who can be asked."""
    return all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stderr))


def _limits(options: Options) -> RunLimits:
    return RunLimits(
        steps=options.max_steps,
        cost=options.max_cost,
        tokens=options.max_tokens,
        compact=not options.no_compact,
        attended=has_terminal(),
    )
