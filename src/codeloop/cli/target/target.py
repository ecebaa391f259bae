"""How a command gets what it works with: a project in this process, or a directory of a server."""

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import TypeVar

from codeloop.cli.options import Options
from codeloop.cli.output.streams import Output
from codeloop.client.client import Client
from codeloop.client.target import Target
from codeloop.kit.lazy import load

T = TypeVar("T")


OpenTarget = Callable[[Options, Output | None], AbstractAsyncContextManager[Target]]
"""Opens what the options name; the second argument is the terminal, if there is one. Raises CodeloopError."""


def with_client(command: Callable[[Client], Awaitable[T]]) -> T:
    """Open the current directory's project, run `command` on its client, and close the project.

    The project's modules load here, so that completing a command's options does not wait for them.
    """
    return load("cli.target.project:run_with_client")(command)
