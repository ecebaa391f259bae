"""What a command works with, wherever that is: here, or on a server."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path

from msgspec import Struct

from codeloop.cli.output import Output
from codeloop.cli.run import Options
from codeloop.client.client import Client
from codeloop.schema.message import Session
from codeloop.schema.prompts import FileInput


class Reached(Struct, frozen=True):
    """A project that was reached through `client`; `directory` is absolute, `notes` are for the person.

    `client_of`: what reaches a session that was made in another directory. `attachment`: a file of this machine as the
    piece of a prompt; raises UsageProblem when it can't be one.
    """

    client: Client
    directory: str
    client_of: Callable[[Session], Client]
    attachment: Callable[[Path], FileInput]
    notes: tuple[str, ...] = ()


Reach = Callable[[Options, Output | None], AbstractAsyncContextManager[Reached]]
"""Reaches what the flags name; the second argument is the terminal, when there is one. Raises CodeloopError."""
