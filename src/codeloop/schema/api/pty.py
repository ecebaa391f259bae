"""Terminals: a program on a pseudo-terminal that several clients can watch and type into."""

from typing import Annotated

from msgspec import Meta

from codeloop.schema.operation import NoArguments, Operation
from codeloop.schema.resources import Pty
from codeloop.schema.wire import Wire


class PtyShell(Wire):
    """A shell that is installed; `acceptable`: it can be the command of a terminal."""

    path: str
    name: str
    acceptable: bool


class CreatePty(Wire):
    """Opens a terminal; without a command, the user's shell in the project's directory.
    `env` is added to ours.
    """

    command: str | None = None
    args: list[str] = []
    cwd: str | None = None
    title: str | None = None
    env: dict[str, str] = {}


class PtySize(Wire):
    """The size of a terminal in characters; the kernel keeps each number in 16 bits."""

    rows: Annotated[int, Meta(gt=0, lt=65536)]
    cols: Annotated[int, Meta(gt=0, lt=65536)]


class UpdatePty(Wire):
    """Renames or resizes a terminal."""

    pty_id: str
    title: str | None = None
    size: PtySize | None = None


class PtyId(Wire):
    """Names a terminal."""

    pty_id: str


# The contract spells `expires_in` with an underscore.
class PtyTicketConnectToken(Wire, rename=None):
    """Replaces the credential for one connection to one terminal of one directory;
    `expires_in` in seconds.
    """

    ticket: str
    expires_in: int


PTY_SHELLS = Operation(
    "pty.shells",
    "GET",
    "/pty/shells",
    NoArguments,
    list[PtyShell],
    "workspace.pty:list_installed_shells",
)
PTY_LIST = Operation(
    "pty.list", "GET", "/pty", NoArguments, list[Pty], "workspace.pty:list_terminals"
)
PTY_CREATE = Operation(
    "pty.create", "POST", "/pty", CreatePty, Pty, "workspace.pty:create_terminal"
)
PTY_GET = Operation("pty.get", "GET", "/pty/{ptyID}", PtyId, Pty, "workspace.pty:get_terminal")
PTY_UPDATE = Operation(
    "pty.update", "PUT", "/pty/{ptyID}", UpdatePty, Pty, "workspace.pty:update_terminal"
)
PTY_REMOVE = Operation(
    "pty.remove", "DELETE", "/pty/{ptyID}", PtyId, bool, "workspace.pty:remove_terminal"
)
PTY_TICKET = Operation(
    "pty.connectToken",
    "POST",
    "/pty/{ptyID}/connect-token",
    PtyId,
    PtyTicketConnectToken,
    "workspace.pty:make_ticket",
)
