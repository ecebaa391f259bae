"""`Prompter`, the interface to ask questions at the bottom of a terminal, and `QuestionPrompter`,
which is for `run`.

A conversation line by line has a prompter of its own, `LineTerminal`.
"""

import asyncio
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Protocol

from codeloop.cli.output.streams import ERASE_LINE, OutputStream

DrawCallback = Callable[[], object]


class Prompter(Protocol):
    """Asks questions on the last lines of a terminal, and writes other output above them."""

    def write_above(self, draw: DrawCallback, *, is_urgent: bool = True) -> None:
        """Write above the bottom; what is not urgent may wait until a question is answered."""
        ...

    def write_if_idle(self, draw: DrawCallback) -> None:
        """Write output that may be skipped, unless a question waits or the user is typing."""
        ...

    async def ask(self, question: str) -> str | None:
        """Ask a question and return the line that answers it; None at the end of the input."""
        ...

    def queue_command(self, line: str) -> bool:
        """Queue a command that was typed in the place of an answer;
        return False where there are no commands.
        """
        ...


class QuestionPrompter:
    """Keeps a question at the bottom until it is answered; answers are lines of stdin."""

    def __init__(self, out: OutputStream) -> None:
        self._out = out
        self._question = ""
        self._postponed_draws: list[DrawCallback] = []

    def write_above(self, draw: DrawCallback, *, is_urgent: bool = True) -> None:
        """Write above the question."""
        if not self._question:
            draw()
        elif is_urgent:
            self._out.write(ERASE_LINE)
            draw()
            self._out.write(self._question)
        else:
            self._postponed_draws.append(draw)

    def write_if_idle(self, draw: DrawCallback) -> None:
        """Write unless a question is shown."""
        if not self._question:
            draw()

    async def ask(self, question: str) -> str | None:
        """Ask on the terminal."""
        self._question = question
        try:
            return await ask_line(self._out, question)
        finally:
            self._question = ""
            while self._postponed_draws:
                self._postponed_draws.pop(0)()

    def queue_command(self, line: str) -> bool:
        """Refuse the command: `run` has none."""
        del line
        return False


async def ask_line(out: OutputStream, question: str) -> str | None:
    """Ask a question, and return the line that is typed after it; None at the end of stdin."""
    await out.drain()
    import termios

    # Keys that were pressed before the question was shown must not answer it.
    # The error: the terminal is gone.
    with suppress(termios.error):
        termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)
    out.write(question)
    await out.drain()
    return await read_line()


async def read_line() -> str | None:
    """Read one line from the terminal without blocking the event loop; None at the end of stdin."""
    loop = asyncio.get_running_loop()
    descriptor = sys.stdin.fileno()
    data_ready: asyncio.Future[bytes] = loop.create_future()

    def read() -> None:
        if not data_ready.done():
            try:
                # A terminal hands over a line when it is complete.
                data_ready.set_result(os.read(descriptor, 65_536))
            except OSError:
                # The terminal is gone.
                data_ready.set_result(b"")

    loop.add_reader(descriptor, read)
    try:
        data = await data_ready
    finally:
        loop.remove_reader(descriptor)
    return (
        data.decode(sys.stdin.encoding or "utf-8", "replace").partition("\n")[0] if data else None
    )
