"""Finds the environment's proxy for a host, and sends requests through it with httpx2
(HTTP and SOCKS proxies).
"""

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING

from codeloop.net.errors import NetworkError, NetworkErrorKind
from codeloop.net.hosts import add_brackets
from codeloop.net.tls import load_service_tls_context
from codeloop.schema.errors import CodeloopError

if TYPE_CHECKING:
    from httpx2 import AsyncClient, Response


def find_proxy(scheme: str, host: str, port: int, environment: Mapping[str, str]) -> str | None:
    """Return the URL of the proxy for a host, None for a direct connection.

    It reads `https_proxy`, `http_proxy` and `all_proxy`, lower case first, and `no_proxy` (names
    and all below them, addresses, networks such as `10.0.0.0/8`, `host:port`, `*`). `HTTP_PROXY` in
    capitals counts too: this program is never a CGI script.
    """
    # The order of curl: the scheme's own variable before `all_proxy`, and lower case first.
    names = (f"{scheme}_proxy", f"{scheme}_proxy".upper(), "all_proxy", "ALL_PROXY")
    proxy = next((environment[name] for name in names if environment.get(name)), None)
    if proxy is None:
        return None
    for entry in (environment.get("no_proxy") or environment.get("NO_PROXY") or "").split(","):
        pattern = entry.strip().lower()
        if "/" in pattern and _is_in_network(host, pattern):
            return None
        # `example.com`, `.example.com` and `*.example.com` all mean the name
        # and every name below it.
        name = pattern.lstrip("*").removeprefix(".")
        matches_name = name in {host, f"{add_brackets(host)}:{port}"} or host.endswith(f".{name}")
        if pattern == "*" or (name and matches_name):
            return None
    return proxy if "://" in proxy else f"http://{proxy}"


def _is_in_network(host: str, network: str) -> bool:
    from ipaddress import ip_address, ip_network

    try:
        return ip_address(host) in ip_network(network, strict=False)
    except ValueError:
        return False


class ProxyResponse:
    """Status, headers and streamed body of one answer."""

    def __init__(self, response: "Response") -> None:
        self.status = response.status_code
        self.headers = {name.lower(): value for name, value in response.headers.items()}
        self._response = response
        self._chunks = response.aiter_raw()
        self._closing: asyncio.Task[None] | None = None

    async def read(self) -> bytes:
        """Return more of the body, b"" at its end. Raises NetworkError when it is cut."""
        import httpx2

        try:
            return await anext(self._chunks, b"")
        except httpx2.HTTPError as error:
            raise NetworkError("cut", str(error)) from None

    def close(self) -> None:
        """Drop the connection, without waiting for it."""
        # Stored, since the event loop alone does not keep a task alive.
        if self._closing is None:
            self._closing = asyncio.get_running_loop().create_task(self._response.aclose())


class ProxyClient:
    """Sends requests through a proxy, with deadlines in seconds.
    Its first request imports httpx2, which takes long.
    """

    def __init__(self, proxy: str, connect: float, first_byte: float) -> None:
        self._proxy = proxy
        self._connect = connect
        self._first_byte = first_byte
        self._client: AsyncClient | None = None

    async def request(
        self, method: str, url: str, headers: dict[str, str], body: bytes
    ) -> ProxyResponse:
        """Send a request; return the response once its headers are there. Raises NetworkError."""
        import httpx2

        timeout = httpx2.Timeout(None, connect=self._connect, read=self._first_byte)
        try:
            self._client = self._client or httpx2.AsyncClient(
                verify=load_service_tls_context(),
                # The proxy is chosen by `find_proxy`; httpx2 must not choose another one.
                trust_env=False,
                proxy=self._proxy,
                follow_redirects=False,
                timeout=timeout,
            )
            request = self._client.build_request(method, url, headers=headers, content=body)
            return ProxyResponse(await self._client.send(request, stream=True))
        except CodeloopError as error:
            raise NetworkError("certificate", str(error)) from None
        # ImportError: a SOCKS proxy needs a package that is not installed.
        except (httpx2.HTTPError, httpx2.InvalidURL, ImportError, ValueError) as error:
            raise NetworkError(_classify_error(error), str(error)) from None

    async def aclose(self) -> None:
        """Drop all connections."""
        if self._client is not None:
            await self._client.aclose()


def _classify_error(error: Exception) -> NetworkErrorKind:
    import httpx2

    match error:
        case httpx2.ConnectTimeout():
            return "connect-timeout"
        case httpx2.TimeoutException():
            return "first-byte"
        case httpx2.ConnectError() | httpx2.ProxyError():
            return "proxy"
        case httpx2.HTTPError():
            return "cut"
        case _:
            return "proxy"
