"""The operations of `pty`.

Written by scripts/generate_client.py; not to be edited.
"""

from msgspec.structs import asdict

from codeloop.client.client import Client
from codeloop.schema.operation import PTY_CREATE, PTY_GET, PTY_LIST, PTY_REMOVE, PTY_SHELLS, PTY_TICKET, PTY_UPDATE
from codeloop.schema.pty import CreatePty, OfOnePty, Pty, PtyShell, PtyTicket, UpdatePty


async def shells(client: Client) -> list[PtyShell]:
    """GET /pty/shells."""
    return await client.call(PTY_SHELLS)


async def list_(client: Client) -> list[Pty]:
    """GET /pty."""
    return await client.call(PTY_LIST)


async def create(client: Client, args: CreatePty | None = None) -> Pty:
    """POST /pty.

    Opens a terminal; without a command, the user's shell in the project's directory. `env` is added to ours.
    """
    return await client.call(PTY_CREATE, **(asdict(args) if args else {}))


async def get(client: Client, args: OfOnePty) -> Pty:
    """GET /pty/{ptyID}."""
    return await client.call(PTY_GET, **asdict(args))


async def update(client: Client, args: UpdatePty) -> Pty:
    """PUT /pty/{ptyID}.

    Renames or resizes a terminal.
    """
    return await client.call(PTY_UPDATE, **asdict(args))


async def remove(client: Client, args: OfOnePty) -> bool:
    """DELETE /pty/{ptyID}."""
    return await client.call(PTY_REMOVE, **asdict(args))


async def connect_token(client: Client, args: OfOnePty) -> PtyTicket:
    """POST /pty/{ptyID}/connect-token."""
    return await client.call(PTY_TICKET, **asdict(args))
