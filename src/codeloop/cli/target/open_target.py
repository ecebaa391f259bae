"""Types of the functions that open a project or a server, and `run_with_client` for commands that end at once."""

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import Any, TypeVar

from codeloop.cli.options import Options
from codeloop.cli.output.streams import OutputStream
from codeloop.client.client import Client
from codeloop.client.target import Target

T = TypeVar("T")


AskTrust = Callable[[Any], Awaitable[bool]]
"""Asks the user whether to trust a project, and returns the answer; its argument is a `ProjectSettings`.

That class is not imported, because completing the name of a session loads this module and must not load settings.
"""
OpenTarget = Callable[[Options, AskTrust | None], AbstractAsyncContextManager[Target]]
"""Opens the project or the server that the options name; the second argument asks for trust. Raises CodeloopError."""


def run_with_client(command: Callable[[Client], Awaitable[T]]) -> T:
    """Open the current directory's project, run `command` on its client, and close the project."""
    # The modules of projects are loaded here, so that completing a command's options does not wait for them.
    from codeloop.cli.target.project import run_with_local_client

    return run_with_local_client(command)


def make_trust_prompt(terminal: OutputStream | None) -> AskTrust | None:
    """Return a function that asks for trust at a terminal; None without a terminal."""
    if terminal is None:
        return None

    async def ask_trust(settings: Any) -> bool:
        from codeloop.cli.questions.terminal_questions import ask_trust as ask_at_terminal

        return await ask_at_terminal(terminal, settings)

    return ask_trust
