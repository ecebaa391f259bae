"""HTTP/1.1 over one socket, for requests that are sent whole and answers that stream.

Written here because a library costs more than the rest of a start: 150 to 200 ms for the first request and 12 µs for
each chunk of an answer, against 1 µs here.
"""

import asyncio
import re
from errno import ECONNREFUSED
from socket import EAI_NONAME, gaierror
from ssl import SSLCertVerificationError, SSLContext, SSLError
from typing import Literal

READ_SIZE = 256 * 1024
LONGEST_CHUNK_HEAD = 4_096
HTTP = b"HTTP/1."
STATUS = re.compile(r"[1-9][0-9]{2}")
REFUSED = "connection refused"
LENGTH = re.compile(r"[0-9]{1,18}")


NetworkErrorKind = Literal[
    "connect", "refused", "connect-timeout", "certificate", "proxy", "offline", "first-byte", "idle", "cut", "protocol"
]


class NetworkError(Exception):
    """A request failed below HTTP: `kind` says where; the text is the system's own reason."""

    def __init__(self, kind: NetworkErrorKind, detail: str = "") -> None:
        super().__init__(detail)
        self.kind: NetworkErrorKind = kind


class ChunkedBody:
    """Takes the chunk frames off a body; bytes may be split anywhere."""

    def __init__(self) -> None:
        self.done = False
        self._rest = b""
        self._bytes_left = 0

    def feed(self, data: bytes) -> bytes:
        """Take the next bytes; return what they hold of the body. Raises NetworkError when they are not chunks."""
        buffer = self._rest + data if self._rest else data
        size, at, pieces = len(buffer), 0, list[bytes]()
        if self._bytes_left:
            pieces.append(buffer[: max(self._bytes_left - 2, 0)])
            if self._bytes_left > size:
                self._bytes_left -= size
                self._rest = b""
                return pieces[0]
            at, self._bytes_left = self._bytes_left, 0
        while (end := buffer.find(b"\r\n", at)) >= 0:
            length = _chunk_length(buffer[at:end])
            if length == 0:
                return self._trailer(buffer, at, end, pieces)
            start = end + 2
            stop = start + length
            pieces.append(buffer[start:stop])
            at = stop + 2
            if at > size:
                self._bytes_left, at = at - size, size
                break
        self._rest = buffer[at:]
        if len(self._rest) > LONGEST_CHUNK_HEAD:
            raise NetworkError("protocol", "a chunk without a length")
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def _trailer(self, buffer: bytes, at: int, end: int, pieces: list[bytes]) -> bytes:
        """Look for the empty line after the last chunk; header lines before it are not needed."""
        if buffer.startswith(b"\r\n", end + 2) or buffer.find(b"\r\n\r\n", end) >= 0:
            self.done, self._rest = True, b""
        else:
            self._rest = buffer[at:]
            if len(self._rest) > READ_SIZE:
                raise NetworkError("protocol", "endless trailers")
        return b"".join(pieces)


def _chunk_length(head: bytes) -> int:
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
        self.unused = True
        self.status = 0
        self.headers: dict[str, str] = {}
        self._reader = reader
        self._writer = writer
        self._chunks: ChunkedBody | None = None
        self._bytes_left: int | None = 0
        self._loop = asyncio.get_running_loop()

    @classmethod
    async def open(cls, host: str, port: int, tls: SSLContext | None) -> "Connection":
        """Connect. Raises NetworkError."""
        try:
            reader, writer = await asyncio.open_connection(
                host, port, ssl=tls, limit=READ_SIZE, happy_eyeballs_delay=0.25
            )
        except OSError as error:
            raise NetworkError(_kind(error), _reason(error)) from None
        return cls(reader, writer)

    async def send(self, head: bytes, body: bytes) -> None:
        """Write a whole request. A response that comes before all is read is still received."""
        self._writer.writelines((head, body))
        try:
            await self._writer.drain()
        except ConnectionError:
            return

    async def receive_head(self) -> None:
        """Read status and headers, passing over interim answers. Raises NetworkError: "cut" when it ends too early."""
        while True:
            try:
                head = await self._reader.readuntil(b"\r\n\r\n")
            except asyncio.IncompleteReadError as error:
                self.unused = self.unused and not error.partial  # what has begun to answer is not sent again unseen
                is_http = HTTP.startswith(error.partial[: len(HTTP)])
                raise NetworkError("cut" if is_http else "protocol", "no answer") from None
            except asyncio.LimitOverrunError:
                raise NetworkError("protocol", "endless headers") from None
            except OSError as error:
                raise NetworkError("cut", _reason(error)) from None
            self.unused = False
            self._take_head(head.decode("latin-1"))
            if self.status >= 200:
                return

    async def read(self) -> bytes:
        """Return more of the body, b"" at its end. Raises NetworkError when the connection ends before the body."""
        while not self.complete:
            try:
                data = await self._reader.read(
                    READ_SIZE if self._bytes_left is None else min(self._bytes_left, READ_SIZE)
                )
            except OSError as error:
                raise NetworkError("cut", _reason(error)) from None
            if not data:
                return self._check_end()
            if self._chunks is not None:
                data = self._chunks.feed(data)
            elif self._bytes_left is not None:
                self._bytes_left -= len(data)
            if data:
                return data
        return b""

    @property
    def complete(self) -> bool:
        """Whether the whole body was read."""
        return self._chunks.done if self._chunks is not None else self._bytes_left == 0

    @property
    def can_be_used(self) -> bool:
        """Whether another request may be sent: same event loop, nothing outstanding, not closed by the service."""
        same = self._loop is asyncio.get_running_loop()
        return same and self.complete and not self._reader.at_eof() and not self._writer.is_closing()

    @property
    def keeps_alive(self) -> bool:
        """Whether the service accepts another request on this connection after a complete answer."""
        framed = self._chunks is not None or "content-length" in self.headers
        return framed and self.complete and "close" not in self.headers.get("connection", "").lower()

    def close(self) -> None:
        """Drop the connection at once."""
        if not self._loop.is_closed():
            self._writer.transport.abort()

    def _check_end(self) -> bytes:
        if self._bytes_left is None and self._chunks is None:
            self._bytes_left = 0
            return b""
        raise NetworkError("cut")

    def _take_head(self, head: str) -> None:
        first, *lines = head.split("\r\n")
        version, _, rest = first.partition(" ")
        if not version.startswith("HTTP/1.") or STATUS.match(rest) is None:
            raise NetworkError("protocol", "no status line")
        headers: dict[str, str] = {}
        for line in lines:
            name, colon, value = line.partition(":")
            if colon:
                name = name.strip().lower()
                headers[name] = f"{headers[name]}, {value.strip()}" if name in headers else value.strip()
        self.status, self.headers = int(rest[:3]), headers
        self._chunks = ChunkedBody() if "chunked" in headers.get("transfer-encoding", "").lower() else None
        length = headers.get("content-length", "")
        is_length = self._chunks is None and LENGTH.fullmatch(length) is not None
        self._bytes_left = int(length) if is_length else None
        if self.status in {204, 304}:
            self._chunks, self._bytes_left = None, 0


def _kind(error: OSError) -> NetworkErrorKind:
    if isinstance(error, SSLCertVerificationError):
        return "certificate"
    if isinstance(error, SSLError):
        return "protocol"
    is_wrong = _reason(error) == REFUSED or (isinstance(error, gaierror) and error.errno == EAI_NONAME)
    return "refused" if is_wrong else "connect"


def _reason(error: OSError) -> str:
    match error:
        case ConnectionRefusedError():
            return REFUSED
        case gaierror():
            return "the name is not known"
        case SSLCertVerificationError():
            return error.verify_message
        case _:
            message = (error.strerror or str(error)).lower()
            return REFUSED if f"errno {ECONNREFUSED}]" in message else message
