"""The master end of a pseudo-terminal: non-blocking output and input."""

import asyncio
import fcntl
import os
import struct
import termios
from contextlib import suppress

from codeloop.schema.bounds.server import PTY_BURST, PTY_INPUT, PTY_KEPT, PTY_PAUSE
from codeloop.workspace.terminal.viewers import TerminalOutput

_CHUNK = 65536
_SIZE = (24, 80)  # rows and columns, until a client says


class PtyMaster:
    """Both ends of a new pseudo-terminal; `listen` once the program has the other one. Raises OSError."""

    def __init__(self, output: TerminalOutput) -> None:
        self.output = output
        self._loop = asyncio.get_running_loop()
        self._fd, self.program_end = os.openpty()
        # We keep the program's end open too: reading then never fails while all of its processes have let go of it.
        try:
            self.name = os.ttyname(self.program_end)
        except OSError:
            os.close(self._fd)
            os.close(self.program_end)
            raise
        os.set_blocking(self._fd, False)
        self._input = bytearray()
        self._room = asyncio.Event()
        self._room.set()
        self._window = 0.0
        self._burst = 0
        self._timer: asyncio.TimerHandle | None = None
        self.resize(*_SIZE)

    def listen(self) -> None:
        """Begin to read."""
        self._loop.add_reader(self._fd, self._on_readable)

    def resize(self, rows: int, columns: int) -> None:
        """Set the size that the program sees."""
        if self._fd >= 0:
            fcntl.ioctl(self._fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def write(self, data: bytes) -> None:
        """Send input; what the program does not read yet is queued."""
        if self._fd < 0 or not data:
            return
        if not self._input:
            self._loop.add_writer(self._fd, self._on_writable)
        self._input += data
        self._on_writable()

    async def room(self) -> None:
        """Wait until the queue for the program is short enough."""
        await self._room.wait()

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
        self._room.set()

    def _read(self) -> bytes:
        try:
            chunk = os.read(self._fd, _CHUNK)
        except OSError:  # nothing there; or hung up, which the end of the program tells
            return b""
        if chunk:
            self.output.write(chunk)
        return chunk

    def _on_readable(self) -> None:
        now = self._loop.time()
        if now - self._window > PTY_PAUSE.seconds:
            self._window, self._burst = now, 0
        self._burst += len(self._read())
        if self._burst >= PTY_BURST.value or self.output.should_wait():
            self._loop.remove_reader(self._fd)
            self._timer = self._loop.call_later(PTY_PAUSE.seconds, self._resume)

    def _resume(self) -> None:
        if self.output.should_wait():
            self._timer = self._loop.call_later(PTY_PAUSE.seconds, self._resume)
        else:
            self.listen()

    def _on_writable(self) -> None:
        with suppress(BlockingIOError):
            count = os.write(self._fd, self._input[:_CHUNK])
            del self._input[:count]
        if not self._input:
            self._loop.remove_writer(self._fd)
        if len(self._input) < PTY_INPUT.value:
            self._room.set()
        else:
            self._room.clear()
