"""Lines from a user or a pipe, in order; a question that waits takes the next one."""

import asyncio
import os
import sys
from collections import deque
from collections.abc import Callable

LINE_FOLLOWED = 0.005
"""Seconds after a line in which another one is pasted with it."""
PASTE_PAUSE = 0.2
"""Seconds without input after which a paste is over: lines over a network come in pieces."""


class TypedLines:
    """Reads stdin and keeps what was not taken yet; None marks the end of the input.

    `on_enter`: called as each line comes. `joins_pastes`: lines that come faster than anybody types are one text.
    """

    def __init__(self, on_enter: Callable[[], object], *, joins_pastes: bool) -> None:
        self._on_enter = on_enter
        self._joins_pastes = joins_pastes
        self._waiting: deque[str | None] = deque()
        self._arrival = asyncio.Event()
        self._answer: asyncio.Future[str | None] | None = None
        self._partial_line = b""
        self._paste: list[str] = []
        """Lines that others may follow at once."""
        self._paste_timer: asyncio.TimerHandle | None = None
        self._unwatch: Callable[[], object] = lambda: None

    def start(self) -> None:
        """Start reading stdin."""
        if sys.stdin is None:
            self.put(None)
            return
        loop, descriptor = asyncio.get_running_loop(), sys.stdin.fileno()
        try:
            loop.add_reader(descriptor, self._read, descriptor)
            self._unwatch = lambda: loop.remove_reader(descriptor)
        except OSError:  # a file of the disk is always ready
            while self._read(descriptor):
                pass

    def stop(self) -> None:
        """Stop reading."""
        self._unwatch()
        self._unwatch = lambda: None

    def put(self, line: str | None) -> None:
        """Add a line: the answer to a waiting question, else one to take."""
        if (answer := self._open_answer) is not None:
            answer.set_result(line)
        else:
            self._waiting.append(line)
            self._arrival.set()

    async def take(self) -> str | None:
        """Return the next line; None once the input has ended."""
        while not self._waiting:
            self._arrival.clear()
            await self._arrival.wait()
        return self._waiting[0] if self._waiting[0] is None else self._waiting.popleft()

    async def answer(self) -> str | None:
        """Return the next line as an answer; None once the input has ended."""
        if self._waiting and self._waiting[-1] is None:
            return None
        self._answer = asyncio.get_running_loop().create_future()
        try:
            return await self._answer
        finally:
            self._answer = None

    def drop(self) -> int:
        """Drop the lines that wait, and return how many they were; the end of the input stays."""
        count = len(self._paste) + sum(line is not None for line in self._waiting)
        self._waiting = deque(line for line in self._waiting if line is None)
        self._paste = []
        return count

    def end(self) -> None:
        """Drop what waits and end the input; a question still waits for its answer."""
        self._waiting.clear()
        self._waiting.append(None)
        self._arrival.set()

    @property
    def _open_answer(self) -> asyncio.Future[str | None] | None:
        return None if self._answer is None or self._answer.done() else self._answer

    def _read(self, descriptor: int) -> bool:
        """Take what is there; return False at the end."""
        try:
            data = os.read(descriptor, 65_536)
        except OSError:  # the terminal is gone
            data = b""
        *complete, self._partial_line = (self._partial_line + data).split(b"\n")
        for line in complete if data else filter(None, [*complete, self._partial_line]):
            self._on_enter()
            self._add(line.decode("utf-8", "replace").removesuffix("\r"))
        if not data:
            self._finish_paste()
            self.stop()
            self.put(None)
        return bool(data)

    def _add(self, line: str) -> None:
        if not self._joins_pastes:
            self.put(line)
            return
        if self._paste_timer is not None:
            self._paste_timer.cancel()
        self._paste.append(line)
        seconds = PASTE_PAUSE if len(self._paste) > 1 else LINE_FOLLOWED
        self._paste_timer = asyncio.get_running_loop().call_later(seconds, self._finish_paste)

    def _finish_paste(self) -> None:
        """Hand over the lines that came at once."""
        lines, self._paste = self._paste, []
        if lines and self._open_answer is not None:
            self.put(lines.pop(0))
        if lines:
            self.put("\n".join(lines))
