"""Lines that arrive faster than anybody types: a paste from a terminal that does not mark where one begins and ends."""

import re
from collections.abc import Iterable, Iterator

from codeloop.tui.terminal.input_parser import Arrival

FOLLOWED = 0.005
"""Seconds after an Enter in which a text shows that it was the end of a pasted line."""
LONE = 0.03
"""Seconds without input after which an Enter that comes by itself is a key, also behind a paste."""
PAUSE = 0.2
"""Seconds without input after which a paste is over: lines over a network come in pieces."""
STOPS = frozenset({"\x1b", "\x03", "\x1b[27u", "\x1b[27;1u", "\x1b[99;5u", "\x1b[27;5;99~"})
"""Escape and Ctrl-C, as terminals write them."""
_COLOUR = re.compile(r"\x1b\[[\d;:]*m")
"""Is no key: it stands in output that is pasted."""
_LINES = re.compile(r"\r[\r\n\t]*[^\x00-\x1f\x7f]")
"""The end of a line, and text behind it. Line feeds do not count: as a key, each begins a new line in the prompt."""
_PIECE = re.compile(
    r"(?P<text>[^\x00-\x08\x0b\x0c\x0e-\x1f\x7f]+)"
    r"|\x1b\[[0-?]*[ -/]*(?:[@-~]|\Z)|\x1bO(?:.|\Z)|\x1b[^\[O]|[\x00-\x1f\x7f]",
    re.DOTALL,
)
"""Text, or one key; a sequence that was cut at the end of a read goes to who puts it together."""


class Bursts:
    """Makes one paste of lines that come at once, and lets a single line with its Enter through as keys.

    Escape and Ctrl-C drop a paste that still comes. Times are seconds of one clock.
    """

    def __init__(self) -> None:
        self._held: list[str] = []
        """A paste that may go on, or an Enter that text may follow, with what came before it at once."""
        self._is_paste = False
        self._last = 0.0
        """When text came last."""

    def wait(self, now: float) -> float | None:
        """Return for how many seconds what is held may still go on; None: nothing is held."""
        if not self._held:
            return None
        return max(self._last + (PAUSE if self._is_paste else FOLLOWED) - now, 0.0)

    def take(self, arrivals: Iterable[Arrival], now: float) -> Iterator[Arrival]:
        """Take arrivals; yield those that are complete."""
        if self.wait(now) == 0.0:
            yield from self.rest()
        for arrival in arrivals:
            if arrival.kind == "keys":
                yield from self._keys(_COLOUR.sub("", arrival.text), now)
            else:
                if arrival.kind == "paste":
                    yield from self.rest()
                yield arrival

    def rest(self) -> Iterator[Arrival]:
        """Yield the arrivals that were held and did not go on."""
        held, self._held = "".join(self._held), []
        if held:
            yield Arrival("paste" if self._is_paste else "keys", held)
        self._is_paste = False

    def _keys(self, keys: str, now: float) -> Iterator[Arrival]:
        for piece in _PIECE.finditer(keys):
            key = piece[0]
            if piece["text"] is not None:
                yield from self._text(key, now)
                continue
            if self._is_paste and len(key) == 2 and key[0] == "\x1b":  # an Escape in the midst of what comes
                yield from self._stop("\x1b")
                yield from self._text(key[1], now)
            elif key in STOPS:
                yield from self._stop(key)
            else:
                yield from self.rest()
                yield Arrival("keys", key)

    def _stop(self, key: str) -> Iterator[Arrival]:
        if self._is_paste:
            self._held.clear()
        else:
            yield from self.rest()
        yield Arrival("keys", key)

    def _text(self, text: str, now: float) -> Iterator[Arrival]:
        """Take text, Tabs and Enters in."""
        since, self._last = now - self._last, now
        if self._is_paste and text == "\r" and since >= LONE:
            yield from self.rest()
        if self._is_paste:
            self._held.append(text)
            return
        text = "".join([*self._held, text])
        self._held.clear()
        if _LINES.search(text):
            self._is_paste = True
        elif not (text.endswith("\r") and (len(text) > 1 or since < FOLLOWED)):
            yield Arrival("keys", text)
            return
        self._held.append(text)
