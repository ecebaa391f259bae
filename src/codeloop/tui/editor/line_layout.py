"""`LineLayout` wraps the text of an editor into rows, and converts between offsets and cells.

After a change, only the changed lines are wrapped again: typing must not get
slower in a long prompt.
"""

from bisect import bisect_right
from collections.abc import Callable
from itertools import accumulate

from msgspec import Struct
from rich.cells import cell_len

from codeloop.kit.text.terminal_text import escape_answer_controls
from codeloop.tui.editor.chips import Chips
from codeloop.tui.editor.grapheme_bounds import find_grapheme_bounds

_TAB_TEXT = " " * 4
"""The displayed text of a tab."""


class Glyph(Struct, frozen=True):
    """A grapheme of a line: its start and end in the line, its displayed text,
    and how many cells that takes.
    """

    start: int
    end: int
    label: str
    cells: int


class LineLayout:
    """The rows of a text in a width. One cell of each row is kept free for a cursor
    behind the last character.
    """

    def __init__(self, chips: Callable[[], Chips]) -> None:
        self._chips = chips
        self._width = 1
        # An empty text until the first update: the cursor's cell may be needed
        # before there is a width.
        self._lines = [""]
        self._breaks: list[tuple[int, ...]] = [()]
        """The offsets in each line at which its second and further rows begin."""
        self._starts = [0, 1]
        """The offset of each line in the text, and one past the last line."""
        self._tops = [0, 1]
        """The first row of each line, and one past the last line."""

    @property
    def row_count(self) -> int:
        """The number of rows."""
        return self._tops[-1]

    def update(self, text: str, cells: int) -> None:
        """Lay out a text in a width of `cells`; unchanged lines are not wrapped again."""
        lines = text.split("\n")
        cells = max(cells - 1, 2)
        old_lines = self._lines
        comparable = min(len(old_lines), len(lines)) if cells == self._width else 0
        # The unchanged lines at the start and at the end keep their breaks.
        head = 0
        while head < comparable and old_lines[head] == lines[head]:
            head += 1
        tail = 0
        while tail < comparable - head and old_lines[-1 - tail] == lines[-1 - tail]:
            tail += 1
        new_breaks = [self._wrap(line, cells) for line in lines[head : len(lines) - tail]]
        self._breaks = self._breaks[:head] + new_breaks + self._breaks[len(old_lines) - tail :]
        self._lines, self._width = lines, cells
        self._starts = list(accumulate((len(line) + 1 for line in lines), initial=0))
        self._tops = list(accumulate((len(breaks) + 1 for breaks in self._breaks), initial=0))

    def locate(self, offset: int) -> tuple[int, int]:
        """Return the row of an offset in the text, and the cell within that row."""
        line = max(bisect_right(self._starts, offset, hi=len(self._lines)) - 1, 0)
        within = offset - self._starts[line]
        section = bisect_right(self._breaks[line], within)
        start, end = self._find_bounds(line, section)
        column = sum(
            glyph.cells
            for glyph in self.split_glyphs(self._lines[line][start:end])
            if glyph.end <= within - start
        )
        return self._tops[line] + section, column

    def find_offset(self, row: int, column: int) -> int:
        """Return the offset in the text of the character at a cell, or if the row is shorter,
        of its end.
        """
        row = min(max(row, 0), self.row_count - 1)
        line, start, end = self._find_section(row)
        glyphs = self.split_glyphs(self._lines[line][start:end])
        used_cells = 0
        for glyph in glyphs:
            if used_cells + glyph.cells > column:
                return self._starts[line] + start + glyph.start
            used_cells += glyph.cells
        # The end of a row that the line continues behind is the start of the next row:
        # the last character counts.
        is_last_row = end == len(self._lines[line])
        last = end if is_last_row or not glyphs else start + glyphs[-1].start
        return self._starts[line] + last

    def get_row(self, row: int) -> tuple[int, str]:
        """Return the offset of a row in the text, and its characters."""
        line, start, end = self._find_section(row)
        return self._starts[line] + start, self._lines[line][start:end]

    def split_glyphs(self, text: str) -> list[Glyph]:
        """Return the graphemes of a piece of a line, as they are displayed."""
        chips = self._chips()
        if text.isascii() and text.isprintable():
            return [Glyph(offset, offset + 1, char, 1) for offset, char in enumerate(text)]
        glyphs: list[Glyph] = []
        for start, end in find_grapheme_bounds(text):
            char = text[start:end]
            chip = chips.get(char) if len(char) == 1 else None
            label = (
                _TAB_TEXT if char == "\t" else chip.label if chip else escape_answer_controls(char)
            )
            glyphs.append(Glyph(start, end, label, cell_len(label)))
        return glyphs

    def _find_bounds(self, line: int, section: int) -> tuple[int, int]:
        """Return the start and end, within a line, of one of its rows;
        `section`: which one, from 0.
        """
        breaks = self._breaks[line]
        start = breaks[section - 1] if section else 0
        return start, breaks[section] if section < len(breaks) else len(self._lines[line])

    def _find_section(self, row: int) -> tuple[int, int, int]:
        """Return the line of a row, and the start and end of the row within that line."""
        line = max(bisect_right(self._tops, row, hi=len(self._lines)) - 1, 0)
        return line, *self._find_bounds(line, row - self._tops[line])

    def _wrap(self, line: str, cells: int) -> tuple[int, ...]:
        """Return the offsets in a line at which its second and further rows begin."""
        if len(line) <= cells and line.isascii() and line.isprintable():
            return ()
        breaks: list[int] = []
        # The offsets at which the current row and its last word start,
        # and the cells that they have so far.
        row_start = word_start = 0
        row_cells = word_cells = 0
        for glyph in self.split_glyphs(line):
            while glyph.start > row_start and row_cells + glyph.cells > cells:
                # A space that just does not fit hangs in the cell that is kept free for the cursor.
                if glyph.label == " " and row_cells == cells:
                    break
                # The whole word goes to the next row, unless the row consists of
                # it: then it is split.
                if word_start > row_start:
                    row_start, row_cells = word_start, word_cells
                else:
                    row_start, row_cells = glyph.start, 0
                breaks.append(row_start)
            row_cells += glyph.cells
            word_cells += glyph.cells
            if glyph.label == " ":
                word_start, word_cells = glyph.end, 0
        return tuple(breaks)
