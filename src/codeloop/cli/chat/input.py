"""Lines from a person or a pipe, in order; a question that waits takes the next one."""

import asyncio
import os
import sys
from collections import deque
from collections.abc import Callable

from codeloop.cli.output.streams import Output
from codeloop.cli.questions.prompter import Draw


class Lines:
    """What was typed and not taken yet; None marks the end of the input."""

    def __init__(self) -> None:
        self._waiting: deque[str | None] = deque()
        self._came = asyncio.Event()
        self._answer: asyncio.Future[str | None] | None = None

    def put(self, line: str | None) -> None:
        """Add a line: the answer to a waiting question, else one to take."""
        if self._answer is not None and not self._answer.done():
            self._answer.set_result(line)
        else:
            self._waiting.append(line)
            self._came.set()

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
    """Lines as the system delivers them: from a pipe, a file, or a simple `terminal`."""

    def __init__(self, out: Output, terminal: Output | None) -> None:
        self.lines = Lines()
        self.terminal = terminal
        self._out = out
        self._question = ""
        self._is_quiet = False
        self._is_prompted = False
        self._rest = b""
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
        *whole, self._rest = (self._rest + data).split(b"\n")
        for line in whole if data else filter(None, [*whole, self._rest]):
            self._is_prompted = False
            self.lines.put(line.decode("utf-8", "replace").removesuffix("\r"))
        if not data:
            self.stop()
            self.lines.put(None)
        return bool(data)

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
