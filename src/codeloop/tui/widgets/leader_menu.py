"""The menu of keys that can follow the leader, shown at the bottom after a pause."""

from collections.abc import Callable, Sequence
from math import ceil

from rich.cells import cell_len
from rich.segment import Segment
from textual.strip import Strip

from codeloop.tui.render.canvas import Row
from codeloop.tui.render.cells import cut_text
from codeloop.tui.themes.styles import Styles
from codeloop.tui.widgets.base_widgets import CachedWidget, get_app

_MIN_COLUMN_WIDTH = 36
"""Cells of a column of the menu, at least."""


class LeaderMenu(CachedWidget):
    """The menu: keys and their commands, filled in column by column."""

    DEFAULT_CSS = """
    LeaderMenu { layer: keys; dock: bottom; width: 1fr; margin-bottom: 1; background: $background-panel; }
    """

    def __init__(self) -> None:
        super().__init__()
        self._get_styles: Callable[[], Styles] | None = None
        self._keys: Sequence[tuple[str, str]] = ()
        self._rows: list[Row] = []

    def show(self, keys: Sequence[tuple[str, str]], get_styles: Callable[[], Styles]) -> None:
        """Show keys and their commands, in the current theme."""
        self._get_styles, self._keys = get_styles, keys
        self.display = True
        self._fit_screen()

    def on_resize(self) -> None:
        """Lay the menu out for the new width."""
        self._fit_screen()

    def _fit_screen(self) -> None:
        self._lay_out()
        self.styles.height = len(self._rows)
        self.refresh()

    def notify_style_update(self) -> None:
        """Redraw in the colours of another theme."""
        self._lay_out()
        super().notify_style_update()

    def _lay_out(self) -> None:
        if self._get_styles is None or not self._keys:
            return
        styles, width = self._get_styles(), get_app(self).size.width
        columns = max(min(width // _MIN_COLUMN_WIDTH, len(self._keys)), 1)
        height = ceil(len(self._keys) / columns)
        key_width = max(cell_len(key) for key, _ in self._keys)
        # Each key has a blank before it, and two behind it.
        title_width = width // columns - key_width - 3
        key_style, title_style = styles.of("primary", "bold"), styles.of("text")
        self._rows = [[] for _ in range(height)]
        for index, (key, title) in enumerate(self._keys):
            cut_title = cut_text(title, max(title_width - 1, 1))
            self._rows[index % height] += [
                Segment(f" {key:>{key_width}}  ", key_style),
                Segment(f"{cut_title:<{max(title_width, 0)}}", title_style),
            ]

    def render_line(self, y: int) -> Strip:
        """Return a row."""
        if self._get_styles is None or y >= len(self._rows):
            return Strip.blank(self.size.width)
        base = self._get_styles().of("text", on="background_panel")
        return Strip(self._rows[y]).apply_style(base).adjust_cell_length(self.size.width, base)
