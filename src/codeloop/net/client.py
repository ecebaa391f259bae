"""An HTTP client of one origin: persistent connections, deadlines, and proxies of the environment.

Services of models (`model/wire/http_model.py`), HTTP hooks,
code forges and Kubernetes are called through it.
"""

import asyncio
import os
import time
from collections.abc import Awaitable, Callable
from math import isinf
from ssl import SSLContext
from typing import TYPE_CHECKING, Protocol, TypeVar
from urllib.parse import SplitResult, urlsplit

from codeloop.net.errors import NetworkError, NetworkErrorKind
from codeloop.net.hosts import format_host_header, is_local_host, require_reachable
from codeloop.net.http1 import Connection
from codeloop.schema.errors import CodeloopError
from codeloop.schema.limits import MODEL_GRACE_TIME, MODEL_INFLATED, MODEL_KEEPALIVE

if TYPE_CHECKING:
    from codeloop.net.proxy import ProxyClient

Result = TypeVar("Result")


class BodyStream(Protocol):
    """The body of a response, as it comes."""

    async def read(self) -> bytes:
        """Return more of the body, b"" at its end; raise NetworkError when it is cut."""
        ...

    def close(self) -> None:
        """Drop the connection at once."""
        ...


class RequestClient(Protocol):
    """Sends requests to a service, and returns its responses."""

    async def post(self, path: str, headers: dict[str, str], body: bytes) -> "HttpResponse":
        """Send `body` to the base URL plus `path`; return the response when its head is there.
        Raises NetworkError.
        """
        ...

    def release(self, source: BodyStream) -> None:
        """Take back the stream from which a response was read,
        to use its connection again or to drop it.
        """
        ...

    async def aclose(self) -> None:
        """Close idle connections."""
        ...


class HttpResponse:
    """Status, headers (lower-case names) and streamed body of one response.
    Whoever takes it calls `close`.
    """

    def __init__(
        self, http: RequestClient, source: BodyStream, status: int, headers: dict[str, str]
    ) -> None:
        self.status = status
        self.headers = headers
        self._http = http
        self._source: BodyStream | None = source
        self._inflate = _make_inflater(headers.get("content-encoding", ""))

    async def read(self, seconds: float, *, kind: NetworkErrorKind = "idle") -> bytes:
        """Return more of the body within `seconds`, b"" at its end.
        Raises NetworkError (`kind` after the deadline).
        """
        source = self._source
        if source is None:
            return b""
        # Only a socket can be read on after a read was cut off: the stream of an
        # HTTP client is over then.
        read_late = source.read if isinstance(source, Connection) else None
        while data := await _await_within(seconds, source.read(), kind, read_late):
            if self._inflate is None:
                return data
            if plain := self._inflate(data):
                return plain
        return b""

    async def read_some(self, size: int, seconds: float) -> bytes:
        """Return at most `size` bytes of the body, as much as comes within `seconds` a piece;
        never fails.
        """
        pieces, length = list[bytes](), 0
        try:
            while length < size and (data := await self.read(seconds)):
                pieces.append(data)
                length += len(data)
        except NetworkError:
            # The start of an error's body is enough to explain it.
            pass
        return b"".join(pieces)[:size]

    async def finish(self) -> None:
        """Read the end of a body whose content is complete,
        so that its connection can be used again; give up soon.
        """
        try:
            while await self.read(MODEL_GRACE_TIME.seconds):
                pass
        except NetworkError:
            return

    def close(self) -> None:
        """Keep the connection for the next request if the body was read to its end,
        else drop it at once.
        """
        source, self._source = self._source, None
        if source is not None:
            self._http.release(source)


class OriginClient:
    """A client of one origin. Redirects are not followed; proxies come from the environment."""

    def __init__(
        self, base_url: str, connect: float, first_byte: float, tls: SSLContext | None = None
    ) -> None:
        """Connect to nothing yet.

        `connect`, `first_byte`: the seconds that a connection and the beginning of an answer may
        take. `tls`: the context for a service with its own authority or client certificate;
        it is reached without a proxy.
        """
        self._tls = tls
        self._base_url = base_url
        self._connect_seconds = connect
        self._first_byte = first_byte
        self._base_parts: SplitResult = urlsplit(base_url)
        self._port = self._base_parts.port or (443 if self._base_parts.scheme == "https" else 80)
        self._idle_connections: list[tuple[Connection, float]] = []
        self._proxy: ProxyClient | None = None

    async def post(self, path: str, headers: dict[str, str], body: bytes) -> HttpResponse:
        """Send `body` to the base URL plus `path`; return the response when its head is there.
        Raises NetworkError.
        """
        return await self.request("POST", path, headers, body)

    async def request(
        self, method: str, path: str, headers: dict[str, str], body: bytes = b""
    ) -> HttpResponse:
        """Send a request to the base URL plus `path`; return the response when its head is there.
        Raises NetworkError.

        If an idle connection turns out to be closed before an answer begins,
        the request is sent again on another one.
        """
        require_reachable(self._base_parts.hostname or "")
        host = self._base_parts.hostname or ""
        # No proxy can reach this machine's own servers, even if NO_PROXY does not list them.
        is_direct = self._tls is not None or is_local_host(host)
        if not is_direct and (proxy := self._open_proxy(host)) is not None:
            source = await proxy.request(method, join_url(self._base_url, path), headers, body)
            return HttpResponse(self, source, source.status, source.headers)
        head = self._format_head(method, path, headers, len(body))
        # A service may close an idle connection at any time,
        # even while the request is on its way (RFC 9112, 9.3.1).
        while (connection := self._take_idle()) is not None:
            if await self._exchange(connection, head, body):
                return HttpResponse(self, connection, connection.status, connection.headers)
        connection = await self._connect()
        # Of a new connection it returns True or raises.
        await self._exchange(connection, head, body)
        return HttpResponse(self, connection, connection.status, connection.headers)

    def release(self, source: BodyStream) -> None:
        """Take back the stream that a response was read from,
        to use its connection again or to drop it.
        """
        if isinstance(source, Connection) and source.can_be_used and source.keeps_alive:
            self._idle_connections.append((source, time.monotonic()))
        else:
            source.close()

    async def aclose(self) -> None:
        """Drop the idle connections."""
        while self._idle_connections:
            self._idle_connections.pop()[0].close()
        if self._proxy is not None:
            await self._proxy.aclose()

    async def _exchange(self, connection: Connection, head: bytes, body: bytes) -> bool:
        """Send a request, and read the answer's head.

        Return False if the service had closed this idle connection before it answered.
        Raises NetworkError.
        """
        is_new, is_complete = not connection.has_answered, False
        connection.has_answered = False
        try:
            exchange = _send_and_receive_head(connection, head, body)
            await _await_within(self._first_byte, exchange, "first-byte", connection.receive_head)
            is_complete = True
        except NetworkError as error:
            # Once an answer has begun, sending the request again could have the work done,
            # and paid for, twice.
            if is_new or error.kind != "cut" or connection.has_answered:
                raise
        finally:
            # Also when the task is cancelled: a connection in the middle of an exchange
            # can't be used again.
            if not is_complete:
                connection.close()
        return is_complete

    def _open_proxy(self, host: str) -> "ProxyClient | None":
        """Return the client of the proxy that the environment names for a host, if any."""
        from codeloop.net.proxy import ProxyClient, find_proxy

        proxy = find_proxy(self._base_parts.scheme, host, self._port, os.environ)
        if proxy is None:
            return None
        self._proxy = self._proxy or ProxyClient(proxy, self._connect_seconds, self._first_byte)
        return self._proxy

    async def _connect(self) -> Connection:
        tls = None
        try:
            if self._base_parts.scheme == "https":
                from codeloop.net.tls import load_service_tls_context

                tls = self._tls or load_service_tls_context()
        except CodeloopError as error:
            raise NetworkError("certificate", str(error)) from None
        connecting = Connection.open(self._base_parts.hostname or "", self._port, tls)
        return await _await_within(self._connect_seconds, connecting, "connect-timeout")

    def _take_idle(self) -> Connection | None:
        while self._idle_connections:
            connection, since = self._idle_connections.pop()
            if connection.can_be_used and time.monotonic() - since < MODEL_KEEPALIVE.seconds:
                return connection
            connection.close()
        return None

    def _format_head(self, method: str, path: str, headers: dict[str, str], length: int) -> bytes:
        # A path is never empty in a request, though it may be in a URL: that of a hook
        # has nothing after its host.
        base_path = self._base_parts.path or ("" if path else "/")
        target = join_url(f"{base_path}?{self._base_parts.query}", path)
        lines = [
            f"{method} {target} HTTP/1.1",
            f"host: {format_host_header(self._base_parts)}",
        ]
        # A line break in a value would let it add headers, or a second request.
        lines += [
            f"{name}: {value}"
            for name, value in headers.items()
            if "\n" not in value and "\r" not in value
        ]
        lines += [f"content-length: {length}", "", ""]
        return "\r\n".join(lines).encode("latin-1", "replace")


def join_url(base_url: str, path: str) -> str:
    """Return the URL of a request: `path` is added to that of the base URL, whose query comes last.

    >>> join_url("https://host/v1/?key=k", "/models?all=1")
    'https://host/v1/models?all=1&key=k'
    """
    base, _, query = base_url.partition("#")[0].partition("?")
    base = base.rstrip("/") if path.startswith("/") else base
    return f"{base}{path}{'&' if '?' in path else '?'}{query}" if query else f"{base}{path}"


async def _send_and_receive_head(connection: Connection, head: bytes, body: bytes) -> None:
    await connection.send(head, body)
    await connection.receive_head()


async def _await_within(
    seconds: float,
    work: Awaitable[Result],
    kind: NetworkErrorKind,
    take_late: Callable[[], Awaitable[Result]] | None = None,
) -> Result:
    """Await `work` for at most `seconds`, then raise NetworkError of `kind`.

    `take_late`: called after the deadline; its result counts if it is there without waiting. After
    a program stood still (Ctrl-Z, a machine without a free core) its deadline is over
    although the service was in time.
    """
    try:
        async with asyncio.timeout(None if isinf(seconds) else seconds):
            return await work
    except TimeoutError:
        if take_late is None:
            raise NetworkError(kind) from None
    return await _await_within(0, take_late(), kind)


def _make_inflater(encoding: str) -> Callable[[bytes], bytes] | None:
    """Return a decompressor for a content encoding; None: not compressed, or in an unknown way.

    No request asks for compression, but some services and proxies compress all the same.
    """
    if encoding.strip().lower() not in {"gzip", "x-gzip", "deflate"}:
        return None
    import zlib

    # 32 + 15: find out by the first bytes whether it is gzip or zlib, with the largest window.
    inflater = zlib.decompressobj(wbits=47)

    def inflate_chunk(data: bytes) -> bytes:
        try:
            # The limit keeps a small piece of data from becoming gigabytes of zeros.
            plain = inflater.decompress(data, MODEL_INFLATED.value)
        except zlib.error as error:
            raise NetworkError("protocol", f"broken compression ({error})") from None
        if inflater.unconsumed_tail:
            raise NetworkError(
                "protocol", f"compressed data that becomes more than {MODEL_INFLATED.value} bytes"
            )
        return plain

    return inflate_chunk
