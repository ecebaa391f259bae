"""A project opened for one command, and closed after it."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

from codeloop.app.project import open_project
from codeloop.app.settings import Startup
from codeloop.client.local import LocalClient

T = TypeVar("T")


def with_client(command: Callable[[LocalClient], Awaitable[T]], directory: Path | None = None) -> T:
    """Open the project of a directory (the current one), run the command on its client, close the project."""

    async def opened() -> T:
        project = await open_project(Startup(directory=directory or Path.cwd()))
        try:
            return await command(LocalClient(project))
        finally:
            await project.close()

    return asyncio.run(opened())
