"""The side of a pseudo-terminal that stands for the screen and the keyboard: reads the output,
and sends the input.
"""

import asyncio
import fcntl
import os
import struct
import termios
from contextlib import suppress

from codeloop.schema.bounds.server import PTY_BURST, PTY_INPUT, PTY_KEPT, PTY_PAUSE
from codeloop.workspace.terminal.terminal_output import TerminalOutput

_CHUNK_BYTES = 65536
# Rows and columns, until a client reports its size.
_INITIAL_SIZE = (24, 80)


class PtyMaster:
    """A new pseudo-terminal. Call `listen` once the program has its end of it."""

    def __init__(self, output: TerminalOutput) -> None:
        """Raise OSError when the system has no more terminals."""
        self.output = output
        self._loop = asyncio.get_running_loop()
        self._fd, self.program_end = os.openpty()
        # The program's end stays open here, too. Otherwise reading would fail as soon as all
        # processes have closed it, even if a later one opens it again.
        try:
            self.name = os.ttyname(self.program_end)
        except OSError:
            os.close(self._fd)
            os.close(self.program_end)
            raise
        os.set_blocking(self._fd, False)
        self._input = bytearray()
        self._has_room = asyncio.Event()
        self._has_room.set()
        self._period_start = 0.0
        self._period_bytes = 0
        self._timer: asyncio.TimerHandle | None = None
        self.resize(*_INITIAL_SIZE)

    def listen(self) -> None:
        """Begin to read."""
        self._loop.add_reader(self._fd, self._on_readable)

    def resize(self, rows: int, columns: int) -> None:
        """Set the size. The program gets SIGWINCH."""
        if self._fd >= 0:
            fcntl.ioctl(self._fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def write(self, data: bytes) -> None:
        """Send input. It is queued until the program reads it."""
        if self._fd < 0 or not data:
            return
        if not self._input:
            self._loop.add_writer(self._fd, self._on_writable)
        self._input += data
        self._on_writable()

    async def wait_for_room(self) -> None:
        """Wait until the queue for the program is short enough."""
        await self._has_room.wait()

    def finish(self) -> None:
        """Read the remaining output, and close."""
        remaining = PTY_KEPT.value
        while self._fd >= 0 and remaining > 0 and (chunk := self._read()):
            remaining -= len(chunk)
        self.close()

    def close(self) -> None:
        """Close the terminal: the kernel hangs up its remaining processes."""
        if self._fd < 0:
            return
        self._loop.remove_reader(self._fd)
        self._loop.remove_writer(self._fd)
        if self._timer is not None:
            self._timer.cancel()
        os.close(self._fd)
        os.close(self.program_end)
        self._fd = -1
        self._input.clear()
        self._has_room.set()

    def _read(self) -> bytes:
        try:
            chunk = os.read(self._fd, _CHUNK_BYTES)
        except OSError:
            # There is nothing to read, or the terminal is hung up,
            # which the end of the program shows as well.
            return b""
        if chunk:
            self.output.write(chunk)
        return chunk

    def _on_readable(self) -> None:
        # A program that prints without end must not keep the event loop busy, so each period has a
        # limited number of bytes. It also waits for clients that are slow to read.
        now = self._loop.time()
        if now - self._period_start > PTY_PAUSE.seconds:
            self._period_start, self._period_bytes = now, 0
        self._period_bytes += len(self._read())
        if self._period_bytes >= PTY_BURST.value or self.output.should_wait():
            self._loop.remove_reader(self._fd)
            self._timer = self._loop.call_later(PTY_PAUSE.seconds, self._resume)

    def _resume(self) -> None:
        if self.output.should_wait():
            self._timer = self._loop.call_later(PTY_PAUSE.seconds, self._resume)
        else:
            self.listen()

    def _on_writable(self) -> None:
        with suppress(BlockingIOError):
            count = os.write(self._fd, self._input[:_CHUNK_BYTES])
            del self._input[:count]
        if not self._input:
            self._loop.remove_writer(self._fd)
        if len(self._input) < PTY_INPUT.value:
            self._has_room.set()
        else:
            self._has_room.clear()
