"""Writes to stdout and stderr without blocking the event loop;
output that a slow reader does not take yet is queued.

Used by everything that prints while a turn runs: a pager or a stopped terminal must not stop the
turn. `can_ask_user` is for all commands that may ask something.
"""

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

# Control sequence: to the start of the cursor's line, which is cleared.
ERASE_LINE = "\r\x1b[2K"
# The width of a terminal that does not report one.
DEFAULT_COLUMNS = 80


class OutputStream:
    """stdout or stderr. If its reader is gone, nothing is raised, but `is_closed` is set."""

    def __init__(self, stream: TextIO, queue: "OutputQueue") -> None:
        self.stream = stream
        self.descriptor = _open_descriptor(stream)
        self.is_closed = False
        self.has_lost = False
        """Whether output was lost, because its reader was gone."""
        self.error: OSError | None = None
        """Why output could not be written."""
        self.is_at_start = True
        """Whether the next character is written at the start of a line."""
        self.on_gone: Callable[[], object] = lambda: None
        """Called when the reader is gone."""
        self.has_prompt = False
        """Whether the cursor stands after a prompt, on the line that the user types on."""
        self._queue = queue
        self._overlay_line = ""
        self._stop_watching: Callable[[], object] = lambda: None

    @property
    def columns(self) -> int:
        """The width of the terminal."""
        try:
            return os.get_terminal_size(self.descriptor or 0).columns or DEFAULT_COLUMNS
        except OSError:
            return DEFAULT_COLUMNS

    def write(self, text: str) -> None:
        """Write text, after all text of both streams that waits;
        a character that the encoding lacks is replaced.
        """
        if text and self._overlay_line:
            text, self._overlay_line = ERASE_LINE + text, ""
        if text and self.has_prompt:
            text, self.has_prompt = "\n" + text, False
        if text:
            self.is_at_start = text.endswith(("\n", ERASE_LINE))
        self.has_lost = self.has_lost or (self.is_closed and bool(text))
        if not self.is_closed and self.descriptor is not None:
            self._queue.add(self, text.encode(self.stream.encoding or "utf-8", "replace"))

    def write_prompt(self, text: str) -> None:
        """Write a prompt, on whose line the user types; the next text is written below it."""
        self.write(text)
        self.has_prompt = self.is_at_start = True

    def end_prompt(self) -> None:
        """Note that the user has pressed Enter, so that the cursor is on the next line already."""
        self.has_prompt = False

    def overlay(self, line: str) -> None:
        """Show a line on a terminal, which the next write replaces; "" removes it."""
        # The progress line must not cut through a line of text,
        # nor make the queue of a slow reader longer.
        if line == self._overlay_line or (
            line and (not self.is_at_start or self._queue.is_waiting)
        ):
            return
        self.write(ERASE_LINE)
        if line:
            self.write(line + "\r")
            self._overlay_line, self.is_at_start = line, True

    async def drain(self) -> None:
        """Wait until all text of both streams is written."""
        await self._queue.drain()

    def write_now(self, data: memoryview) -> int:
        """Write the bytes that the reader takes at once; return their number.
        Raises OSError if the reader is gone.
        """
        if self.descriptor is None or not self.is_ready(0):
            return 0
        try:
            # A pipe that is ready for writing takes PIPE_BUF bytes without blocking,
            # and no more for certain.
            return os.write(self.descriptor, data[: select.PIPE_BUF])
        except BlockingIOError:
            return 0

    def is_ready(self, timeout: float | None) -> bool:
        """Return whether the reader takes bytes; wait for that up to `timeout` seconds,
        for ever with None.
        """
        return self.descriptor is not None and bool(
            select.select((), (self.descriptor,), (), timeout)[1]
        )

    def close(self) -> None:
        """Redirect the stream to /dev/null, also for other code of the process."""
        # A reader that comes back must not get later output after half a line.
        self._stop_watching()
        self.is_closed = True
        if self.descriptor is not None:
            nowhere = os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)
            os.dup2(nowhere, self.stream.fileno())
            os.close(nowhere)
        self.on_gone()

    def watch(self, loop: asyncio.AbstractEventLoop) -> None:
        """Close as soon as the reader of a pipe is gone,
        even if nothing is written: a turn for nobody costs money.
        """
        descriptor = self.descriptor
        if descriptor is None or not stat.S_ISFIFO(os.fstat(descriptor).st_mode):
            return
        # Without any event to ask for, `poll` reports the loss of the reader alone.
        poll = select.poll()
        poll.register(descriptor, 0)

        def close_if_gone() -> None:
            # Once: a descriptor in this state stays readable, and would keep the loop busy.
            self._stop_watching()
            if any(event & select.POLLERR for _, event in poll.poll(0)):
                self.close()

        # The writing end of a pipe has nothing to read; epoll reports it as readable when
        # the other end is closed.
        loop.add_reader(descriptor, close_if_gone)
        self._stop_watching = lambda: loop.remove_reader(descriptor)


class OutputQueue:
    """The output that waits for readers, of both streams in one order.

    `loop`: the event loop that writes it; None: `add` waits for the reader itself, `timeout`
    seconds at most, or for ever without a timeout.
    """

    def __init__(
        self, loop: asyncio.AbstractEventLoop | None = None, timeout: float | None = None
    ) -> None:
        self._loop = loop
        self._timeout = timeout
        # Without a bound: the store keeps the turn in memory and on the disk anyway,
        # and more of it.
        self._waiting: deque[tuple[OutputStream, memoryview]] = deque()
        self._watched_fd: int | None = None
        self._emptied = asyncio.Event()
        self._taken_bytes = 0
        self._has_short_waits = False
        self._timer: asyncio.TimerHandle | None = None

    @property
    def is_waiting(self) -> bool:
        """Whether output waits for a reader."""
        return bool(self._waiting)

    def add(self, output: OutputStream, data: bytes) -> None:
        """Write `data`, or queue it."""
        # Slices of a memoryview copy nothing.
        self._waiting.append((output, memoryview(data)))
        if self._watched_fd is None:
            self._write()

    async def drain(self) -> None:
        """Wait until all output is written: for ever if a reader does not read, unless
        `shorten_waits` was called.
        """
        while self._waiting:
            self._emptied.clear()
            await self._emptied.wait()

    def shorten_waits(self) -> None:
        """From now on give up a reader that takes nothing for OUTPUT_READER_TIME."""
        self._has_short_waits = True
        if self._waiting:
            self._start_timer()

    def abandon(self) -> None:
        """Stop waiting for readers of the output."""
        while self._waiting:
            self._give_up(self._waiting[0][0])
        self._emptied.set()

    def _write(self) -> None:
        """Write the output that waits, until a reader takes no more."""
        while self._waiting:
            output, data = self._waiting[0]
            try:
                count = output.write_now(data)
            except OSError as error:
                output.error = error
                self._give_up(output)
                continue
            self._taken_bytes += count
            if count == len(data):
                self._waiting.popleft()
            elif count:
                self._waiting[0] = (output, data[count:])
            elif self._loop is not None:
                self._watch_descriptor(output.descriptor)
                self._start_timer()
                return
            elif not output.is_ready(self._timeout):
                self._give_up(output)
        self._watch_descriptor(None)
        self._emptied.set()

    def _watch_descriptor(self, descriptor: int | None) -> None:
        """Call `_write` when this descriptor can be written to; None: watch none."""
        if descriptor == self._watched_fd or self._loop is None:
            return
        if self._watched_fd is not None:
            self._loop.remove_writer(self._watched_fd)
        if descriptor is not None:
            self._loop.add_writer(descriptor, self._write)
        self._watched_fd = descriptor

    def _start_timer(self) -> None:
        if self._has_short_waits and self._timer is None and self._loop is not None:
            self._timer = self._loop.call_later(
                OUTPUT_READER_TIME.seconds, self._check_reader, self._taken_bytes
            )

    def _check_reader(self, before: int) -> None:
        self._timer = None
        if self._waiting and self._taken_bytes == before:
            self._give_up(self._waiting[0][0])
            self._write()
        elif self._waiting:
            self._start_timer()

    def _give_up(self, output: OutputStream) -> None:
        """Close a stream, and drop the output that waits for its reader."""
        self._watch_descriptor(None)
        output.has_lost = True
        self._waiting = deque(row for row in self._waiting if row[0] is not output)
        output.close()


def can_ask_user() -> bool:
    """Return whether a user can be asked on stderr and can answer on stdin;
    stdout may be a pipe.
    """
    return all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stderr))


def open_standard_streams(queue: OutputQueue) -> tuple[OutputStream, OutputStream]:
    """Return stdout and stderr, which share a queue; a missing one discards what is written."""
    return OutputStream(sys.stdout or StringIO(), queue), OutputStream(
        sys.stderr or StringIO(), queue
    )


def _open_descriptor(stream: TextIO) -> int | None:
    """Return the descriptor to write to; None for a stream without one,
    whose output is discarded.
    """
    try:
        descriptor = stream.fileno()
    except OSError:
        return None
    with suppress(OSError):
        # Unlike a pipe that is ready, a terminal may block for a few bytes. O_NONBLOCK belongs to
        # the open file, which the shell and other programs share,
        # so it is set on an opening of our own.
        if os.isatty(descriptor):
            return os.open(
                os.ttyname(descriptor), os.O_WRONLY | os.O_NOCTTY | os.O_NONBLOCK | os.O_CLOEXEC
            )
    return descriptor
