"""A text with plain line ends, in which edits are searched for,
and the way back to the original.
"""

import re
from bisect import bisect_left


class NormalizedText:
    r"""A text with `\n` for every `\r\n`, and the way back to positions in the original.

    Edits search `text`, and then replace the same place in `original`.
    """

    __slots__ = ("_shortened_line_ends", "original", "text")

    def __init__(self, original: str) -> None:
        self.original = original
        # The offsets in `text` of the line ends that lost a `\r`, in order.
        self._shortened_line_ends: list[int] = []
        self.text = original
        if "\r\n" in original:
            # Each of the line ends before one has also lost a character.
            line_ends = enumerate(re.finditer("\r\n", original))
            self._shortened_line_ends = [match.start() - index for index, match in line_ends]
            self.text = original.replace("\r\n", "\n")

    def to_original(self, offset: int) -> int:
        r"""Return the position in the original text of an offset in `text`: before
        the `\r` of a line end.
        """
        return offset + bisect_left(self._shortened_line_ends, offset)

    def slice_original(self, start: int, end: int) -> str:
        """Return the original text between two offsets in `text`."""
        return self.original[self.to_original(start) : self.to_original(end)]

    def find_line_end(self, start: int, end: int) -> str:
        r"""Return the line end between two offsets; without one there, that of the line,
        or else of the line before.
        """
        line_end = self.text.find("\n", start, end)
        if line_end < 0:
            line_end = self.text.find("\n", end)
        if line_end < 0:
            line_end = self.text.rfind("\n", 0, start)
        if line_end < 0:
            return "\n"
        return "\r\n" if self.original[self.to_original(line_end)] == "\r" else "\n"
