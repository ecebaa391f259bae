"""The proxy of a work tree's commands when the sandbox allows some hosts, with a port for each session."""

import asyncio
import socket
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress

from codeloop.workspace.sandbox.network.hosts import Hosts
from codeloop.workspace.sandbox.network.outside import Outside
from codeloop.workspace.sandbox.network.proxy import HostProxy
from codeloop.workspace.sandbox.network.proxy_environment import proxy_environment

Listen = Callable[[int], Awaitable[socket.socket]]


class HostNetwork:
    """Starts with the first command that needs it. `close` drops open connections."""

    def __init__(self, hosts: Hosts, environment: Mapping[str, str], listen: Listen) -> None:
        """`environment`: the user's, with their proxies; `listen`: listens where commands run, at 0 on any port."""
        self._hosts = hosts
        self._environment = environment
        self._listen = listen
        self._proxy: HostProxy | None = None
        self._ports: dict[str, int] = {}
        self._starting = asyncio.Lock()

    async def environment(self, session: str) -> dict[str, str]:
        """Return the variables that lead a session's commands to the proxy. Raises OSError when it can't be reached."""
        async with self._starting:
            if self._proxy is None:
                self._proxy = HostProxy(self._hosts, Outside(self._environment))
                for port in self._hosts.services:
                    with suppress(OSError):  # a command of ours serves that port itself
                        await self._proxy.forward(await self._listen(port), port)
            if session not in self._ports:
                listener = await self._listen(0)
                self._ports[session] = listener.getsockname()[1]
                await self._proxy.serve(listener)
        return proxy_environment(self._ports[session], self._environment)

    @property
    def count(self) -> int:
        """How many connections were refused so far: what `refused` takes as `after`."""
        return self._proxy.count if self._proxy is not None else 0

    def list_refused(self, session: str, after: int) -> list[str]:
        """Return the refused connections of a session's commands since the count was `after`, a line each."""
        return self._proxy.list_refused(after, self._ports.get(session, 0)) if self._proxy is not None else []

    async def close(self) -> None:
        """Cut every connection and listen no more."""
        if self._proxy is not None:
            await self._proxy.close()
