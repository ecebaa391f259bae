"""Selection of text with the mouse: of characters, by double click of words,
by triple click of rows.

Dragging beyond the top or the bottom of the view scrolls it.
"""

from bisect import bisect_right
from collections.abc import Callable
from itertools import accumulate
from typing import Literal

from rich.cells import cell_len
from rich.segment import Segment
from textual import events
from textual.scroll_view import ScrollView
from textual.strip import Strip
from textual.timer import Timer

from codeloop.tui.render.graphemes import split_graphemes
from codeloop.tui.render.prompt_rows import PROMPT_BAR

Position = tuple[int, int]
"""A row of the page, and a cell in it."""
SelectionUnit = Literal["character", "word", "row"]
UNITS_BY_CLICKS: tuple[SelectionUnit, ...] = ("character", "word", "row")
"""What a single, a double and a triple click select."""
DOUBLE_CLICK_SECONDS = 0.5
"""Within which a second click at the same cell makes a double click."""
EDGE_SCROLL_SECONDS = 0.05
"""Between two scroll steps while the mouse is beyond the edge."""
_MAX_STEP_ROWS = 6
"""Rows that one scroll step moves at most."""
_WORD_PUNCTUATION = frozenset("_-./~:@%+#?&=$\\·")
"""Word characters besides letters and digits, so that paths and URLs are words."""


class Selection:
    """The selection of a view's rows. It stays visible after the button is released.

    `get_row_text` returns the text of a row of the page as it is copied, in its cells; `scroll`
    scrolls by some rows, up is negative.
    """

    def __init__(
        self, view: ScrollView, get_row_text: Callable[[int], str], scroll: Callable[[float], None]
    ) -> None:
        self._view = view
        self._get_row_text = get_row_text
        self._scroll_by = scroll
        self.range: tuple[Position, Position] | None = None
        """The selected cells: the first, and the one behind the last; None: nothing is selected."""
        self.is_selecting = False
        """Whether the button is held."""
        self.has_dragged = False
        """Whether the mouse has moved since the button was pressed, so that it is not a click."""
        self._last_press: tuple[float, Position] = (0.0, (-1, -1))
        """When the button was pressed last (as events tell the time), and where."""
        self._click_count = 0
        """1 for a click, 2 for a double click, 3 for a triple click: they choose the unit."""
        self._first_unit: tuple[Position, Position] = ((0, 0), (0, 0))
        """The character, word or row that the selection began with."""
        self._pointer = (0, 0)
        """Where the mouse is in the view: column and row."""
        self._edge_timer: Timer | None = None
        """Scrolls while the mouse is beyond the edge."""

    def clear(self) -> None:
        """Clear the selection."""
        if self.range is not None:
            self.range = None
            self._view.refresh()

    def shift(self, rows: int) -> None:
        """Move the selection by some rows, after rows were added or removed above it;
        down is positive.
        """
        if self.range is not None:
            self.range = _shift_range(self.range, rows)
        self._first_unit = _shift_range(self._first_unit, rows)

    def get_row_span(self, row: int) -> tuple[int, int] | None:
        """Return the first selected cell of a row and the one behind the last (-1: up to its end);
        None: none is.
        """
        if self.range is None or not self.range[0][0] <= row <= self.range[1][0]:
            return None
        (top, start_column), (bottom, end_column) = self.range
        return start_column if row == top else 0, end_column if row == bottom else -1

    def press(self, event: events.MouseDown) -> None:
        """Start a selection at the pointer."""
        self._pointer = event.x, event.y
        position = self._locate_pointer()
        last_time, last_position = self._last_press
        is_repeated = position == last_position and event.time - last_time < DOUBLE_CLICK_SECONDS
        # The click after a triple click counts as a single one again.
        self._click_count = self._click_count % len(UNITS_BY_CLICKS) + 1 if is_repeated else 1
        self._last_press = event.time, position
        self._first_unit = self._find_unit(position)
        self.is_selecting, self.has_dragged = True, False
        if self._unit == "character":
            self.clear()
        else:
            self._update_range()

    def release(self, event: events.MouseUp) -> str:
        """End the selection at the pointer, and return its text."""
        self.drag(event)
        self._stop_edge_timer()
        self.is_selecting = False
        return self.get_text()

    def get_text(self) -> str:
        """Return the selected text, without the common start of its rows: blanks,
        and the bar left of a prompt.
        """
        if self.range is None:
            return ""
        (top, start_column), (bottom, end_column) = self.range
        rows = [
            self._get_row_text(row).replace(PROMPT_BAR, " ", 1).rstrip()
            for row in range(top, bottom + 1)
        ]
        indent = min((len(row) - len(row.lstrip()) for row in rows if row), default=0)
        strips = [Strip([Segment(row)]) for row in rows]
        starts = [max(start_column, indent), *[indent] * (bottom - top)]
        ends = [
            *(strip.cell_length for strip in strips[:-1]),
            min(end_column, strips[-1].cell_length),
        ]
        parts = (
            strip.crop(start, max(end, start)).text
            for strip, start, end in zip(strips, starts, ends, strict=True)
        )
        return "\n".join(parts).strip("\n")

    @property
    def _unit(self) -> SelectionUnit:
        return UNITS_BY_CLICKS[self._click_count - 1]

    @property
    def _rows_beyond_edge(self) -> int:
        """Rows that the mouse is beyond an edge, negative above the top.

        The view's first row counts as above the top, since it may be the screen's first,
        above which there is nothing.
        """
        y = self._pointer[1]
        (first_row, _), _ = self._first_unit
        # A selection that began in the view's first row would scroll as soon as
        # the button is pressed.
        if y <= 0 < first_row - round(self._view.scroll_y):
            return min(y, 0) - 1
        return max(y - self._view.size.height + 1, 0)

    def _locate_pointer(self) -> Position:
        x, y = self._pointer
        return min(max(y, 0), self._view.size.height - 1) + round(self._view.scroll_y), max(x, 0)

    def _find_unit(self, position: Position) -> tuple[Position, Position]:
        row, cell = position
        start, end = extend_to_unit(self._get_row_text(row), cell, self._unit)
        return (row, start), (row, end)

    def _update_range(self) -> None:
        start, end = self._find_unit(self._locate_pointer())
        self.range = min(start, self._first_unit[0]), max(end, self._first_unit[1])
        self._view.refresh()

    def drag(self, event: events.MouseEvent) -> None:
        """Select up to where the mouse is."""
        self._pointer = event.x, event.y
        if not self.has_dragged and self._locate_pointer() == self._last_press[1]:
            return
        self.has_dragged = True
        self._update_range()
        if not self._rows_beyond_edge:
            self._stop_edge_timer()
        elif self._edge_timer is None:
            self._edge_timer = self._view.set_interval(EDGE_SCROLL_SECONDS, self._scroll)

    def _scroll(self) -> None:
        """Scroll towards the mouse, the faster the farther away it is."""
        self._scroll_by(max(min(self._rows_beyond_edge, _MAX_STEP_ROWS), -_MAX_STEP_ROWS))
        self._update_range()

    def _stop_edge_timer(self) -> None:
        if self._edge_timer is not None:
            self._edge_timer.stop()
            self._edge_timer = None


def _shift_range(cells: tuple[Position, Position], rows: int) -> tuple[Position, Position]:
    (top, start_column), (bottom, end_column) = cells
    return (top + rows, start_column), (bottom + rows, end_column)


def extend_to_unit(text: str, cell: int, unit: SelectionUnit) -> tuple[int, int]:
    """Return the cell range of the character, word or row at a cell of a row."""
    if unit == "row":
        return 0, cell_len(text)
    # By graphemes: a cell may show several characters, and a character may take two cells.
    graphemes = split_graphemes(text)
    # The cell at which each grapheme begins, and the one behind the last.
    edges = [*accumulate((cells for _, _, cells in graphemes), initial=0)]
    if cell >= edges[-1]:
        return (cell, cell + 1) if unit == "character" else (edges[-1], edges[-1])
    kinds = [_classify(text[start]) for start, _, _ in graphemes]
    first = last = bisect_right(edges, cell) - 1
    kind = kinds[first]
    if unit == "word" and kind:
        while first and kinds[first - 1] == kind:
            first -= 1
        while last + 1 < len(graphemes) and kinds[last + 1] == kind:
            last += 1
    return edges[first], edges[last + 1]


def _classify(character: str) -> str:
    """Return a character's class for a double click, "word" or "blank"; "": a class of its own."""
    if character.isalnum() or character in _WORD_PUNCTUATION:
        return "word"
    return "blank" if character.isspace() else ""
