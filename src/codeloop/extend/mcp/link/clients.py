"""The ways to reach a server, and which of them is tried after which. Uses the package `mcp`."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from codeloop import __version__
from codeloop.extend.mcp.asked.requests import ServerRequests
from codeloop.extend.mcp.known.definition import LocalDefinition, RemoteDefinition, ServerDefinition
from codeloop.extend.mcp.known.listing import Listing
from codeloop.extend.mcp.link.connection import ServerConnection
from codeloop.extend.mcp.link.failures import ProgramEnded, SignInNeeded, cause, words_of
from codeloop.extend.mcp.link.http_client import http_client
from codeloop.extend.mcp.link.registration import check_registration
from codeloop.extend.mcp.link.server_process import start_server
from codeloop.extend.mcp.link.start_terms import ProjectPlace, terms_for_project, terms_for_user
from codeloop.extend.mcp.link.transport import offer_version, over_http, over_sse, over_stdio, quiet
from codeloop.schema.errors import CodeloopError
from codeloop.schema.limits import MCP_LIST, MCP_START
from codeloop.workspace.process.program_boxes import ProgramBoxes
from codeloop.workspace.process.program_log import ProgramLog

if TYPE_CHECKING:
    import httpx2
    from mcp import Client
    from mcp.client._transport import Transport

_OLD = frozenset((400, 404, 405, 406))
"""What servers of the older HTTP transport answer to a message of the newer one."""
_HANDSHAKE = ("2024", "2025")
"""How the versions begin that greet with `initialize`."""


class ServerPlace(Struct, frozen=True):
    """What servers are started for and with: the project, what programs see of our environment, who starts them.

    `own_folder` returns the folder of a server. `sign_in` signs the requests to a remote one.
    """

    project: ProjectPlace
    environment: dict[str, str]
    own_folder: Callable[[ServerDefinition], Path]
    boxes: ProgramBoxes
    sign_in: Callable[[ServerDefinition], "httpx2.Auth | None"]


class Wanted(Struct, frozen=True):
    """A server to connect to: how, what it offered last, where what it says goes, who answers what it asks."""

    definition: ServerDefinition
    how: LocalDefinition | RemoteDefinition
    known: Listing | None
    log: ProgramLog
    requests: ServerRequests

    def seconds(self, otherwise: float) -> float:
        """Return how long one phase may take."""
        return self.how.timeout / 1000 if self.how.timeout else otherwise


async def connect(wanted: Wanted, place: ServerPlace) -> tuple[ServerConnection, Listing]:
    """Return an open connection and what the server offers.

    Raises the error that prevents it, an exception group perhaps; TimeoutError.
    """
    tried: list[ServerConnection] = []
    for connection in _ways(wanted, place):
        listing = await connection.open(wanted.seconds(MCP_START.seconds) + wanted.seconds(MCP_LIST.seconds))
        if listing is not None:
            return connection, listing
        tried.append(connection)
        if not _may_be_older(connection):
            break
    first = tried[0]
    refused = cause(first.fatal)
    if isinstance(wanted.how, RemoteDefinition) and isinstance(refused, SignInNeeded) and refused.can_sign_in:
        await check_registration(wanted.definition.name, wanted.how, refused)
    if len(tried) > 1 and not isinstance(wanted.how, LocalDefinition):
        last = (
            f"{words_of(tried[-1].fatal)} (tried as streamable HTTP, which was answered with {first.status}, and SSE)"
        )
        raise CodeloopError(last) from first.fatal
    last = tried[-1]
    if last.ended:
        raise ProgramEnded(last.ended) from last.fatal
    raise last.fatal or CodeloopError("the connection ended")


def _may_be_older(connection: ServerConnection) -> bool:
    """Return whether the server may only know another way."""
    if connection.transport == "stdio":
        return bool(connection.ended)
    return connection.transport == "sse" or connection.status in _OLD


def _ways(wanted: Wanted, place: ServerPlace) -> Iterator[ServerConnection]:
    chosen = wanted.how.protocol or (wanted.known.protocol if wanted.known is not None else "")
    is_old = chosen.startswith(_HANDSHAKE)
    seconds = wanted.seconds(MCP_LIST.seconds)
    match wanted.how:
        case LocalDefinition() as how:
            for mode in ("legacy",) if is_old else ("auto", "legacy"):
                yield ServerConnection("stdio", partial(_local, wanted, how, place, mode), seconds)
        case RemoteDefinition() as how:
            newer = ("http", "legacy" if is_old else "auto")
            older = ("sse", "legacy")
            known = wanted.known.transport if wanted.known is not None else ""
            for transport, mode in (older, newer) if known == "sse" else (newer, older):
                yield ServerConnection(transport, partial(_remote, wanted, how, place, transport, mode), seconds)


@asynccontextmanager
async def _local(
    wanted: Wanted, how: LocalDefinition, place: ServerPlace, mode: str, connection: ServerConnection
) -> "AsyncGenerator[Client]":
    """Start a program and greet it. The package is imported while the program starts."""
    find_terms = terms_for_project if wanted.definition.scope else terms_for_user
    terms = find_terms(how, place.project, place.environment, place.own_folder(wanted.definition))
    process = await start_server(place.boxes, terms, wanted.log)
    try:
        await asyncio.to_thread(_import)
        async with _client(over_stdio(process, wanted.log, connection.end), wanted, mode) as client:
            yield client
    finally:
        await process.close()


@asynccontextmanager
async def _remote(
    wanted: Wanted, how: RemoteDefinition, place: ServerPlace, transport: str, mode: str, connection: ServerConnection
) -> "AsyncGenerator[Client]":
    await asyncio.to_thread(_import)

    def heard(status: int) -> None:
        connection.status = status

    client = http_client(how.headers, place.sign_in(wanted.definition), heard)
    if transport == "sse":
        async with _client(over_sse(how.url, client), wanted, mode) as found:
            yield found
        return
    async with client, _client(over_http(how.url, client), wanted, mode) as found:
        yield found


def _client(transport: "Transport", wanted: Wanted, mode: str) -> "Client":
    from mcp import Client
    from mcp_types import Implementation

    about = Implementation(name="codeloop", version=__version__)
    version = wanted.how.protocol
    if mode == "legacy" and version is not None and version.startswith(_HANDSHAKE):
        transport = offer_version(transport, version)
    return Client(transport, client_info=about, mode=mode, cache=None, log_level="info", **wanted.requests.callbacks())


def _import() -> "type[Client]":
    """Import the package: half a second, in a thread, so that nothing waits that need not."""
    from mcp import Client

    quiet()
    return Client
