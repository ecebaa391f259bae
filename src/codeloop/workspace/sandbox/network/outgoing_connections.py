"""Opens the outgoing connections of the sandbox's proxy: to checked addresses,
or through the user's own proxy.
"""

import asyncio
import ssl
from base64 import b64encode
from collections.abc import Awaitable, Callable, Mapping, Sequence
from urllib.parse import SplitResult, unquote, urlsplit

from msgspec import Struct
from msgspec import field as struct_field

from codeloop.net.address import keep_address, resolve_host
from codeloop.net.proxy import find_proxy
from codeloop.net.tls import load_tls_context
from codeloop.schema.limits import PROXY_CONNECT, WEB_ADDRESSES
from codeloop.workspace.sandbox.network.host_list import ConnectionBlocked, HostPort, HostRule
from codeloop.workspace.sandbox.network.proxy_request import ProxyRequest

_DEFAULT_PORTS = {"http": 80, "https": 443, "socks5": 1080, "socks5h": 1080}


class TargetUnreachable(Exception):
    """A target could not be reached; the text names it and says why."""


class Stream(Struct, frozen=True):
    """Both directions of one connection."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter


class OutgoingConnections(Struct, frozen=True):
    """Connects to targets. `environment` names the user's own proxies.

    `resolve` and `dial` are replaced in tests only: they find a name's addresses,
    and the address to connect to.
    """

    environment: Mapping[str, str] = struct_field(default_factory=dict[str, str])
    resolve: Callable[[str, int], Awaitable[Sequence[str]]] = resolve_host
    dial: Callable[[str, int], tuple[str, int]] = keep_address

    async def connect(self, request: ProxyRequest, rule: HostRule) -> Stream:
        """Connect for a request, and send its head (a tunnel has none).

        Raises ConnectionBlocked and TargetUnreachable.
        """
        target, scheme = request.target, "https" if request.is_tunnel else "http"
        proxy_url = find_proxy(scheme, target.host, target.port, self.environment)
        addresses = await self._resolve_target(target, rule, is_indirect=proxy_url is not None)
        if proxy_url is not None:
            return await self._connect_by_proxy(urlsplit(proxy_url), request)
        reason = "it has no address"
        for address in addresses[: WEB_ADDRESSES.value]:
            try:
                server = await _connect(*self.dial(address, target.port))
            except OSError as error:
                reason = _describe_error(error)
            else:
                server.writer.write(request.head)
                return server
        raise TargetUnreachable(f"{target.authority} can't be reached: {reason}.")

    async def _resolve_target(
        self, target: HostPort, rule: HostRule, *, is_indirect: bool
    ) -> Sequence[str]:
        """Return the addresses of a target.

        `is_indirect`: the user's proxy connects; it may know names that this machine can't resolve.
        Raises ConnectionBlocked when one of the addresses is not public,
        TargetUnreachable when there is none.
        """
        addresses: Sequence[str] = (target.host,)
        if not target.is_literal:
            try:
                async with asyncio.timeout(PROXY_CONNECT.seconds):
                    addresses = await self.resolve(target.host, target.port)
            except (OSError, UnicodeError) as error:
                addresses = ()
                if not is_indirect:
                    raise TargetUnreachable(
                        f"{target.host} can't be resolved: {_describe_error(error)}."
                    ) from None
        for address in addresses:
            if reason := rule.explain_refusal(address):
                raise ConnectionBlocked(
                    target.authority, f"whose address {address} is not public ({reason})"
                )
        return addresses

    async def _connect_by_proxy(self, proxy: SplitResult, request: ProxyRequest) -> Stream:
        """Connect through the user's own proxy. Raises TargetUnreachable."""
        try:
            if proxy.scheme not in _DEFAULT_PORTS:
                raise ValueError(f"the scheme {proxy.scheme} is not known")
            tls = load_tls_context() if proxy.scheme == "https" else None
            server = await _connect(
                proxy.hostname or "", proxy.port or _DEFAULT_PORTS[proxy.scheme], tls
            )
            # The flag instead of `except`: the connection has to be closed when the
            # task is cancelled, too.
            has_agreed = False
            try:
                async with asyncio.timeout(PROXY_CONNECT.seconds):
                    await _request_by_proxy(server, proxy, request)
                has_agreed = True
            finally:
                if not has_agreed:
                    server.writer.transport.abort()
        except (OSError, EOFError, ValueError, asyncio.LimitOverrunError) as error:
            reason = f"the proxy {proxy.hostname} of your environment did not connect: {_describe_error(error)}"
            raise TargetUnreachable(
                f"{request.target.authority} can't be reached: {reason}."
            ) from None
        return server


async def _connect(host: str, port: int, tls: ssl.SSLContext | None = None) -> Stream:
    async with asyncio.timeout(PROXY_CONNECT.seconds):
        return Stream(*await asyncio.open_connection(host, port, ssl=tls))


async def _request_by_proxy(server: Stream, proxy: SplitResult, request: ProxyRequest) -> None:
    """Ask the user's proxy to connect to the target.

    Raises ValueError when it refuses, OSError and EOFError when it is gone.
    """
    user, password = (unquote(text or "").encode() for text in (proxy.username, proxy.password))
    if proxy.scheme.startswith("socks5"):
        await _request_by_socks(server, request.target, user, password)
        server.writer.write(request.head)
        return
    credential_header = b""
    if user or password:
        credential_header = (
            b"Proxy-Authorization: Basic " + b64encode(user + b":" + password) + b"\r\n"
        )
    authority = request.target.authority.encode()
    if not request.is_tunnel:
        # Plain HTTP is requested by its whole URL, since some proxies accept
        # CONNECT for port 443 only.
        method, _, rest = request.head.partition(b" ")
        line, _, headers = rest.partition(b"\r\n")
        server.writer.write(
            method + b" http://" + authority + line + b"\r\n" + credential_header + headers
        )
        return
    server.writer.write(
        b"CONNECT "
        + authority
        + b" HTTP/1.1\r\nHost: "
        + authority
        + b"\r\n"
        + credential_header
        + b"\r\n"
    )
    answer = await server.reader.readuntil(b"\r\n\r\n")
    version, _, status = answer.partition(b"\r\n")[0].partition(b" ")
    if not version.startswith(b"HTTP/1.") or not status.startswith(b"200"):
        raise ValueError(f"it answers {status.decode('latin-1')[:100]}")


async def _request_by_socks(server: Stream, target: HostPort, user: bytes, password: bytes) -> None:
    """Ask a SOCKS 5 proxy to connect to the target. Raises ValueError when it refuses."""
    reader, writer = server.reader, server.writer
    # RFC 1928: version 5, the number of methods, then 0 (no authentication) and 2 (RFC 1929,
    # user and password).
    writer.write(b"\5\2\0\2" if user else b"\5\1\0")
    method = await reader.readexactly(2)
    if method == b"\5\2":
        writer.write(b"\1" + bytes((len(user),)) + user + bytes((len(password),)) + password)
        method = b"\5" + (await reader.readexactly(2))[1:]
    name = target.host.encode()
    if method == b"\5\0":
        # CONNECT (1) to a domain name (3). The answer ends with an address (1: IPv4, 4: IPv6,
        # 3: a name) and a port.
        writer.write(b"\5\1\0\3" + bytes((len(name),)) + name + target.port.to_bytes(2, "big"))
        _, status, _, kind = await reader.readexactly(4)
        if status == 0:
            length = {1: 4, 4: 16}.get(kind) or (await reader.readexactly(1))[0]
            await reader.readexactly(length + 2)
            return
    raise ValueError("it refuses")


def _describe_error(error: Exception) -> str:
    if isinstance(error, TimeoutError):
        return "it took too long"
    return (
        (error.strerror if isinstance(error, OSError) else None)
        or str(error)
        or type(error).__name__
    )
