"""The types of the functions that open a project or a server's directory, and `run_with_client` for short commands."""

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import Any, TypeVar

from codeloop.cli.options import Options
from codeloop.cli.output.streams import OutputStream
from codeloop.client.client import Client
from codeloop.client.target import Target

T = TypeVar("T")


AskTrust = Callable[[Any], Awaitable[bool]]
"""Asks a user whether to trust a project, of its settings: to complete a session's name, they are not loaded."""
OpenTarget = Callable[[Options, AskTrust | None], AbstractAsyncContextManager[Target]]
"""Opens what the options name; the second argument asks for trust, if there is a user. Raises CodeloopError."""


def run_with_client(command: Callable[[Client], Awaitable[T]]) -> T:
    """Open the current directory's project, run `command` on its client, and close the project.

    The project's modules load here, so that completing a command's options does not wait for them.
    """
    from codeloop.cli.target.project import run_with_local_client

    return run_with_local_client(command)


def make_trust_prompt(terminal: OutputStream | None) -> AskTrust | None:
    """Return a function that asks for trust at a terminal; None: nobody can be asked."""
    if terminal is None:
        return None

    async def ask(settings: Any) -> bool:
        from codeloop.cli.questions.terminal_questions import ask_trust as ask_at_terminal

        return await ask_at_terminal(terminal, settings)

    return ask
