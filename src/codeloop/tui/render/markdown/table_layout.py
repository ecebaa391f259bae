"""`TableLayout` lays out a Markdown table in a given width."""

import re
from collections.abc import Sequence

from rich.segment import Segment

from codeloop.tui.render.canvas import Row
from codeloop.tui.render.cells import measure_row, wrap_line
from codeloop.tui.render.markdown.block_reader import split_cells
from codeloop.tui.render.markdown.inline_parser import parse_pieces, split_lines
from codeloop.tui.render.markdown.prose_styles import ProseStyles

# The only way to have several lines in a cell; GitHub shows it so.
_BREAK_TAG = re.compile(r"<br */?>")
_MIN_COLUMN_WIDTH = 6
"""Cells of the narrowest column; if there is less room, each row becomes a list of its cells."""
_SEPARATOR = " │ "
CellLines = list[list[Segment]]
"""A cell's lines."""


class TableLayout:
    """A table whose columns are fitted to its first rows; later rows get the same widths.

    `source`: the lines of header, delimiter and first rows. `room`: the width, in cells.
    """

    def __init__(self, source: str, prose: ProseStyles, room: int) -> None:
        header, delimiter, *rows = source.split("\n")
        self._prose = prose
        self._alignments = [_read_alignment(cell) for cell in split_cells(delimiter)]
        self._names = self._read_cells(header, attributes="bold")
        body = [self._read_cells(row) for row in rows]
        self._room = room
        self._widths = self._fit_widths([self._names, *body])
        self.rows: list[Row] = []
        """The drawn header and first rows."""
        if self._widths:
            line = prose.of("border")
            rule = "─┼─".join("─" * width for width in self._widths)
            self.rows += [*self._draw_columns(self._names), [Segment(rule, line)]]
        for cells in body:
            self.rows += self._draw_cells(cells)

    def draw_row(self, source: str) -> list[Row]:
        """Return the drawn rows of one more row of the table."""
        return self._draw_cells(self._read_cells(source))

    def _read_cells(self, row: str, attributes: str = "") -> list[CellLines]:
        count = len(self._alignments)
        texts = [*split_cells(row), *([""] * count)][:count]
        return [
            [
                self._prose.make_segments(line, attributes=attributes)
                for line in split_lines(parse_pieces(_BREAK_TAG.sub("  \n", text)))
            ]
            for text in texts
        ]

    def _fit_widths(self, rows: Sequence[list[CellLines]]) -> list[int]:
        """Return the widths of the columns; empty if there is no room for columns."""
        count = len(self._alignments)
        natural_widths = [
            max(1, *(measure_row(line) for row in rows for line in row[column])) for column in range(count)
        ]
        room = self._room - len(_SEPARATOR) * (count - 1)
        if sum(natural_widths) <= room:
            return natural_widths
        if room < _MIN_COLUMN_WIDTH * count:
            return []
        widths = [0] * count
        order = sorted(range(count), key=lambda column: natural_widths[column])
        # Each column gets its natural width, or an equal share of the room. The narrowest come first, so that the wide
        # ones share the room that they leave.
        while order:
            share = room // len(order)
            column = order.pop(0)
            widths[column] = min(natural_widths[column], share)
            room -= widths[column]
        return widths

    def _draw_cells(self, cells: list[CellLines]) -> list[Row]:
        return self._draw_columns(cells) if self._widths else self._draw_stacked(cells)

    def _draw_columns(self, cells: list[CellLines]) -> list[Row]:
        """Return a table row with its cells side by side, each wrapped in the width of its column."""
        columns = [
            [row for line in cell for row in wrap_line(line, width)]
            for cell, width in zip(cells, self._widths, strict=True)
        ]
        separator = Segment(_SEPARATOR, self._prose.of("border"))
        rows: list[Row] = []
        for number in range(max(map(len, columns))):
            row: Row = []
            for at, (column, width, side) in enumerate(zip(columns, self._widths, self._alignments, strict=True)):
                if at:
                    row.append(separator)
                row += _align(column[number] if number < len(column) else [], width, side)
            rows.append(row)
        return rows

    def _draw_stacked(self, cells: list[CellLines]) -> list[Row]:
        """Return a row as lines `name: value`, for tables without room for columns."""
        rows: list[Row] = []
        for name, cell in zip(self._names, cells, strict=True):
            first, *others = cell
            rows += wrap_line([*name[0], Segment(": ", self._prose.of("text_muted")), *first], self._room)
            rows += [row for line in others for row in wrap_line(line, self._room)]
        return [*rows, []]


def _read_alignment(mark: str) -> str:
    """Return the alignment of a column by its cell of the delimiter row, such as `:---:`."""
    if mark.endswith(":"):
        return "middle" if mark.startswith(":") else "right"
    return "left"


def _align(row: Row, width: int, side: str) -> Row:
    """Return a row filled with blanks up to a width, on the side that an alignment requires."""
    room = max(width - measure_row(row), 0)
    before = {"left": 0, "right": room, "middle": room // 2}[side]
    return [
        *([Segment(" " * before)] if before else []),
        *row,
        *([Segment(" " * (room - before))] if room > before else []),
    ]
