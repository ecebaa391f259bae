"""`TableLayout` lays out a Markdown table in a given width."""

from collections.abc import Sequence
from typing import Literal

from rich.segment import Segment

from codeloop.kit.text.patterns import compile_once
from codeloop.tui.render.canvas import Row
from codeloop.tui.render.cells import measure_row, wrap_line
from codeloop.tui.render.markdown.blocks import split_cells
from codeloop.tui.render.markdown.inline_parser import parse_pieces, split_lines
from codeloop.tui.render.markdown.prose_styles import ProseStyles

# The only way to have several lines in a cell; GitHub shows it so.
_BREAK_TAG = r"<br */?>"
_MIN_COLUMN_WIDTH = 6
"""Cells for each column, below which there is no room for columns: each row
becomes a list of its cells.
"""
_SEPARATOR = " │ "
Alignment = Literal["left", "centre", "right"]
CellLines = list[list[Segment]]
"""A cell's lines."""


class TableLayout:
    """A table whose columns are fitted to its first rows; later rows get the same widths.

    `source`: the lines of header, delimiter and first rows. `room`: the width, in cells.
    """

    def __init__(self, source: str, prose: ProseStyles, room: int) -> None:
        header, delimiter, *rows = source.split("\n")
        self._prose = prose
        self._alignments: list[Alignment] = [
            _read_alignment(cell) for cell in split_cells(delimiter)
        ]
        self._names = self._read_cells(header, attributes="bold")
        body = [self._read_cells(row) for row in rows]
        self._room = room
        self._widths = self._fit_widths([self._names, *body])
        self.rows: list[Row] = []
        """The drawn header and first rows."""
        if self._widths:
            rule = Segment("─┼─".join("─" * width for width in self._widths), prose.of("border"))
            self.rows += [*self._draw_columns(self._names), [rule]]
        for cells in body:
            self.rows += self._draw_cells(cells)

    def draw_row(self, source: str) -> list[Row]:
        """Return the drawn rows of one more row of the table."""
        return self._draw_cells(self._read_cells(source))

    def _read_cells(self, source: str, attributes: str = "") -> list[CellLines]:
        """Return the cells of a row: as many as there are columns, missing ones are empty."""
        count = len(self._alignments)
        texts = [*split_cells(source), *([""] * count)][:count]
        return [self._read_cell(text, attributes) for text in texts]

    def _read_cell(self, text: str, attributes: str) -> CellLines:
        # Two blanks before a line end are Markdown's hard break.
        lines = split_lines(parse_pieces(compile_once(_BREAK_TAG).sub("  \n", text)))
        return [self._prose.make_segments(line, attributes=attributes) for line in lines]

    def _fit_widths(self, rows: Sequence[list[CellLines]]) -> list[int]:
        """Return the widths of the columns; empty if there is no room for columns."""
        count = len(self._alignments)
        # The widths with which no cell would be wrapped.
        natural_widths = [
            max(1, *(measure_row(line) for row in rows for line in row[column]))
            for column in range(count)
        ]
        room = self._room - len(_SEPARATOR) * (count - 1)
        if sum(natural_widths) <= room:
            return natural_widths
        if room < _MIN_COLUMN_WIDTH * count:
            return []
        widths = [0] * count
        order = sorted(range(count), key=lambda column: natural_widths[column])
        # Each column gets its natural width, or an equal share of the room. The narrowest come
        # first, so that the wide ones share the room that they leave.
        while order:
            share = room // len(order)
            column = order.pop(0)
            widths[column] = min(natural_widths[column], share)
            room -= widths[column]
        return widths

    def _draw_cells(self, cells: list[CellLines]) -> list[Row]:
        return self._draw_columns(cells) if self._widths else self._draw_stacked(cells)

    def _draw_columns(self, cells: list[CellLines]) -> list[Row]:
        """Return a table row with its cells side by side,
        each wrapped in the width of its column.
        """
        columns = [
            [row for line in cell for row in wrap_line(line, width)]
            for cell, width in zip(cells, self._widths, strict=True)
        ]
        separator = Segment(_SEPARATOR, self._prose.of("border"))
        rows: list[Row] = []
        for number in range(max(map(len, columns))):
            row: Row = []
            for index, (column, width) in enumerate(zip(columns, self._widths, strict=True)):
                if index:
                    row.append(separator)
                row += _align(
                    column[number] if number < len(column) else [], width, self._alignments[index]
                )
            rows.append(row)
        return rows

    def _draw_stacked(self, cells: list[CellLines]) -> list[Row]:
        """Return a row as lines `name: value`, for tables without room for columns."""
        rows: list[Row] = []
        for name, cell in zip(self._names, cells, strict=True):
            first, *others = cell
            rows += wrap_line(
                [*name[0], Segment(": ", self._prose.of("text_muted")), *first], self._room
            )
            rows += [row for line in others for row in wrap_line(line, self._room)]
        return [*rows, []]


def _read_alignment(cell: str) -> Alignment:
    """Return the alignment of a column by its cell of the delimiter row, such as `:---:`."""
    if cell.endswith(":"):
        return "centre" if cell.startswith(":") else "right"
    return "left"


def _align(row: Row, width: int, alignment: Alignment) -> Row:
    """Return a row filled with blanks up to a width, on the side that an alignment requires."""
    room = max(width - measure_row(row), 0)
    before = {"left": 0, "right": room, "centre": room // 2}[alignment]
    aligned_row = [Segment(" " * before), *row, Segment(" " * (room - before))]
    return [segment for segment in aligned_row if segment.text]
