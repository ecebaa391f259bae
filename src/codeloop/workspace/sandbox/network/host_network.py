"""The proxy of a work tree's commands when the sandbox allows some hosts, with a port for each session."""

import asyncio
import socket
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress

from codeloop.kit.git import make_git_settings
from codeloop.workspace.sandbox.network.hosts import Hosts
from codeloop.workspace.sandbox.network.outgoing import OutgoingConnections
from codeloop.workspace.sandbox.network.proxy import HostProxy

_WITHOUT_PROXY = "localhost,127.0.0.1,::1"
"""Hosts that commands reach directly: servers that other commands in the sandbox have started."""
PROXY_NAMES = (
    *("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"),
    # The user's configuration of these tools may name another proxy, which only the tool's own variable overrides.
    *("PIP_PROXY", "CARGO_HTTP_PROXY", "npm_config_proxy", "npm_config_https_proxy"),
    *("YARN_HTTP_PROXY", "YARN_HTTPS_PROXY"),
)
"""The variables whose value is the proxy's address."""
_SPELLINGS = {
    "http://127.0.0.1:{port}": PROXY_NAMES,
    _WITHOUT_PROXY: ("NO_PROXY", "no_proxy", "npm_config_noproxy"),
    "1": ("NODE_USE_ENV_PROXY",),
}
_JAVA = (
    "-Dhttp.proxyHost=127.0.0.1 -Dhttp.proxyPort={port} -Dhttps.proxyHost=127.0.0.1 -Dhttps.proxyPort={port} "
    "-Daether.connector.http.useSystemProperties=true"
)
_JAVA_OPTIONS = ("MAVEN_OPTS", "GRADLE_OPTS")


def make_proxy_environment(port: int, environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables for a command whose proxy listens on a port of its `localhost`; they replace the user's."""
    variables = {name: value.format(port=port) for value, names in _SPELLINGS.items() for name in names}
    java = _JAVA.format(port=port)
    variables |= {name: f"{environment.get(name, '')} {java}".strip() for name in _JAVA_OPTIONS}
    # git's own setting overrides the variables, so it is set as well.
    return variables | make_git_settings({"http.proxy": variables["HTTP_PROXY"]}, environment)


Listen = Callable[[int], Awaitable[socket.socket]]


class HostNetwork:
    """The proxy of a network. It starts with the first command that needs it; `close` drops open connections."""

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
                self._proxy = HostProxy(self._hosts, OutgoingConnections(self._environment))
                for port in self._hosts.services:
                    with suppress(OSError):  # a sandboxed command listens on that port itself
                        await self._proxy.forward(await self._listen(port), port)
            if session not in self._ports:
                listener = await self._listen(0)  # a port for each session: it shows whose connection was refused
                self._ports[session] = listener.getsockname()[1]
                await self._proxy.serve(listener)
        return make_proxy_environment(self._ports[session], self._environment)

    @property
    def count(self) -> int:
        """How many connections were refused so far: what `list_refused` takes as `after`."""
        return self._proxy.count if self._proxy is not None else 0

    def list_refused(self, session: str, after: int) -> list[str]:
        """Return the refused connections of a session's commands since the count was `after`, a line each."""
        return self._proxy.list_refused(after, self._ports.get(session, 0)) if self._proxy is not None else []

    async def close(self) -> None:
        """Cut every connection and listen no more."""
        if self._proxy is not None:
            await self._proxy.close()
