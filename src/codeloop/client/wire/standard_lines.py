"""A line protocol over stdin and stdout, undisturbed by other output.

Both are read and written by threads that nobody waits for, so that neither a silent client nor one that reads nothing
keeps the process from ending.
"""

import asyncio
import os
import sys
import threading
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from queue import SimpleQueue
from typing import Any

from msgspec import Struct

from codeloop.schema.limits import MCP_MESSAGE, OUTPUT_READER_TIME

TakeLine = Callable[[bytes | None], Coroutine[Any, Any, None]]


class StandardLines(Struct, frozen=True):
    """What a protocol reads and writes.

    `start`: begins to hand on each line of stdin, awaited one after the other, and None at its end. `write`: takes a
    whole line, with its end.
    """

    start: Callable[[TakeLine], None]
    write: Callable[[bytes], None]


@asynccontextmanager
async def open_standard_lines() -> AsyncGenerator[StandardLines]:
    """Take stdin and stdout for a protocol. Meanwhile descriptor 0 is empty, and descriptor 1 is stderr."""
    source, sink = _take_stdio()
    lines: SimpleQueue[bytes | None] = SimpleQueue()
    writer = threading.Thread(target=_write, args=(sink, lines), daemon=True)
    writer.start()
    try:
        yield StandardLines(lambda take: read_lines(source, take), lines.put)
    finally:
        lines.put(None)
        await asyncio.to_thread(writer.join, OUTPUT_READER_TIME.seconds)


def read_lines(source: int, take: TakeLine) -> None:
    """Begin to hand on each line of a descriptor, awaited one after the other, and None at its end."""
    loop = asyncio.get_running_loop()

    def hand_on(line: bytes | None) -> None:
        if line is None or line.strip():
            asyncio.run_coroutine_threadsafe(take(line), loop).result()

    threading.Thread(target=_read, args=(source, hand_on), daemon=True).start()


def _take_stdio() -> tuple[int, int]:
    sys.stdout.flush()
    source, sink = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    return source, sink


def _read(source: int, hand_on: Callable[[bytes | None], None]) -> None:
    """Hand on each line. A message that is too long, or a broken pipe, counts as the end."""
    partial_line = bytearray()
    with suppress(OSError, RuntimeError, asyncio.CancelledError):  # the loop may be gone
        while len(partial_line) <= MCP_MESSAGE.value and (chunk := os.read(source, 2**16)):
            partial_line += chunk
            if b"\n" in chunk:
                *complete, last = bytes(partial_line).split(b"\n")
                partial_line = bytearray(last)
                for line in complete:
                    hand_on(line)
        if len(partial_line) <= MCP_MESSAGE.value:
            hand_on(bytes(partial_line))  # a last line without its end
    with suppress(RuntimeError, asyncio.CancelledError):
        hand_on(None)


def _write(sink: int, lines: "SimpleQueue[bytes | None]") -> None:
    with suppress(OSError):
        while (line := lines.get()) is not None:
            data = memoryview(line)
            while data:
                data = data[os.write(sink, data) :]
