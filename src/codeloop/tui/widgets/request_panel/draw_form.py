"""Draws a form as rows of styled text for the request panel: the title, the content, the choices,
the hints of keys.
"""

from rich.segment import Segment

from codeloop.client.formatting import TextStyle
from codeloop.client.questions.quoting import QUOTE_MARK
from codeloop.tui.dialogs.parts.dialog_rows import draw_keys
from codeloop.tui.render.canvas import Canvas, Row
from codeloop.tui.render.cells import fill_background, justify_row, measure_row, wrap_text
from codeloop.tui.render.diff.quoted_diff import draw_quoted_diff
from codeloop.tui.render.markdown.markdown_document import MarkdownDocument
from codeloop.tui.render.markdown.prose_styles import ProseStyles
from codeloop.tui.themes.styles import Styles
from codeloop.tui.widgets.request_panel.form import Form, FormChoice, FormContent

_STYLES_BY_TEXT_STYLE: dict[TextStyle | None, tuple[str, str]] = {
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
"""The colour and the style of a row of the content, by its style for plain terminals."""
WHOLE_SCREEN_KEY = "f"
"""The key that shows the request on the whole screen, and goes back."""
COMMENT_KEY = "c"
"""The key that opens the lines of the document that a question is about, for comments."""
# Keys, and what they do.
_REJECT_HINT, _WHOLE_SCREEN_HINT = ("esc esc", "reject"), (WHOLE_SCREEN_KEY, "whole screen")
_QUESTIONS_HINT = ("←→", "questions")
_COMMENT_HINT = (COMMENT_KEY, "comment on lines")
_CHOOSING_HINTS = [("↑↓ enter", "choose"), ("pgup pgdn", "scroll")]
_MARKING_HINTS = [("space or enter", "mark"), ("enter again", "go on")]
# The longest that fits is shown. {}: the rows that are shown, and all rows.
_CUT_NOTES = (
    f"   {{}} of {{:,}} rows are shown: pgdn scrolls, {WHOLE_SCREEN_KEY} shows them on the whole screen",
    "   {} of {:,} rows: pgdn scrolls",
)
_DOCUMENT_CUT_NOTE = f"   {{}} of {{:,}} rows: {WHOLE_SCREEN_KEY} all, {COMMENT_KEY} comments"
_LABEL_INDENT = 4
"""Cells before a choice's label: the cursor's mark, the key, and blanks."""


def draw_head(form: Form, title: str, waiting_count: int, styles: Styles, width: int) -> list[Row]:
    """Return the rows of the title, and of the names of several questions;
    `waiting_count`: how many requests wait.
    """
    count = f"  1 of {waiting_count}" if waiting_count > 1 else ""
    title_style = styles.of("warning", "bold")
    rows: list[Row] = [
        [Segment(line, title_style)] for line in wrap_text(title, width - len(count))
    ]
    rows[0] = justify_row(rows[0], [Segment(count, styles.of("text_muted"))], width)
    if form.tabs:
        tabs: Row = []
        for number, tab in enumerate(form.tabs):
            style = (
                styles.of("primary", "bold underline")
                if number == form.tab
                else styles.of("text_muted")
            )
            tabs += [Segment(f"{'✓ ' if tab.is_answered else ''}{tab.name}", style), Segment("   ")]
        rows.append(tabs)
    return rows


def draw_content(content: FormContent, canvas: Canvas) -> list[Row]:
    """Return the rows of a request's content; a change of a file is drawn as a diff."""
    diff_rows = draw_quoted_diff(content.diff, canvas)
    rows: list[Row] = [*diff_rows]
    for text_style, text in content.rows_without_diff if diff_rows else content.rows:
        colour, attributes = _STYLES_BY_TEXT_STYLE[text_style]
        rows.append([Segment(text, canvas.styles.of(colour, attributes))])
    if content.document:
        # The mark in each row shows that it is not part of the question.
        mark = Segment(QUOTE_MARK, canvas.styles.of("text_muted"))
        document = MarkdownDocument(
            ProseStyles(canvas.styles), max(canvas.width - len(QUOTE_MARK), 2), mark
        )
        rows += document.render_complete(content.document)
    return rows


def draw_cut_note(
    shown_count: int, count: int, styles: Styles, width: int, *, has_document: bool = False
) -> Row:
    """Return the row which says that not all rows of the content are shown.

    `has_document`: as for `draw_hints`, which have no room for its keys where this row has none.
    """
    last = _DOCUMENT_CUT_NOTE if has_document else _CUT_NOTES[-1]
    notes = [each.format(shown_count, count) for each in (*_CUT_NOTES[:-1], last)]
    note = next((each for each in notes if len(each) <= width), notes[-1][:width])
    return [Segment(note, styles.of("warning"))]


def draw_choices(
    form: Form, styles: Styles, width: int, *, is_ready: bool
) -> tuple[list[Row], list[int]]:
    """Return the rows of the choices, muted unless `is_ready`,
    and for each row the index of its choice.
    """
    rows: list[Row] = []
    choice_of_row: list[int] = []
    for number, choice in enumerate(form.list_choices()):
        is_here = number == form.cursor and is_ready
        for row in _draw_choice(choice, styles, width, is_here=is_here, is_ready=is_ready):
            rows.append(
                fill_background(row, styles.of("", on="background_element"), width)
                if is_here
                else row
            )
            choice_of_row.append(number)
    return rows, choice_of_row


def _draw_choice(
    choice: FormChoice, styles: Styles, width: int, *, is_here: bool, is_ready: bool
) -> list[Row]:
    box = ""
    if choice.is_checked is not None:
        box = "[x] " if choice.is_checked else "[ ] "
    room = max(width - _LABEL_INDENT - len(box), 10)
    style = styles.of("text" if is_ready else "text_muted", "bold" if is_here else "")
    muted_style = styles.of("text_muted")
    first, *other_lines = wrap_text(choice.text, room)
    mark = Segment("▸ " if is_here else "  ", styles.of("primary", "bold"))
    key = Segment(f"{choice.key:1} ", styles.of("primary" if is_ready else "text_muted"))
    rows: list[Row] = [[mark, key, Segment(box, style), Segment(first, style)]]
    # The dotted line shows that a row goes on: a label could imitate further choices with blanks.
    margin = Segment(" " * (_LABEL_INDENT - 2 + len(box)) + "┆ ", muted_style)
    rows += [[margin, Segment(line, style)] for line in other_lines]
    if choice.detail:
        row_with_detail = [*rows[-1], Segment("  " + choice.detail, muted_style)]
        if measure_row(row_with_detail) <= width:
            rows[-1] = row_with_detail
        else:
            rows += [
                [margin, Segment(line, muted_style)] for line in wrap_text(choice.detail, room)
            ]
    return rows


def draw_hints(
    form: Form,
    styles: Styles,
    width: int,
    *,
    is_ready: bool,
    cuts: bool = False,
    has_document: bool = False,
) -> list[Row]:
    """Return the rows of key hints, or in their place the label of the open text entry,
    or the form's notice.

    `cuts`: not all choices fit, so the hints begin with the number of the choice under the cursor.
    `has_document`: the request is about a text whose lines can be commented on.
    """
    if form.entry is not None:
        label = f"{form.entry.label}  (enter {form.entry.enter_verb} it, esc goes back)"
        return [[Segment(line, styles.of("primary"))] for line in wrap_text(label, width)]
    if form.notice:
        return [
            [Segment(line, styles.of("warning", "bold"))] for line in wrap_text(form.notice, width)
        ]
    if not is_ready:
        return [[]]
    keys = [
        *(_MARKING_HINTS if form.is_multiple else _CHOOSING_HINTS),
        _QUESTIONS_HINT if form.tabs else _WHOLE_SCREEN_HINT,
        *([_COMMENT_HINT] if has_document else []),
        _REJECT_HINT,
    ]
    position = f"{form.cursor + 1} of {len(form.list_choices())} ↕  " if cuts else ""
    room = width - len(position)
    # The first list that fits into one row is shown; how to reject is always said.
    rows = draw_keys(keys, styles, room)
    if len(rows) > 1 and has_document:
        rows = draw_keys(
            [_CHOOSING_HINTS[0], _WHOLE_SCREEN_HINT, _COMMENT_HINT, _REJECT_HINT], styles, room
        )
    if len(rows) > 1:
        rows = draw_keys([_CHOOSING_HINTS[0], _REJECT_HINT], styles, room)
    if len(rows) > 1:
        rows = draw_keys([_REJECT_HINT], styles, room)
    return [[Segment(position, styles.of("warning")), *rows[0]], *rows[1:]] if position else rows
