"""Positions in texts by the protocol's rules: lines ending in LF, CR LF or CR, columns in code units."""

import re
from typing import Literal

from msgspec import Struct

from codeloop.schema.wire import JSON

Encoding = Literal["utf-8", "utf-16", "utf-32"]
_LINES = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+\Z")
_LAST_OF_BMP = 0xFFFF


def split_lines(text: str) -> list[str]:
    """Split a text into lines with their ends; after a last line end there is no further, empty line."""
    return _LINES.findall(text)


def count_units(text: str, encoding: Encoding) -> int:
    """Count the code units of a text."""
    if text.isascii() or encoding == "utf-32":
        return len(text)
    if encoding == "utf-8":
        return len(text.encode("utf-8", "surrogatepass"))
    return len(text) + sum(ord(char) > _LAST_OF_BMP for char in text)


def find_index(line: str, column: int, encoding: Encoding) -> int:
    """Return the index in a line that a column means; the line's end for one beyond it."""
    if line.isascii() or encoding == "utf-32":
        return min(max(column, 0), len(line))
    remaining = column
    for index, char in enumerate(line):
        if remaining <= 0:
            return index
        remaining -= count_units(char, encoding)
    return len(line)


class TextChange(Struct, frozen=True):
    """From one text to the next: lines `first` to `end` (from 0, without the last) became `text`.

    `column`: where the replaced range ends on line `end`, which is 0 but at the end of a text without a last line end.
    """

    first: int
    end: int
    column: int
    text: str

    @property
    def event(self) -> JSON:
        """The change as didChange takes it."""
        span = {"start": {"line": self.first, "character": 0}, "end": {"line": self.end, "character": self.column}}
        return {"range": span, "text": self.text}


def find_change(before: str, after: str, encoding: Encoding) -> TextChange:
    """Return the one change that leads from a text to another, in whole lines."""
    old, new = split_lines(before), split_lines(after)
    least = min(len(old), len(new))
    first = next((at for at in range(least) if old[at] != new[at]), least)
    tail = next((at for at in range(least - first) if old[-1 - at] != new[-1 - at]), least - first)
    end, column = len(old) - tail, 0
    # The last line has no end: the range must end inside it, since there is no line after it.
    if not tail and old and not old[-1].endswith(("\n", "\r")):
        end, column = len(old) - 1, count_units(old[-1], encoding)
        first = min(first, end)
    return TextChange(first, end, column, "".join(new[first : len(new) - tail]))
