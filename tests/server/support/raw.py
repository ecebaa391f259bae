"""Requests as bytes on a socket, so that nothing between a test and the server
makes them well-formed.
"""

import asyncio
import base64
from contextlib import suppress
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from tests.server.support.serving import PASSWORD

UPGRADE = (
    "connection: Upgrade",
    "upgrade: websocket",
    "sec-websocket-version: 13",
    "sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==",
)


def basic(password: str = PASSWORD, username: str = "opencode") -> str:
    """Return the header of HTTP Basic."""
    return "authorization: Basic " + base64.b64encode(f"{username}:{password}".encode()).decode()


@dataclass
class Answered:
    """What came back. `status` 0: nothing, the connection was closed."""

    status: int = 0
    headers: dict[str, str] = field(default_factory=dict[str, str])
    body: bytes = b""


def port_of(url: str) -> int:
    """Return the port of a server's URL."""
    return urlsplit(url).port or 0


def request(url: str, method: str, path: str, *lines: str, host: str | None = "") -> bytes:
    """Write a request's head. `host` "": the right one; None: none."""
    own = [] if host is None else [f"host: {host or urlsplit(url).netloc}"]
    return "\r\n".join([f"{method} {path} HTTP/1.1", *own, *lines, "", ""]).encode("latin-1")


async def ask(url: str, data: bytes, deadline: float = 60) -> Answered:
    """Send bytes, nothing after them, and read one answer."""
    reader, writer = await asyncio.open_connection(urlsplit(url).hostname, port_of(url))
    try:
        async with asyncio.timeout(deadline):
            with suppress(ConnectionError):
                writer.write(data)
                await writer.drain()
            return await read(reader, is_head=data.startswith(b"HEAD"))
    finally:
        writer.close()


async def read(reader: asyncio.StreamReader, *, is_head: bool = False) -> Answered:
    """Read one answer."""
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    except (asyncio.IncompleteReadError, ConnectionError):
        return Answered()
    first, *lines = head.strip().split("\r\n")
    headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
    body = await reader.readexactly(0 if is_head else int(headers.get("content-length", "0")))
    return Answered(int(first.split()[1]), headers, body)
