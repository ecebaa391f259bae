"""What a command works with, wherever that is: here, or on a server."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path

from msgspec import Struct

from codeloop.cli.output.streams import Output
from codeloop.cli.run.options import Options
from codeloop.client.client import Client
from codeloop.client.link import Link
from codeloop.schema.api.session_inputs import FilePartInput
from codeloop.schema.message import Session


class Reached(Struct, frozen=True):
    """A project that was reached through `client`; `directory` is absolute, `notes` are for the person.

    `client_of`: what reaches a session that was made in another directory. `attachment`: a file of this machine as the
    piece of a prompt; raises UsageProblem when it can't be one.
    """

    client: Client
    directory: str
    client_of: Callable[[Session], Client]
    attachment: Callable[[Path], FilePartInput]
    notes: tuple[str, ...] = ()
    link: Link | None = None
    """The connections, where there are any."""
    problems: Callable[[], list[str]] = list
    """What a recording that is written or played has met so far."""


Reach = Callable[[Options, Output | None], AbstractAsyncContextManager[Reached]]
"""Reaches what the flags name; the second argument is the terminal, when there is one. Raises CodeloopError."""
