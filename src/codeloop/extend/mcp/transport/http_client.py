"""The HTTP client for one remote server: with its sign-in, the proxies of the environment,
and bounded answers.
"""

import os
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from codeloop.extend.mcp.transport.failures import SignInNeeded
from codeloop.extend.mcp.transport.repair_messages import repair_body
from codeloop.net.address import classify_non_public, resolve_host
from codeloop.net.errors import NetworkError
from codeloop.net.hosts import require_reachable
from codeloop.net.proxy import find_proxy
from codeloop.net.tls import load_service_tls_context
from codeloop.schema.limits import MCP_MESSAGE, MCP_START

if TYPE_CHECKING:
    import httpx2

_REFUSAL_STATUSES = frozenset((401, 403))


def make_http_client(
    server_url: str,
    headers: Mapping[str, str],
    auth: "httpx2.Auth | None",
    note_answer: "Callable[[httpx2.Response], None]",
) -> "httpx2.AsyncClient":
    """Return a client for one server and its sign-in, which may be at another host.
    `note_answer` gets each answer, whose body has not been read.

    `auth`: None: a refused request raises SignInNeeded. With `httpx2.Auth()`, which adds nothing to
    a request, the caller handles refusals. A host that `server_url` leads to, as for a sign-in, is
    reached on this machine or in a private network only if the server is there itself.
    """
    import httpx2

    async def check_status(response: httpx2.Response) -> None:
        note_answer(response)
        if response.status_code in _REFUSAL_STATUSES and auth is None:
            raise SignInNeeded(
                f"it answered {response.status_code} {response.reason_phrase}: check its `headers`"
            )
        _shape_body(response)

    return httpx2.AsyncClient(
        # Messages are repaired as they come, which compressed data can't be.
        headers={"Accept-Encoding": "identity", **headers},
        auth=auth,
        transport=_make_host_transport(server_url),
        # Reading has no limit here: an event stream may be silent for long,
        # and requests have limits of their own.
        timeout=httpx2.Timeout(MCP_START.seconds, read=None),
        event_hooks={"response": [check_status]},
    )


async def _choose_address(url: "httpx2.URL", port: int, server_url: str) -> str | None:
    """Return the address to connect to for a host that a server leads to;
    None: the host is the server's own.

    Raises NetworkError: the host is on this machine or in a private network, and the server is not.
    """
    server = urlsplit(server_url)
    server_host = (server.hostname or "").lower()
    if url.host.lower() == server_host:
        return None
    addresses = await _resolve(url.host, port)
    kinds = {classify_non_public(address) for address in addresses} - {None}
    if kinds:
        server_addresses = await _resolve(server_host, server.port or port)
        server_kinds = {classify_non_public(address) for address in server_addresses}
        if "loopback" not in server_kinds and not kinds <= server_kinds:
            kind = ", ".join(sorted(filter(None, kinds)))
            text = f"{server_host} leads to {url.host} ({kind}): only a server that is there itself may do that"
            raise NetworkError("connect", text)
    return addresses[0] if addresses else None


async def _resolve(host: str, port: int) -> Sequence[str]:
    try:
        return await resolve_host(host, port)
    except OSError as error:
        raise NetworkError(
            "refused", f"{host} has no address: {error.strerror or error}"
        ) from error


def _make_host_transport(server_url: str) -> "httpx2.AsyncBaseTransport":
    """Return a transport that reaches each host directly or through the
    environment's proxy for it.
    """
    import httpx2

    transports: dict[tuple[str | None, bool], httpx2.AsyncHTTPTransport] = {}

    class ByHost(httpx2.AsyncBaseTransport):
        async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
            url = request.url
            port = url.port or (443 if url.scheme == "https" else 80)
            # For each request, since a sign-in goes to other hosts than the server's.
            proxy = find_proxy(url.scheme, url.host, port, os.environ)
            try:
                require_reachable(url.host)
                address = await _choose_address(url, port, server_url)
            except NetworkError as error:
                raise httpx2.ConnectError(str(error), request=request) from None
            if address is not None and proxy is None:
                # The very address that was looked at: a name may lead elsewhere a moment later.
                request.extensions = {**request.extensions, "sni_hostname": url.host}
                request.url = url.copy_with(host=address)
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


def _shape_body(response: "httpx2.Response") -> None:
    """Bound the size of a response, and repair its messages: the whole body,
    or each event of a stream, which the package bounds.
    """
    import httpx2

    stream = response.stream
    kind = response.headers.get("content-type", "").lower()
    if not isinstance(stream, httpx2.AsyncByteStream):
        return
    is_repaired = "content-encoding" not in response.headers

    class Shaped(httpx2.AsyncByteStream):
        async def __aiter__(self) -> AsyncGenerator[bytes]:
            if kind.startswith("text/event-stream"):
                lines = _read_lines(stream)
                async for line in _repair_events(lines) if is_repaired else lines:
                    yield line
                return
            body = bytearray()
            async for chunk in stream:
                body += chunk
                if len(body) > MCP_MESSAGE.value:
                    raise httpx2.ReadError(
                        f"it sent a message of more than {MCP_MESSAGE.value:,} bytes"
                    )
            is_json = kind.startswith("application/json") and is_repaired
            yield repair_body(bytes(body)) if is_json else bytes(body)

        async def aclose(self) -> None:
            await stream.aclose()

    response.stream = Shaped()


async def _read_lines(stream: "httpx2.AsyncByteStream") -> AsyncGenerator[bytes]:
    """Yield the lines of a stream with their ends; very long ones as they come."""
    rest = b""
    async for chunk in stream:
        *lines, rest = (rest + chunk).splitlines(keepends=True) or [b""]
        # The end of a line may be cut between its two characters.
        if rest.endswith(b"\n"):
            lines, rest = [*lines, rest], b""
        for line in lines:
            yield line
        if len(rest) > MCP_MESSAGE.value:
            yield rest
            rest = b""
    if rest:
        yield rest


async def _repair_events(lines: AsyncGenerator[bytes]) -> AsyncGenerator[bytes]:
    """Yield the lines of a stream, the data of each event repaired as one message."""
    event: list[bytes] = []
    size = 0
    async for line in lines:
        event.append(line)
        size += len(line)
        if size > MCP_MESSAGE.value or not line.strip(b"\r\n"):
            yield _repair_event(event)
            event, size = [], 0
    if event:
        yield _repair_event(event)


def _repair_event(lines: list[bytes]) -> bytes:
    """Return an event whose message can be read; it is then one line of data."""
    data_lines = [line for line in lines if line.startswith(b"data:")]
    data = b"\n".join(line[len(b"data:") :].rstrip(b"\r\n") for line in data_lines)
    repaired = repair_body(data) if data else data
    if repaired == data:
        return b"".join(lines)
    rest = [line for line in lines if not line.startswith(b"data:")]
    return b"".join((b"data: ", repaired, b"\n", *rest))
