"""The scrollback of a terminal, and its viewers, each of which reads at its own pace."""

import asyncio
import codecs
from collections.abc import Iterator

from codeloop.schema.bounds.server import PTY_AHEAD, PTY_CLIENT_WAIT, PTY_FRAME, PTY_KEPT, PTY_WATCHERS


class Scrollback:
    """Keeps the newest `most` characters of what was written; memory stays at two bytes a character.

    Positions count UTF-16 code units: the contract's clients add up the lengths of strings that are made of these.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._buffer = bytearray()
        self.start = 0
        """The position of the oldest character that is kept."""

    @property
    def end(self) -> int:
        """How many characters were written in all."""
        return self.start + len(self._buffer) // 2

    def write(self, text: str) -> None:
        """Add output."""
        self._buffer += text.encode("utf-16-le")
        extra = self.end - self.start - self._most
        if extra > 0:
            del self._buffer[: 2 * extra]
            self.start += extra

    def read(self, position: int, most: int) -> tuple[str, int]:
        """Return at most `most` characters from a position on, or from the oldest kept, and the position after them.

        No character outside the basic plane is cut in two at the end; then there is one unit more.
        """
        first = min(max(position, self.start), self.end)
        last = min(first + most, self.end)
        if first < last < self.end and self._buffer[2 * (last - self.start) - 1] & 0xFC == 0xD8:
            last += 1
        raw = self._buffer[2 * (first - self.start) : 2 * (last - self.start)]
        return raw.decode("utf-16-le", "replace"), last


class TooSlow(Exception):
    """A client is so far behind that the output it would read next is no longer kept."""


class TerminalOutput:
    """The output of one terminal. Clients read from what is kept, so a slow one costs no memory."""

    def __init__(self) -> None:
        self.scrollback = Scrollback(PTY_KEPT.value)
        self.has_ended = False
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._watchers: set[Viewer] = set()

    def write(self, chunk: bytes) -> None:
        """Add what the program printed; a character may be split over chunks."""
        self._add(self._decoder.decode(chunk))

    def end(self) -> None:
        """Note that there will be no more output."""
        self.has_ended = True
        self._add(self._decoder.decode(b"", final=True))

    def watch(self, cursor: int | None = None) -> "Viewer":
        """Return a new client what is kept from position `cursor` on (None: all, -1: nothing), then what follows.

        Raises ValueError when there are too many clients.
        """
        if len(self._watchers) >= PTY_WATCHERS.value:
            raise ValueError(f"{PTY_WATCHERS.value} clients are already connected to the terminal")
        replay = "" if cursor == -1 else self.scrollback.read(cursor or 0, PTY_KEPT.value)[0]
        watcher = Viewer(self, replay)
        self._watchers.add(watcher)
        return watcher

    def remove(self, watcher: "Viewer") -> None:
        """Remove a client."""
        self._watchers.discard(watcher)

    def should_wait(self) -> bool:
        """Return whether the program should wait: its quickest client has much to read, and does read.

        Clients that have read nothing for long are given up, so that the program never waits for them.
        """
        behind = self.scrollback.end - PTY_AHEAD.value
        if not self._watchers or any(watcher.position >= behind for watcher in self._watchers):
            return False
        oldest = asyncio.get_running_loop().time() - PTY_CLIENT_WAIT.seconds
        if any(watcher.read_at > oldest for watcher in self._watchers):
            return True
        for watcher in list(self._watchers):
            watcher.give_up()
        return False

    def _add(self, text: str) -> None:
        self.scrollback.write(text)
        for watcher in self._watchers:
            watcher.news.set()


class Viewer:
    """One client of a terminal: `replay`, then `wait_for_output` until it returns nothing. Close it."""

    def __init__(self, output: TerminalOutput, replay: str) -> None:
        self._output = output
        self._replay = replay
        self._loop = asyncio.get_running_loop()
        self._given_up = False
        self.position = output.scrollback.end
        """The position of what `wait_for_output` returns next, in characters."""
        self.read_at = self._loop.time()
        self.news = asyncio.Event()

    def replay(self) -> Iterator[str]:
        """Yield the earlier output in pieces."""
        for first in range(0, len(self._replay), PTY_FRAME.value):
            self.read_at = self._loop.time()
            yield self._replay[first : first + PTY_FRAME.value]
        self._replay = ""

    async def wait_for_output(self) -> str:
        """Wait for output and return it; "" when the terminal has ended. Raises TooSlow."""
        self.read_at = self._loop.time()
        while self.position == self._output.scrollback.end and not self._output.has_ended:
            self.news.clear()
            await self.news.wait()
        self.read_at = self._loop.time()
        if self._given_up or self.position < self._output.scrollback.start:
            raise TooSlow
        text, self.position = self._output.scrollback.read(self.position, PTY_FRAME.value)
        return text

    def give_up(self) -> None:
        """Stop waiting for this client; its next `wait_for_output` raises TooSlow."""
        self._given_up = True
        self.news.set()
        self.close()

    def close(self) -> None:
        """Stop watching."""
        self._output.remove(self)
