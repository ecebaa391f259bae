"""The output of a terminal: its scrollback, and its viewers,
each of which reads at its own pace.
"""

import asyncio
import codecs
from collections.abc import Iterator

from codeloop.schema.bounds.server import (
    PTY_AHEAD,
    PTY_CLIENT_WAIT,
    PTY_FRAME,
    PTY_KEPT,
    PTY_WATCHERS,
)


class Scrollback:
    """The newest `max_chars` characters of the output, in two bytes each.

    Positions count UTF-16 code units, because clients add up the lengths of JavaScript strings.
    """

    def __init__(self, max_chars: int) -> None:
        self._max_chars = max_chars
        self._buffer = bytearray()
        self.start = 0
        """The position of the oldest character that is kept."""

    @property
    def end(self) -> int:
        """The number of characters that were written in all."""
        return self.start + len(self._buffer) // 2

    def write(self, text: str) -> None:
        """Add output."""
        self._buffer += text.encode("utf-16-le")
        extra = self.end - self.start - self._max_chars
        if extra > 0:
            del self._buffer[: 2 * extra]
            self.start += extra

    def read(self, position: int, max_chars: int) -> tuple[str, int]:
        """Return at most `max_chars` characters from a position or the oldest kept on,
        and the position after them.
        """
        first = min(max(position, self.start), self.end)
        last = min(first + max_chars, self.end)
        # A character outside the basic plane has two units, the first one from 0xD800 to 0xDBFF.
        # It is not cut in two.
        if first < last < self.end and self._buffer[2 * (last - self.start) - 1] & 0xFC == 0xD8:
            last += 1
        raw = self._buffer[2 * (first - self.start) : 2 * (last - self.start)]
        return raw.decode("utf-16-le", "replace"), last


class ClientTooSlow(Exception):
    """A client is so far behind that the output it would read next is no longer kept."""


class TerminalOutput:
    """The output of one terminal. All clients read from the same scrollback,
    so a slow one costs no memory.
    """

    def __init__(self) -> None:
        self.scrollback = Scrollback(PTY_KEPT.value)
        self.has_ended = False
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._viewers: set[Viewer] = set()

    def write(self, chunk: bytes) -> None:
        """Add output of the program. A character may be split over two chunks."""
        self._add(self._decoder.decode(chunk))

    def end(self) -> None:
        """Mark the end of the output."""
        self.has_ended = True
        self._add(self._decoder.decode(b"", final=True))

    def watch(self, cursor: int | None = None) -> "Viewer":
        """Return a viewer for a new client, which first replays the output from `cursor`
        on (None: all, -1: nothing).

        Raises ValueError when there are too many clients.
        """
        if len(self._viewers) >= PTY_WATCHERS.value:
            raise ValueError(f"{PTY_WATCHERS.value} clients are already connected to the terminal")
        replay = "" if cursor == -1 else self.scrollback.read(cursor or 0, PTY_KEPT.value)[0]
        viewer = Viewer(self, replay)
        self._viewers.add(viewer)
        return viewer

    def remove(self, viewer: "Viewer") -> None:
        """Remove a client."""
        self._viewers.discard(viewer)

    def should_wait(self) -> bool:
        """Return whether the program should wait, because its quickest client has much to read,
        and does read.

        Clients that have read nothing for a long time are given up,
        so that the program never waits for them.
        """
        behind = self.scrollback.end - PTY_AHEAD.value
        if not self._viewers or any(viewer.position >= behind for viewer in self._viewers):
            return False
        oldest = asyncio.get_running_loop().time() - PTY_CLIENT_WAIT.seconds
        if any(viewer.read_at > oldest for viewer in self._viewers):
            return True
        for viewer in list(self._viewers):
            viewer.give_up()
        return False

    def _add(self, text: str) -> None:
        self.scrollback.write(text)
        for viewer in self._viewers:
            viewer.news.set()


class Viewer:
    """One client of a terminal. Call `replay`, then `wait_for_output` until it returns nothing,
    then `close`.
    """

    def __init__(self, output: TerminalOutput, replay: str) -> None:
        self._output = output
        self._replay = replay
        self._loop = asyncio.get_running_loop()
        self._is_given_up = False
        self.position = output.scrollback.end
        """The position of the next output for `wait_for_output`, in characters."""
        self.read_at = self._loop.time()
        self.news = asyncio.Event()

    def replay(self) -> Iterator[str]:
        """Yield the earlier output in pieces."""
        for first in range(0, len(self._replay), PTY_FRAME.value):
            self.read_at = self._loop.time()
            yield self._replay[first : first + PTY_FRAME.value]
        self._replay = ""

    async def wait_for_output(self) -> str:
        """Wait for output and return it; "" when the terminal has ended. Raises ClientTooSlow."""
        self.read_at = self._loop.time()
        while self.position == self._output.scrollback.end and not self._output.has_ended:
            self.news.clear()
            await self.news.wait()
        self.read_at = self._loop.time()
        if self._is_given_up or self.position < self._output.scrollback.start:
            raise ClientTooSlow
        text, self.position = self._output.scrollback.read(self.position, PTY_FRAME.value)
        return text

    def give_up(self) -> None:
        """Stop waiting for this client; its next `wait_for_output` raises ClientTooSlow."""
        self._is_given_up = True
        self.news.set()
        self.close()

    def close(self) -> None:
        """Stop watching."""
        self._output.remove(self)
