"""The project of a directory, opened in this process for one command."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

from codeloop.app.attach import mime_of
from codeloop.app.project import Project, Startup
from codeloop.cli.exits import UsageProblem
from codeloop.cli.output import Output
from codeloop.cli.reached import Reached
from codeloop.cli.run import Options
from codeloop.cli.trusting import ask_trust
from codeloop.client.local import LocalClient
from codeloop.schema.prompts import FileInput


@asynccontextmanager
async def here(options: Options, terminal: Output | None) -> AsyncGenerator[Reached]:
    """Open the project of the directory that the flags name; ask for trust when somebody is there who can be asked."""
    startup = _startup(options)
    if terminal is not None:
        await ask_trust(startup, terminal)
    project = Project(startup)
    try:
        client = LocalClient(project)
        notes = tuple(f"codeloop: {warning}" for warning in project.setting.loaded.warnings)
        project.refresh_catalog()
        directory = str(project.setting.place.directory)
        yield Reached(client, directory, lambda _: client, _attachment, notes)
    finally:
        await project.close()


def _startup(options: Options) -> Startup:
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
        record=options.record,
        replay=options.replay,
        pace=options.pace,
    )


def _attachment(path: Path) -> FileInput:
    absolute = path.expanduser().absolute()
    if not absolute.exists():
        raise UsageProblem(f"The file {path} of --file does not exist. Correct its name.")
    return FileInput(mime=mime_of(absolute), url=absolute.as_uri(), filename=absolute.name)
