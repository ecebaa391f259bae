"""The last row of the screen: activity and usage."""

import time

from msgspec import Struct
from rich.cells import cell_len, set_cell_size
from rich.segment import Segment
from textual.strip import Strip

from codeloop.client.numbers import format_cost, format_count
from codeloop.kit.terminal_text import one_line
from codeloop.schema.live_events import Retry
from codeloop.tui.render.canvas import Row
from codeloop.tui.render.cells import cut_path
from codeloop.tui.state.session_view import SessionView
from codeloop.tui.themes.styles import Styles
from codeloop.tui.widgets.base import CommandWidget, runs

WHEEL = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
TURNS = 4
"""Updates a second while a turn runs without output."""
LEAST = 60
"""The width, in cells, from which a key is shown."""


class StatusContent(Struct, frozen=True):
    """The bar's data besides the session: model, directory, the model's context (tokens; 0: unknown).

    `profile`: the chosen permission profile. `problem`: the connection's problem.
    `hint`: a useful key, and `hinted` its command. `waiting`: the leader key was pressed.
    """

    agent: str = ""
    model: str = ""
    profile: str = ""
    directory: str = ""
    window: int = 0
    problem: str = ""
    hint: str = ""
    hinted: str = ""
    waiting: str = ""
    moves: bool = True


class StatusBar(CommandWidget):
    """One row; `tick` advances the spinner while a turn runs."""

    DEFAULT_CSS = """
    StatusBar { height: 1; dock: bottom; background: $background; }
    """

    def __init__(self, styles: Styles) -> None:
        super().__init__()
        self.styles_of = styles
        self._status = StatusContent()
        self._view: SessionView | None = None
        self._shown: Row = []

    def show(self, view: SessionView | None, content: StatusContent, styles: Styles) -> None:
        """Show a session's state."""
        self._view, self._status, self.styles_of = view, content, styles
        if self._row() != self._shown:
            self.refresh()

    def render_line(self, y: int) -> Strip:
        """Return the row."""
        del y
        self._shown = self._row()
        base = self.styles_of.of("text_muted", on="background")
        return Strip(self._shown).apply_style(base).adjust_cell_length(self.size.width, base)

    def _row(self) -> Row:
        width = self.size.width
        right = self._sums(self._status.hint)
        if width < LEAST or self._least_width() + _cells(right) > width:  # the model is more important than a key
            right = self._sums("")
        row = self._start(max(width - _cells(right) - 3, 10))
        gap = 3 if self._status.waiting else 1  # everything else ends with blanks of its own
        if _cells(row) + _cells(right) + gap > width:  # a pending key comes first
            right = []
        if (problem := self._status.problem) and cell_len(problem) + _cells(right) + 3 > width:
            row, right = self._start(width - 3), []
        blanks = Segment(" " * max(width - _cells(row) - _cells(right) - 2, 0))
        return [Segment(" "), *row, blanks, *right, Segment(" ")]

    def _least_width(self) -> int:
        """Return the cells needed to show activity and model uncut; 0 where they may be cut."""
        view, content = self._view, self._status
        if content.waiting or content.problem or (view is not None and isinstance(view.status, Retry)):
            return 0
        busy = (
            _cells(self._activity_segments(view, self.styles_of, LEAST)) + 2 if view is not None and view.is_busy else 0
        )
        profile = cell_len(content.profile) + 2 if content.profile else 0
        return busy + cell_len(_agent_and_model(content)) + profile + 5

    def _start(self, room: int) -> Row:
        styles, content = self.styles_of, self._status
        if content.waiting:
            return [Segment(f"{content.waiting} …", styles.of("accent", "bold"))]
        if content.problem:
            return [Segment(one_line(content.problem, room), styles.of("error"))]
        row: Row = []
        if self._view is not None and self._view.is_busy:
            row = [*self._activity_segments(self._view, styles, room), Segment("  ")]
        profile = styles.of("warning" if content.profile == "yolo" else "text_muted")
        named = [
            (content.agent, runs(styles.of("text"), "agent_list"), " " if content.model else "  ", _cut),
            (content.model, runs(styles.of("text"), "model_list"), "  ", _cut),
            (content.profile, runs(profile, "profile"), "  ", _cut),
            (content.directory, styles.of("text_muted"), "  ", cut_path),
        ]
        if content.profile == "yolo":  # is seen on the narrowest screen, too
            named.insert(0, named.pop(2))
        for text, style, gap, fit in named:
            left = room - _cells(row)
            if text and left > 8:
                row += [Segment(fit(text, left - 2), style), Segment(gap)]
        return row

    def _activity_segments(self, view: SessionView, styles: Styles, room: int) -> Row:
        now = time.time()
        if isinstance(view.status, Retry):
            seconds = max(view.status.next / 1000 - now, 0)
            wait = f"retry {view.status.attempt} in {seconds:.0f} s: " if view.status.attempt else ""
            words = f"{wait}{one_line(view.status.message, room)}"
            return [Segment(_cut(words, room), styles.of("warning"))]
        frame = WHEEL[int(now * TURNS) % len(WHEEL)] if self._status.moves else "*"
        asks = "waits for you" if view.requests else f"{time.monotonic() - view.since:.0f}s"
        return [Segment(f"{frame} {asks}", styles.of("warning" if view.requests else "primary"))]

    def _sums(self, hint: str) -> Row:
        styles, content = self.styles_of, self._status
        parts: list[tuple[str, str, str]] = []
        if self._view is not None:
            used = self._view.log.context_used
            if used and content.window:
                share = used * 100 // content.window
                look = "error" if share >= 90 else "warning" if share >= 75 else "text_muted"
                parts.append((f"{format_count(used)} ({share or '<1'} %)", look, "status_view"))
            elif used:
                parts.append((format_count(used), "text_muted", "status_view"))
            if cost := self._view.session.cost:
                parts.append((format_cost(cost, self._view.session.tokens), "text_muted", "status_view"))
        if hint:
            parts.append((hint, "text_muted", content.hinted))
        row: Row = []
        for text, colour, command in parts:
            row += [Segment("  "), Segment(text, runs(styles.of(colour), command))]
        return row[1:]


def _cells(row: Row) -> int:
    return sum(cell_len(each.text) for each in row)


def _agent_and_model(content: StatusContent) -> str:
    return " ".join(filter(None, (content.agent, content.model)))


def _cut(text: str, room: int) -> str:
    return text if cell_len(text) <= room else set_cell_size(text, max(room - 1, 1)) + "…"
