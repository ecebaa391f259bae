"""Our stdin and stdout as the streams of a protocol: nothing else that is printed can get between its lines.

Both are read and written by threads that nobody waits for, so that neither a silent client nor one that reads nothing
keeps the process from ending.
"""

import asyncio
import os
import sys
import threading
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any

from codeloop.schema.limits import MCP_MESSAGE, OUTPUT_READER

if TYPE_CHECKING:
    from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
    from mcp.shared.message import SessionMessage

    Streams = tuple[MemoryObjectReceiveStream[SessionMessage | Exception], MemoryObjectSendStream[SessionMessage]]


@asynccontextmanager
async def standard_wire() -> "AsyncGenerator[Streams]":
    """Yield the streams of stdin and stdout. Meanwhile descriptor 0 is empty, and descriptor 1 is stderr."""
    import anyio
    from mcp.shared.message import SessionMessage
    from mcp_types import jsonrpc_message_adapter

    coming, inbound = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    outbound, going = anyio.create_memory_object_stream[SessionMessage](0)
    source, sink = _take_stdio()
    lines: SimpleQueue[bytes | None] = SimpleQueue()
    loop = asyncio.get_running_loop()
    writer = threading.Thread(target=_write, args=(sink, lines), daemon=True)
    writer.start()

    async def send_line(line: bytes) -> None:
        try:
            message: SessionMessage | Exception = SessionMessage(
                jsonrpc_message_adapter.validate_json(line, by_name=False)
            )
        except ValueError as error:
            message = error
        with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
            await coming.send(message)

    def take(line: bytes | None) -> None:
        """Hand a line on and wait until it is taken; the input's end if None."""
        if line is None:
            loop.call_soon_threadsafe(coming.close)
        elif line.strip():
            asyncio.run_coroutine_threadsafe(send_line(line), loop).result()

    async def give() -> None:
        async for message in going:
            lines.put(message.message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n")

    giving = asyncio.create_task(give())
    threading.Thread(target=_read, args=(source, take), daemon=True).start()
    try:
        yield inbound, outbound
    finally:
        outbound.close()
        inbound.close()
        await asyncio.wait({giving}, timeout=OUTPUT_READER.seconds)
        giving.cancel()
        lines.put(None)
        await asyncio.to_thread(writer.join, OUTPUT_READER.seconds)


def _take_stdio() -> tuple[int, int]:
    """Return stdin and stdout for the protocol alone."""
    sys.stdout.flush()
    source, sink = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    return source, sink


def _read(source: int, take: Any) -> None:
    """Hand on each line. A message that is too long, or a broken pipe, counts as the end."""
    rest = bytearray()
    with suppress(OSError, RuntimeError, asyncio.CancelledError):  # the loop may be gone
        while len(rest) <= MCP_MESSAGE.value and (chunk := os.read(source, 2**16)):
            rest += chunk
            if b"\n" in chunk:
                *whole, last = bytes(rest).split(b"\n")
                rest = bytearray(last)
                for line in whole:
                    take(line)
    with suppress(RuntimeError):
        take(None)


def _write(sink: int, lines: "SimpleQueue[bytes | None]") -> None:
    with suppress(OSError):
        while (line := lines.get()) is not None:
            data = memoryview(line)
            while data:
                data = data[os.write(sink, data) :]
