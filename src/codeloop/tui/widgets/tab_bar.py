"""The row of tab names; hidden while there is one tab."""

from collections.abc import Sequence

from rich.segment import Segment
from textual import events
from textual.message import Message
from textual.strip import Strip

from codeloop.kit.text.patterns import compile_once
from codeloop.kit.text.terminal_text import escape_answer_controls, one_line
from codeloop.schema.errors import MessageAbortedError
from codeloop.tui.render.canvas import Row
from codeloop.tui.state.session_view import SessionView
from codeloop.tui.themes.styles import Styles
from codeloop.tui.widgets.base_widgets import CachedWidget, get_app
from codeloop.tui.widgets.session_tab import SessionTab

MIN_NAME_WIDTH, MAX_NAME_WIDTH = 12, 60
"""Cells of a tab's name."""
_COLOURS_BY_MARK = {"? ": "warning", "! ": "error"}
# Such as at the end of `Fix the tests (fork #2)`.
_FORK_NUMBER = r" \(fork #[0-9]{1,6}\)\Z"
_NAME_MARGIN = 6
"""Cells of a tab besides its name: blanks, number, mark."""


class TabBar(CachedWidget):
    """Marks the tab that is shown, those that wait for the user (`?`),
    have failed (`!`) or work (`*`).
    """

    DEFAULT_CSS = """
    TabBar { height: 1; dock: top; display: none; background: $background; }
    """

    class Clicked(Message):
        """A tab was clicked."""

        def __init__(self, index: int) -> None:
            super().__init__()
            self.index = index

    def __init__(self, styles: Styles) -> None:
        super().__init__()
        self._theme_styles = styles
        self._row: Row = []

    def show(self, tabs: Sequence[SessionTab], shown_tab: SessionTab, styles: Styles) -> None:
        """Show these tabs."""
        self._theme_styles = styles
        self.display = len(tabs) > 1
        row: Row = []
        name_width = min(
            max(get_app(self).size.width // len(tabs) - _NAME_MARGIN, MIN_NAME_WIDTH),
            MAX_NAME_WIDTH,
        )
        for index, tab in enumerate(tabs):
            mark = _choose_mark([tab.view] if tab.view is not None else [])
            style = (
                styles.of("text", "bold", on="background_element")
                if tab is shown_tab
                else styles.of("text_muted")
            )
            if mark in _COLOURS_BY_MARK and tab is not shown_tab:
                style = styles.of(_COLOURS_BY_MARK[mark])
            text = f" {index + 1} {mark}{cut_title(tab.title, name_width)} "
            row += [Segment(text, style), Segment(" ")]
        if row != self._row:
            self._row = row
            self.refresh()

    def render_line(self, y: int) -> Strip:
        """Return the row."""
        del y
        base = self._theme_styles.of("text_muted", on="background")
        return Strip(self._row).apply_style(base).adjust_cell_length(self.size.width, base)

    def on_click(self, event: events.Click) -> None:
        """Post the clicked tab."""
        end = 0
        # Every other segment is the blank between two tabs.
        for index, segment in enumerate(self._row[::2]):
            end += segment.cell_length + 1
            if event.x < end:
                self.post_message(self.Clicked(index))
                return


def cut_title(title: str, width: int) -> str:
    """Cut a title to `width` characters; a fork keeps its number,
    which tells it from the original.
    """
    # A narrow tab has no room for both.
    end = compile_once(_FORK_NUMBER).search(title) if width >= 2 * MIN_NAME_WIDTH else None
    if end is None:
        return one_line(title, width, escape_answer_controls)
    return one_line(title[: end.start()], width - len(end[0]), escape_answer_controls) + end[0]


def _has_failed(view: SessionView) -> bool:
    """Return whether the last turn of a session ended with an error;
    a turn that the user stopped has not failed.
    """
    last = view.log.last_answer
    error = last.error if last is not None and not view.is_busy else None
    return error is not None and not isinstance(error, MessageAbortedError)


def _choose_mark(views: Sequence[SessionView]) -> str:
    """Return the mark of what most needs attention: a question, a failure, work; else none."""
    if any(view.requests for view in views):
        return "? "
    if any(map(_has_failed, views)):
        return "! "
    return "* " if any(view.is_busy for view in views) else ""


def make_window_title(tabs: Sequence[SessionTab], shown_tab: SessionTab) -> str:
    """Return the title of the terminal's window: the shown session's,
    with the mark of the tab that most needs care.
    """
    views = [tab.view for tab in tabs if tab.view is not None]
    return _choose_mark(views) + (
        f"{shown_tab.title} - codeloop" if shown_tab.session is not None else "codeloop"
    )
