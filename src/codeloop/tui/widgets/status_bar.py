"""The last row of the screen: the running turn, the agent and model,
the tokens used and their cost.
"""

import time

from msgspec import Struct
from rich.cells import cell_len
from rich.segment import Segment
from textual.strip import Strip

from codeloop.client.formatting import format_cost, format_count
from codeloop.kit.text.terminal_text import one_line
from codeloop.schema.live_events import Retry
from codeloop.tui.render.canvas import Row
from codeloop.tui.render.cells import cut_path, cut_text, measure_row
from codeloop.tui.state.session_view import SessionView
from codeloop.tui.themes.styles import Styles
from codeloop.tui.widgets.base_widgets import CachedWidget, run_on_click

SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
FRAMES_PER_SECOND = 4
"""How often the spinner and the clock are updated while a turn runs."""
_HINT_MIN_WIDTH = 60
"""Cells of the screen from which the hint of a useful key is shown."""


class StatusContent(Struct, frozen=True):
    """The data of the bar apart from the session. Empty texts are not shown.

    `profile`: the permission profile. `context_window`: the model's, in tokens; 0: unknown.
    `problem`: why the server can't be reached. `hint`: a useful key, and `hint_command` the command
    that it runs. `pending_key`: the leader key while it waits for the next key, or what a second
    press of a key does. `jobs`: how much runs in the background.
    `is_animated`: whether the spinner turns.
    """

    agent: str = ""
    model: str = ""
    profile: str = ""
    directory: str = ""
    context_window: int = 0
    problem: str = ""
    hint: str = ""
    hint_command: str = ""
    pending_key: str = ""
    jobs: str = ""
    is_animated: bool = True


class StatusBar(CachedWidget):
    """One row. Its words run commands when clicked; the spinner turns with each `show`."""

    DEFAULT_CSS = """
    StatusBar { height: 1; dock: bottom; background: $background; }
    """

    def __init__(self, styles: Styles) -> None:
        super().__init__()
        self._theme_styles = styles
        self._content = StatusContent()
        self._view: SessionView | None = None
        self._drawn_row: Row = []

    def show(self, view: SessionView | None, content: StatusContent, styles: Styles) -> None:
        """Show a session's state."""
        self._view, self._content, self._theme_styles = view, content, styles
        if self._draw_row() != self._drawn_row:
            self.refresh()

    def render_line(self, y: int) -> Strip:
        """Return the row."""
        del y
        self._drawn_row = self._draw_row()
        base = self._theme_styles.of("text_muted", on="background")
        return Strip(self._drawn_row).apply_style(base).adjust_cell_length(self.size.width, base)

    def _draw_row(self) -> Row:
        """Return the whole row, without the parts that have no room."""
        width = self.size.width
        right = self._draw_right(self._content.hint)
        # The model is more important than a hint.
        if width < _HINT_MIN_WIDTH or self._compute_min_width() + measure_row(right) > width:
            right = self._draw_right("")
        row = self._draw_left(max(width - measure_row(right) - 3, 10))
        # Agent, model and directory end with blanks of their own.
        # A problem has none, but its width is checked below.
        gap = 3 if self._content.pending_key else 1
        if measure_row(row) + measure_row(right) + gap > width:
            # What runs is seen on the narrowest screen, too.
            right = self._draw_right("", only_jobs=True)
            row = self._draw_left(max(width - measure_row(right) - 3, 10))
        if measure_row(row) + measure_row(right) + gap > width:
            right = []
        if (problem := self._content.problem) and cell_len(problem) + measure_row(
            right
        ) + 3 > width:
            row, right = self._draw_left(width - 3), []
        blanks = Segment(" " * max(width - measure_row(row) - measure_row(right) - 2, 0))
        return [Segment(" "), *row, blanks, *right, Segment(" ")]

    def _compute_min_width(self) -> int:
        """Return the cells needed to show activity and model uncut; 0 where they may be cut."""
        view, content = self._view, self._content
        if (
            content.pending_key
            or content.problem
            or (view is not None and isinstance(view.status, Retry))
        ):
            return 0
        activity_width = 0
        if view is not None and view.is_busy:
            activity_width = (
                measure_row(self._draw_activity(view, self._theme_styles, _HINT_MIN_WIDTH)) + 2
            )
        profile_width = cell_len(content.profile) + 2 if content.profile else 0
        return (
            activity_width
            + cell_len(" ".join(filter(None, (content.agent, content.model))))
            + profile_width
            + 5
        )

    def _draw_left(self, room: int) -> Row:
        """Draw the left part: a pending key, a problem, or activity, agent, model and directory."""
        styles, content = self._theme_styles, self._content
        if content.pending_key:
            return [Segment(f"{content.pending_key} …", styles.of("accent", "bold"))]
        if content.problem:
            return [Segment(one_line(content.problem, room), styles.of("error"))]
        row: Row = []
        if self._view is not None and self._view.is_busy:
            row = [*self._draw_activity(self._view, styles, room), Segment("  ")]
        profile = styles.of("warning" if content.profile == "yolo" else "text_muted")
        parts = [
            (
                content.agent,
                run_on_click(styles.of("text"), "agent_list"),
                " " if content.model else "  ",
                cut_text,
            ),
            (content.model, run_on_click(styles.of("text"), "model_list"), "  ", cut_text),
            (content.profile, run_on_click(profile, "profile"), "  ", cut_text),
            (content.directory, styles.of("text_muted"), "  ", cut_path),
        ]
        # The profile that asks nothing comes first, so that it is seen on the narrowest screen,
        # too.
        if content.profile == "yolo":
            parts.insert(0, parts.pop(2))
        for text, style, gap, fit in parts:
            remaining = room - measure_row(row)
            if text and remaining > 8:
                row += [Segment(fit(text, remaining - 2), style), Segment(gap)]
        return row

    def _draw_activity(self, view: SessionView, styles: Styles, room: int) -> Row:
        now = time.time()
        if isinstance(view.status, Retry):
            seconds = max(view.status.next / 1000 - now, 0)
            wait = (
                f"retry {view.status.attempt} in {seconds:.0f} s: " if view.status.attempt else ""
            )
            words = f"{wait}{one_line(view.status.message, room)}"
            return [Segment(cut_text(words, room), styles.of("warning"))]
        frame = (
            SPINNER[int(now * FRAMES_PER_SECOND) % len(SPINNER)]
            if self._content.is_animated
            else "*"
        )
        state = (
            "waits for you"
            if view.requests
            else f"{time.monotonic() - view.status_changed_at:.0f}s"
        )
        return [Segment(f"{frame} {state}", styles.of("warning" if view.requests else "primary"))]

    def _draw_right(self, hint: str, *, only_jobs: bool = False) -> Row:
        """Draw the right part: what runs in the background, the use of the context, the cost,
        and a useful key.
        """
        styles, content = self._theme_styles, self._content
        # Each with its colour, and the command that a click runs.
        parts: list[tuple[str, str, str]] = []
        if self._content.jobs:
            parts.append((self._content.jobs, "accent", "jobs_list"))
        if self._view is not None and not only_jobs:
            used = self._view.log.context_used
            if used and content.context_window:
                percent = used * 100 // content.context_window
                colour = _choose_usage_colour(percent)
                parts.append((f"{format_count(used)} ({percent or '<1'} %)", colour, "status_view"))
            elif used:
                parts.append((format_count(used), "text_muted", "status_view"))
            if cost := self._view.session.cost:
                parts.append(
                    (format_cost(cost, self._view.session.tokens), "text_muted", "status_view")
                )
        if hint:
            parts.append((hint, "text_muted", content.hint_command))
        row: Row = []
        for text, colour, command in parts:
            row += [Segment("  "), Segment(text, run_on_click(styles.of(colour), command))]
        return row[1:]


def _choose_usage_colour(percent: int) -> str:
    """Return the theme's colour for the share of the context window that is used."""
    if percent >= 90:
        return "error"
    return "warning" if percent >= 75 else "text_muted"
