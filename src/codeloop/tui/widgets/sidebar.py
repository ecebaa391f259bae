"""The sidebar: the session's title, its use of the context, tasks, changed files,
and the states of servers.

`tui/actions/sidebar.py` loads the data that is not part of the session.
"""

from collections.abc import Mapping, Sequence

from msgspec import Struct
from rich.cells import cell_len, set_cell_size
from rich.segment import Segment
from textual.geometry import Size
from textual.scroll_view import ScrollView
from textual.strip import Strip

from codeloop.client.formatting import format_cost, format_count
from codeloop.kit.text.terminal_text import escape_answer_controls, one_line
from codeloop.schema.message import SnapshotFileDiff
from codeloop.tui.render.canvas import Row
from codeloop.tui.render.cells import cut_path, cut_text
from codeloop.tui.state.server_states import HEALTH_COLOURS, ServerState
from codeloop.tui.state.session_view import SessionView
from codeloop.tui.themes.styles import Styles
from codeloop.tui.widgets.base_widgets import CachedWidget, run_on_click
from codeloop.tui.widgets.status_bar import StatusContent

SIDEBAR_WIDTH = 36
"""Cells of the sidebar; its rows have margins, so they are at least four cells narrower."""
MARKS_BY_TODO_STATUS = {
    "completed": ("[x]", "text_muted"),
    "in_progress": ("[>]", "primary"),
    "cancelled": ("[-]", "text_muted"),
}
"""The mark of a task and its colour, by the task's status; any other status has an empty box."""
MAX_FILES = 30
"""Changed files that are listed; of more, the number is shown."""
MAX_REASON_ROWS = 3
"""Rows of a server's error that are shown."""
MIN_STATE_WIDTH = 6
"""Cells beside a server's name below which the text of its state is left out."""


class SidebarData(Struct, frozen=True):
    """The data of the sidebar apart from the session: git branch, changed files,
    servers' states by name.
    """

    session_id: str = ""
    branch: str = ""
    files: Sequence[SnapshotFileDiff] = ()
    mcp: Mapping[str, ServerState] = {}
    lsp: Mapping[str, ServerState] = {}


class Sidebar(CachedWidget, ScrollView):
    """Rows in sections; empty sections are left out."""

    DEFAULT_CSS = f"""
    Sidebar {{
        width: {SIDEBAR_WIDTH}; height: 1fr; display: none; overflow: hidden auto; scrollbar-size-vertical: 1;
    }}
    """

    def __init__(self, styles: Styles) -> None:
        super().__init__()
        self._theme_styles = styles
        self._rows: list[Row] = []
        self.data = SidebarData()
        """Loaded by `tui/actions/sidebar.py` after each change."""

    def show(self, view: SessionView | None, content: StatusContent, styles: Styles) -> None:
        """Show a session (None: none yet) with the data of the status bar, and `data`."""
        self._theme_styles = styles
        rows = self._draw_sections(view, self.data, content)
        if rows != self._rows:
            self._rows = rows
            self.virtual_size = Size(SIDEBAR_WIDTH, len(rows))
            self.refresh()

    def render_line(self, y: int) -> Strip:
        """Return one row."""
        number = y + round(self.scroll_y)
        base = self._theme_styles.of("text", on="background_panel")
        row = self._rows[number] if number < len(self._rows) else []
        return (
            Strip([Segment("  "), *row]).apply_style(base).adjust_cell_length(self.size.width, base)
        )

    def _draw_sections(
        self, view: SessionView | None, data: SidebarData, content: StatusContent
    ) -> list[Row]:
        styles = self._theme_styles
        title = view.session.title if view is not None else "New session"
        rows: list[Row] = [[], *_draw_title(one_line(title, 200, escape_answer_controls), styles)]
        if data.branch:
            branch = cut_text(f"on {one_line(data.branch, 200)}", SIDEBAR_WIDTH - 4)
            rows.append([Segment(branch, styles.of("text_muted"))])
        if view is not None:
            rows += [[], _draw_heading("Context", styles), *self._draw_usage(view, content)]
            if view.todos:
                rows += [[], _draw_heading("Tasks", styles)]
            for todo in view.todos:
                mark, colour = MARKS_BY_TODO_STATUS.get(todo.status, ("[ ]", "text"))
                rows += _draw_task(mark, one_line(todo.content, 200), styles, colour)
        # The data of another session may still be on the way after a switch of tabs.
        if view is not None and data.session_id == view.session.id:
            rows += self._draw_files(data.files)
        for name, states in (("MCP", data.mcp), ("LSP", data.lsp)):
            if states:
                rows += [[], _draw_heading(name, styles)]
            rows += [
                row for server, state in states.items() for row in self._draw_server(server, state)
            ]
        return rows

    def _draw_usage(self, view: SessionView, content: StatusContent) -> list[Row]:
        styles = self._theme_styles
        used, share = view.log.context_used, ""
        if content.context_window:
            percent = used * 100 // content.context_window
            words = "<1" if used and not percent else str(percent)
            share = f" of {format_count(content.context_window)}, {words} %"
        style = styles.of("text_muted")
        rows: list[Row] = [[Segment(f"{format_count(used)} tokens{share}", style)]]
        if cost := view.session.cost:
            rows.append([Segment(f"{format_cost(cost, view.session.tokens)} spent", style)])
        return rows

    def _draw_files(self, files: Sequence[SnapshotFileDiff]) -> list[Row]:
        styles = self._theme_styles
        if not files:
            return []
        rows: list[Row] = [[], _draw_heading(f"Changed files ({len(files)})", styles)]
        for diff in files[:MAX_FILES]:
            additions, deletions = f"+{diff.additions}", f"-{diff.deletions}"
            room = SIDEBAR_WIDTH - 6 - len(additions) - len(deletions)
            name = cut_path(one_line(diff.file or "", 500), room)
            gap = " " * (room - cell_len(name) + 1)
            rows.append(
                [
                    Segment(
                        name + gap,
                        run_on_click(styles.of("text_muted"), "session_changes", diff.file or ""),
                    ),
                    Segment(additions, styles.of("diff_added")),
                    Segment(" "),
                    Segment(deletions, styles.of("diff_removed")),
                ]
            )
        if len(files) > MAX_FILES:
            style = run_on_click(styles.of("text_muted"), "session_changes")
            rows.append([Segment(f"and {len(files) - MAX_FILES} more", style)])
        return rows

    def _draw_server(self, name: str, state: ServerState) -> list[Row]:
        """Draw a server's state, and below it the problem, if there is one."""
        styles, room = self._theme_styles, SIDEBAR_WIDTH - 6
        visible_name = cut_text(one_line(name, 60), room * 2 // 3)
        remaining = room - cell_len(visible_name) - 1
        words = cut_text(state.words, remaining) if remaining >= MIN_STATE_WIDTH else ""
        rows: list[Row] = [
            [
                Segment("• ", styles.of(HEALTH_COLOURS[state.health])),
                Segment(visible_name, styles.of("text")),
                Segment(f" {words}", styles.of("text_muted")),
            ]
        ]
        reason = _wrap_words(one_line(state.reason, 200), room) if state.reason else []
        if len(reason) > MAX_REASON_ROWS:
            reason[MAX_REASON_ROWS - 1 :] = [cut_text(f"{reason[MAX_REASON_ROWS - 1]} …", room)]
        return rows + [[Segment(f"  {line}", styles.of("text_muted"))] for line in reason]


def _draw_heading(text: str, styles: Styles) -> Row:
    return [Segment(text, styles.of("text", "bold"))]


def _draw_task(mark: str, text: str, styles: Styles, colour: str) -> list[Row]:
    first, *more = _wrap_words(text, SIDEBAR_WIDTH - 8)
    style = styles.of(colour)
    return [
        [Segment(f"{mark} {first}", style)],
        *([Segment(f"    {line}", style)] for line in more),
    ]


def _draw_title(text: str, styles: Styles) -> list[Row]:
    return [
        [Segment(line, styles.of("text", "bold"))] for line in _wrap_words(text, SIDEBAR_WIDTH - 4)
    ]


def _wrap_words(text: str, room: int) -> list[str]:
    """Return a text in lines of at most `room` cells; a longer word is cut."""
    lines = [""]
    for word in text.split(" "):
        joined_line = f"{lines[-1]} {word}" if lines[-1] else word
        if cell_len(joined_line) <= room or not lines[-1]:
            lines[-1] = (
                joined_line if cell_len(joined_line) <= room else set_cell_size(joined_line, room)
            )
        else:
            lines.append(set_cell_size(word, room) if cell_len(word) > room else word)
    return lines
