"""The target of a user interface: a project in this process, or a directory of a server."""

from collections.abc import Callable
from pathlib import Path

from msgspec import Struct

from codeloop.client.client import Client
from codeloop.client.link import Link
from codeloop.schema.api.session_inputs import FilePartInput
from codeloop.schema.errors import UsageProblem
from codeloop.schema.message import Session


def refuse_directory(directory: str) -> Client:
    """Raise UsageProblem: nothing is reached but the directory that was opened."""
    raise UsageProblem(f"Other directories can't be reached from here. Start codeloop in {directory}.")


class Target(Struct, frozen=True):
    """An open project or server; `directory` is absolute, `notes` are for the user.

    `client_of`: returns the client for a session of another directory. `attachment`: makes a file of this machine a
    part of a prompt; raises UsageProblem. `client_at`: returns the client of another directory of the same project.
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
    client_at: Callable[[str], Client] = refuse_directory
