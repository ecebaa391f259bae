"""A small HTTP server on loopback for tests: answers every request with one prepared answer."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager


def http(body: bytes, status: str = "200 OK") -> bytes:
    """Return a whole HTTP answer."""
    head = f"HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n"
    return head.encode() + b"Connection: close\r\n\r\n" + body


@asynccontextmanager
async def serving(answer: bytes, *, hang: bool = False) -> AsyncGenerator[tuple[str, list[bytes]]]:
    """Serve `answer`; give the base URL and the heads of the requests that came.
    `hang`: never answer.
    """
    heads: list[bytes] = []
    closed = asyncio.Event()

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heads.append(await reader.readuntil(b"\r\n\r\n"))
        if hang:
            await closed.wait()
        else:
            writer.write(answer)
            await writer.drain()
        writer.close()

    server = await asyncio.start_server(handle, "127.0.0.1", 0)
    host, port = server.sockets[0].getsockname()[:2]
    try:
        yield f"http://{host}:{port}", heads
    finally:
        closed.set()
        server.close()
