"""Listens where sandboxed commands run, for the proxy in `host_proxy.py`.

`sandboxes.py` has one `SessionProxy` for each network of commands;
`shells.py` asks it for refused connections.
"""

import asyncio
import socket
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING

from codeloop.schema.limits import PROXY_HEAD
from codeloop.workspace.sandbox.network.proxy_variables import make_proxy_environment

if TYPE_CHECKING:
    from codeloop.workspace.sandbox.network.host_list import HostList
    from codeloop.workspace.sandbox.network.host_proxy import HostProxy

ListenFunction = Callable[[int], Awaitable[socket.socket]]
"""Opens a listening socket on a port (0: any) where commands run."""


class SessionProxy:
    """A proxy with a port for each session. It listens from the first command that needs it, and is
    made with the first connection.
    """

    def __init__(
        self, hosts: "HostList | None", environment: Mapping[str, str], listen: ListenFunction
    ) -> None:
        """`hosts`: None for the default ones; `environment`: the user's variables, which may name
        their own proxies.
        """
        self._hosts = hosts
        self._environment = environment
        self._listen = listen
        self._proxy: HostProxy | None = None
        self._servers: list[asyncio.Server] = []
        self._has_services = False
        # Both by session.
        self._ports: dict[str, int] = {}
        self._variables: dict[str, dict[str, str]] = {}
        self._starting = asyncio.Lock()

    async def make_environment(self, session: str) -> dict[str, str]:
        """Return the variables that lead a session's commands to the proxy.
        Raises OSError when it can't listen.
        """
        async with self._starting:
            if not self._has_services:
                self._has_services = True
                for port in self._hosts.service_ports if self._hosts is not None else ():
                    # The port is in use where a sandboxed command listens on it itself,
                    # and then that one is meant.
                    with suppress(OSError):
                        await self._serve(await self._listen(port), port)
            if session not in self._variables:
                # The port shows whose connection was refused.
                listener = await self._listen(0)
                port = listener.getsockname()[1]
                self._variables[session] = make_proxy_environment(port, self._environment)
                self._ports[session] = port
                await self._serve(listener)
        return {**self._variables[session]}

    @property
    def refused_count(self) -> int:
        """The number of refused connections so far, for `list_refused`."""
        return self._proxy.refused_count if self._proxy is not None else 0

    def list_refused(self, session: str, after: int) -> list[str]:
        """Return a line for each refused connection of a session since
        `refused_count` was `after`.
        """
        return (
            self._proxy.list_refused(after, self._ports.get(session, 0))
            if self._proxy is not None
            else []
        )

    async def close(self) -> None:
        """Stop listening, and cut every connection."""
        for server in self._servers:
            server.close()
        if self._proxy is not None:
            await self._proxy.close()

    async def _serve(self, listener: socket.socket, service_port: int | None = None) -> None:
        """Serve a listening socket. `service_port`: as of `HostProxy.make_handler`."""

        def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            self._find_proxy().make_handler(service_port)(reader, writer)

        self._servers.append(
            await asyncio.start_server(accept, sock=listener, limit=PROXY_HEAD.value)
        )

    def _find_proxy(self) -> "HostProxy":
        """Return the proxy, which is made at the first call."""
        if self._proxy is None:
            # Imported here: most commands make no connection.
            from codeloop.workspace.sandbox.network.host_list import parse_host_list
            from codeloop.workspace.sandbox.network.host_proxy import HostProxy
            from codeloop.workspace.sandbox.network.outgoing_connections import OutgoingConnections

            hosts = parse_host_list(()) if self._hosts is None else self._hosts
            self._proxy = HostProxy(hosts, OutgoingConnections(self._environment))
        return self._proxy
