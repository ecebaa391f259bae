"""HTTP/1.1 over one socket, for requests that are sent at once and answers that stream; `OriginClient` uses it.

Written here because a library costs more than the rest of a start: 150 to 200 ms for the first request and 12 µs for
each chunk of an answer, against 1 µs here.
"""

import asyncio
import re
from errno import ECONNREFUSED
from socket import EAI_NONAME, gaierror
from ssl import SSLCertVerificationError, SSLContext, SSLError
from typing import Literal

READ_BYTES = 256 * 1024
# The length of a chunk takes a few bytes, but extensions may follow it: a bound for broken streams.
MAX_CHUNK_HEAD_BYTES = 4_096
STATUS_LINE_START = b"HTTP/1."
STATUS_PATTERN = re.compile(r"[1-9][0-9]{2}")
CONNECTION_REFUSED = "connection refused"
# `int` accepts signs, blanks and underscores, which no length may have.
LENGTH_PATTERN = re.compile(r"[0-9]{1,18}")


NetworkErrorKind = Literal[
    "connect", "refused", "connect-timeout", "certificate", "proxy", "offline", "first-byte", "idle", "cut", "protocol"
]


class NetworkError(Exception):
    """A request failed below HTTP: `kind` says where; the text is the system's own reason."""

    def __init__(self, kind: NetworkErrorKind, detail: str = "") -> None:
        super().__init__(detail)
        self.kind: NetworkErrorKind = kind


class ChunkedBody:
    """Decodes a body of the transfer encoding `chunked`; bytes may be split anywhere."""

    def __init__(self) -> None:
        self.is_done = False
        self._buffer = b""
        self._remaining = 0

    def feed(self, data: bytes) -> bytes:
        """Take the next bytes; return what they hold of the body. Raises NetworkError when they are not chunks."""
        buffer = self._buffer + data if self._buffer else data
        size, at, pieces = len(buffer), 0, list[bytes]()
        # The common case, without a search: all of the data belongs to a chunk whose head came earlier. `_remaining`
        # counts the line break after the chunk too, which is not part of the body.
        if self._remaining:
            pieces.append(buffer[: max(self._remaining - 2, 0)])
            if self._remaining > size:
                self._remaining -= size
                self._buffer = b""
                return pieces[0]
            at, self._remaining = self._remaining, 0
        while (end := buffer.find(b"\r\n", at)) >= 0:
            length = _parse_chunk_length(buffer[at:end])
            if length == 0:
                return self._skip_trailers(buffer, at, end, pieces)
            start = end + 2
            stop = start + length
            pieces.append(buffer[start:stop])
            at = stop + 2
            if at > size:
                self._remaining, at = at - size, size
                break
        self._buffer = buffer[at:]
        if len(self._buffer) > MAX_CHUNK_HEAD_BYTES:
            raise NetworkError("protocol", "a chunk without a length")
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def _skip_trailers(self, buffer: bytes, at: int, end: int, pieces: list[bytes]) -> bytes:
        """Look for the empty line that ends the body, past trailers, which are not needed; return the body so far."""
        if buffer.startswith(b"\r\n", end + 2) or buffer.find(b"\r\n\r\n", end) >= 0:
            self.is_done, self._buffer = True, b""
        else:
            self._buffer = buffer[at:]
            if len(self._buffer) > READ_BYTES:
                raise NetworkError("protocol", "endless trailers")
        return b"".join(pieces)


def _parse_chunk_length(head: bytes) -> int:
    try:
        length = int(head.partition(b";")[0], 16)
    except ValueError:
        length = -1
    if length < 0:
        raise NetworkError("protocol", "a chunk without a length")
    return length


class Connection:
    """One socket to one origin. One exchange at a time: `send`, `receive_head`, then `read` until it returns b""."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.has_answered = False
        """Whether an answer has begun to arrive; the client resets it before each request."""
        self.status = 0
        self.headers: dict[str, str] = {}
        self._reader = reader
        self._writer = writer
        self._chunks: ChunkedBody | None = None
        self._remaining: int | None = 0
        self._loop = asyncio.get_running_loop()

    @classmethod
    async def open(cls, host: str, port: int, tls: SSLContext | None) -> "Connection":
        """Connect. Raises NetworkError."""
        try:
            # If the first address is silent, the next one is tried after the delay that RFC 8305 proposes.
            reader, writer = await asyncio.open_connection(
                host, port, ssl=tls, limit=READ_BYTES, happy_eyeballs_delay=0.25
            )
        except OSError as error:
            raise NetworkError(_classify_error(error), _describe_error(error)) from None
        return cls(reader, writer)

    async def send(self, head: bytes, body: bytes) -> None:
        """Write a request. A response that the service sends before it has read everything is still received."""
        self._writer.writelines((head, body))
        try:
            await self._writer.drain()
        except ConnectionError:
            # A service that refuses a large body answers and closes without reading all of it.
            return

    async def receive_head(self) -> None:
        """Read status and headers, skipping interim answers. Raises NetworkError; "cut" when the connection ends."""
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
        """Return more of the body, b"" at its end. Raises NetworkError when the connection ends before the body."""
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
        """Whether another request may be sent: same event loop, nothing outstanding, not closed by the service."""
        # A program may use several event loops one after the other; a socket belongs to the loop that it was made in.
        is_same_loop = self._loop is asyncio.get_running_loop()
        return is_same_loop and self.is_complete and not self._reader.at_eof() and not self._writer.is_closing()

    @property
    def keeps_alive(self) -> bool:
        """Whether the service accepts another request on this connection after a complete answer."""
        # Without a length the answer ends where the connection does.
        has_length = self._chunks is not None or "content-length" in self.headers
        return has_length and self.is_complete and "close" not in self.headers.get("connection", "").lower()

    def close(self) -> None:
        """Drop the connection at once."""
        # `abort` and not `close`: data that was not sent yet must not be, and TLS must not wait for the other side.
        if not self._loop.is_closed():
            self._writer.transport.abort()

    def _check_end(self) -> bytes:
        """Return b"" if the end of the connection ends the body too. Raises NetworkError if more was announced."""
        if self._remaining is None and self._chunks is None:
            self._remaining = 0
            return b""
        raise NetworkError("cut")

    def _parse_head(self, head: str) -> None:
        """Set status and headers, and how the body is delimited."""
        first, *lines = head.split("\r\n")
        version, _, status = first.partition(" ")
        if not version.startswith("HTTP/1.") or STATUS_PATTERN.match(status) is None:
            raise NetworkError("protocol", "no status line")
        headers: dict[str, str] = {}
        for line in lines:
            name, colon, value = line.partition(":")
            if colon:
                name = name.strip().lower()
                headers[name] = f"{headers[name]}, {value.strip()}" if name in headers else value.strip()
        self.status, self.headers = int(status[:3]), headers
        self._chunks = ChunkedBody() if "chunked" in headers.get("transfer-encoding", "").lower() else None
        length = headers.get("content-length", "")
        is_length = self._chunks is None and LENGTH_PATTERN.fullmatch(length) is not None
        self._remaining = int(length) if is_length else None
        # These have no body, whatever their headers say.
        if self.status in {204, 304}:
            self._chunks, self._remaining = None, 0


def _classify_error(error: OSError) -> NetworkErrorKind:
    if isinstance(error, SSLCertVerificationError):
        return "certificate"
    if isinstance(error, SSLError):
        return "protocol"
    # An unknown name is as final as a refusal: the address is probably wrong, so it is retried less.
    is_refused = _describe_error(error) == CONNECTION_REFUSED or (
        isinstance(error, gaierror) and error.errno == EAI_NONAME
    )
    return "refused" if is_refused else "connect"


def _describe_error(error: OSError) -> str:
    match error:
        case ConnectionRefusedError():
            return CONNECTION_REFUSED
        case gaierror():
            return "the name is not known"
        case SSLCertVerificationError():
            return error.verify_message
        case _:
            # asyncio joins the errors of several addresses to one text: `[Errno 111] Connect call failed (...)`.
            message = (error.strerror or str(error)).lower()
            return CONNECTION_REFUSED if f"errno {ECONNREFUSED}]" in message else message
