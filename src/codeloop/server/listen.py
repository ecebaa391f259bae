"""Listening: binds the socket, runs the site on it, and ends in order."""

import asyncio
import contextlib
import socket
from collections.abc import Generator

import uvicorn
from msgspec import Struct

from codeloop.app.app import App
from codeloop.schema.errors import CodeloopError
from codeloop.server.site import site


class Listening(Struct, frozen=True, kw_only=True):
    """Where and for whom a server listens. Port 0: a free one. `password` None: nobody needs one.

    `origins`: web pages from there may ask too.
    """

    host: str = "127.0.0.1"
    port: int = 0
    username: str = "opencode"
    password: str | None = None
    origins: tuple[str, ...] = ()


class Server:
    """A running server: `start` it, then it serves beside whatever else runs in the loop, until `stop`."""

    def __init__(self, app: App, listening: Listening) -> None:
        self.app = app
        self.listening = listening
        self._socket = _bound(listening)
        config = uvicorn.Config(
            site(app), http="httptools", ws="websockets-sansio", lifespan="off", log_config=None, server_header=False
        )
        self._server = _Uvicorn(config)
        self._serving: asyncio.Task[None] | None = None

    @property
    def url(self) -> str:
        """Where it listens."""
        host, port = self._socket.getsockname()[:2]
        return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"

    async def start(self) -> None:
        """Begin to serve; when this returns, requests are answered."""
        self._serving = asyncio.create_task(self._server.serve([self._socket]))
        while not self._server.started and not self._serving.done():
            await asyncio.sleep(0.001)

    async def stop(self) -> None:
        """End every connection and close the projects."""
        self._server.should_exit = True
        if self._serving is not None:
            await self._serving
        await self.app.close()


class _Uvicorn(uvicorn.Server):
    """Leaves signals to its caller."""

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None]:
        yield


def _bound(listening: Listening) -> socket.socket:
    """Bind the socket. Raises CodeloopError when the address can't be used."""
    family = socket.AF_INET6 if ":" in listening.host else socket.AF_INET
    bound = socket.socket(family)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind((listening.host, listening.port))
    except OSError as error:
        bound.close()
        where = f"{listening.host}:{listening.port}"
        raise CodeloopError(f"Can't listen on {where}: {error.strerror}. Choose another --port.") from error
    return bound
