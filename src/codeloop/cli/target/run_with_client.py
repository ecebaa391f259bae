"""Opens the current directory's project for one short command,
and runs the command on its client.
"""

from collections.abc import Awaitable, Callable
from typing import TypeVar

from codeloop.cli.target.selection import find_session
from codeloop.client.client import Client
from codeloop.schema.message import Session

T = TypeVar("T")


def run_with_client(command: Callable[[Client], Awaitable[T]]) -> T:
    """Open the current directory's project, run `command` on its client, and close the project."""
    # The modules of projects are loaded here, so that completing a command's options
    # does not wait for them.
    from codeloop.cli.target.project import run_with_local_client

    return run_with_local_client(command)


def run_with_session(name: str | None, command: Callable[[Client, Session], Awaitable[T]]) -> T:
    """Do as `run_with_client`, with the session that `find_session` finds by this name.
    Raises UsageProblem.
    """

    async def find_and_run(client: Client) -> T:
        return await command(client, await find_session(client, name))

    return run_with_client(find_and_run)
