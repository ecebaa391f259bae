"""`Target`: the project that a user interface works with, in this process or on a server."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from codeloop.client.client import Client
from codeloop.schema.api.session_inputs import FilePartInput
from codeloop.schema.errors import UsageProblem
from codeloop.schema.message import Session

if TYPE_CHECKING:
    from codeloop.client.wire.connection_state import ConnectionState


def refuse_directory(directory: str) -> Client:
    """Raise UsageProblem: only the directory that was opened can be reached."""
    raise UsageProblem(
        f"Other directories can't be reached from here. Start codeloop in {directory}."
    )


class Target(Struct, frozen=True):
    """An open project. `directory`: its absolute path, on the server if there is one.
    `notes`: lines for the user.

    `get_session_client`: returns the client of a session, which may belong to another directory.
    `attach_file`: converts a file of this machine to a part of a prompt; raises UsageProblem.
    `get_directory_client`: returns the client of another directory of the same project.
    """

    client: Client
    directory: str
    get_session_client: Callable[[Session], Client]
    attach_file: Callable[[Path], FilePartInput]
    notes: tuple[str, ...] = ()
    connection: "ConnectionState | None" = None
    """The state of the connection to the server; None: the project is open in this process."""
    list_problems: Callable[[], list[str]] = list
    """Returns the reasons why a recording is incomplete so far, one per line."""
    get_directory_client: Callable[[str], Client] = refuse_directory
