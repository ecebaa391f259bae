"""A cheap scroll bar for the conversation: it moves with nearly every
frame while a model writes.
"""

from math import ceil
from operator import methodcaller
from typing import NamedTuple

from textual.geometry import Region
from textual.scroll_view import ScrollView
from textual.scrollbar import ScrollBar, ScrollBarRender
from textual.strip import Strip

from codeloop.tui.widgets.base_widgets import get_app

STEPS_PER_ROW = 8
"""Steps per row: the block characters that draw the thumb's ends have eighths of a row."""


class ScrollBarGeometry(NamedTuple):
    """What is seen of a scroll bar: its height in rows, and its thumb in eighths of a row."""

    height: int = 0
    thumb_start: int = 0
    thumb_length: int = 0


class PlainScrollBar(ScrollBar):
    """Draws each kind of row once; Textual's own bar draws every row,
    at more cost than the text.
    """

    _cached_rows: tuple[tuple[object, ...], list[Strip]] | None = None
    """The rows drawn last, with everything that they depend on."""

    def render_lines(self, crop: Region) -> list[Strip]:
        """Return rows of the bar."""
        # A closed tab may be drawn once more.
        if not self.is_attached:
            return [Strip.blank(crop.width)] * crop.height
        bar = self.render()
        if not isinstance(bar, ScrollBarRender) or not self.vertical:
            return super().render_lines(crop)
        drawn_state = (crop, bar.virtual_size, bar.window_size, bar.position, str(bar.style))
        if self._cached_rows is not None and self._cached_rows[0] == drawn_state:
            return self._cached_rows[1]
        style = get_app(self).console.get_style(bar.style)
        if style.bgcolor is None or style.color is None:
            return super().render_lines(crop)
        rows = ScrollBarRender.render_bar(
            self.size.height,
            bar.virtual_size,
            bar.window_size,
            bar.position,
            bar.thickness,
            back_color=style.bgcolor,
            bar_color=style.color,
        ).segments
        # Most rows of the bar are the same object, which is filtered and made a strip once.
        strips: dict[int, Strip] = {}
        for row in rows:
            if id(row) not in strips:
                strip = Strip([row], bar.thickness)
                for each in self.get_line_filters():
                    strip = strip.apply_filter(each, self.background_colors[1])
                strips[id(row)] = strip
        self._cached_rows = drawn_state, [strips[id(row)] for row in rows][crop.y : crop.bottom]
        return self._cached_rows[1]


def create_scroll_bar(view: ScrollView) -> ScrollBar:
    """Create and start a bar for a view, hidden at first."""
    bar = PlainScrollBar(name="vertical", thickness=view.scrollbar_size_vertical)
    bar.display = False
    # A private method, with which Textual starts its own bars: a scroll bar is not a
    # child that could be mounted.
    methodcaller("_start_widget", view, bar)(get_app(view))
    return bar


def update_scroll_bar(
    view: ScrollView, total: int, position: float, before: ScrollBarGeometry
) -> ScrollBarGeometry:
    """Move a view's bar, but only if that shows: drawing the bar costs as much as drawing the text.

    `total`: rows of the page. `before`: what the last call returned.
    """
    size, window = view.size.height, view.container_size.height
    if not view.show_vertical_scrollbar or not size:
        return before
    if total > window:
        thumb_rows = max(1.0, window * size / total)
        thumb_start = int((size - thumb_rows) * position / (total - window) * STEPS_PER_ROW)
        geometry = ScrollBarGeometry(size, thumb_start, ceil(thumb_rows * STEPS_PER_ROW))
    else:
        geometry = ScrollBarGeometry(size)
    if geometry != before:
        view.vertical_scrollbar.window_virtual_size = total
        view.vertical_scrollbar.window_size = window
        view.vertical_scrollbar.position = position
    return geometry
