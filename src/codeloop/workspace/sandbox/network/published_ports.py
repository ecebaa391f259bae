"""`PublishedPorts` lets the user's browser reach the ports that background commands
listen on in their sandbox.

Connections lead from this machine's loopback into the sandbox, never out of it.
"""

import asyncio
import socket
from collections.abc import Callable, Iterable
from contextlib import suppress

from msgspec import Struct

from codeloop.kit.asyncio_tasks import cancel_all
from codeloop.schema.limits import PROXY_CONNECTIONS
from codeloop.workspace.sandbox.network.host_proxy import read_tunnel, relay
from codeloop.workspace.sandbox.network.outgoing_connections import Stream
from codeloop.workspace.sandbox.process_launcher import PortReach, ProcessStarter

LOWEST_PORT = 1024
"""Lower ports stay in the sandbox."""
# How often the ports are looked at while commands run in the background.
_LOOK_SECONDS = 1.0
_LOOPBACK = "127.0.0.1"


class PublishedPort(Struct, frozen=True):
    """A port of a sandbox, and the one of this machine's loopback that leads to it: the same,
    if that was free.
    """

    port: int
    host_port: int

    @property
    def address(self) -> str:
        """The address for a browser."""
        return f"http://{_LOOPBACK}:{self.host_port}"


class PublishedPorts:
    """The published ports of one network of sandboxes.
    It looks for new ones as long as `is_used` returns True.

    `on_change`: called with the ports that are new, and with those that are gone.
    """

    def __init__(
        self,
        network: ProcessStarter,
        is_used: Callable[[], bool],
        on_change: Callable[[Iterable[PublishedPort], Iterable[PublishedPort]], None],
    ) -> None:
        self._network = network
        self._is_used = is_used
        self._on_change = on_change
        self._servers: dict[int, tuple[PublishedPort, asyncio.Server]] = {}
        self._connections: set[asyncio.Task[None]] = set()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Look for ports from now on, if it does not do so already."""
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._look())

    async def close(self) -> None:
        """Close all ports and connections."""
        if self._task is not None:
            await cancel_all([self._task])

    async def _look(self) -> None:
        # An error means that the network has ended.
        with suppress(OSError):
            reach = await self._network.open_reach()
            try:
                while self._is_used():
                    ports = {port for port in await reach.list_ports() if port >= LOWEST_PORT}
                    await self._publish(ports - self._network.own_ports, reach)
                    await asyncio.sleep(_LOOK_SECONDS)
            finally:
                self._close_ports([*self._servers])
                reach.close()
                await cancel_all(self._connections)

    async def _publish(self, ports: set[int], reach: PortReach) -> None:
        """Publish these ports, and no others any more."""
        new: list[PublishedPort] = []
        for port in sorted(ports - self._servers.keys()):
            server = await self._serve(port, reach)
            published = PublishedPort(port, server.sockets[0].getsockname()[1])
            self._servers[port] = published, server
            new.append(published)
        gone = [port for port in self._servers if port not in ports]
        if new:
            self._on_change(new, ())
        self._close_ports(gone)

    async def _serve(self, port: int, reach: PortReach) -> asyncio.Server:
        """Listen on the port of that number on this machine, or on another one if it is in use."""

        def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            if len(self._connections) >= PROXY_CONNECTIONS.value:
                writer.transport.abort()
                return
            task = asyncio.create_task(_connect(Stream(reader, writer), port, reach))
            self._connections.add(task)
            task.add_done_callback(self._connections.discard)

        for number in (port, 0):
            with suppress(OSError):
                return await asyncio.start_server(accept, _LOOPBACK, number, family=socket.AF_INET)
        raise OSError(f"no port of this machine is free for port {port} of the sandbox")

    def _close_ports(self, ports: Iterable[int]) -> None:
        gone = [self._servers.pop(port) for port in ports]
        for _, server in gone:
            server.close()
        if gone:
            self._on_change((), [published for published, _ in gone])


async def _connect(client: Stream, port: int, reach: PortReach) -> None:
    """Connect a client to a port of the sandbox, until one of them ends the connection."""
    # The client or the server is gone.
    with suppress(OSError, EOFError):
        try:
            connection = await reach.connect(port)
            if connection is None:
                return
            connection.settimeout(0)
            server = Stream(*await asyncio.open_connection(sock=connection))
            await relay(client, server, read_tunnel(client, server))
            client.writer.write_eof()
        finally:
            client.writer.close()
