"""What `codeloop run` does: opens the project, finds or makes the session, runs the turn, tells how it ended."""

import asyncio
import sys
import time
from contextlib import suppress
from typing import Any

from codeloop.cli import exits
from codeloop.cli.ask import Answerer
from codeloop.cli.chosen import check_agent, known, model_of, session_of
from codeloop.cli.exits import UsageProblem
from codeloop.cli.message import is_stdin_unread
from codeloop.cli.outcome import Outcome, unfinished
from codeloop.cli.output import Outlet, standard
from codeloop.cli.reached import Reach, Reached
from codeloop.cli.run import Options
from codeloop.cli.shown import view_of
from codeloop.cli.signals import Signals
from codeloop.cli.turn import Turn
from codeloop.cli.view import View
from codeloop.client.client import Client
from codeloop.schema.errors import CodeloopError
from codeloop.schema.operation import COMMAND, PROMPT, SESSION_DELETE, SESSION_MESSAGES
from codeloop.schema.prompts import PartInput, RunLimits, TextInput
from codeloop.schema.wire import replace

LOCAL_ONLY = ("trust", "config", "record", "replay")
"""Flags that change how a project is opened, which a server has done already."""
ATTACHED_ONLY = ("username", "password")


def check_flags(options: Options) -> None:
    """See that the flags go together with where the turn runs. Raises UsageProblem."""
    for name in LOCAL_ONLY if options.attach is not None else ATTACHED_ONLY:
        if getattr(options, name):
            other = "works in this process only" if options.attach is not None else "belongs to --attach"
            raise UsageProblem(
                f"--{name} {other}. Leave it out, or run {'without' if options.attach else 'with'} --attach."
            )


async def execute(options: Options, message: str, reach: Reach) -> int:
    """Run one turn as the flags say and give the exit code. A result is always shown, whatever happened.

    `reach`: where the turn runs.
    """
    outlet = Outlet(asyncio.get_running_loop())
    try:
        return await _executed(options, message, reach, outlet)
    finally:
        outlet.abandon()


async def _executed(options: Options, message: str, reach: Reach, outlet: Outlet) -> int:
    start = time.monotonic()
    task = asyncio.current_task()
    signals = Signals(task.cancel if task is not None else lambda: False, outlet.hurry)
    running = Running(options, reach, signals, outlet)
    try:
        outcome = await running.turn(message)
    except CodeloopError as error:
        outcome = unfinished("error", exits.of_error(error), str(error), session_id=running.session_id)
    except asyncio.CancelledError:
        if not signals.name or signals.is_second:
            raise
        outcome = unfinished(
            "interrupted", exits.INTERRUPTED, f"Interrupted ({signals.name}).", session_id=running.session_id
        )
    if not outcome.duration_ms:
        outcome = replace(outcome, duration_ms=int((time.monotonic() - start) * 1000))
    signals.act = lambda: None  # only the wait for a reader is left to end
    running.view.finish(outcome)
    await outlet.drain()
    signals.is_told = True
    return exits.INTERRUPTED if signals.name and running.stdout.closed else outcome.exit_code


class Running:
    """A command on its way: `view`, `stdout` and `session_id` are what is known of it so far."""

    def __init__(self, options: Options, reach: Reach, signals: Signals, outlet: Outlet) -> None:
        self._options = options
        self._reach = reach
        self._signals = signals
        self.stdout, self._stderr = standard(outlet)
        self._terminal = self._stderr if has_terminal() else None
        self.session_id = ""
        self.view = self._view()

    async def turn(self, message: str) -> Outcome:
        """Reach the project, find or make the session, run the turn. Raises CodeloopError."""
        async with self._reach(self._options, self._terminal) as reached:
            for note in reached.notes:
                self.view.note(note)
            if is_stdin_unread(self._options):
                self.view.note("codeloop: stdin was not read; a message of `-`, beside other words too, reads it.")
            return await self._turn(message, reached)

    async def _turn(self, message: str, reached: Reached) -> Outcome:
        options = self._options
        said = (PROMPT, _prompt(options, message, reached))
        if options.command is not None:
            said = (COMMAND, _command(options, options.command, message, reached))
        found = await known(reached, options)
        client = reached.client if found is None else reached.client_of(found)
        await check_agent(client, options.agent)
        try:
            session = await session_of(client, options, found)
            self.session_id = session.id
            self.view = self._view()
            answerer = Answerer(self._terminal, auto=options.auto)
            turn = Turn(client, session.id, self.view, answerer, self.stdout)
            return await turn.run(said, options.timeout, self._signals)
        finally:
            await self._keep(client)

    async def _keep(self, client: Client) -> None:
        """Remove a session that was made for a prompt that could not even be stored."""
        with suppress(CodeloopError):
            if self.session_id and not await client.call(SESSION_MESSAGES, session_id=self.session_id, limit=1):
                await client.call(SESSION_DELETE, session_id=self.session_id)
                self.session_id = ""

    def _view(self) -> View:
        options = self._options
        return view_of(options.format, self.stdout, self._stderr, self.session_id, thinking=options.thinking)


def _prompt(options: Options, message: str, reached: Reached) -> dict[str, Any]:
    parts: list[PartInput] = [TextInput(text=message)] if message else []
    parts += [reached.attachment(path) for path in options.files]
    return {"parts": parts, "model": model_of(options.model), "agent": options.agent, "limits": _limits(options)}


def _command(options: Options, name: str, arguments: str, reached: Reached) -> dict[str, Any]:
    model_of(options.model)
    return {
        "command": name.removeprefix("/"),
        "arguments": arguments,
        "parts": [reached.attachment(path) for path in options.files],
        "model": options.model,
        "agent": options.agent,
        "limits": _limits(options),
    }


def has_terminal() -> bool:
    """Tell whether somebody is there who can be asked."""
    return all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stderr))


def _limits(options: Options) -> RunLimits:
    return RunLimits(
        steps=options.max_steps,
        cost=options.max_cost,
        tokens=options.max_tokens,
        compact=not options.no_compact,
        attended=has_terminal(),
    )
