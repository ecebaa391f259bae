"""Lines over stdin and stdout for the protocols of editors (ACP) and of MCP clients.

Daemon threads read and write, so that neither a silent client nor one that reads nothing
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

HandleLine = Callable[[bytes | None], Coroutine[Any, Any, None]]


class StdioLines(Struct, frozen=True):
    """The two ends of a protocol. `start` begins to read, and calls its argument with each line,
    then with None.

    `write` queues a line, which must end with a newline.
    """

    start: Callable[[HandleLine], None]
    write: Callable[[bytes], None]


@asynccontextmanager
async def open_stdio_lines() -> AsyncGenerator[StdioLines]:
    """Reserve stdin and stdout for a protocol while the context is open."""
    source, sink = _divert_stdio()
    lines: SimpleQueue[bytes | None] = SimpleQueue()
    writer = threading.Thread(target=_write_lines, args=(sink, lines), daemon=True)
    writer.start()
    try:
        yield StdioLines(
            start=lambda handle_line: start_line_reader(source, handle_line), write=lines.put
        )
    finally:
        # Give the client a moment to read the last lines, but do not wait for one that hangs.
        lines.put(None)
        await asyncio.to_thread(writer.join, OUTPUT_READER_TIME.seconds)


def start_line_reader(source: int, handle_line: HandleLine) -> None:
    """Start a thread that calls `handle_line` with each line of a descriptor,
    and with None at its end.

    A call must return before the next line is passed on.
    """
    loop = asyncio.get_running_loop()

    def pass_on(line: bytes | None) -> None:
        if line is None or line.strip():
            asyncio.run_coroutine_threadsafe(handle_line(line), loop).result()

    threading.Thread(target=_read_lines, args=(source, pass_on), daemon=True).start()


def _divert_stdio() -> tuple[int, int]:
    """Return copies of stdin and stdout; redirect stdin from /dev/null and stdout to stderr."""
    # A library or a child process that prints or reads would break the protocol.
    sys.stdout.flush()
    source, sink = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    return source, sink


def _read_lines(source: int, pass_on: Callable[[bytes | None], None]) -> None:
    """Call `pass_on` with each line, then with None. A line that is too long, or a broken pipe,
    counts as the end.
    """
    partial_line = bytearray()
    # The event loop may have ended: nobody takes lines any more.
    with suppress(OSError, RuntimeError, asyncio.CancelledError):
        while len(partial_line) <= MCP_MESSAGE.value and (chunk := os.read(source, 2**16)):
            partial_line += chunk
            if b"\n" in chunk:
                *complete, last = bytes(partial_line).split(b"\n")
                partial_line = bytearray(last)
                for line in complete:
                    pass_on(line)
        if len(partial_line) <= MCP_MESSAGE.value:
            # A last line without a newline.
            pass_on(bytes(partial_line))
    with suppress(RuntimeError, asyncio.CancelledError):
        pass_on(None)


def _write_lines(sink: int, lines: "SimpleQueue[bytes | None]") -> None:
    with suppress(OSError):
        while (line := lines.get()) is not None:
            # A pipe may take a part of a long line only.
            rest = memoryview(line)
            while rest:
                rest = rest[os.write(sink, rest) :]
