"""Detects pastes in terminals without bracketed paste: several lines arrive
faster than anybody types.
"""

from collections.abc import Iterable, Iterator

from codeloop.kit.text.patterns import compile_once
from codeloop.tui.terminal.input.input_parser import TerminalInput

ENTER_GAP_SECONDS = 0.005
"""Seconds after an Enter within which more text shows that the Enter was
the end of a pasted line.
"""
LONE_ENTER_SECONDS = 0.03
"""Seconds without input before an Enter after which the Enter is a key, even after a paste."""
# Over a network, the lines of a paste come in pieces.
PASTE_PAUSE_SECONDS = 0.2
"""Seconds without input after which a paste has ended."""
STOP_KEYS = frozenset({"\x1b", "\x03", "\x1b[27u", "\x1b[27;1u", "\x1b[99;5u", "\x1b[27;5;99~"})
"""Escape and Ctrl-C, as terminals write them."""
# It is not a key, but occurs in output that is copied and pasted.
_COLOUR_SEQUENCE = r"\x1b\[[\d;:]*m"
# A line feed is not a line end here: it is a key that begins a new line in the prompt.
_PASTED_LINES = r"\r[\r\n\t]*[^\x00-\x1f\x7f]"
"""A line end followed by text."""
_TEXT_OR_KEY = (
    r"(?s)(?P<text>[^\x00-\x08\x0b\x0c\x0e-\x1f\x7f]+)"
    r"|\x1b\[[0-?]*[ -/]*(?:[@-~]|\Z)|\x1bO(?:.|\Z)|\x1b[^\[O]|[\x00-\x1f\x7f]"
)
"""A piece of text, or one key; a sequence that is cut off at the end of a
read is passed on as it is.
"""


class PasteDetector:
    """Joins lines that arrive at once to a paste;
    a single line with its Enter is passed on as keys.

    Escape and Ctrl-C drop an unfinished paste. Times are monotonic seconds.
    """

    def __init__(self) -> None:
        self._held: list[str] = []
        """The held input: a paste that may continue, or an Enter that text may follow,
        with the text before it.
        """
        self._is_paste = False
        self._last_text_at = 0.0
        """When the last text was read."""

    def compute_wait(self, now: float) -> float | None:
        """Return for how many more seconds the held input may continue; None: no input is held."""
        if not self._held:
            return None
        return max(
            self._last_text_at
            + (PASTE_PAUSE_SECONDS if self._is_paste else ENTER_GAP_SECONDS)
            - now,
            0.0,
        )

    def detect(self, inputs: Iterable[TerminalInput], now: float) -> Iterator[TerminalInput]:
        """Process input, and yield what need not be held."""
        if self.compute_wait(now) == 0.0:
            yield from self.flush()
        for item in inputs:
            if item.kind == "keys":
                yield from self._detect_in_keys(
                    compile_once(_COLOUR_SEQUENCE).sub("", item.text), now
                )
            else:
                if item.kind == "paste":
                    yield from self.flush()
                yield item

    def flush(self) -> Iterator[TerminalInput]:
        """Yield the held input, since it did not continue."""
        data, self._held = "".join(self._held), []
        if data:
            yield TerminalInput("paste" if self._is_paste else "keys", data)
        self._is_paste = False

    def _detect_in_keys(self, keys: str, now: float) -> Iterator[TerminalInput]:
        """Split keys into pieces of text, which may belong to a paste, and other keys,
        which end one.
        """
        for piece in compile_once(_TEXT_OR_KEY).finditer(keys):
            key = piece[0]
            if piece["text"] is not None:
                yield from self._take_text(key, now)
                continue
            # Within a paste, this is not Alt with a key,
            # but an Escape that the user typed meanwhile.
            if self._is_paste and len(key) == 2 and key[0] == "\x1b":
                yield from self._drop_paste("\x1b")
                yield from self._take_text(key[1], now)
            elif key in STOP_KEYS:
                yield from self._drop_paste(key)
            else:
                yield from self.flush()
                yield TerminalInput("keys", key)

    def _drop_paste(self, key: str) -> Iterator[TerminalInput]:
        """Drop the unfinished paste, or else pass the held keys on;
        then pass on Escape or Ctrl-C.
        """
        if self._is_paste:
            self._held.clear()
        else:
            yield from self.flush()
        yield TerminalInput("keys", key)

    def _take_text(self, text: str, now: float) -> Iterator[TerminalInput]:
        """Hold a piece of text, with its tabs and Enters, if it is or may become a paste;
        else pass it on.
        """
        pause, self._last_text_at = now - self._last_text_at, now
        if self._is_paste and text == "\r" and pause >= LONE_ENTER_SECONDS:
            yield from self.flush()
        if self._is_paste:
            self._held.append(text)
            return
        text = "".join([*self._held, text])
        self._held.clear()
        # An Enter is held if it may end a pasted line: behind text, or right after other text.
        if compile_once(_PASTED_LINES).search(text):
            self._is_paste = True
        elif not (text.endswith("\r") and (len(text) > 1 or pause < ENTER_GAP_SECONDS)):
            yield TerminalInput("keys", text)
            return
        self._held.append(text)
