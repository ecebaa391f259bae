"""An HTTP server on a local socket that records each request,
and answers it with the result of a function.
"""

import asyncio
import json
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl


@dataclass(frozen=True)
class ServiceRequest:
    """A request. `headers`: by name, in lower case."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def form(self) -> dict[str, str]:
        """The fields of the form in the body."""
        return dict(parse_qsl(self.body.decode()))


Reply = tuple[int, Any]
"""The status, and the body: bytes, or a value that is sent as JSON."""


@dataclass
class HttpService:
    """A running server: its address, and the requests so far."""

    url: str
    asked: list[ServiceRequest] = field(default_factory=list)


@asynccontextmanager
async def run_http_service(
    answer: Callable[[ServiceRequest], Reply],
) -> AsyncGenerator[HttpService]:
    """Answer every request with the result of `answer`;
    if an assertion fails in it, with 500 and its message.
    """

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head, *lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        headers = {
            name.lower(): value.strip()
            for name, _, value in (line.partition(":") for line in lines if line)
        }
        body = await reader.readexactly(int(headers.get("content-length", "0")))
        method, path, _ = head.split(" ")
        cloud.asked.append(ServiceRequest(method, path, headers, body))
        try:
            status, said = answer(cloud.asked[-1])
        except AssertionError as error:
            status, said = 500, {"message": f"refused: {error}"}
        data = said if isinstance(said, bytes) else json.dumps(said).encode()
        writer.write(
            b"HTTP/1.1 %d x\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%b"
            % (status, len(data), data)
        )
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(handle, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    cloud = HttpService(f"http://127.0.0.1:{port}")
    try:
        yield cloud
    finally:
        server.close()
