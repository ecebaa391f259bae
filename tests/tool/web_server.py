"""A real HTTP server on loopback for tests: each path has an answer,
as bytes or as a function that writes it.
"""

import asyncio
import json
import ssl
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Request:
    """What came: header names in lower case."""

    method: str
    target: str
    headers: dict[str, str]
    body: bytes
    sni: str | None = None

    @property
    def json(self) -> Any:
        return json.loads(self.body)


Write = Callable[[Request, asyncio.StreamWriter], Awaitable[None]]
Answer = bytes | Write


@dataclass
class Server:
    """`url` has no slash at its end."""

    url: str
    port: int
    requests: list[Request] = field(default_factory=list[Request])
    connections: int = 0


def answer(
    body: bytes | str = b"", kind: str = "text/html", status: str = "200 OK", **headers: str
) -> bytes:
    """Return a whole HTTP answer; `content_encoding="gzip"` becomes a header."""
    data = body.encode() if isinstance(body, str) else body
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(data)}", "Connection: close"]
    lines += [f"Content-Type: {kind}"] if kind else []
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode() + data


def redirect(to: str, status: str = "302 Found") -> bytes:
    return answer(b"moved", status=status, location=to)


def json_answer(value: object, **headers: str) -> bytes:
    return answer(json.dumps(value), "application/json", **headers)


@asynccontextmanager
async def serving(
    answers: Mapping[str, Answer] | Write, tls: ssl.SSLContext | None = None
) -> AsyncGenerator[Server]:
    """Serve; a path that has no answer gives 404."""
    server = Server("", 0)
    names: list[str | None] = []
    if tls is not None:
        tls.sni_callback = lambda _socket, name, _context: names.append(name)

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        server.connections += 1
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            request = await read_request(reader, names[-1] if names else None)
            server.requests.append(request)
            if callable(answers):
                await answers(request, writer)
            else:
                found = answers.get(
                    request.target.partition("?")[0], answer("nothing here", status="404 Not Found")
                )
                if isinstance(found, bytes):
                    writer.write(found)
                    await writer.drain()
                else:
                    await found(request, writer)
        writer.close()

    listening = await asyncio.start_server(handle, "127.0.0.1", 0, ssl=tls)
    server.port = listening.sockets[0].getsockname()[1]
    server.url = f"{'https' if tls else 'http'}://127.0.0.1:{server.port}"
    try:
        yield server
    finally:
        listening.close()


async def read_request(reader: asyncio.StreamReader, sni: str | None = None) -> Request:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    first, *lines = head.strip().split("\r\n")
    method, target, _ = first.split(" ")
    headers = {name.lower(): value for name, value in (line.split(": ", 1) for line in lines)}
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return Request(method, target, headers, body, sni)
