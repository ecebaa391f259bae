"""`codeloop.open`, which opens a project in this process, and `codeloop.connect`,
which uses one on a server.
"""

import asyncio
import os
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager, nullcontext, suppress
from pathlib import Path
from typing import Unpack

from codeloop.app.extensions.open_with_extensions import open_with_extensions
from codeloop.app.prompt_parts import make_local_file_part
from codeloop.app.settings import Startup, check_directory
from codeloop.client.client import Client
from codeloop.client.connect import connect_to_server
from codeloop.client.local import LocalClient
from codeloop.client.packed_file import pack_file
from codeloop.client.target import Target
from codeloop.kit.paths import expand_user_path
from codeloop.library.budget import Budget, make_budget_registry
from codeloop.library.errors import ProjectClosed
from codeloop.library.event_feed import EventFeed
from codeloop.library.options import ConnectOptions, OpenOptions, SessionOptions, check_options
from codeloop.library.project import AgentProject
from codeloop.library.session import SessionTarget
from codeloop.model.testing.recording_file import open_recording
from codeloop.schema.api.config import CONFIG_WARNINGS
from codeloop.schema.api.project import PATH_GET
from codeloop.schema.errors import OperationError, UsageProblem
from codeloop.schema.event import StampedEvent
from codeloop.schema.installation import watch_late_imports
from codeloop.schema.operation import Gives, NoArguments, Operation, Takes


@asynccontextmanager
async def open_local_target(
    directory: "str | os.PathLike[str]", options: OpenOptions
) -> AsyncGenerator[Target]:
    """Open the project of a directory while the block runs. Raises CodeloopError."""
    folder = expand_user_path(directory).absolute()
    check_directory(folder)
    if "record" in options and "replay" in options:
        raise UsageProblem(
            "record and replay exclude each other, as a replay asks no model. Leave one of them out."
        )
    record = options.get("record")
    with (
        open_recording(Path(record), replace=False)
        if record is not None
        else nullcontext() as record_file
    ):
        startup = _make_startup(
            folder, options, record_file.path if record_file is not None else None
        )
        project = await open_with_extensions(startup)
        try:
            project.refresh_catalog()
            client = LocalClient(project)
            yield Target(
                client=client,
                directory=project.settings.project_root.directory_name,
                get_session_client=lambda _: client,
                attach_file=make_local_file_part,
                notes=tuple(project.settings.loaded.warnings),
                list_problems=project.models.list_problems,
            )
        finally:
            await project.close()
            if record_file is not None:
                record_file.is_whole = not project.models.list_problems()


def _make_startup(folder: Path, options: OpenOptions, record: Path | None) -> Startup:
    config, replay, model = options.get("config"), options.get("replay"), options.get("model")
    return Startup(
        directory=folder,
        environment=dict(options.get("environment", os.environ)),
        config_file=Path(config) if config is not None else None,
        settings={**options.get("settings", {}), **({"model": model} if model is not None else {})},
        trust=options.get("trust", False),
        record=record,
        replay=Path(replay) if replay is not None else None,
        budgets=make_budget_registry(options.get("budget")),
    )


@asynccontextmanager
async def open_remote_target(url: str, options: ConnectOptions) -> AsyncGenerator[Target]:
    """Connect to a server while the block runs. Raises CodeloopError."""
    directory = options.get("directory")
    path = Path(directory) if directory is not None else None
    client = connect_to_server(url, path, options.get("username"), options.get("password"))
    try:
        path_info = await client.call(PATH_GET, NoArguments())
        # The server's own spelling of the directory.
        directory_client = client.for_directory(path_info.directory)
        warnings: tuple[str, ...] = ()
        # A server of another version may not have this operation.
        with suppress(OperationError):
            warnings = tuple(await directory_client.call(CONFIG_WARNINGS, NoArguments()))
        if client.sends_in_clear:
            warnings = (
                "The password is sent unencrypted, because the address is http. Use https.",
                *warnings,
            )
        yield Target(
            client=directory_client,
            directory=path_info.directory,
            get_session_client=lambda _: directory_client,
            attach_file=pack_file,
            notes=warnings,
            connection=client.connection,
        )
    finally:
        await client.close()


@asynccontextmanager
async def open_directory(
    directory: "str | os.PathLike[str]" = ".", **options: Unpack[OpenOptions]
) -> AsyncGenerator[AgentProject]:
    """Open the project of a directory in this process, while the `async with` block runs.

    Leaving the block stops running turns, and every process that they started. Any number of
    projects may be open at the same time. Raises CodeloopError if the directory does not exist or
    its configuration can't be used.
    """
    # Imported late: a program that only connects needs no app.

    _require_asyncio()
    options = check_options(options, OpenOptions)
    async with (
        open_local_target(directory, options) as target,
        _start_project(target, options, options.get("budget")) as project,
    ):
        yield project


@asynccontextmanager
async def connect_to(url: str, **options: Unpack[ConnectOptions]) -> AsyncGenerator[AgentProject]:
    """Connect to a server (`codeloop serve`), while the `async with` block runs;
    the project is used as with `open`.

    Raises CodeloopError if no server answers, or the password is wrong.
    """
    # Imported late: a program that only opens directories needs no connection.

    _require_asyncio()
    options = check_options(options, ConnectOptions)
    budget = options.get("budget")
    async with (
        open_remote_target(url, options) as target,
        _start_project(target, options, budget, is_remote=True) as project,
    ):
        yield project


@asynccontextmanager
async def _start_project(
    target: Target, options: SessionOptions, budget: Budget | None, *, is_remote: bool = False
) -> AsyncGenerator[AgentProject]:
    """Make the project of a target, and stop what it started at the end of the block."""
    watch_late_imports()
    feed = EventFeed(target.client)
    client = _OpenClient(target.client)
    try:
        session_target = SessionTarget(
            client=client,
            feed=feed,
            attach=target.attach_file,
            budget=budget,
            is_remote=is_remote,
        )
        path = await target.client.call(PATH_GET, NoArguments())
        yield AgentProject(session_target, path, target.notes, options)
    finally:
        await feed.close()
        client.is_open = False


class _OpenClient:
    """The client of a project while its block runs; after that each use is refused."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self.is_open = True

    async def call(self, operation: Operation[Takes, Gives], args: Takes) -> Gives:
        self._check_open()
        return await self._client.call(operation, args)

    def follow(
        self, after: int | None = None, root: str | None = None
    ) -> AsyncIterator[StampedEvent]:
        self._check_open()
        return self._client.follow(after, root)

    def _check_open(self) -> None:
        if not self.is_open:
            raise ProjectClosed(
                "The project is closed: its `async with` block has ended. "
                "Use it inside of the block, or open it again and resume the session by its id."
            )


def _require_asyncio() -> None:
    """Raise UsageProblem where no event loop of asyncio runs, such as under trio."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        raise UsageProblem(
            "codeloop needs a running event loop of asyncio (or one that stands in for it, such as uvloop). "
            "Under trio, use `codeloop.sync` in `trio.to_thread.run_sync`."
        ) from None
