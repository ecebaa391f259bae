"""The project of a directory, opened in this process for one command."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any

from codeloop.app.project import open_project
from codeloop.app.prompt_parts import mime_of
from codeloop.app.settings import Startup
from codeloop.cli.exit_codes import UsageProblem
from codeloop.cli.output.streams import Output
from codeloop.cli.run.options import Options
from codeloop.cli.target.recording import Tape, recording
from codeloop.cli.target.target import Reached
from codeloop.cli.target.trusting import ask_trust
from codeloop.client.local import LocalClient
from codeloop.schema.api.session_inputs import FilePartInput
from codeloop.schema.message import Session


@asynccontextmanager
async def here(options: Options, terminal: Output | None) -> AsyncGenerator[Reached]:
    """Open the project of the directory that the flags name; ask for trust when somebody is there who can be asked."""
    with recording(options.record, replace=options.force) if options.record else nullcontext() as tape:
        async with _opened(options, terminal, tape) as reached:
            yield reached


@asynccontextmanager
async def _opened(options: Options, terminal: Output | None, tape: Tape | None) -> AsyncGenerator[Reached]:
    startup = _startup(options, tape.path if tape is not None else None)
    if terminal is not None:
        await ask_trust(startup, terminal)
    project = await open_project(startup)
    try:
        client = LocalClient(project)
        notes = tuple(f"codeloop: {warning}" for warning in project.settings.loaded.warnings)
        project.refresh_catalog()
        place = project.settings.place

        def client_of(session: Session) -> LocalClient:
            if session.root != str(place.root) and not options.fork:
                raise UsageProblem(
                    f"Session {session.id} belongs to {session.directory}, not to {place.directory}. "
                    "Go there (--dir), or go on with a copy here: add --fork."
                )
            return client

        yield Reached(client, str(place.directory), client_of, _attachment, notes, problems=project.models.problems)
    finally:
        await project.close()
        if tape is not None:
            tape.is_whole = not project.models.problems()


def _startup(options: Options, record: Path | None) -> Startup:
    directory = options.directory or Path()
    with suppress(PermissionError):  # one that may not be looked at is told of when it is opened
        if not directory.is_dir():
            raise UsageProblem(f"The directory {directory} of --dir does not exist. Correct its name.")
    settings: dict[str, Any] = {"model": options.model} if options.model else {}
    return Startup(
        directory=directory,
        config_file=options.config,
        settings=settings,
        trust=options.trust,
        record=record,
        replay=options.replay,
        pace=options.pace,
    )


def _attachment(path: Path) -> FilePartInput:
    absolute = path.expanduser().absolute()
    if not absolute.exists():
        raise UsageProblem(f"The file {path} of --file does not exist. Correct its name.")
    return FilePartInput(mime=mime_of(absolute), url=absolute.as_uri(), filename=absolute.name)
