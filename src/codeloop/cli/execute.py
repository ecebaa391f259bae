"""What `codeloop run` does: opens the project, finds or makes the session, runs the turn, tells how it ended."""

import asyncio
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from codeloop.app.attach import mime_of
from codeloop.app.project import Project, Startup
from codeloop.cli import exits
from codeloop.cli.ask import Answerer
from codeloop.cli.exits import UsageProblem
from codeloop.cli.message import is_stdin_unread
from codeloop.cli.opened import find, fork
from codeloop.cli.outcome import Outcome, unfinished
from codeloop.cli.output import Outlet, standard
from codeloop.cli.run import Options
from codeloop.cli.shown import view_of
from codeloop.cli.signals import Signals
from codeloop.cli.trusting import ask_trust
from codeloop.cli.turn import Turn
from codeloop.cli.view import View
from codeloop.client.local import LocalClient
from codeloop.schema.errors import CodeloopError, OperationError
from codeloop.schema.message import ModelRef, Session
from codeloop.schema.operation import (
    COMMAND,
    PROMPT,
    SESSION_CREATE,
    SESSION_DELETE,
    SESSION_LIST,
    SESSION_MESSAGES,
    SESSION_UPDATE,
)
from codeloop.schema.prompts import FileInput, PartInput, RunLimits, TextInput
from codeloop.schema.wire import replace


async def execute(options: Options, message: str) -> int:
    """Run one turn as the flags say and give the exit code. A result is always shown, whatever happened."""
    outlet = Outlet(asyncio.get_running_loop())
    try:
        return await _executed(options, message, outlet)
    finally:
        outlet.abandon()


async def _executed(options: Options, message: str, outlet: Outlet) -> int:
    start = time.monotonic()
    task = asyncio.current_task()
    signals = Signals(task.cancel if task is not None else lambda: False, outlet.hurry)
    running = Running(options, signals, outlet)
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

    def __init__(self, options: Options, signals: Signals, outlet: Outlet) -> None:
        self._options = options
        self._signals = signals
        self.stdout, self._stderr = standard(outlet)
        self._terminal = self._stderr if has_terminal() else None
        self.session_id = ""
        self.view = self._view()

    async def turn(self, message: str) -> Outcome:
        """Open the project, find or make the session, run the turn, close the project. Raises CodeloopError."""
        options = self._options
        said = (PROMPT, _prompt(options, message))
        if options.command is not None:
            said = (COMMAND, _command(options, options.command, message))
        startup = _startup(options)
        if self._terminal is not None:
            await ask_trust(startup, self._terminal)
        project = Project(startup)
        client = LocalClient(project)
        try:
            for warning in project.setting.loaded.warnings:
                self.view.note(f"codeloop: {warning}")
            if is_stdin_unread(options):
                self.view.note("codeloop: stdin was not read; a message of `-`, beside other words too, reads it.")
            _check_agent(project, options.agent)
            project.refresh_catalog()
            session = await _session(client, options, project.setting.place.directory)
            self.session_id = session.id
            self.view = self._view()
            answerer = Answerer(self._terminal, auto=options.auto)
            turn = Turn(client, session.id, self.view, answerer, self.stdout)
            return await turn.run(said, options.timeout, self._signals)
        finally:
            await self._keep(client)
            await project.close()

    async def _keep(self, client: LocalClient) -> None:
        """Remove a session that was made for a prompt that could not even be stored."""
        with suppress(CodeloopError):
            if self.session_id and not await client.call(SESSION_MESSAGES, session_id=self.session_id):
                await client.call(SESSION_DELETE, session_id=self.session_id)
                self.session_id = ""

    def _view(self) -> View:
        options = self._options
        return view_of(options.format, self.stdout, self._stderr, self.session_id, thinking=options.thinking)


def _check_agent(project: Project, name: str | None) -> None:
    if name is not None:
        try:
            project.engine.agent(name)
        except OperationError as error:
            raise UsageProblem(str(error)) from None


def _startup(options: Options) -> Startup:
    settings: dict[str, Any] = {"model": options.model} if options.model else {}
    return Startup(
        directory=options.directory,
        config_file=options.config,
        settings=settings,
        trust=options.trust,
        record=options.record,
        replay=options.replay,
        pace=options.pace,
    )


def _prompt(options: Options, message: str) -> dict[str, Any]:
    parts: list[PartInput] = [TextInput(text=message)] if message else []
    parts += [_attachment(path) for path in options.files]
    return {"parts": parts, "model": _model(options.model), "agent": options.agent, "limits": _limits(options)}


def _command(options: Options, name: str, arguments: str) -> dict[str, Any]:
    _model(options.model)
    return {
        "command": name.removeprefix("/"),
        "arguments": arguments,
        "parts": [_attachment(path) for path in options.files],
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


def _attachment(path: Path) -> FileInput:
    absolute = path.expanduser().absolute()
    if not absolute.exists():
        raise UsageProblem(f"The file {path} of --file does not exist. Correct its name.")
    return FileInput(mime=mime_of(absolute), url=absolute.as_uri(), filename=absolute.name)


def _model(name: str | None) -> ModelRef | None:
    if name is None:
        return None
    provider_id, slash, model_id = name.partition("/")
    if not slash or not model_id:
        raise UsageProblem(f"--model takes PROVIDER/MODEL, not {name}. `codeloop models` lists them.")
    return ModelRef(provider_id=provider_id, model_id=model_id)


async def _session(client: LocalClient, options: Options, directory: Path) -> Session:
    found = await _known(client, options, directory)
    if options.at is not None and not options.fork:
        raise UsageProblem("--at says where a fork begins. Add --fork, or leave it out.")
    if not options.fork:
        return found or await client.call(SESSION_CREATE, title=options.title)
    if found is None:
        raise UsageProblem("--fork copies a session: say which one with --continue or --session ID.")
    made = await fork(client, found, options.at)
    return await client.call(SESSION_UPDATE, session_id=made.id, title=options.title) if options.title else made


async def _known(client: LocalClient, options: Options, directory: Path) -> Session | None:
    """Give the session that the flags name; None when they name none."""
    if options.session is not None:
        if options.go_on:
            raise UsageProblem("--continue and --session name two sessions. Leave one of them out.")
        return await find(client, options.session)
    if not options.go_on:
        return None
    sessions: list[Session] = await client.call(SESSION_LIST, scope="project", roots=True, limit=100_000)
    last = next((session for session in sessions if session.directory == str(directory)), None)
    if last is None:
        raise UsageProblem("There is no session in this directory to go on with. Leave --continue out.")
    return last
