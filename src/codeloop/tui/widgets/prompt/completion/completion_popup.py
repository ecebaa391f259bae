"""The list above the prompt: completions, or the prompts that a search of the history has found."""

from collections.abc import Sequence

from rich.cells import cell_len
from rich.segment import Segment
from textual import events
from textual.geometry import Size
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from codeloop.kit.text.terminal_text import one_line
from codeloop.tui.render.cells import cut_path
from codeloop.tui.terminal.textual_private import request_layout
from codeloop.tui.widgets.base_widgets import find_faint_style
from codeloop.tui.widgets.prompt.completion.completer import CompletionRow

MAX_VISIBLE_ROWS = 8
"""Rows that are shown at once."""
_MAX_MEASURED_CHARACTERS = 2_000
"""Characters of a path that are measured; all of a longer one would be slow."""


class CompletionPopup(Widget):
    """Shows at most `MAX_VISIBLE_ROWS` rows at once. `cursor`: the index of the highlighted row;
    -1: none is.
    """

    ALLOW_SELECT = False
    COMPONENT_CLASSES = {"popup--cursor", "popup--muted"}
    DEFAULT_CSS = """
    CompletionPopup {
        display: none;
        height: auto;
        width: 1fr;
        padding: 0 1 0 2;
        background: $surface;
        & > .popup--cursor {
            background: $block-cursor-background;
            color: $block-cursor-foreground;
            text-style: $block-cursor-text-style;
        }
        & > .popup--muted { color: $text-muted; }
    }
    """

    class Picked(Message):
        """The user clicked a row."""

        def __init__(self, index: int) -> None:
            super().__init__()
            self.index = index

    def __init__(self) -> None:
        super().__init__()
        self.rows: tuple[CompletionRow, ...] = ()
        self.cursor = -1
        self._top = 0
        """The index of the first visible row."""

    def show(self, rows: Sequence[CompletionRow], index: int = 0) -> None:
        """Show rows; none closes the list."""
        if tuple(rows) == self.rows and index == self.cursor:
            return
        # A new layout of the screen costs more than the list;
        # it is needed only when the height changes.
        is_as_high = min(len(rows), MAX_VISIBLE_ROWS) == min(len(self.rows), MAX_VISIBLE_ROWS)
        self.rows, self.cursor = tuple(rows), min(index, len(rows) - 1)
        self._top = 0
        self._scroll_to_cursor()
        self.display = bool(rows)
        if is_as_high:
            self.refresh()
        else:
            request_layout(self)

    def move(self, step: int) -> None:
        """Move the cursor by `step` rows; after the last row comes the first."""
        self.cursor = (max(self.cursor, -1 if step > 0 else 0) + step) % len(self.rows)
        self._scroll_to_cursor()
        self.refresh()

    def _scroll_to_cursor(self) -> None:
        self._top = max(min(self._top, self.cursor), self.cursor - MAX_VISIBLE_ROWS + 1, 0)

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        """Return as many rows as there are, up to `MAX_VISIBLE_ROWS`."""
        del container, viewport, width
        return min(len(self.rows), MAX_VISIBLE_ROWS)

    def on_click(self, event: events.Click) -> None:
        """Accept the clicked row."""
        offset = event.get_content_offset(self)
        if offset is not None and self._top + offset.y < len(self.rows):
            self.post_message(self.Picked(self._top + offset.y))

    def render_line(self, y: int) -> Strip:
        """Draw a row: its name, and its description where there is room."""
        base, cells = self.rich_style, self.content_size.width
        index = self._top + y
        if index >= len(self.rows):
            return Strip.blank(cells, base)
        row = self.rows[index]
        style, faint = base, find_faint_style(self, "popup--muted", base)
        if index == self.cursor:
            style = faint = base + self.get_component_rich_style("popup--cursor", partial=True)
        label = _cut_label(row, cells)
        # The descriptions of all visible rows begin in the same column.
        widest_label = max(cell_len(_cut_label(each, cells)) for each in self._visible_rows)
        column = min(widest_label + 2, cells // 2)
        segments = [Segment(label, style), Segment(" " * max(column - cell_len(label), 2), style)]
        room = cells - sum(cell_len(each.text) for each in segments)
        if row.detail and room > 8:
            segments.append(Segment(one_line(row.detail, room), faint))
        strip = Strip(segments)
        # The last row of a list that is cut ends with the cursor's position in it.
        if y == MAX_VISIBLE_ROWS - 1 and len(self.rows) > MAX_VISIBLE_ROWS:
            position = f" {max(self.cursor, 0) + 1} of {len(self.rows)} {self._arrows}"
            strip = strip.adjust_cell_length(max(cells - len(position), 0), style)
            strip = Strip([*strip, Segment(position, faint)])
        return strip.adjust_cell_length(cells, style)

    @property
    def _arrows(self) -> str:
        """The arrows that show at which end of the list there is more."""
        has_more_below = self._top + MAX_VISIBLE_ROWS < len(self.rows)
        if self._top and has_more_below:
            return "↕"
        return "↓" if has_more_below else "↑"

    @property
    def _visible_rows(self) -> tuple[CompletionRow, ...]:
        return self.rows[self._top : self._top + MAX_VISIBLE_ROWS]


def _cut_label(row: CompletionRow, cells: int) -> str:
    """Return the label of a row, cut to fit: a long path keeps its end."""
    if row.kind in {"file", "folder"}:
        return cut_path(one_line(row.label, _MAX_MEASURED_CHARACTERS), cells)
    return one_line(row.label, cells)
