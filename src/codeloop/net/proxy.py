"""Requests through the proxy that the environment names, over httpx2, which knows every kind of them."""

import asyncio
from typing import TYPE_CHECKING

from codeloop.net.http1 import NetworkError, NetworkErrorKind

if TYPE_CHECKING:
    from httpx2 import AsyncClient, Response


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
        """Drop the connection, in a task that the body keeps."""
        if self._closing is None:
            self._closing = asyncio.get_running_loop().create_task(self._response.aclose())


class ProxyClient:
    """Sends requests through a proxy. It starts in 0.2 s: only made when the environment names a proxy."""

    def __init__(self, connect: float, first_byte: float) -> None:
        self._connect = connect
        self._first_byte = first_byte
        self._client: AsyncClient | None = None

    async def post(self, url: str, headers: dict[str, str], body: bytes) -> ProxyResponse:
        """Send `body`; give the answer once its headers are there. Raises NetworkError."""
        import httpx2

        timeout = httpx2.Timeout(None, connect=self._connect, read=self._first_byte)
        self._client = self._client or httpx2.AsyncClient(follow_redirects=False, timeout=timeout)
        try:
            request = self._client.build_request("POST", url, headers=headers, content=body)
            return ProxyResponse(await self._client.send(request, stream=True))
        except (httpx2.HTTPError, httpx2.InvalidURL, ImportError, ValueError) as error:
            raise NetworkError(_kind(error), str(error)) from None

    async def aclose(self) -> None:
        """Drop all connections."""
        if self._client is not None:
            await self._client.aclose()


def _kind(error: Exception) -> NetworkErrorKind:
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
