"""The running server: binds the socket, serves the site, and shuts down in order."""

import asyncio
import contextlib
import errno
import logging
import socket
from collections.abc import Awaitable, Callable, Generator
from pathlib import Path
from typing import Any

import uvicorn
from msgspec import Struct

from codeloop.app.app import App
from codeloop.net.origin import add_brackets, is_loopback
from codeloop.schema.bounds.server import (
    SERVER_BACKLOG,
    SERVER_CONNECTIONS,
    SERVER_FRAME,
    SERVER_GRACE,
    SERVER_KEEP_ALIVE,
    SERVER_PING,
)
from codeloop.schema.errors import CodeloopError
from codeloop.schema.wire import replace
from codeloop.server.asgi import make_site
from codeloop.server.browser.pages import find_paths, page_routes
from codeloop.server.browser.sessions import BrowserSessions
from codeloop.server.events.hub import Hub
from codeloop.server.guard import AccessPolicy, Guard, names_of
from codeloop.server.http_protocol import BoundedProtocol

log = logging.getLogger("codeloop.server")

HEADERS = [
    ("vary", "Origin"),
    ("x-content-type-options", "nosniff"),
    ("referrer-policy", "no-referrer"),
]


class Unprotected(CodeloopError):
    """Other machines could connect, and no password is set."""


class ListenOptions(Struct, frozen=True, kw_only=True):
    """The address and access of a server. Port 0: a free one. `password` None: none needed.

    `is_port_free`: another port will do when that one is taken. `origins`: web pages from there may ask too, as
    `guard.origin_of` gives them. `pages`: a folder whose files are offered at `/`, the browser UI.
    `web_dir`: the same for a web app of others.
    """

    host: str = "127.0.0.1"
    port: int = 0
    is_port_free: bool = False
    username: str = "opencode"
    password: str | None = None
    origins: tuple[str, ...] = ()
    pages: Path | None = None
    web_dir: Path | None = None


class Address(Struct, frozen=True):
    """The address of a host name. `is_foreign`: other machines may reach it."""

    family: socket.AddressFamily
    where: Any
    is_foreign: bool


def find_address(host: str, port: int) -> Address:
    """Look a host up. Raises CodeloopError when it is unknown."""
    try:
        addresses = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM) if host else []
    except (OSError, UnicodeError):
        addresses = []
    if not addresses:
        raise CodeloopError(f"Can't listen on {host!r}: there is no such host. Choose another --hostname.")
    family, _, _, _, where = min(addresses, key=lambda row: row[0] != socket.AF_INET)
    is_foreign = not all(is_loopback(str(row[4][0])) for row in addresses)
    return Address(family, where, is_foreign)


class Server:
    """A running server: `start` it, then it serves in the running loop until `stop`."""

    def __init__(self, app: App, listening: ListenOptions) -> None:
        """Bind the socket. Raises Unprotected, CodeloopError for an address that can't be used."""
        self.app = app
        self.listening = listening
        self.hub = Hub(app)
        address = find_address(listening.host, listening.port)
        if address.is_foreign and listening.password is None:
            raise Unprotected(f"Listening on {listening.host} without a password would let other machines in.")
        self._socket = _bind(listening, address)
        host, port = self._socket.getsockname()[:2]
        self.url = f"http://{add_brackets(host)}:{port}"
        paths = find_paths(listening.pages) if listening.pages is not None else {}
        self.browsers = BrowserSessions(listening.password, port)
        policy = AccessPolicy(
            port=port,
            names=names_of(listening.host, is_foreign=address.is_foreign),
            accepts_any_ip=address.is_foreign,
            origins=frozenset(listening.origins),
            username=listening.username,
            password=listening.password,
            pages=frozenset(paths) | _find_manifests(listening.web_dir),
        )
        pages = page_routes(paths, self.browsers, listening.host, port) if paths else []
        self._guard = Guard(make_site(app, self.hub, pages, listening.web_dir), policy, self.browsers)
        config = uvicorn.Config(
            self._guard,
            http=BoundedProtocol,
            ws="websockets-sansio",
            lifespan="off",
            log_config=None,
            log_level=logging.WARNING,  # lower levels log full URLs, with tokens
            access_log=False,
            server_header=False,
            proxy_headers=False,
            headers=HEADERS,
            limit_concurrency=SERVER_CONNECTIONS.value,
            backlog=SERVER_BACKLOG.value,
            timeout_keep_alive=SERVER_KEEP_ALIVE.value // 1000,
            timeout_graceful_shutdown=SERVER_GRACE.value // 1000,
            ws_max_size=SERVER_FRAME.value,
            ws_ping_interval=SERVER_PING.seconds,
            ws_ping_timeout=SERVER_PING.seconds,
            ws_per_message_deflate=False,
        )
        self._server = _Uvicorn(config, self._end_turns)
        self._serving: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Begin to serve; when this returns, requests are answered."""
        self._serving = asyncio.create_task(self._server.serve([self._socket]))
        started_event = asyncio.create_task(self._server.started_event.wait())
        await asyncio.wait([self._serving, started_event], return_when=asyncio.FIRST_COMPLETED)
        started_event.cancel()
        if self._serving.done():
            self._serving.result()
        log.info("listening on %s", self.url)

    async def stop(self) -> None:
        """End every turn and connection, within `SERVER_GRACE`, and close the projects."""
        await self.hub.close()
        self._guard.end()
        self._server.should_exit = True
        if self._serving is None:
            self._socket.close()
        else:
            await self._serving
            await self._server.cut_off()
        await self.app.close()
        log.info("stopped")

    async def _end_turns(self) -> None:
        """End the turns that requests wait for, while these can still be answered."""
        await asyncio.gather(*(project.runs.close() for project in self.app.projects))


def _find_manifests(web_dir: Path | None) -> frozenset[str]:
    """Return the paths of a web app's manifests, which browsers ask for without the credential."""
    return frozenset(f"/{file.name}" for file in web_dir.glob("*.webmanifest")) if web_dir is not None else frozenset()


class _Uvicorn(uvicorn.Server):
    """Leaves signals to its caller. `end` is awaited when it begins to shut down."""

    def __init__(self, config: uvicorn.Config, end: Callable[[], Awaitable[None]]) -> None:
        super().__init__(config)
        self.started_event = asyncio.Event()
        self._end = end

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None]:
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.started_event.set()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Stop listening, end the streams, then the other answers."""
        closing = asyncio.create_task(super().shutdown(sockets))
        await asyncio.sleep(0)
        await self._end()
        await closing

    async def cut_off(self) -> None:
        """Cut the connections that have not ended."""
        for connection in list(self.server_state.connections):
            connection.transport.abort()
        tasks = set(self.server_state.tasks)
        if tasks:
            await asyncio.wait(tasks, timeout=SERVER_GRACE.seconds)


def _bind(listening: ListenOptions, address: Address) -> socket.socket:
    """Bind the socket. Raises CodeloopError when the address can't be used."""
    try:
        return _open_socket(address.family, address.where)
    except OSError as error:
        if error.errno == errno.EADDRINUSE and listening.is_port_free:
            return _bind(replace(listening, port=0, is_port_free=False), replace(address, where=_any_port(address)))
        where = f"{listening.host}:{listening.port}"
        raise CodeloopError(f"Can't listen on {where}: {error.strerror}. Choose another --port.") from error


def _any_port(address: Address) -> Any:
    host, _, *more = address.where
    return (host, 0, *more)


def _open_socket(family: socket.AddressFamily, where: Any) -> socket.socket:
    """Return a socket that listens, so that no other process can get the port any more. Raises OSError."""
    # The loop sets TCP_NODELAY only where the protocol is named; without it an answer takes 44 ms.
    listener = socket.socket(family, proto=socket.IPPROTO_TCP)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(where)
        listener.listen()
    except OSError:
        listener.close()
        raise
    return listener
