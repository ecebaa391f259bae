"""The names of the tabs, in one row above them; there is none while there is one tab."""

from collections.abc import Sequence

from rich.segment import Segment
from textual import events
from textual.message import Message
from textual.strip import Strip

from codeloop.kit.terminal_text import inert_answer, one_line
from codeloop.tui.render.canvas import Row
from codeloop.tui.themes.styles import Styles
from codeloop.tui.widgets.base import SteadyWidget, app_of
from codeloop.tui.widgets.session_tab import SessionTab

LEAST, MOST = 12, 60
"""Cells of a name: where there are many tabs, and where there is room."""
_AROUND = 6
"""Cells of a tab beside its name."""


class TabBar(SteadyWidget):
    """Marks the tab that is shown, those that work (`*`) and those that wait for the user (`?`)."""

    DEFAULT_CSS = """
    TabBar { height: 1; dock: top; display: none; background: $background; }
    """

    class Chosen(Message):
        """A tab was clicked."""

        def __init__(self, place: int) -> None:
            super().__init__()
            self.place = place

    def __init__(self, styles: Styles) -> None:
        super().__init__()
        self._colours = styles
        self._row: Row = []

    def show(self, tabs: Sequence[SessionTab], shown: SessionTab, styles: Styles) -> None:
        """Show these tabs."""
        self._colours = styles
        self.display = len(tabs) > 1
        row: Row = []
        most = min(max(app_of(self).size.width // len(tabs) - _AROUND, LEAST), MOST)
        for place, tab in enumerate(tabs):
            is_busy = tab.view is not None and tab.view.is_busy
            mark = "? " if tab.view is not None and tab.view.requests else "* " if is_busy else ""
            style = styles.of("text", "bold", on="background_element") if tab is shown else styles.of("text_muted")
            if mark == "? " and tab is not shown:
                style = styles.of("warning")
            text = f" {place + 1} {mark}{_cut(tab.title, most)} "
            row += [Segment(text, style), Segment(" ")]
        if row != self._row:
            self._row = row
            self.refresh()

    def render_line(self, y: int) -> Strip:
        """Return the row."""
        del y
        base = self._colours.of("text_muted", on="background")
        return Strip(self._row).apply_style(base).adjust_cell_length(self.size.width, base)

    def on_click(self, event: events.Click) -> None:
        """Post which tab was clicked."""
        before = 0
        for place, segment in enumerate(self._row[::2]):
            before += segment.cell_length + 1
            if event.x < before:
                self.post_message(self.Chosen(place))
                return


def _cut(title: str, most: int) -> str:
    """Return a title of at most so many characters; a fork keeps what tells it from the others."""
    name, fork, number = title.rpartition(" (fork #")
    return (
        one_line(name, most - len(fork + number)) + fork + number
        if fork and most >= 2 * LEAST
        else one_line(title, most, inert_answer)
    )


def window_name(tabs: Sequence[SessionTab], shown: SessionTab) -> str:
    """Return the title of the terminal's window: the session's, with a mark if any waits, or works."""
    views = [tab.view for tab in tabs if tab.view is not None]
    mark = "? " if any(view.requests for view in views) else "* " if any(view.is_busy for view in views) else ""
    return mark + (f"{shown.title} - codeloop" if shown.session is not None else "codeloop")
