"""Wraps the text of an editor into rows; after a change, only the changed lines are wrapped again."""

from bisect import bisect_right
from collections.abc import Callable
from itertools import accumulate

from msgspec import Struct
from rich.cells import cell_len

from codeloop.kit.terminal_text import escape_answer_controls
from codeloop.tui.editor.boundaries import split_graphemes
from codeloop.tui.editor.chips import Chips

_TAB = " " * 4
"""The displayed text of a tab."""


class Glyph(Struct, frozen=True):
    """A grapheme of a line: its start and end in the line, its displayed text, and the cells of that."""

    start: int
    end: int
    label: str
    cells: int


class Layout:
    """The rows of a text in a width. One cell of each row is kept free for a cursor behind the last character."""

    def __init__(self, chips: Callable[[], Chips]) -> None:
        self._chips = chips
        self._width = 1
        # An empty text until the first update: the cursor's cell may be needed before there is a width.
        self._lines = [""]
        self._breaks: list[tuple[int, ...]] = [()]
        """The offsets in each line at which its second and further rows begin."""
        self._starts = [0, 1]
        """The offset of each line in the text, and one past the last line."""
        self._tops = [0, 1]
        """The first row of each line, and one past the last line."""

    @property
    def rows(self) -> int:
        """The number of rows."""
        return self._tops[-1]

    def update(self, text: str, cells: int) -> None:
        """Lay out a text in a width of `cells`; unchanged lines are not wrapped again."""
        lines = text.split("\n")
        cells = max(cells - 1, 2)
        same, old = 0, self._lines
        least = min(len(old), len(lines)) if cells == self._width else 0
        while same < least and old[same] == lines[same]:
            same += 1
        tail = 0
        while tail < least - same and old[-1 - tail] == lines[-1 - tail]:
            tail += 1
        new_breaks = [self._wrap(line, cells) for line in lines[same : len(lines) - tail]]
        self._breaks = self._breaks[:same] + new_breaks + self._breaks[len(old) - tail :]
        self._lines, self._width = lines, cells
        self._starts = list(accumulate(map(len, lines), lambda at, length: at + length + 1, initial=0))
        self._tops = list(accumulate(map(len, self._breaks), lambda at, more: at + more + 1, initial=0))

    def locate(self, at: int) -> tuple[int, int]:
        """Return the row of an offset in the text, and the cell within that row."""
        line = max(bisect_right(self._starts, at, hi=len(self._lines)) - 1, 0)
        within = at - self._starts[line]
        section = bisect_right(self._breaks[line], within)
        start, end = self._find_bounds(line, section)
        column = sum(glyph.cells for glyph in self.glyphs(self._lines[line][start:end]) if glyph.end <= within - start)
        return self._tops[line] + section, column

    def offset(self, row: int, column: int) -> int:
        """Return the offset in the text of the character at a cell, or if the row is shorter, of its end."""
        row = min(max(row, 0), self.rows - 1)
        line, start, end = self._find_section(row)
        glyphs = self.glyphs(self._lines[line][start:end])
        at = 0
        for glyph in glyphs:
            if at + glyph.cells > column:
                return self._starts[line] + start + glyph.start
            at += glyph.cells
        is_last = end == len(self._lines[line])
        last = end if is_last or not glyphs else start + glyphs[-1].start
        return self._starts[line] + last

    def row(self, row: int) -> tuple[int, str]:
        """Return the offset of a row in the text, and its characters."""
        line, start, end = self._find_section(row)
        return self._starts[line] + start, self._lines[line][start:end]

    def glyphs(self, text: str) -> list[Glyph]:
        """Return the graphemes of a piece of a line, as they are displayed."""
        chips = self._chips()
        if text.isascii() and text.isprintable():
            return [Glyph(at, at + 1, char, 1) for at, char in enumerate(text)]
        glyphs: list[Glyph] = []
        for start, end in split_graphemes(text):
            char = text[start:end]
            chip = chips.get(char) if len(char) == 1 else None
            label = _TAB if char == "\t" else chip.label if chip else escape_answer_controls(char)
            glyphs.append(Glyph(start, end, label, cell_len(label)))
        return glyphs

    def _find_bounds(self, line: int, section: int) -> tuple[int, int]:
        breaks = self._breaks[line]
        start = breaks[section - 1] if section else 0
        return start, breaks[section] if section < len(breaks) else len(self._lines[line])

    def _find_section(self, row: int) -> tuple[int, int, int]:
        line = max(bisect_right(self._tops, row, hi=len(self._lines)) - 1, 0)
        return line, *self._find_bounds(line, row - self._tops[line])

    def _wrap(self, line: str, cells: int) -> tuple[int, ...]:
        if len(line) <= cells and line.isascii() and line.isprintable():
            return ()
        breaks: list[int] = []
        row = word = 0  # the start of the row, and of its last word
        used = since = 0  # the cells of the row, and of its last word
        for glyph in self.glyphs(line):
            while glyph.start > row and used + glyph.cells > cells and not (glyph.label == " " and used == cells):
                used, row = (since, word) if word > row else (0, glyph.start)
                breaks.append(row)
            used += glyph.cells
            since += glyph.cells
            if glyph.label == " ":
                word, since = glyph.end, 0
        return tuple(breaks)
