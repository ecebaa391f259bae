"""The HTTP client for one remote server: with its sign-in, the proxies of the environment, and bounded answers."""

import os
from collections.abc import AsyncGenerator, Callable, Mapping
from typing import TYPE_CHECKING

from codeloop.extend.mcp.transport.failures import SignInNeeded
from codeloop.net.errors import NetworkError
from codeloop.net.hosts import require_reachable
from codeloop.net.proxy import find_proxy
from codeloop.net.tls import load_service_tls_context
from codeloop.schema.limits import MCP_MESSAGE, MCP_START

if TYPE_CHECKING:
    import httpx2

_REFUSAL_STATUSES = frozenset((401, 403))


def make_http_client(
    headers: Mapping[str, str], auth: "httpx2.Auth | None", note_status: Callable[[int], None]
) -> "httpx2.AsyncClient":
    """Return a client for one server and its sign-in, which may be at another host. `note_status` gets each status.

    `auth`: None: a refused request raises SignInNeeded. With `httpx2.Auth()`, which adds nothing to a request, the
    caller handles refusals.
    """
    import httpx2

    async def check_status(response: httpx2.Response) -> None:
        note_status(response.status_code)
        if response.status_code in _REFUSAL_STATUSES and auth is None:
            raise SignInNeeded(f"it answered {response.status_code} {response.reason_phrase}: check its `headers`")
        _limit_size(response)

    return httpx2.AsyncClient(
        headers=dict(headers),
        auth=auth,
        transport=_make_host_transport(),
        # Reading has no limit here: an event stream may be silent for long, and requests have limits of their own.
        timeout=httpx2.Timeout(MCP_START.seconds, read=None),
        event_hooks={"response": [check_status]},
    )


def _make_host_transport() -> "httpx2.AsyncBaseTransport":
    """Return a transport that reaches each host directly or through the environment's proxy for it."""
    import httpx2

    transports: dict[tuple[str | None, bool], httpx2.AsyncHTTPTransport] = {}

    class ByHost(httpx2.AsyncBaseTransport):
        async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
            url = request.url
            try:
                require_reachable(url.host)
            except NetworkError as error:
                raise httpx2.ConnectError(str(error), request=request) from None
            port = url.port or (443 if url.scheme == "https" else 80)
            # For each request, since a sign-in goes to other hosts than the server's.
            proxy = find_proxy(url.scheme, url.host, port, os.environ)
            is_secure = url.scheme == "https" or (proxy or "").startswith("https")
            transport = transports.get((proxy, is_secure))
            if transport is None:
                transport = httpx2.AsyncHTTPTransport(
                    # Loading the certificates takes time, and plain HTTP needs none.
                    verify=load_service_tls_context() if is_secure else False,
                    proxy=proxy,
                )
                transports[proxy, is_secure] = transport
            return await transport.handle_async_request(request)

        async def aclose(self) -> None:
            for transport in transports.values():
                await transport.aclose()

    return ByHost()


def _limit_size(response: "httpx2.Response") -> None:
    """Limit the size of a response; in event streams, of each event."""
    import httpx2

    stream = response.stream
    is_events = response.headers.get("content-type", "").lower().startswith("text/event-stream")
    # A stream of events has no end; the package bounds each event.
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
