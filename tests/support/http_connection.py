"""The server's side of HTTP/1.1: reads requests, sends answers,
and notices when the client closes the connection.
"""

import asyncio
import contextlib
import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

STATUS_REASONS = {
    200: "OK",
    400: "Bad Request",
    401: "Unauthorized",
    404: "Not Found",
    429: "Too Many Requests",
}
_POLL_SECONDS = 0.01
"""Seconds between two checks whether the client is still connected."""


@dataclass(frozen=True, slots=True)
class ReceivedRequest:
    """A request. `path`: the target of the request line; `headers`: by name, in lower case;
    `at`: monotonic seconds.
    """

    path: str
    headers: dict[str, str]
    body: bytes
    at: float = field(default_factory=time.monotonic)

    @property
    def json(self) -> Any:
        """The body, parsed."""
        return json.loads(self.body)


def encode_chunk(data: bytes) -> bytes:
    """Return data as one chunk of a chunked body."""
    return b"%x\r\n%b\r\n" % (len(data), data)


def encode_head(status: int, headers: Mapping[str, str]) -> bytes:
    """Return the status line and headers."""
    lines = [
        f"HTTP/1.1 {status} {STATUS_REASONS.get(status, 'Status')}",
        *(f"{k}: {v}" for k, v in headers.items()),
        "",
        "",
    ]
    return "\r\n".join(lines).encode()


class ClientConnection:
    """One connection of a client."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self.write = writer.write
        self.drain = writer.drain

    async def request(self) -> ReceivedRequest | None:
        """Read a request; None: the client closed between two requests.
        Raises IncompleteReadError within one.
        """
        try:
            head = await self._reader.readuntil(b"\r\n\r\n")
        except asyncio.IncompleteReadError as error:
            if error.partial:
                raise
            return None
        first, *lines = head.decode("latin-1").split("\r\n")
        headers = {
            name.strip().lower(): value.strip()
            for name, _, value in (line.partition(":") for line in lines if line)
        }
        body = await self._reader.readexactly(int(headers.get("content-length", "0")))
        return ReceivedRequest(first.split(" ")[1], headers, body)

    async def send(
        self, status: int, body: bytes, headers: Mapping[str, str] | None = None
    ) -> bool:
        """Send a whole answer, as JSON unless `headers` differ;
        return whether the connection stays open.
        """
        given = {name.lower(): value for name, value in (headers or {}).items()}
        self._writer.write(
            encode_head(
                status,
                {"content-type": "application/json", "content-length": str(len(body)), **given},
            )
            + body
        )
        await self._writer.drain()
        return given.get("connection") != "close"

    async def wait(self, seconds: float) -> bool:
        """Wait; return False as soon as the client is gone, else True."""
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            if self._reader.at_eof() or self._writer.is_closing():
                return False
            await asyncio.sleep(min(left, _POLL_SECONDS))
        return True

    async def wait_until(self, is_so: Callable[[], object]) -> bool:
        """Wait until something is so; return False as soon as the client is gone, else True."""
        while not is_so():
            if not await self.wait(_POLL_SECONDS):
                return False
        return True

    async def hang_up(self) -> None:
        """Close the connection without ending the body."""
        with contextlib.suppress(ConnectionError):
            self._writer.close()
            await self._writer.wait_closed()
