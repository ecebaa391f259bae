"""Terminals: a program on a pseudo-terminal that several clients can watch and type into."""

from typing import Annotated, Literal

from msgspec import Meta

from codeloop.schema.wire import Wire


class Pty(Wire):
    """A terminal. `cwd`: absolute; `exit_code` once the process has ended."""

    id: str
    title: str
    command: str
    args: list[str]
    cwd: str
    status: Literal["running", "exited"]
    pid: int
    exit_code: int | None = None


class PtyShell(Wire):
    """A shell that is installed; `acceptable`: it can be the command of a terminal."""

    path: str
    name: str
    acceptable: bool


class CreatePty(Wire):
    """Opens a terminal; without a command, the user's shell in the project's directory. `env` is added to ours."""

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
    """Replaces the credential for one connection to one terminal of one directory; `expires_in` in seconds."""

    ticket: str
    expires_in: int


class PtyInfo(Wire):
    """Properties of the events that carry a whole terminal."""

    info: Pty


class PtyEnd(Wire):
    """Properties of `pty.exited`."""

    id: str
    exit_code: int


class PtyGone(Wire):
    """Properties of `pty.deleted`."""

    id: str
