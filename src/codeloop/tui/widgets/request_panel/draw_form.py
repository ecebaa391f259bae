"""Draws a form, its content and its choices as rows of styled text, for the request panel."""

from rich.segment import Segment

from codeloop.client.formatting import Look
from codeloop.tui.render.canvas import Canvas, Row
from codeloop.tui.render.cells import fill_background, justify_row, wrap_text
from codeloop.tui.render.diff.quoted_diff import draw_quoted_diff
from codeloop.tui.themes.styles import Styles
from codeloop.tui.widgets.request_panel.form import Form, FormRow, FormText

_LOOKS: dict[Look | None, tuple[str, str]] = {
    None: ("text", ""),
    "bold": ("text", "bold"),
    "dim": ("text_muted", ""),
    "italic": ("text", "italic"),
    "underline": ("text", "underline"),
    "red": ("diff_removed", ""),
    "green": ("diff_added", ""),
    "yellow": ("warning", ""),
    "cyan": ("info", ""),
}
_LABEL_INDENT = 4
"""Cells before a choice's label: the cursor's mark, the key, and blanks."""


def draw_head(form: Form, title: str, waiting: int, styles: Styles, width: int) -> list[Row]:
    """Return the rows of the title, with the number of `waiting` requests, and of the names of several questions."""
    count = f"  1 of {waiting}" if waiting > 1 else ""
    lines = wrap_text(title, width - len(count))
    looks = styles.of("warning", "bold")
    rows: list[Row] = [[Segment(line, looks)] for line in lines]
    rows[0] = justify_row(rows[0], [Segment(count, styles.of("text_muted"))], width)
    if form.tabs:
        tabs: Row = []
        for number, (name, is_done) in enumerate(form.tabs):
            look = styles.of("primary", "bold underline") if number == form.tab else styles.of("text_muted")
            tabs += [Segment(f"{'✓ ' if is_done else ''}{name}", look), Segment("   ")]
        rows.append(tabs)
    return rows


def draw_content(text: FormText, canvas: Canvas) -> list[Row]:
    """Return the rows of a request's content; a change of a file is drawn as a diff."""
    diff = draw_quoted_diff(text.diff, canvas)
    rows = text.rows_without_diff if diff else text.rows
    return [*diff, *([Segment(row, canvas.styles.of(*_LOOKS[look]))] for look, row in rows)]


def draw_choices(form: Form, styles: Styles, width: int, *, is_ready: bool) -> tuple[list[Row], list[int]]:
    """Return the rows of the choices, muted unless `is_ready`, and for each row the index of its choice."""
    rows: list[Row] = []
    owners: list[int] = []
    for number, choice in enumerate(form.rows()):
        is_here = number == form.cursor and is_ready
        for row in _draw_choice(choice, styles, width, is_here=is_here, is_ready=is_ready):
            rows.append(fill_background(row, styles.of("", on="background_element"), width) if is_here else row)
            owners.append(number)
    return rows, owners


def _draw_choice(choice: FormRow, styles: Styles, width: int, *, is_here: bool, is_ready: bool) -> list[Row]:
    box = "" if choice.is_on is None else "[x] " if choice.is_on else "[ ] "
    room = max(width - _LABEL_INDENT - len(box), 10)
    look = styles.of("text" if is_ready else "text_muted", "bold" if is_here else "")
    muted_style = styles.of("text_muted")
    first, *more = wrap_text(choice.text, room)
    mark = Segment("▸ " if is_here else "  ", styles.of("primary", "bold"))
    key = Segment(f"{choice.key:1} ", styles.of("primary" if is_ready else "text_muted"))
    rows: list[Row] = [[mark, key, Segment(box, look), Segment(first, look)]]
    margin = Segment(" " * (_LABEL_INDENT - 2 + len(box)) + "┆ ", muted_style)
    rows += [[margin, Segment(line, look)] for line in more]
    if choice.detail:
        last = rows[-1]
        detail: Row = [Segment("  " + choice.detail, muted_style)]
        segments = [*last, *detail]
        if sum(each.cell_length for each in segments) <= width:
            rows[-1] = segments
        else:
            rows += [[margin, Segment(line, muted_style)] for line in wrap_text(choice.detail, room)]
    return rows
