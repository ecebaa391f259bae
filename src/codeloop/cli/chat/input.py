"""Lines from a person or a pipe, in order; a question that waits takes the next one."""

import asyncio
import os
import sys
from collections import deque
from collections.abc import Callable

from codeloop.cli.output.streams import Output
from codeloop.cli.questions.prompter import Draw

LINE_FOLLOWED = 0.005
"""Seconds after a line in which another one is pasted with it."""
PASTE_PAUSE = 0.2
"""Seconds without input after which a paste is over: lines over a network come in pieces."""


class Lines:
    """What was typed and not taken yet; None marks the end of the input."""

    def __init__(self) -> None:
        self._waiting: deque[str | None] = deque()
        self._came = asyncio.Event()
        self._answer: asyncio.Future[str | None] | None = None

    @property
    def is_asked(self) -> bool:
        """Whether a question waits for the next line."""
        return self._answer is not None and not self._answer.done()

    def put(self, line: str | None) -> None:
        """Add a line: the answer to a waiting question, else one to take."""
        if self._answer is not None and not self._answer.done():
            self._answer.set_result(line)
        else:
            self._waiting.append(line)
            self._came.set()

    def drop(self) -> int:
        """Drop the lines that wait, and return how many they were; the end of the input stays."""
        count = sum(line is not None for line in self._waiting)
        self._waiting = deque(line for line in self._waiting if line is None)
        return count

    def end(self) -> None:
        """Drop what waits and end the input; a question still waits for its answer."""
        self._waiting.clear()
        self._waiting.append(None)
        self._came.set()

    async def take(self) -> str | None:
        """Return the next line; None once the input has ended."""
        while not self._waiting:
            self._came.clear()
            await self._came.wait()
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


class Plain:
    """Lines as the system delivers them: from a pipe, a file, or a simple `terminal`.

    Lines that a terminal delivers faster than anybody types them are one text: a paste.
    """

    def __init__(self, out: Output, terminal: Output | None) -> None:
        self.lines = Lines()
        self.terminal = terminal
        self._out = out
        self._question = ""
        self._is_quiet = False
        self._is_prompted = False
        self._rest = b""
        self._pasted: list[str] = []
        """Lines that others may follow at once."""
        self._pause: asyncio.TimerHandle | None = None
        self._stop: Callable[[], object] = lambda: None

    def start(self) -> None:
        """Start reading stdin."""
        if sys.stdin is None:
            self.lines.put(None)
            return
        loop, descriptor = asyncio.get_running_loop(), sys.stdin.fileno()
        try:
            loop.add_reader(descriptor, self._read, descriptor)
            self._stop = lambda: loop.remove_reader(descriptor)
        except OSError:  # a file of the disk is always ready
            while self._read(descriptor):
                pass

    def stop(self) -> None:
        """Stop reading."""
        self._stop()
        self._stop = lambda: None

    def _read(self, descriptor: int) -> bool:
        """Take what is there; return False at the end."""
        try:
            data = os.read(descriptor, 65_536)
        except OSError:  # the terminal is gone
            data = b""
        *complete, self._rest = (self._rest + data).split(b"\n")
        for line in complete if data else filter(None, [*complete, self._rest]):
            self._is_prompted = False
            self._put(line.decode("utf-8", "replace").removesuffix("\r"))
        if not data:
            self._finish_paste()
            self.stop()
            self.lines.put(None)
        return bool(data)

    def _put(self, line: str) -> None:
        if self.terminal is None:
            self.lines.put(line)
            return
        if self._pause is not None:
            self._pause.cancel()
        self._pasted.append(line)
        seconds = PASTE_PAUSE if len(self._pasted) > 1 else LINE_FOLLOWED
        self._pause = asyncio.get_running_loop().call_later(seconds, self._finish_paste)

    def _finish_paste(self) -> None:
        """Hand over the lines that came at once."""
        lines, self._pasted = self._pasted, []
        if lines and self.lines.is_asked:
            self.lines.put(lines.pop(0))
        if lines:
            self.lines.put("\n".join(lines))

    def drop(self) -> int:
        """Drop the lines that were typed and not taken; return how many they were."""
        count = len(self._pasted) + self.lines.drop()
        self._pasted = []
        return count

    def above(self, draw: Draw, *, urgent: bool = True) -> None:
        """Write, and write the prompt or question again below."""
        del urgent
        if self._is_prompted or self._question:
            self._out.write("\n")
            self._is_prompted = False
        draw()
        if self._question:
            self._out.write(self._question)
        else:
            self._prompt()

    def flash(self, draw: Draw) -> None:
        """Write unless a prompt stands."""
        if not self._is_prompted:
            draw()

    def rest(self, *, quiet: bool) -> None:
        """Write a prompt if nothing runs."""
        self._is_quiet = quiet
        self._prompt()

    def _prompt(self) -> None:
        if self.terminal is not None and self._is_quiet and not self._is_prompted:
            self._out.write("> ")
            self._is_prompted = True

    async def ask(self, question: str) -> str | None:
        """Ask a question."""
        self.above(lambda: self._out.write(question))
        self._question = question
        try:
            return await self.lines.answer()
        finally:
            self._question = ""

    def defer(self, line: str) -> bool:
        """Take a command as if no question stood there."""
        self.lines.put(line)
        return True
