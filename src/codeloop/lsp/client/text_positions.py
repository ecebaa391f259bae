"""Positions in texts by the protocol's rules: lines ending in LF, CR LF or CR,
columns in code units.
"""

import re
from collections.abc import Sequence
from typing import Literal, NamedTuple

from msgspec import Struct

from codeloop.schema.wire import JSON

Encoding = Literal["utf-8", "utf-16", "utf-32"]
# A line with its end, or a last one without.
_LINE_PATTERN = r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+\Z"
# Later characters take two code units in UTF-16.
_LAST_OF_BMP = 0xFFFF


class TextPosition(NamedTuple):
    """A position in a text: line and column from 0, the column in characters."""

    line: int
    column: int


def split_lines(text: str) -> list[str]:
    """Split a text into lines with their ends; after a last line end there is no further,
    empty line.
    """
    return re.findall(_LINE_PATTERN, text)


def get_line(lines: Sequence[str], number: int) -> str:
    """Return a line by its number, from 0; "" beyond the last."""
    return lines[number] if number < len(lines) else ""


def count_units(text: str, encoding: Encoding) -> int:
    """Count the code units of a text, in which servers count columns."""
    if text.isascii() or encoding == "utf-32":
        return len(text)
    if encoding == "utf-8":
        return len(text.encode("utf-8", "surrogatepass"))
    return len(text) + sum(ord(char) > _LAST_OF_BMP for char in text)


def find_index(line: str, column: int, encoding: Encoding) -> int:
    """Return the index in a line of a column in code units; a column beyond the line is its end."""
    if line.isascii() or encoding == "utf-32":
        return min(max(column, 0), len(line))
    remaining = column
    for index, char in enumerate(line):
        if remaining <= 0:
            return index
        remaining -= count_units(char, encoding)
    return len(line)


class TextChange(Struct, frozen=True):
    """A change of a text: the lines from `first` up to `end` (from 0,
    `end` excluded) became `text`.

    `column`: the end of the replaced range in line `end`.
    It is 0, except at the end of a text without a last line end.
    """

    first: int
    end: int
    column: int
    text: str

    @property
    def event(self) -> JSON:
        """The change in the form of the notification `textDocument/didChange`."""
        span = {
            "start": {"line": self.first, "character": 0},
            "end": {"line": self.end, "character": self.column},
        }
        return {"range": span, "text": self.text}


def find_change(before: str, after: str, encoding: Encoding) -> TextChange:
    """Return the change from one text to another as one range of whole lines."""
    old, new = split_lines(before), split_lines(after)
    shorter_length = min(len(old), len(new))
    first = next(
        (index for index in range(shorter_length) if old[index] != new[index]), shorter_length
    )
    tail_length = next(
        (count for count in range(shorter_length - first) if old[-1 - count] != new[-1 - count]),
        shorter_length - first,
    )
    end, column = len(old) - tail_length, 0
    # The last line has no end: the range must end inside it, since there is no line after it.
    if not tail_length and old and not old[-1].endswith(("\n", "\r")):
        end, column = len(old) - 1, count_units(old[-1], encoding)
        first = min(first, end)
    return TextChange(first, end, column, "".join(new[first : len(new) - tail_length]))
