"""Writing to stdout and stderr without blocking the event loop: what a reader does not take yet waits, in order."""

import asyncio
import os
import select
import stat
import sys
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from io import StringIO
from typing import TextIO

from codeloop.schema.limits import OUTPUT_READER_TIME

ERASE = "\r\x1b[2K"
"""Clears the cursor's line."""
COLUMNS = 80
"""The width of a terminal that does not report one."""


class Output:
    """A stream whose reader may be slow or gone; nothing is raised, `is_closed` is set."""

    def __init__(self, stream: TextIO, outlet: "Outlet") -> None:
        self.stream = stream
        self.descriptor = _descriptor(stream)
        self.is_closed = False
        self.has_lost = False
        """Whether something was written that nobody could read."""
        self.is_at_start = True
        """Whether the next character begins a line."""
        self.on_gone: Callable[[], object] = lambda: None
        """Called when there is no reader any more."""
        self.has_prompt = False
        """Whether the last line is one that a user types on."""
        self._outlet = outlet
        self._overlaid = ""
        self._unwatch: Callable[[], object] = lambda: None

    @property
    def columns(self) -> int:
        """How wide the terminal is."""
        try:
            return os.get_terminal_size(self.descriptor or 0).columns or COLUMNS
        except OSError:
            return COLUMNS

    def write(self, text: str) -> None:
        """Write after all that was written before; a character that the encoding lacks is replaced."""
        if text and self._overlaid:
            text, self._overlaid = ERASE + text, ""
        if text and self.has_prompt:
            text, self.has_prompt = "\n" + text, False
        if text:
            self.is_at_start = text.endswith(("\n", ERASE))
        self.has_lost = self.has_lost or (self.is_closed and bool(text))
        if not self.is_closed and self.descriptor is not None:
            self._outlet.add(self, text.encode(self.stream.encoding or "utf-8", "replace"))

    def write_prompt(self, text: str) -> None:
        """Write a line that a user types on; what is written next goes below it."""
        self.write(text)
        self.has_prompt = self.is_at_start = True

    def end_prompt(self) -> None:
        """Note that the user has ended the line: the terminal has moved on to the next one by itself."""
        self.has_prompt = False

    def overlay(self, line: str) -> None:
        """Show a line on a terminal that the next write replaces; "" removes it."""
        if line == self._overlaid or (line and (not self.is_at_start or self._outlet.is_waiting)):
            return
        self.write(ERASE)
        if line:
            self.write(line + "\r")
            self._overlaid, self.is_at_start = line, True

    async def drain(self) -> None:
        """Wait until all of it is written."""
        await self._outlet.drain()

    def take(self, data: memoryview) -> int:
        """Write what can be written at once; return the number of bytes. Raises OSError if there is no reader."""
        if self.descriptor is None or not self.is_ready(0):
            return 0
        try:
            return os.write(self.descriptor, data[: select.PIPE_BUF])  # a ready pipe takes so much without blocking
        except BlockingIOError:
            return 0

    def is_ready(self, patience: float | None) -> bool:
        """Return whether something can be written, waiting up to `patience` seconds, for ever with None."""
        return self.descriptor is not None and bool(select.select((), (self.descriptor,), (), patience)[1])

    def close(self) -> None:
        """Write nothing more, here or by others: half a line must stay the last thing that a reader gets."""
        self._unwatch()
        self.is_closed = True
        if self.descriptor is not None:
            nowhere = os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)
            os.dup2(nowhere, self.stream.fileno())
            os.close(nowhere)
        self.on_gone()

    def watch(self, loop: asyncio.AbstractEventLoop) -> None:
        """Close as soon as the reader of a pipe is gone, even if nothing is written."""
        descriptor = self.descriptor
        if descriptor is None or not stat.S_ISFIFO(os.fstat(descriptor).st_mode):
            return
        poll = select.poll()
        poll.register(descriptor, 0)

        def look() -> None:
            self._unwatch()
            if any(event & select.POLLERR for _, event in poll.poll(0)):
                self.close()

        loop.add_reader(descriptor, look)
        self._unwatch = lambda: loop.remove_reader(descriptor)


class Outlet:
    """What waits to be written. It has no bound: it is less than what the store keeps of the turn in memory.

    `loop`: writes the rest; without one, `add` waits for the reader, `patience` seconds at most when that is given.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop | None = None, patience: float | None = None) -> None:
        self._loop = loop
        self._patience = patience
        self._waiting: deque[tuple[Output, memoryview]] = deque()
        self._watched_fd: int | None = None
        self._emptied = asyncio.Event()
        self._taken_bytes = 0
        self._is_hurried = False
        self._timer: asyncio.TimerHandle | None = None

    @property
    def is_waiting(self) -> bool:
        """Whether something waits for a reader."""
        return bool(self._waiting)

    def add(self, output: Output, data: bytes) -> None:
        """Write `data`, or let it wait."""
        self._waiting.append((output, memoryview(data)))
        if self._watched_fd is None:
            self._write()

    async def drain(self) -> None:
        """Wait until nothing waits; for ever while a reader does not read, unless `shorten_waits` was called."""
        while self._waiting:
            self._emptied.clear()
            await self._emptied.wait()

    def shorten_waits(self) -> None:
        """From now on wait for a reader only as long as it keeps reading; else it counts as gone."""
        self._is_hurried = True
        if self._waiting:
            self._arm()

    def abandon(self) -> None:
        """Abandon the streams that something still waits for."""
        while self._waiting:
            self._give_up(self._waiting[0][0])

    def _write(self) -> None:
        while self._waiting:
            output, data = self._waiting[0]
            try:
                count = output.take(data)
            except OSError:
                self._give_up(output)
                continue
            self._taken_bytes += count
            if count == len(data):
                self._waiting.popleft()
            elif count:
                self._waiting[0] = (output, data[count:])
            elif self._loop is not None:
                self._watch(output.descriptor)
                self._arm()
                return
            elif not output.is_ready(self._patience):
                self._give_up(output)
        self._watch(None)
        self._emptied.set()

    def _watch(self, descriptor: int | None) -> None:
        if descriptor == self._watched_fd or self._loop is None:
            return
        if self._watched_fd is not None:
            self._loop.remove_writer(self._watched_fd)
        if descriptor is not None:
            self._loop.add_writer(descriptor, self._write)
        self._watched_fd = descriptor

    def _arm(self) -> None:
        if self._is_hurried and self._timer is None and self._loop is not None:
            self._timer = self._loop.call_later(OUTPUT_READER_TIME.seconds, self._look, self._taken_bytes)

    def _look(self, before: int) -> None:
        self._timer = None
        if self._waiting and self._taken_bytes == before:
            self._give_up(self._waiting[0][0])
            self._write()
        elif self._waiting:
            self._arm()

    def _give_up(self, output: Output) -> None:
        self._watch(None)
        output.has_lost = True
        self._waiting = deque(row for row in self._waiting if row[0] is not output)
        output.close()


def has_terminal() -> bool:
    """Return whether a user can be asked on stderr and can answer on stdin."""
    return all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stderr))


def standard(outlet: Outlet) -> tuple[Output, Output]:
    """Return stdout and stderr; a missing one discards what is written."""
    return Output(sys.stdout or StringIO(), outlet), Output(sys.stderr or StringIO(), outlet)


def _descriptor(stream: TextIO) -> int | None:
    try:
        descriptor = stream.fileno()
    except OSError:
        return None
    with suppress(OSError):
        if os.isatty(descriptor):  # a terminal may block in a small piece too; our own opening of it may not
            return os.open(os.ttyname(descriptor), os.O_WRONLY | os.O_NOCTTY | os.O_NONBLOCK | os.O_CLOEXEC)
    return descriptor
