"""`TypedLines`: reads the lines that are typed into a conversation, or piped to it."""

import asyncio
import os
import sys
from collections import deque
from collections.abc import Callable

# A line that comes within so many seconds after another one belongs to the same paste: nobody types so fast.
PASTE_GAP = 0.005
# Seconds without input after which a paste is over: a paste over a network comes in pieces.
PASTE_PAUSE = 0.2
# Bytes to read at once: the size of a pipe on Linux. A terminal hands over less.
READ_BYTES = 65_536


class TypedLines:
    """Reads stdin and keeps the lines that were not taken yet; None in the queue marks the end of the input.

    `on_enter`: called when a line arrives. `joins_pastes`: lines of one paste become one text.
    """

    def __init__(self, on_enter: Callable[[], object], *, joins_pastes: bool) -> None:
        self._on_enter = on_enter
        self._joins_pastes = joins_pastes
        self._waiting_lines: deque[str | None] = deque()
        self._line_arrived = asyncio.Event()
        self._answer: asyncio.Future[str | None] | None = None
        self._partial_line = b""
        # Lines of a paste that may not be complete yet.
        self._paste_lines: list[str] = []
        self._paste_timer: asyncio.TimerHandle | None = None
        self._stop_watching: Callable[[], object] = lambda: None

    def start_reading(self) -> None:
        """Start reading stdin."""
        # A process may be started without a stdin.
        if sys.stdin is None:
            self.put(None)
            return
        loop, descriptor = asyncio.get_running_loop(), sys.stdin.fileno()
        try:
            loop.add_reader(descriptor, self._read, descriptor)
            self._stop_watching = lambda: loop.remove_reader(descriptor)
        except OSError:
            # epoll refuses regular files, which are always ready: read them whole.
            while self._read(descriptor):
                pass

    def stop_reading(self) -> None:
        """Stop reading."""
        self._stop_watching()
        self._stop_watching = lambda: None

    def put(self, line: str | None) -> None:
        """Add a line: the answer to a waiting question, else one to take."""
        if (answer := self._open_answer) is not None:
            answer.set_result(line)
        else:
            self._waiting_lines.append(line)
            self._line_arrived.set()

    async def take_line(self) -> str | None:
        """Return the next line; None once the input has ended."""
        while not self._waiting_lines:
            self._line_arrived.clear()
            await self._line_arrived.wait()
        # The mark of the end stays, for every later call.
        return self._waiting_lines[0] if self._waiting_lines[0] is None else self._waiting_lines.popleft()

    async def take_answer(self) -> str | None:
        """Return the next line as an answer; None once the input has ended."""
        if self._waiting_lines and self._waiting_lines[-1] is None:
            return None
        self._answer = asyncio.get_running_loop().create_future()
        try:
            return await self._answer
        finally:
            self._answer = None

    def drop_waiting(self) -> int:
        """Drop the lines that wait, and return how many they were; the end of the input stays."""
        count = len(self._paste_lines) + sum(line is not None for line in self._waiting_lines)
        self._waiting_lines = deque(line for line in self._waiting_lines if line is None)
        self._paste_lines = []
        return count

    def end_input(self) -> None:
        """Drop what waits and end the input; a question still waits for its answer."""
        self._waiting_lines.clear()
        self._waiting_lines.append(None)
        self._line_arrived.set()

    @property
    def _open_answer(self) -> asyncio.Future[str | None] | None:
        return None if self._answer is None or self._answer.done() else self._answer

    def _read(self, descriptor: int) -> bool:
        """Read the bytes that are there, and add their lines; return False at the end of the input."""
        try:
            data = os.read(descriptor, READ_BYTES)
        except OSError:
            # The terminal is gone, which counts as the end of the input.
            data = b""
        *complete, self._partial_line = (self._partial_line + data).split(b"\n")
        # At the end, a last line without a newline counts as a line.
        for line in complete if data else filter(None, [*complete, self._partial_line]):
            self._on_enter()
            self._add(line.decode("utf-8", "replace").removesuffix("\r"))
        if not data:
            self._finish_paste()
            self.stop_reading()
            self.put(None)
        return bool(data)

    def _add(self, line: str) -> None:
        if not self._joins_pastes:
            self.put(line)
            return
        if self._paste_timer is not None:
            self._paste_timer.cancel()
        self._paste_lines.append(line)
        seconds = PASTE_PAUSE if len(self._paste_lines) > 1 else PASTE_GAP
        self._paste_timer = asyncio.get_running_loop().call_later(seconds, self._finish_paste)

    def _finish_paste(self) -> None:
        """Put the lines of the paste into the queue as one text."""
        lines, self._paste_lines = self._paste_lines, []
        # A question takes one line: the rest of a paste is no answer.
        if lines and self._open_answer is not None:
            self.put(lines.pop(0))
        if lines:
            self.put("\n".join(lines))
