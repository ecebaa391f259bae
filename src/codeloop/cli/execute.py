"""What `codeloop run` does: opens the project, finds or makes the session, runs the turn, tells how it ended."""

import sys
import time
from pathlib import Path
from typing import Any

from codeloop.app.attach import mime_of
from codeloop.app.project import Project, Startup
from codeloop.cli import exits
from codeloop.cli.ask import Answerer
from codeloop.cli.exits import UsageProblem
from codeloop.cli.jsonview import JsonView
from codeloop.cli.outcome import Outcome
from codeloop.cli.run import Options
from codeloop.cli.textview import TextView
from codeloop.cli.trusting import ask_trust
from codeloop.cli.turn import Turn
from codeloop.cli.view import Output, View, standard
from codeloop.client.local import LocalClient
from codeloop.schema.errors import CodeloopError
from codeloop.schema.message import NO_TOKENS, ModelRef, Session
from codeloop.schema.operation import (
    SESSION_CREATE,
    SESSION_DELETE,
    SESSION_GET,
    SESSION_LIST,
    SESSION_MESSAGES,
    FileInput,
    PartInput,
    RunLimits,
    TextInput,
)


async def execute(options: Options) -> int:
    """Run one turn as the flags say and give the exit code. A result is always shown, whatever happened."""
    start = time.monotonic()
    stdout, stderr = standard()
    terminal = stderr if sys.stdin.isatty() and sys.stderr.isatty() else None
    shown: View = _view(options, stdout, stderr, "")
    try:
        prompt = _prompt(options)
        startup = _startup(options)
        if terminal is not None:
            await ask_trust(startup, terminal)
        project = Project(startup)
    except CodeloopError as error:
        return _failed(shown, error, start, "")
    session_id = ""
    try:
        for warning in project.setting.loaded.warnings:
            shown.note(f"codeloop: {warning}")
        project.refresh_catalog()
        client = LocalClient(project)
        session = await _session(client, options, project.setting.place.directory)
        session_id = session.id
        shown = _view(options, stdout, stderr, session_id)
        turn = Turn(client, session_id, shown, Answerer(terminal, auto=options.auto), stdout)
        outcome = await turn.run(prompt, options.timeout)
    except CodeloopError as error:
        return _failed(shown, error, start, await _kept(project, session_id))
    finally:
        await project.close()
    shown.finish(outcome)
    return outcome.exit_code


async def _kept(project: Project, session_id: str) -> str:
    """Give the session's id; one that was made for a prompt that could not even be stored is removed again."""
    client = LocalClient(project)
    if session_id and not await client.call(SESSION_MESSAGES, session_id=session_id):
        await client.call(SESSION_DELETE, session_id=session_id)
        return ""
    return session_id


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


def _view(options: Options, stdout: Output, stderr: Output, session_id: str) -> View:
    if options.format == "json":
        return JsonView(stdout, stderr, session_id)
    return TextView(stdout, stderr, thinking=options.thinking)


def _failed(view: View, error: CodeloopError, start: float, session_id: str) -> int:
    """Show an error as the result."""
    outcome = Outcome(
        type="result",
        session_id=session_id,
        reason="error",
        exit_code=exits.of_error(error),
        message=str(error),
        text="",
        cost=0.0,
        tokens=NO_TOKENS,
        steps=0,
        duration_ms=int((time.monotonic() - start) * 1000),
        denied=[],
    )
    view.finish(outcome)
    return outcome.exit_code


def _prompt(options: Options) -> dict[str, Any]:
    text = _message(options)
    parts: list[PartInput] = [TextInput(text=text)] if text else []
    parts += [_attachment(path) for path in options.files]
    model = _model(options.model)
    limits = RunLimits(steps=options.max_steps, cost=options.max_cost, tokens=options.max_tokens)
    return {"parts": parts, "model": model, "agent": options.agent, "limits": limits}


def _message(options: Options) -> str:
    """Give the message; stdin is read only when it is asked for, so that an open pipe never hangs a script."""
    words = " ".join(word for word in options.message if word != "-")
    if options.message and "-" not in options.message:
        return words
    if sys.stdin.isatty() and not options.message:
        if options.files:
            return ""
        raise UsageProblem('Say what to do: codeloop run "fix the failing test", or give it on stdin.')
    text = "\n\n".join(piece for piece in (words, sys.stdin.buffer.read().decode("utf-8", "replace").strip()) if piece)
    if not text and not options.files:
        raise UsageProblem('There is no message: stdin is empty. Say what to do: codeloop run "fix the failing test".')
    return text


def _attachment(path: Path) -> FileInput:
    absolute = path.expanduser().absolute()
    return FileInput(mime=mime_of(absolute), url=absolute.as_uri(), filename=absolute.name)


def _model(name: str | None) -> ModelRef | None:
    if name is None:
        return None
    provider_id, slash, model_id = name.partition("/")
    if not slash or not model_id:
        raise UsageProblem(f"--model takes PROVIDER/MODEL, not {name}. `codeloop models` lists them.")
    return ModelRef(provider_id=provider_id, model_id=model_id)


async def _session(client: LocalClient, options: Options, directory: Path) -> Session:
    if options.session is not None:
        return await client.call(SESSION_GET, session_id=options.session)
    if options.go_on:
        sessions: list[Session] = await client.call(SESSION_LIST, directory=str(directory), limit=100)
        last = next((session for session in sessions if session.parent_id is None), None)
        if last is None:
            raise UsageProblem("There is no session in this directory to go on with. Leave --continue out.")
        return last
    return await client.call(SESSION_CREATE, title=options.title)
