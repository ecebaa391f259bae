"""Lines as a person or a pipe gives them, in their order; a question that waits takes the next one."""

import asyncio
import os
import sys
from collections import deque
from collections.abc import Callable
from typing import Protocol

from codeloop.cli.output.streams import Output
from codeloop.cli.questions.answerer import Terminal


class Lines:
    """What was typed and not taken yet. None stands for the end of the input."""

    def __init__(self) -> None:
        self._waiting: deque[str | None] = deque()
        self._came = asyncio.Event()
        self._answer: asyncio.Future[str | None] | None = None

    def put(self, line: str | None) -> None:
        """Add a line: the answer to what is asked, else one more to be taken."""
        if self._answer is not None and not self._answer.done():
            self._answer.set_result(line)
        else:
            self._waiting.append(line)
            self._came.set()

    def end(self) -> None:
        """Let there be no further lines; a question still waits for its answer."""
        self._waiting.clear()
        self._waiting.append(None)
        self._came.set()

    async def take(self) -> str | None:
        """Wait for the next line that is no answer; after the end of the input there is none for ever."""
        while not self._waiting:
            self._came.clear()
            await self._came.wait()
        return self._waiting[0] if self._waiting[0] is None else self._waiting.popleft()

    async def answer(self) -> str | None:
        """Wait for the next line as an answer."""
        if self._waiting and self._waiting[-1] is None:
            return None
        self._answer = asyncio.get_running_loop().create_future()
        try:
            return await self._answer
        finally:
            self._answer = None


class Typing(Protocol):
    """Where lines are typed, and what is shown above them."""

    lines: Lines
    terminal: Output | None
    """Where a person can be asked."""

    def start(self) -> None:
        """Begin to read."""
        ...

    def stop(self) -> None:
        """Read no more, and leave the terminal as it was."""
        ...

    def above(self, draw: Callable[[], object]) -> None:
        """Write to the terminal by way of `draw`, without disturbing the line that is typed."""
        ...

    def flash(self, draw: Callable[[], object]) -> None:
        """Write what need not be written, when nothing is typed."""
        ...

    def rest(self, *, quiet: bool) -> None:
        """Say that nothing runs, so that a prompt may stand, or that something does."""
        ...

    async def ask(self, terminal: Terminal, question: str) -> str | None:
        """Ask a question on the terminal and give the line that answers it; None at the end of the input."""
        ...


class Plain:
    """Lines as the system gives them: from a pipe, a file, or a `terminal` that can do no more."""

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
        """Begin to read stdin."""
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
        """Read no more."""
        self._stop()
        self._stop = lambda: None

    def _read(self, descriptor: int) -> bool:
        """Take what is there; gives False at the end."""
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

    def above(self, draw: Callable[[], object]) -> None:
        """Write; a prompt or a question that stands is written again below."""
        if self._is_prompted or self._question:
            self._out.write("\n")
            self._is_prompted = False
        draw()
        if self._question:
            self._out.write(self._question)
        else:
            self._prompt()

    def flash(self, draw: Callable[[], object]) -> None:
        """Write, unless a prompt stands."""
        if not self._is_prompted:
            draw()

    def rest(self, *, quiet: bool) -> None:
        """Write a prompt when nothing runs."""
        self._is_quiet = quiet
        self._prompt()

    def _prompt(self) -> None:
        if self.terminal is not None and self._is_quiet and not self._is_prompted:
            self._out.write("> ")
            self._is_prompted = True

    async def ask(self, terminal: Terminal, question: str) -> str | None:
        """Ask."""
        del terminal
        self.above(lambda: self._out.write(question))
        self._question = question
        try:
            return await self.lines.answer()
        finally:
            self._question = ""
