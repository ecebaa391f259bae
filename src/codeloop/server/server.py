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
from codeloop.net.hosts import add_brackets, is_loopback
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
from codeloop.server.application import make_application
from codeloop.server.browser.pages import list_page_files, make_page_routes
from codeloop.server.browser.sessions import BrowserSessions
from codeloop.server.events.hub import Hub
from codeloop.server.guard import AccessPolicy, Guard, list_host_names
from codeloop.server.http_protocol import BoundedProtocol

log = logging.getLogger("codeloop.server")

RESPONSE_HEADERS = [
    # The CORS headers depend on it, so a cached answer must not serve another page.
    (
        "vary",
        "Origin",
    ),
    ("x-content-type-options", "nosniff"),
    ("referrer-policy", "no-referrer"),
]


class UnprotectedServer(CodeloopError):
    """Other machines could connect, and no password is set."""


class ListenOptions(Struct, frozen=True, kw_only=True):
    """The address of a server, and who may use it. Port 0: a free one.
    `password` None: none is needed.

    `accepts_other_port`: another port is used when that one is taken. `origins`: origins of other
    sites whose pages may send requests, as `guard.parse_origin` returns them. `pages`: the folder
    of the browser UI, served at `/`.
    `web_dir`: the folder of another web app, served at `/` instead.
    """

    host: str = "127.0.0.1"
    port: int = 0
    accepts_other_port: bool = False
    username: str = "opencode"
    password: str | None = None
    origins: tuple[str, ...] = ()
    pages: Path | None = None
    web_dir: Path | None = None


class Address(Struct, frozen=True):
    """The address of a host name. `sockaddr`: as `socket.bind` takes it.
    `is_foreign`: other machines may reach it.
    """

    family: socket.AddressFamily
    sockaddr: Any
    is_foreign: bool


def find_address(host: str, port: int) -> Address:
    """Look a host up. Raises CodeloopError when it is unknown."""
    try:
        addresses = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM) if host else []
    except (OSError, UnicodeError):
        addresses = []
    if not addresses:
        raise CodeloopError(
            f"Can't listen on {host!r}: there is no such host. Choose another --hostname."
        )
    # A name such as localhost has addresses of both families,
    # and one socket listens on one of them.
    family, _, _, _, sockaddr = min(addresses, key=lambda row: row[0] != socket.AF_INET)
    is_foreign = not all(is_loopback(str(row[4][0])) for row in addresses)
    return Address(family, sockaddr, is_foreign)


class Server:
    """A running server: `start` it, then it serves in the running loop until `stop`."""

    def __init__(self, app: App, options: ListenOptions) -> None:
        """Bind the socket. Raises UnprotectedServer,
        CodeloopError for an address that can't be used.
        """
        self.app = app
        self.options = options
        self.hub = Hub(app)
        address = find_address(options.host, options.port)
        if address.is_foreign and options.password is None:
            raise UnprotectedServer(
                f"Listening on {options.host} without a password would let other machines in."
            )
        self._socket = _bind_listener(options, address)
        host, port = self._socket.getsockname()[:2]
        self.url = f"http://{add_brackets(host)}:{port}"
        paths = list_page_files(options.pages) if options.pages is not None else {}
        self.browsers = BrowserSessions(options.password, port)
        policy = AccessPolicy(
            port=port,
            names=list_host_names(options.host, is_foreign=address.is_foreign),
            accepts_any_ip=address.is_foreign,
            origins=frozenset(options.origins),
            username=options.username,
            password=options.password,
            pages=frozenset(paths) | _find_manifests(options.web_dir),
        )
        page_routes = make_page_routes(paths, self.browsers, options.host, port) if paths else []
        application = make_application(app, self.hub, page_routes, options.web_dir)
        self._guard = Guard(application, policy, self.browsers)
        config = uvicorn.Config(
            self._guard,
            http=BoundedProtocol,
            ws="websockets-sansio",
            lifespan="off",
            log_config=None,
            # Lower levels log full URLs, with tokens.
            log_level=logging.WARNING,
            access_log=False,
            server_header=False,
            # A client could forge its address, by which wrong passwords are counted.
            proxy_headers=False,
            headers=RESPONSE_HEADERS,
            limit_concurrency=SERVER_CONNECTIONS.value,
            backlog=SERVER_BACKLOG.value,
            timeout_keep_alive=SERVER_KEEP_ALIVE.value // 1000,
            timeout_graceful_shutdown=SERVER_GRACE.value // 1000,
            ws_max_size=SERVER_FRAME.value,
            ws_ping_interval=SERVER_PING.seconds,
            ws_ping_timeout=SERVER_PING.seconds,
            ws_per_message_deflate=False,
        )
        self._server = _UvicornServer(config, self._end_turns)
        self._serving: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Begin to serve; when this returns, requests are answered."""
        self._serving = asyncio.create_task(self._server.serve([self._socket]))
        start_task = asyncio.create_task(self._server.started_event.wait())
        # uvicorn may also fail before it has started.
        await asyncio.wait([self._serving, start_task], return_when=asyncio.FIRST_COMPLETED)
        start_task.cancel()
        if self._serving.done():
            # Raises what it failed with.
            self._serving.result()
        log.info("listening on %s", self.url)

    async def stop(self) -> None:
        """End every turn; after `SERVER_GRACE` cut the connections that have not ended;
        then close the projects.
        """
        # Streams and delayed answers would not end by themselves,
        # and uvicorn waits for every answer.
        await self.hub.close()
        self._guard.end_delays()
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


class _UvicornServer(uvicorn.Server):
    """uvicorn's server, which leaves signals to its caller.
    `end_turns` is awaited when it has stopped listening.
    """

    def __init__(self, config: uvicorn.Config, end_turns: Callable[[], Awaitable[None]]) -> None:
        super().__init__(config)
        self.started_event = asyncio.Event()
        self._end_turns = end_turns

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None]:
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.started_event.set()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Stop listening, end the turns, and wait for the answers."""
        closing = asyncio.create_task(super().shutdown(sockets))
        # Lets it stop listening first, so that no request starts a new turn.
        await asyncio.sleep(0)
        await self._end_turns()
        await closing

    async def cut_off(self) -> None:
        """Close the connections that have not ended in time."""
        for connection in list(self.server_state.connections):
            connection.transport.abort()
        tasks = set(self.server_state.tasks)
        if tasks:
            await asyncio.wait(tasks, timeout=SERVER_GRACE.seconds)


def _find_manifests(web_dir: Path | None) -> frozenset[str]:
    """Return the paths of a web app's manifests, which browsers ask for without the credential."""
    return (
        frozenset(f"/{file.name}" for file in web_dir.glob("*.webmanifest"))
        if web_dir is not None
        else frozenset()
    )


def _bind_listener(options: ListenOptions, address: Address) -> socket.socket:
    """Bind the socket. Raises CodeloopError when the address can't be used."""
    try:
        return _open_listener(address.family, address.sockaddr)
    except OSError as error:
        if error.errno == errno.EADDRINUSE and options.accepts_other_port:
            any_port = replace(address, sockaddr=_make_any_port_sockaddr(address))
            return _bind_listener(replace(options, port=0, accepts_other_port=False), any_port)
        where = f"{options.host}:{options.port}"
        raise CodeloopError(
            f"Can't listen on {where}: {error.strerror}. Choose another --port."
        ) from error


def _make_any_port_sockaddr(address: Address) -> Any:
    """Return the address with port 0, for which the kernel chooses a free one."""
    # IPv6 addresses have a flow label and a scope after the port.
    host, _, *more = address.sockaddr
    return (host, 0, *more)


def _open_listener(family: socket.AddressFamily, sockaddr: Any) -> socket.socket:
    """Return a socket that listens, so that no other process can get the port any more.
    Raises OSError.
    """
    # asyncio sets TCP_NODELAY only on sockets with an explicit protocol;
    # without it an answer takes 44 ms.
    listener = socket.socket(family, proto=socket.IPPROTO_TCP)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(sockaddr)
        listener.listen()
    except OSError:
        listener.close()
        raise
    return listener
