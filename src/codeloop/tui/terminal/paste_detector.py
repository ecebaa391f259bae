"""Detects pastes in terminals without bracketed paste: several lines arrive faster than anybody types."""

import re
from collections.abc import Iterable, Iterator

from codeloop.tui.terminal.input_parser import Arrival

ENTER_GAP = 0.005
"""Seconds after an Enter within which more text shows that the Enter was the end of a pasted line."""
LONE_ENTER = 0.03
"""Seconds without input before an Enter after which the Enter is a key, even after a paste."""
PASTE_PAUSE = 0.2
"""Seconds without input after which a paste has ended: over a network, its lines come in pieces."""
STOP_KEYS = frozenset({"\x1b", "\x03", "\x1b[27u", "\x1b[27;1u", "\x1b[99;5u", "\x1b[27;5;99~"})
"""Escape and Ctrl-C, as terminals write them."""
_COLOUR = re.compile(r"\x1b\[[\d;:]*m")
"""A sequence that is no key, but occurs in pasted output."""
_LINES = re.compile(r"\r[\r\n\t]*[^\x00-\x1f\x7f]")
"""A line end followed by text. A line feed is no line end here: it is a key that begins a new line in the prompt."""
_PIECE = re.compile(
    r"(?P<text>[^\x00-\x08\x0b\x0c\x0e-\x1f\x7f]+)"
    r"|\x1b\[[0-?]*[ -/]*(?:[@-~]|\Z)|\x1bO(?:.|\Z)|\x1b[^\[O]|[\x00-\x1f\x7f]",
    re.DOTALL,
)
"""A piece of text, or one key; a sequence that is cut off at the end of a read is passed on as it is."""


class Bursts:
    """Joins lines that arrive at once to a paste; a single line with its Enter is passed on as keys.

    Escape and Ctrl-C drop an unfinished paste. Times are monotonic seconds.
    """

    def __init__(self) -> None:
        self._burst: list[str] = []
        """The held input: a paste that may continue, or an Enter that text may follow, with the text before it."""
        self._is_paste = False
        self._last = 0.0
        """The time of the last text."""

    def wait(self, now: float) -> float | None:
        """Return the seconds for which held input may still continue; None: no input is held."""
        if not self._burst:
            return None
        return max(self._last + (PASTE_PAUSE if self._is_paste else ENTER_GAP) - now, 0.0)

    def take(self, arrivals: Iterable[Arrival], now: float) -> Iterator[Arrival]:
        """Process arrivals, and yield those that need not be held."""
        if self.wait(now) == 0.0:
            yield from self.flush()
        for arrival in arrivals:
            if arrival.kind == "keys":
                yield from self._keys(_COLOUR.sub("", arrival.text), now)
            else:
                if arrival.kind == "paste":
                    yield from self.flush()
                yield arrival

    def flush(self) -> Iterator[Arrival]:
        """Yield the held input, since it did not continue."""
        data, self._burst = "".join(self._burst), []
        if data:
            yield Arrival("paste" if self._is_paste else "keys", data)
        self._is_paste = False

    def _keys(self, keys: str, now: float) -> Iterator[Arrival]:
        for piece in _PIECE.finditer(keys):
            key = piece[0]
            if piece["text"] is not None:
                yield from self._text(key, now)
                continue
            if self._is_paste and len(key) == 2 and key[0] == "\x1b":  # an Escape amid the input
                yield from self._stop("\x1b")
                yield from self._text(key[1], now)
            elif key in STOP_KEYS:
                yield from self._stop(key)
            else:
                yield from self.flush()
                yield Arrival("keys", key)

    def _stop(self, key: str) -> Iterator[Arrival]:
        if self._is_paste:
            self._burst.clear()
        else:
            yield from self.flush()
        yield Arrival("keys", key)

    def _text(self, text: str, now: float) -> Iterator[Arrival]:
        """Process a piece of text, with its tabs and Enters."""
        since, self._last = now - self._last, now
        if self._is_paste and text == "\r" and since >= LONE_ENTER:
            yield from self.flush()
        if self._is_paste:
            self._burst.append(text)
            return
        text = "".join([*self._burst, text])
        self._burst.clear()
        if _LINES.search(text):
            self._is_paste = True
        elif not (text.endswith("\r") and (len(text) > 1 or since < ENTER_GAP)):
            yield Arrival("keys", text)
            return
        self._burst.append(text)
