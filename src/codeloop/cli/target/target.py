"""What a command works with: a project in this process, or a directory of a server."""

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import TypeVar

from msgspec import Struct

from codeloop.cli.options import Options
from codeloop.cli.output.streams import Output
from codeloop.client.client import Client
from codeloop.client.link import Link
from codeloop.kit.lazy import load
from codeloop.schema.api.session_inputs import FilePartInput
from codeloop.schema.message import Session

T = TypeVar("T")


class Target(Struct, frozen=True):
    """An open project or server; `directory` is absolute, `notes` are for the person.

    `client_of`: returns the client for a session of another directory. `attachment`: makes a file of this machine a
    part of a prompt; raises UsageProblem.
    """

    client: Client
    directory: str
    client_of: Callable[[Session], Client]
    attachment: Callable[[Path], FilePartInput]
    notes: tuple[str, ...] = ()
    link: Link | None = None
    """The connection to a server."""
    problems: Callable[[], list[str]] = list
    """What went wrong with a recording so far."""


OpenTarget = Callable[[Options, Output | None], AbstractAsyncContextManager[Target]]
"""Opens what the options name; the second argument is the terminal, if there is one. Raises CodeloopError."""


def with_client(command: Callable[[Client], Awaitable[T]]) -> T:
    """Open the current directory's project, run `command` on its client, and close the project.

    The project's modules load here, so that completing a command's options does not wait for them.
    """
    return load("cli.target.project:run_with_client")(command)
