"""Listens where sandboxed commands run, for the proxy in `host_proxy.py`.

`sandboxes.py` has one `SessionProxy` for each network of commands;
`shells.py` asks it for refused connections.
"""

import asyncio
import socket
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING

from codeloop.schema.limits import PROXY_HEAD, PROXY_SESSIONS
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
        self._services: list[asyncio.Server] | None = None
        """Those that listen on the ports of the user's services; None: not made yet."""
        self._sessions: dict[str, tuple[asyncio.Server, dict[str, str]]] = {}
        """What listens for each session, with the variables that lead there; that used last at
        the end.
        """
        self._starting = asyncio.Lock()

    async def make_environment(self, session: str) -> dict[str, str]:
        """Return the variables that lead a session's commands to the proxy.
        Raises OSError when it can't listen.
        """
        async with self._starting:
            if self._services is None:
                self._services = []
                for port in self._hosts.service_ports if self._hosts is not None else ():
                    # The port is in use where a sandboxed command listens on it itself,
                    # and then that one is meant.
                    with suppress(OSError):
                        self._services.append(await self._serve(await self._listen(port), port))
            entry = self._sessions.pop(session, None)
            if entry is None:
                server = await self._serve(await self._listen(0))
                entry = server, make_proxy_environment(_get_port(server), self._environment)
            self._sessions[session] = entry
            # A server of a team has thousands of sessions: each would keep a descriptor.
            while len(self._sessions) > PROXY_SESSIONS.value:
                self._sessions.pop(next(iter(self._sessions)))[0].close()
        return {**entry[1]}

    @property
    def refused_count(self) -> int:
        """The number of refused connections so far, for `list_refused`."""
        return self._proxy.refused_count if self._proxy is not None else 0

    def list_refused(self, session: str, after: int) -> list[str]:
        """Return a line for each refused connection of a session since
        `refused_count` was `after`.
        """
        entry = self._sessions.get(session)
        if self._proxy is None or entry is None:
            return []
        # The port shows whose connection was refused.
        return self._proxy.list_refused(after, _get_port(entry[0]))

    async def close(self) -> None:
        """Stop listening, and cut every connection."""
        for server in (*(self._services or ()), *(entry[0] for entry in self._sessions.values())):
            server.close()
        if self._proxy is not None:
            await self._proxy.close()

    async def _serve(
        self, listener: socket.socket, service_port: int | None = None
    ) -> asyncio.Server:
        """Serve a listening socket. `service_port`: as of `HostProxy.make_handler`."""

        def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            self._find_proxy().make_handler(service_port)(reader, writer)

        return await asyncio.start_server(accept, sock=listener, limit=PROXY_HEAD.value)

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


def _get_port(server: asyncio.Server) -> int:
    return server.sockets[0].getsockname()[1]
