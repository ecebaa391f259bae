"""Splits the input from the terminal into keys, pastes, and answers to queries."""

import re
from collections.abc import Generator, Iterator
from typing import Literal

from msgspec import Struct

PASTE, PASTE_END = "\x1b[200~", "\x1b[201~"
_ANSWER = re.compile(
    r"\x1b\](?P<command>\d+);(?P<text>[^\x07\x1b]*)(?:\x07|\x1b\\)"  # of a colour, or of the clipboard
    r"|\x1b\[\?(?P<attributes>[\d;]*)c"
    r"|\x1b\[\?1;0;(?P<colours>\d+)(?:;\d+)?S"
    r"|\x1b\[6;(?P<cell>\d+;\d+)t"
    r"|\x1bP>\|(?P<version>[^\x07\x1b]*)(?:\x07|\x1b\\)"
    r"|\x1b_G[^\x1b]*\x1b\\"  # of a picture
)
_INCOMPLETE = re.compile(
    r"\x1b(?:\](?:\d+(?:;[^\x07\x1b]*\x1b?)?)?|_(?:G[^\x1b]*\x1b?)?|P(?:>(?:\|[^\x07\x1b]*\x1b?)?)?"
    r"|\[(?:\?[\d;]*|6(?:;[\d;]*)?|2|20|200)?)?"
)
_MAX_ANSWER = 4096
"""Characters of an answer; a longer sequence is taken as keys."""


class Arrival(Struct, frozen=True):
    """Input of one kind: `keys` as the terminal sends them, the text of a `paste`, or an `answer` of the terminal.

    `command`: the query that is answered: its number, or `version`, `colours` (of a picture), `cell` (height and width
    in pixels) or `attributes`.
    """

    kind: Literal["keys", "paste", "answer"]
    text: str
    command: str = ""


class Arrivals:
    """Parses input incrementally. An incomplete sequence is held until it continues, or `flush` is called."""

    def __init__(self) -> None:
        self._partial = ""
        self._paste_pieces: list[str] | None = None
        """The pieces of a paste that has not ended; None: there is none."""

    @property
    def is_idle(self) -> bool:
        """Whether no incomplete sequence is held."""
        return not self._partial or self._paste_pieces is not None

    def take(self, data: str) -> Iterator[Arrival]:
        """Parse more input; yield the complete arrivals."""
        data, self._partial = self._partial + data, ""
        while data:
            if self._paste_pieces is not None:
                data = yield from self._paste(data, self._paste_pieces)
                continue
            start = data.find("\x1b")
            if start < 0:
                yield Arrival("keys", data)
                return
            if start:
                yield Arrival("keys", data[:start])
                data = data[start:]
            if data.startswith(PASTE):
                self._paste_pieces = []
                data = data[len(PASTE) :]
            elif (match := _ANSWER.match(data)) is not None:
                question = match.lastgroup or ""
                yield Arrival("answer", match[question] if question else "", match["command"] or question)
                data = data[match.end() :]
            elif len(data) < _MAX_ANSWER and _INCOMPLETE.fullmatch(data):
                self._partial = data
                return
            else:
                end = data.find("\x1b", 1)
                yield Arrival("keys", data if end < 0 else data[:end])
                data = "" if end < 0 else data[end:]

    def flush(self) -> Iterator[Arrival]:
        """Yield a held sequence as keys, since it did not continue."""
        if not self.is_idle:
            data, self._partial = self._partial, ""
            yield Arrival("keys", data)

    def _paste(self, data: str, pieces: list[str]) -> Generator[Arrival, None, str]:
        """Add a piece of a paste, and yield the paste at its end; return the input after it."""
        end = data.find(PASTE_END)
        if end < 0:
            overlap = next((size for size in range(len(PASTE_END) - 1, 0, -1) if data.endswith(PASTE_END[:size])), 0)
            pieces.append(data[: len(data) - overlap])
            self._partial = data[len(data) - overlap :]
            return ""
        pieces.append(data[:end])
        self._paste_pieces = None
        yield Arrival("paste", "".join(pieces).replace("\x00", ""))
        return data[end + len(PASTE_END) :]
