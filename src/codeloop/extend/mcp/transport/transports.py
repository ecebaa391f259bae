"""Connects to a server over stdio, streamable HTTP or SSE, in the order that fits it.
Uses the package `mcp`.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from codeloop import __version__
from codeloop.extend.mcp.cache.listing import Listing
from codeloop.extend.mcp.definition import LocalDefinition, RemoteDefinition, ServerDefinition
from codeloop.extend.mcp.sign_in.registration import check_registration
from codeloop.extend.mcp.transport.change_stream import HANDSHAKE_VERSIONS
from codeloop.extend.mcp.transport.connection import ServerConnection
from codeloop.extend.mcp.transport.failures import (
    ProgramEnded,
    SignInNeeded,
    describe_error,
    describe_status,
    find_cause,
)
from codeloop.extend.mcp.transport.http_client import make_http_client
from codeloop.extend.mcp.transport.repair_messages import repair_message
from codeloop.extend.mcp.transport.server_launch import (
    ServerLaunch,
    ServerProject,
    make_project_launch,
    make_user_launch,
)
from codeloop.extend.mcp.transport.shaped_streams import shape_messages
from codeloop.kit.program import MessageTooLong, Program
from codeloop.schema.errors import CodeloopError
from codeloop.schema.limits import MCP_DOWNLOAD, MCP_LIST, MCP_MESSAGE, MCP_START, MCP_STOP
from codeloop.schema.wire import JSON
from codeloop.workspace.process.program_log import ProgramLog
from codeloop.workspace.process.program_sandboxes import ProgramSandbox, ProgramSandboxes
from codeloop.workspace.sandbox.sandbox import SandboxUnavailable

if TYPE_CHECKING:
    import httpx2
    from mcp import Client
    from mcp.client._transport import Transport, TransportStreams
    from mcp_types import JSONRPCMessage

# Bytes of a line that is not a message; the log gets the start of it.
_MAX_SHOWN_BYTES = 500


def silence_package_logging() -> None:
    """Keep the package's logging off our terminal: errors are raised, or in the server's log."""
    for name in ("mcp", "client", "httpx2", "httpcore2"):
        logger = logging.getLogger(name)
        # Records would otherwise reach the root logger's handler, which writes into the terminal.
        logger.propagate = False
        if not logger.handlers:
            logger.addHandler(logging.NullHandler())


@asynccontextmanager
async def open_stdio(
    program: Program, log: ProgramLog, on_end: Callable[[str], None]
) -> "AsyncGenerator[TransportStreams]":
    """Speak with a running program, ended at the exit.
    `on_end` gets the reason when it stops by itself.
    """
    import anyio
    from mcp.shared.message import SessionMessage

    # No buffer: a server that sends faster than we read has to wait.
    to_session, read_stream = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    write_stream, from_session = anyio.create_memory_object_stream[SessionMessage](0)

    async def read() -> None:
        why = ""
        try:
            async for line in program.read_lines(MCP_MESSAGE.value):
                message = _read_message(line, log)
                if message is None:
                    continue
                await to_session.send(SessionMessage(message))
        except MessageTooLong as error:
            why = str(error)
        except (anyio.ClosedResourceError, anyio.BrokenResourceError):
            pass
        finally:
            to_session.close()
        on_end(why or program.ending or "it closed its output")

    async def write() -> None:
        try:
            async for message in from_session:
                text = message.message.model_dump_json(by_alias=True, exclude_unset=True)
                program.write(text.encode() + b"\n")
                await program.drain()
        # The program has stopped reading: its end, or that it does not answer,
        # is reported elsewhere.
        except OSError:
            pass

    reading, writing = asyncio.create_task(read()), asyncio.create_task(write())
    try:
        yield read_stream, write_stream
    finally:
        write_stream.close()
        read_stream.close()
        # Reading ends at once; writing gets a moment for what is still queued.
        reading.cancel()
        await asyncio.wait({reading, writing}, timeout=MCP_STOP.seconds)
        writing.cancel()
        await program.close(MCP_STOP.seconds)
        await asyncio.wait({reading, writing})
        from_session.close()
        to_session.close()


def _read_message(line: bytes, log: ProgramLog) -> "JSONRPCMessage | None":
    """Return the message in a line of a server; None: there is none in it, which the log tells."""
    from mcp_types import jsonrpc_message_adapter

    try:
        return jsonrpc_message_adapter.validate_json(line, by_name=False)
    except ValueError:
        if not line.strip():
            return None
    repaired = repair_message(line)
    about = "not a message" if repaired is None else "not quite a message"
    log.add_line(f"[{about} on stdout: {line[:_MAX_SHOWN_BYTES].decode('utf-8', 'replace')}]")
    try:
        return jsonrpc_message_adapter.validate_python(repaired, by_name=False)
    except ValueError:
        return None


async def _start_server(
    program_sandboxes: ProgramSandboxes, server: ServerLaunch, log: ProgramLog
) -> Program:
    """Start the program of a server, whose stderr goes to the log. Raises CodeloopError."""
    log.record_start()
    confinement = ProgramSandbox(server.profile) if server.profile is not None else None
    try:
        return await program_sandboxes.open(server.launch, confinement, log.feed)
    except SandboxUnavailable as error:
        raise CodeloopError(str(error)) from error
    except OSError as error:
        where = error.filename or server.launch.arguments[0]
        raise CodeloopError(f"{where} can't be started: {error.strerror}.") from error


def open_http(url: str, http_client: "httpx2.AsyncClient") -> "Transport":
    """Speak streamable HTTP."""
    from mcp.client.streamable_http import streamable_http_client

    return streamable_http_client(
        url, http_client=http_client, max_sse_event_size=MCP_MESSAGE.value
    )


def open_sse(url: str, http_client: "httpx2.AsyncClient") -> "Transport":
    """Speak the older transport: an event stream, and posted messages. Closes the client."""
    from mcp.client.sse import sse_client

    def reuse_client(
        headers: Any = None, timeout: Any = None, auth: Any = None
    ) -> "httpx2.AsyncClient":
        # The given client has these already.
        del headers, timeout, auth
        return http_client

    return sse_client(url, httpx_client_factory=reuse_client)


# Servers that speak only the older HTTP transport answer a request of the newer
# one with these statuses.
_OLDER_TRANSPORT_STATUSES = frozenset((400, 404, 405, 406))


class ServerDependencies(Struct, frozen=True):
    """What starting servers depends on: the project, the environment and the sandboxes of programs.

    `get_server_folder` returns a server's own folder. `make_auth` makes the authentication of
    requests to a remote one.
    """

    project: ServerProject
    environment: dict[str, str]
    get_server_folder: Callable[[ServerDefinition], Path]
    program_sandboxes: ProgramSandboxes
    make_auth: Callable[[ServerDefinition], "httpx2.Auth | None"]


class ServerTarget(Struct, frozen=True):
    """A server to connect to. `known`: its cached listing;
    `callbacks`: for the server's requests.
    """

    definition: ServerDefinition
    config: LocalDefinition | RemoteDefinition
    known: Listing | None
    log: ProgramLog
    callbacks: JSON

    def get_timeout(self, default: float) -> float:
        """Return how long one phase may take, in seconds."""
        return self.config.timeout / 1000 if self.config.timeout else default

    @property
    def start_seconds(self) -> float:
        """How long the start and the first listing may take, with a download that is part of it."""
        start = MCP_DOWNLOAD if self.downloader else MCP_START
        return self.get_timeout(start.seconds) + self.get_timeout(MCP_LIST.seconds)

    @property
    def downloader(self) -> str:
        """The program that may have to download the server before it starts it; "": none."""
        return self.config.downloader if isinstance(self.config, LocalDefinition) else ""

    def describe_late_start(self) -> str:
        """Return that the server did not start in time, with the time and how to give it more."""
        loading = (
            f"; {self.downloader} may still have been downloading it" if self.downloader else ""
        )
        return (
            f"it did not answer in time: no start within {self.start_seconds:g} s{loading}. "
            "`timeout` in its entry, in ms, gives it longer"
        )


async def connect(
    target: ServerTarget, dependencies: ServerDependencies
) -> tuple[ServerConnection, Listing]:
    """Return an open connection and the server's listing.

    Raises the error that prevents it, which may be an exception group; TimeoutError.
    """
    tried: list[ServerConnection] = []
    for connection in _list_connections(target, dependencies):
        try:
            listing = await connection.open(target.start_seconds)
        except TimeoutError as error:
            # A connection that nothing answers has its own words.
            if error.errno is not None:
                raise
            raise TimeoutError(target.describe_late_start()) from None
        if listing is not None:
            return connection, listing
        tried.append(connection)
        if not _should_try_next(connection):
            break
    last = tried[-1]
    error = find_cause(last.fatal)
    needs_sign_in = isinstance(error, SignInNeeded)
    if isinstance(target.config, RemoteDefinition) and needs_sign_in and error.can_sign_in:
        await check_registration(target.definition.name, target.config, error)
    # Both transports failed: without their names the last error would puzzle.
    # A status of 0: there was no answer.
    status = next((each.status for each in tried if each.transport == "http"), 0)
    if len(tried) > 1 and status and not needs_sign_in:
        reason = describe_error(last.fatal)
        tries = f"tried as streamable HTTP, which was answered with {status}, and SSE"
        raise CodeloopError(f"{reason} ({tries})") from tried[0].fatal
    if last.end_reason:
        raise ProgramEnded(last.end_reason) from last.fatal
    raise last.fatal or CodeloopError("the connection ended")


def _should_try_next(connection: ServerConnection) -> bool:
    """Return whether to try the next connection after this one failed: the server
    may support only that.
    """
    if connection.transport == "stdio":
        return bool(connection.end_reason)
    return connection.transport == "sse" or connection.status in _OLDER_TRANSPORT_STATUSES


def _list_connections(
    target: ServerTarget, dependencies: ServerDependencies
) -> Iterator[ServerConnection]:
    """Yield the connections to try, in this order; none of them is open yet.

    `mode`, the package's word: "legacy" begins with the handshake of versions up to 2025,
    "auto" tries without it.
    """
    protocol = target.config.protocol or (target.known.protocol if target.known is not None else "")
    is_old = protocol.startswith(HANDSHAKE_VERSIONS)
    seconds = target.get_timeout(MCP_LIST.seconds)
    match target.config:
        case LocalDefinition() as config:
            for mode in ("legacy",) if is_old else ("auto", "legacy"):
                yield ServerConnection(
                    "stdio", partial(_open_local, target, config, dependencies, mode), seconds
                )
        case RemoteDefinition() as config:
            newer = ("http", "legacy" if is_old else "auto")
            older = ("sse", "legacy")
            known = target.known.transport if target.known is not None else ""
            # The transport that worked last time comes first.
            for transport, mode in (older, newer) if known == "sse" else (newer, older):
                yield ServerConnection(
                    transport,
                    partial(_open_remote, target, config, dependencies, transport, mode),
                    seconds,
                )


@asynccontextmanager
async def _open_local(
    target: ServerTarget,
    config: LocalDefinition,
    dependencies: ServerDependencies,
    mode: str,
    connection: ServerConnection,
) -> "AsyncGenerator[Client]":
    """Start a program and initialise it. The package is imported meanwhile."""
    make_launch = make_project_launch if target.definition.scope else make_user_launch
    own_folder = dependencies.get_server_folder(target.definition)
    server = make_launch(config, dependencies.project, dependencies.environment, own_folder)
    program = await _start_server(dependencies.program_sandboxes, server, target.log)
    try:
        await asyncio.to_thread(_import_package)
        async with _make_client(
            open_stdio(program, target.log, connection.end), target, mode, connection
        ) as client:
            yield client
    finally:
        await program.close(MCP_STOP.seconds)


@asynccontextmanager
async def _open_remote(
    target: ServerTarget,
    config: RemoteDefinition,
    dependencies: ServerDependencies,
    transport: str,
    mode: str,
    connection: ServerConnection,
) -> "AsyncGenerator[Client]":
    await asyncio.to_thread(_import_package)

    def note_answer(answer: "httpx2.Response") -> None:
        connection.status = answer.status_code
        connection.refusal = describe_status(answer) if answer.is_error else ""

    http_client = make_http_client(
        config.url, config.headers, dependencies.make_auth(target.definition), note_answer
    )
    if transport == "sse":
        async with _make_client(
            open_sse(config.url, http_client), target, mode, connection
        ) as client:
            yield client
        return
    async with (
        http_client,
        _make_client(open_http(config.url, http_client), target, mode, connection) as client,
    ):
        yield client


def _make_client(
    transport: "Transport", target: ServerTarget, mode: str, connection: ServerConnection
) -> "Client":
    from mcp import Client
    from mcp_types import Implementation

    about = Implementation(name="codeloop", version=__version__)
    version = target.config.protocol
    is_old = mode == "legacy" and (version or "").startswith(HANDSHAKE_VERSIONS)
    return Client(
        shape_messages(transport, version if is_old else None, connection.note_problem),
        client_info=about,
        mode=mode,
        cache=None,
        log_level="info",
        **target.callbacks,
    )


def _import_package() -> "type[Client]":
    """Import the package. Called in a thread, since it takes half a second."""
    from mcp import Client

    silence_package_logging()
    return Client
