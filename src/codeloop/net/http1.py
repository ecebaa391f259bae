"""HTTP/1.1 over one socket, for requests that are sent at once and answers that stream;
`OriginClient` uses it.

Written here because a library costs more than the rest of a start: 150 to 200 ms for the first
request and 12 µs for each chunk of an answer, against 1 µs here.
"""

import asyncio
import socket
from contextlib import ExitStack, suppress
from errno import ECONNREFUSED
from ssl import SSLCertVerificationError, SSLContext, SSLError
from typing import Any

from codeloop.kit.text.patterns import compile_once
from codeloop.net.errors import NetworkError, NetworkErrorKind

# The length of a chunk takes a few bytes, but extensions may follow it: a bound for broken streams.
MAX_CHUNK_HEAD_BYTES = 4_096
MAX_TRAILER_BYTES = 256 * 1024


class ChunkedBody:
    """Decodes a body of the transfer encoding `chunked`; bytes may be split anywhere."""

    def __init__(self) -> None:
        self.is_done = False
        self._buffer = b""
        """Bytes that are not decoded yet: the beginning of the line before a chunk, or trailers."""
        self._remaining = 0
        """The bytes of the current chunk that are still to come, with the line break after it."""

    def feed(self, data: bytes) -> bytes:
        """Take the next bytes; return what they hold of the body.
        Raises NetworkError when they are not chunks.
        """
        buffer = self._buffer + data if self._buffer else data
        size, position, pieces = len(buffer), 0, list[bytes]()
        # The common case, without a search: all of the data belongs to a chunk whose
        # head came earlier. The
        # line break after the chunk, which `_remaining` counts too, is not part of the body.
        if self._remaining:
            pieces.append(buffer[: max(self._remaining - 2, 0)])
            if self._remaining > size:
                self._remaining -= size
                self._buffer = b""
                return pieces[0]
            position, self._remaining = self._remaining, 0
        while (end := buffer.find(b"\r\n", position)) >= 0:
            length = _parse_chunk_length(buffer[position:end])
            if length == 0:
                return self._skip_trailers(buffer, position, end, pieces)
            start = end + 2
            stop = start + length
            pieces.append(buffer[start:stop])
            position = stop + 2
            if position > size:
                self._remaining, position = position - size, size
                break
        self._buffer = buffer[position:]
        if len(self._buffer) > MAX_CHUNK_HEAD_BYTES:
            raise NetworkError("protocol", "a chunk without a length")
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def _skip_trailers(self, buffer: bytes, position: int, end: int, pieces: list[bytes]) -> bytes:
        """Look for the empty line that ends the body, after trailers, which are not needed;
        return the body so far.

        `position` and `end`: where the line of the last chunk, whose length is 0, begins and ends.
        """
        if buffer.startswith(b"\r\n", end + 2) or buffer.find(b"\r\n\r\n", end) >= 0:
            self.is_done, self._buffer = True, b""
        else:
            self._buffer = buffer[position:]
            if len(self._buffer) > MAX_TRAILER_BYTES:
                raise NetworkError("protocol", "endless trailers")
        return b"".join(pieces)


def _parse_chunk_length(head: bytes) -> int:
    # Such as `1a3` or `1a3;name=value`, with an extension.
    try:
        length = int(head.partition(b";")[0], 16)
    except ValueError:
        length = -1
    if length < 0:
        raise NetworkError("protocol", "a chunk without a length")
    return length


READ_BYTES = 256 * 1024
STATUS_LINE_START = b"HTTP/1."
STATUS_PATTERN = r"[1-9][0-9]{2}"
CONNECTION_REFUSED = "connection refused"
UNKNOWN_NAME = "the name is not known"
# `int` accepts signs, blanks and underscores, which no length may have.
LENGTH_PATTERN = r"[0-9]{1,18}"


class Connection:
    """One socket to one origin. One exchange at a time: `send`, `receive_head`,
    then `read` until it returns b"".
    """

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.has_answered = False
        """Whether an answer has begun to arrive; the client resets it before each request."""
        self.status = 0
        self.headers: dict[str, str] = {}
        self._reader = reader
        self._writer = writer
        self._chunks: ChunkedBody | None = None
        self._remaining: int | None = 0
        """The bytes of the body that are still to come;
        None: the body is chunked, or ends with the connection.
        """
        self._loop = asyncio.get_running_loop()

    @classmethod
    async def open(cls, host: str, port: int, tls: SSLContext | None) -> "Connection":
        """Connect to a host, by TLS if there is a context for it. Raises NetworkError."""
        try:
            reader, writer = await _open_streams(host, port, tls)
        except OSError as error:
            raise NetworkError(_classify_error(error), _describe_error(error)) from None
        except UnicodeError:
            # A part of the name is empty or too long.
            raise NetworkError("refused", UNKNOWN_NAME) from None
        return cls(reader, writer)

    async def send(self, head: bytes, body: bytes) -> None:
        """Write a request. A response that the service sends before it has read
        everything is still received.
        """
        self._writer.writelines((head, body))
        try:
            await self._writer.drain()
        except ConnectionError:
            # A service that refuses a large body answers and closes without reading all of it.
            return

    async def receive_head(self) -> None:
        """Read status and headers, skipping interim answers. Raises NetworkError;
        "cut" when the connection ends.
        """
        while True:
            try:
                head = await self._reader.readuntil(b"\r\n\r\n")
            except asyncio.IncompleteReadError as error:
                self.has_answered = self.has_answered or bool(error.partial)
                is_http = STATUS_LINE_START.startswith(error.partial[: len(STATUS_LINE_START)])
                raise NetworkError("cut" if is_http else "protocol", "no answer") from None
            except asyncio.LimitOverrunError:
                raise NetworkError("protocol", "endless headers") from None
            except OSError as error:
                raise NetworkError("cut", _describe_error(error)) from None
            self.has_answered = True
            self._parse_head(head.decode("latin-1"))
            # 100 and 103 announce the answer that follows.
            if self.status >= 200:
                return

    async def read(self) -> bytes:
        """Return more of the body, b"" at its end. Raises NetworkError when the connection
        ends before the body.
        """
        while not self.is_complete:
            try:
                data = await self._reader.read(
                    READ_BYTES if self._remaining is None else min(self._remaining, READ_BYTES)
                )
            except OSError as error:
                raise NetworkError("cut", _describe_error(error)) from None
            if not data:
                return self._check_end()
            if self._chunks is not None:
                data = self._chunks.feed(data)
            elif self._remaining is not None:
                self._remaining -= len(data)
            if data:
                return data
        return b""

    @property
    def is_complete(self) -> bool:
        """Whether the body was read to its end."""
        return self._chunks.is_done if self._chunks is not None else self._remaining == 0

    @property
    def can_be_used(self) -> bool:
        """Whether another request may be sent: same event loop, nothing outstanding,
        not closed by the service.
        """
        # A program may use several event loops one after the other;
        # a socket belongs to the loop that it was made in.
        is_same_loop = self._loop is asyncio.get_running_loop()
        return (
            is_same_loop
            and self.is_complete
            and not self._reader.at_eof()
            and not self._writer.is_closing()
        )

    @property
    def keeps_alive(self) -> bool:
        """Whether the service accepts another request on this connection
        after a complete answer.
        """
        # Without a length the answer ends where the connection does.
        has_length = self._chunks is not None or "content-length" in self.headers
        return (
            has_length
            and self.is_complete
            and "close" not in self.headers.get("connection", "").lower()
        )

    def close(self) -> None:
        """Drop the connection at once."""
        # `abort` and not `close`: data that was not sent yet must not be,
        # and TLS must not wait for the other side.
        if not self._loop.is_closed():
            self._writer.transport.abort()

    def _check_end(self) -> bytes:
        """Return b"" if the end of the connection ends the body too.
        Raises NetworkError if more was announced.
        """
        if self._remaining is None and self._chunks is None:
            self._remaining = 0
            return b""
        raise NetworkError("cut")

    def _parse_head(self, head: str) -> None:
        """Set status and headers, and how the body is delimited."""
        first, *lines = head.split("\r\n")
        version, _, status = first.partition(" ")
        if not version.startswith("HTTP/1.") or compile_once(STATUS_PATTERN).match(status) is None:
            raise NetworkError("protocol", "no status line")
        headers: dict[str, str] = {}
        for line in lines:
            name, colon, value = line.partition(":")
            if colon:
                name = name.strip().lower()
                headers[name] = (
                    f"{headers[name]}, {value.strip()}" if name in headers else value.strip()
                )
        self.status, self.headers = int(status[:3]), headers
        self._chunks = (
            ChunkedBody() if "chunked" in headers.get("transfer-encoding", "").lower() else None
        )
        length = headers.get("content-length", "")
        is_length = (
            self._chunks is None and compile_once(LENGTH_PATTERN).fullmatch(length) is not None
        )
        self._remaining = int(length) if is_length else None
        # These have no body, whatever their headers say.
        if self.status in {204, 304}:
            self._chunks, self._remaining = None, 0


async def _open_streams(
    host: str, port: int, tls: SSLContext | None
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Connect to the first address of a host that answers. Raises OSError and UnicodeError."""
    try:
        # If the first address is silent, the next one is tried after the delay
        # that RFC 8305 proposes.
        return await asyncio.open_connection(
            host, port, ssl=tls, limit=READ_BYTES, happy_eyeballs_delay=0.25
        )
    except TypeError:
        # An event loop of another maker, such as uvloop, which has no such parameter.
        loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    for family, kind, protocol, _, address in found[:-1]:
        with suppress(OSError):
            return await _connect(socket.socket(family, kind, protocol), address, host, tls)
    family, kind, protocol, _, address = found[-1]
    return await _connect(socket.socket(family, kind, protocol), address, host, tls, seconds=None)


async def _connect(
    connecting: socket.socket,
    address: Any,
    host: str,
    tls: SSLContext | None,
    seconds: float | None = 2.0,
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Connect to one address. Raises OSError, also when it is silent for `seconds`."""
    with ExitStack() as on_failure:
        on_failure.enter_context(connecting)
        connecting.settimeout(0)
        async with asyncio.timeout(seconds):
            await asyncio.get_running_loop().sock_connect(connecting, address)
        on_failure.pop_all()
    name = host if tls else None
    return await asyncio.open_connection(
        sock=connecting, ssl=tls, limit=READ_BYTES, server_hostname=name
    )


def _classify_error(error: OSError) -> NetworkErrorKind:
    if isinstance(error, SSLCertVerificationError):
        return "certificate"
    if isinstance(error, SSLError):
        return "protocol"
    # An unknown name is as final as a refusal: the address is probably wrong,
    # so it is retried less.
    is_refused = _describe_error(error) == CONNECTION_REFUSED or (
        isinstance(error, socket.gaierror) and error.errno == socket.EAI_NONAME
    )
    return "refused" if is_refused else "connect"


def _describe_error(error: OSError) -> str:
    match error:
        case ConnectionRefusedError():
            return CONNECTION_REFUSED
        case socket.gaierror(errno=number) if number == socket.EAI_NONAME:
            return UNKNOWN_NAME
        # The name server is away, as without a network, or failed: nothing is known about the name.
        case socket.gaierror():
            return "the name could not be looked up"
        case SSLCertVerificationError():
            return error.verify_message
        case _:
            # asyncio joins the errors of several addresses to one text: `[Errno 111]
            # Connect call failed (...)`.
            message = (error.strerror or str(error)).lower()
            return CONNECTION_REFUSED if f"errno {ECONNREFUSED}]" in message else message
