"""`codeloop.open`, which opens a project in this process, and `codeloop.connect`,
which uses one on a server.
"""

import asyncio
import os
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from typing import Unpack

from codeloop.client.client import Client
from codeloop.client.target import Target
from codeloop.library.budget import Budget
from codeloop.library.errors import ProjectClosed
from codeloop.library.event_feed import EventFeed
from codeloop.library.options import ConnectOptions, OpenOptions, SessionOptions, check_options
from codeloop.library.project import AgentProject
from codeloop.library.session import SessionTarget
from codeloop.schema.api.project import PATH_GET
from codeloop.schema.errors import UsageProblem
from codeloop.schema.event import StampedEvent
from codeloop.schema.installation import watch_late_imports
from codeloop.schema.operation import Gives, NoArguments, Operation, Takes


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
    from codeloop.library.local import open_local_target

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
    from codeloop.library.remote import open_remote_target

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
