"""The HTTP client for one remote server: our proxies and authorities for each host, answers up to a limit."""

import os
from collections.abc import AsyncGenerator, Callable, Mapping
from typing import TYPE_CHECKING

from codeloop.extend.mcp.link.failures import SignInNeeded
from codeloop.net.proxy import proxy_for
from codeloop.net.tls import tls_context
from codeloop.schema.limits import MCP_MESSAGE, MCP_START

if TYPE_CHECKING:
    import httpx2

_REFUSED = frozenset((401, 403))


def http_client(
    headers: Mapping[str, str], auth: "httpx2.Auth | None", heard: Callable[[int], None]
) -> "httpx2.AsyncClient":
    """Return a client for one server and its sign-in, which may be at another host. `heard` is told each status."""
    import httpx2

    async def came(response: httpx2.Response) -> None:
        heard(response.status_code)
        if response.status_code in _REFUSED and auth is None:
            raise SignInNeeded(f"it answered {response.status_code} {response.reason_phrase}: check its `headers`")
        _bound(response)

    return httpx2.AsyncClient(
        headers=dict(headers),
        auth=auth,
        transport=_by_host(),
        timeout=httpx2.Timeout(MCP_START.seconds, read=None),
        event_hooks={"response": [came]},
    )


def _by_host() -> "httpx2.AsyncBaseTransport":
    """Return a transport that reaches each host directly or through the proxy that the environment names for it."""
    import httpx2

    ways: dict[tuple[str | None, bool], httpx2.AsyncHTTPTransport] = {}

    class ByHost(httpx2.AsyncBaseTransport):
        async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
            url = request.url
            port = url.port or (443 if url.scheme == "https" else 80)
            proxy = proxy_for(url.scheme, url.host, port, os.environ)
            is_secure = url.scheme == "https" or (proxy or "").startswith("https")
            way = ways.get((proxy, is_secure))
            if way is None:
                way = httpx2.AsyncHTTPTransport(verify=tls_context() if is_secure else False, proxy=proxy)
                ways[proxy, is_secure] = way
            return await way.handle_async_request(request)

        async def aclose(self) -> None:
            for way in ways.values():
                await way.aclose()

    return ByHost()


def _bound(response: "httpx2.Response") -> None:
    """Read no more of an answer than the limit; events of a stream are bounded one by one."""
    import httpx2

    stream = response.stream
    is_events = response.headers.get("content-type", "").lower().startswith("text/event-stream")
    if is_events or not isinstance(stream, httpx2.AsyncByteStream):
        return

    class Bounded(httpx2.AsyncByteStream):
        async def __aiter__(self) -> AsyncGenerator[bytes]:
            size = 0
            async for chunk in stream:
                size += len(chunk)
                if size > MCP_MESSAGE.value:
                    raise httpx2.ReadError(f"it sent a message of more than {MCP_MESSAGE.value:,} bytes")
                yield chunk

        async def aclose(self) -> None:
            await stream.aclose()

    response.stream = Bounded()
