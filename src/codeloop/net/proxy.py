"""The environment's proxy for a host, and requests through it with httpx2, which supports every kind of proxy."""

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING

from codeloop.net.http1 import NetworkError, NetworkErrorKind
from codeloop.net.origin import add_brackets
from codeloop.net.tls import service_tls_context
from codeloop.schema.errors import CodeloopError

if TYPE_CHECKING:
    from httpx2 import AsyncClient, Response


def proxy_for(scheme: str, host: str, port: int, environment: Mapping[str, str]) -> str | None:
    """Return the URL of the proxy for a host, None for a direct connection.

    It reads `https_proxy`, `http_proxy` and `all_proxy`, lower case first, and `no_proxy` (names and all below them,
    addresses, networks such as `10.0.0.0/8`, `host:port`, `*`). `HTTP_PROXY` in capitals counts too: this program is
    never a CGI script.
    """
    names = (f"{scheme}_proxy", f"{scheme}_proxy".upper(), "all_proxy", "ALL_PROXY")
    proxy = next((environment[name] for name in names if environment.get(name)), None)
    if proxy is None:
        return None
    for entry in (environment.get("no_proxy") or environment.get("NO_PROXY") or "").split(","):
        pattern = entry.strip().lower()
        if "/" in pattern and _is_in_network(host, pattern):
            return None
        name = pattern.lstrip("*").removeprefix(".")
        if pattern == "*" or (name and (name in {host, f"{add_brackets(host)}:{port}"} or host.endswith(f".{name}"))):
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
        """Drop the connection. The task is stored, since the event loop does not keep tasks alive."""
        if self._closing is None:
            self._closing = asyncio.get_running_loop().create_task(self._response.aclose())


class ProxyClient:
    """Sends requests through a proxy. Starting takes 0.2 s, so it is only made when the environment names a proxy."""

    def __init__(self, proxy: str, connect: float, first_byte: float) -> None:
        self._proxy = proxy
        self._connect = connect
        self._first_byte = first_byte
        self._client: AsyncClient | None = None

    async def request(self, method: str, url: str, headers: dict[str, str], body: bytes) -> ProxyResponse:
        """Send a request; return the response once its headers are there. Raises NetworkError."""
        import httpx2

        timeout = httpx2.Timeout(None, connect=self._connect, read=self._first_byte)
        try:
            self._client = self._client or httpx2.AsyncClient(
                verify=service_tls_context(),
                trust_env=False,
                proxy=self._proxy,
                follow_redirects=False,
                timeout=timeout,
            )
            request = self._client.build_request(method, url, headers=headers, content=body)
            return ProxyResponse(await self._client.send(request, stream=True))
        except CodeloopError as error:
            raise NetworkError("certificate", str(error)) from None
        except (httpx2.HTTPError, httpx2.InvalidURL, ImportError, ValueError) as error:
            raise NetworkError(_classify(error), str(error)) from None

    async def aclose(self) -> None:
        """Drop all connections."""
        if self._client is not None:
            await self._client.aclose()


def _classify(error: Exception) -> NetworkErrorKind:
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
