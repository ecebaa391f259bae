"""`ToolCall`: the data of a tool call, whatever its state,
and the rows that the calls of all tools have.

The other files of this folder use it to draw the calls of their tools.
"""

from collections.abc import Sequence
from typing import Any, Literal, cast

from msgspec import Struct
from rich.segment import Segment
from rich.style import Style

from codeloop.client.formatting import (
    compute_elapsed_ms,
    describe_command_end,
    format_duration,
    is_declined,
)
from codeloop.kit.text.terminal_text import escape_controls, one_line
from codeloop.schema.part import (
    TOLD_KEY,
    ToolPart,
    ToolStateCompleted,
    ToolStateError,
    ToolStatePending,
    ToolStateRunning,
)
from codeloop.schema.wire import JSON
from codeloop.tui.render.canvas import Canvas, Row
from codeloop.tui.render.cells import cut_line, expand_tabs, fold_line, measure_row
from codeloop.tui.state.conversation_items import ToolItem

CallStatus = Literal[
    "pending", "running", "asking", "done", "failed", "denied", "declined", "interrupted"
]
CALL_MARGIN = 2
"""Cells before a call's output, and before its heading's text."""
_FOLDED_ROWS, _FOLDED_FAILURE_ROWS, _FOLDED_OWN_ROWS = 4, 8, 20
"""Rows of an output that are shown while the call is folded: usually, of a call that failed,
of the user's command.
"""
_MAX_NAME_LENGTH = 80
"""Characters of a tool's name, and of a note in the heading."""
# The heading shows only the beginning, so that the rest of a long script need not be processed.
_MAX_SUBJECT_LENGTH = 4_000
"""Characters of a subject that are processed."""
# More rows would slow the screen down.
MAX_ROWS = 2_000
"""Rows of an output that are shown while the call is open."""
_STATUS_MARKS: dict[CallStatus, tuple[str, str]] = {
    "pending": ("○", "text_muted"),
    "running": ("●", "primary"),
    "asking": ("?", "warning"),
    "done": ("✓", "text_muted"),
    "failed": ("✗", "error"),
    "denied": ("✗", "warning"),
    "declined": ("■", "text_muted"),
    "interrupted": ("■", "text_muted"),
}
"""The mark of each state, and its colour."""
_STATUS_NOTES: dict[CallStatus, str] = {
    "asking": "waits for your answer",
    "denied": "not allowed",
    "declined": "you said no",
    "interrupted": "interrupted",
}
"""The words for the states that the heading names."""


class CallBody(Struct, frozen=True):
    """The parts of a drawn call: its subject and notes, for the heading,
    and the rows below the heading.

    `is_failed`: the heading has the mark of a failure although the call is done, as when a command
    fails. `name`: shown instead of the tool's name. `link`: the id of the session that
    a click on the heading opens.
    """

    subject: str = ""
    notes: Sequence[str] = ()
    rows: Sequence[Row] = ()
    is_failed: bool = False
    name: str = ""
    link: str = ""


class ToolCall:
    """The data of a call, whatever its state, and functions to draw it.
    `now` in ms since the epoch.
    """

    def __init__(self, item: ToolItem, canvas: Canvas, now: int) -> None:
        self.item = item
        self.canvas = canvas
        self.tool = item.part.tool
        self.input: JSON = item.part.state.input
        self.metadata: JSON = {}
        self.output = ""
        self.title = ""
        self.elapsed_ms: int | None = None
        """The duration of the call, in ms, up to now while it runs; None: it has not started."""
        match item.part.state:
            case ToolStatePending():
                pass
            case ToolStateRunning(title=title, metadata=metadata, time=time):
                self.title, self.metadata = title or "", metadata or {}
                # Without the time in which the call waited for the user.
                self.elapsed_ms = compute_elapsed_ms(max(time.start, item.resumed_at), now)
            case ToolStateCompleted(title=title, metadata=metadata, for_user=output, time=time):
                self.title, self.metadata, self.output = title, metadata, output
                self.elapsed_ms = compute_elapsed_ms(time.start, time.end)
            case ToolStateError(metadata=metadata, time=time):
                self.metadata = metadata or {}
                self.elapsed_ms = compute_elapsed_ms(time.start, time.end)

    @property
    def part(self) -> ToolPart:
        """The call as it is stored."""
        return self.item.part

    @property
    def error(self) -> str:
        """The error of a failed call; "" if it has not failed."""
        state = self.part.state
        return state.error if isinstance(state, ToolStateError) else ""

    @property
    def status(self) -> CallStatus:
        """The displayed state of the call."""
        match self.part.state:
            case ToolStatePending():
                return "asking" if self.item.is_asking else "pending"
            case ToolStateRunning():
                return "asking" if self.item.is_asking else "running"
            case ToolStateCompleted(metadata=metadata):
                return "interrupted" if metadata.get("interrupted") else "done"
            case ToolStateError(metadata=metadata):
                data = metadata or {}
                if data.get("interrupted"):
                    return "interrupted"
                if is_declined(data):
                    return "declined"
                return "denied" if data.get("denied") or data.get("rejected") else "failed"

    @property
    def is_open(self) -> bool:
        """Whether the user has opened the call, so that all of its output is shown."""
        return self.item.is_open

    @property
    def room(self) -> int:
        """The width of a row of the output, in cells."""
        return max(self.canvas.width - CALL_MARGIN, 4)

    def get_input(self, *keys: str) -> str:
        """Return the first of these inputs that the call has, as text; "": it has none of them."""
        values = (self.input.get(key) for key in keys)
        return next(
            (str(value) for value in values if value and isinstance(value, str | int | float)), ""
        )

    def get_path(self, *keys: str) -> str:
        """Return the first of these inputs that the call has,
        as a path relative to the working directory.
        """
        return self.make_relative(self.get_input(*keys))

    def make_relative(self, path: str) -> str:
        """Return a path relative to the working directory, if it is below that."""
        return make_relative_path(path, self.canvas.directory)

    def style(self, colour: str, attributes: str = "", on: str = "") -> Style:
        """Return a style of the canvas's theme; see `Styles.of`."""
        return self.canvas.styles.of(colour, attributes, on)

    @property
    def toggle_style(self) -> Style:
        """The style of words that open or close the call when clicked."""
        return Style(meta={"toggle": self.item.key})

    def draw_text(self, text: str, colour: str = "text_muted") -> list[Row]:
        """Return the rows of a plain text, broken at the width of the output."""
        style = self.style(colour)
        # In a text that is not ASCII, each line would be measured for its tab stops,
        # which is slow: a tab is one space.
        lines = escape_controls(
            text.expandtabs(1) if "\t" in text and not text.isascii() else text
        ).split("\n")
        return [
            row
            for line in lines
            for row in fold_line([Segment(expand_tabs(line), style)], self.room)
        ]

    @property
    def folded_rows(self) -> int:
        """How many rows of an output are shown while the call is folded."""
        if self.item.is_own:
            return _FOLDED_OWN_ROWS
        is_failed = self.status == "failed" or bool(describe_command_end(self.metadata))
        return _FOLDED_FAILURE_ROWS if is_failed else _FOLDED_ROWS

    def draw_output(self, colour: str = "text_muted", max_rows: int | None = None) -> list[Row]:
        """Return the rows of the call's output, folded to `max_rows` unless the call is open;
        none if it is blank.
        """
        if not self.output.strip():
            return []
        return self.fold_rows(self.draw_text(self.output.strip("\n"), colour), max_rows)

    def draw_output_if_open(self) -> list[Row]:
        """Return the rows of the call's output; none while the call is folded."""
        return self.draw_output() if self.is_open else []

    def fold_rows(
        self, rows: Sequence[Row], max_rows: int | None = None, *, hidden_lines: int = 0
    ) -> list[Row]:
        """Return at most `max_rows` rows, or of an open call `MAX_ROWS`,
        and a note with the number of hidden ones.

        `max_rows`: None is `folded_rows`. `hidden_lines`: how many lines the caller has left out
        already; the note counts these.
        """
        max_rows = self.get_max_rows(max_rows)
        hidden_count = max(len(rows) - max_rows, 0)
        if hidden_lines:
            return [
                *rows[:max_rows],
                self.draw_hidden_note(f"… {count_things(hidden_lines, 'more line')}"),
            ]
        # The note would take as much room as the one row that it stands for.
        if hidden_count <= 1:
            return list(rows)
        return [*rows[:max_rows], self.draw_hidden_note(f"… {hidden_count:,} more rows")]

    def get_max_rows(self, folded_rows: int | None = None) -> int:
        """Return how many rows are shown; `folded_rows`: while the call is folded,
        if not the usual number.
        """
        return (
            MAX_ROWS if self.is_open else self.folded_rows if folded_rows is None else folded_rows
        )

    def fold_lines(self, lines: Sequence[Sequence[Row]], missing_lines: int = 0) -> list[Row]:
        """Return the last rows of lines, below a note with the number of the hidden lines.

        `missing_lines`: how many lines before these there were.
        """
        max_rows, rows, shown_lines = self.get_max_rows(), list[Row](), 0
        for line in reversed(lines):
            # The note would take as much room as the one row that it stands for.
            is_last = shown_lines + 1 == len(lines) and not missing_lines
            if len(rows) + len(line) > max_rows + is_last and shown_lines:
                break
            rows = [*line, *rows]
            shown_lines += 1
        hidden_count = missing_lines + len(lines) - shown_lines
        if len(rows) > max_rows + 1:
            # A single line has more rows than there is room for.
            rows = rows[-max_rows:]
            words = f"… the start of this line, and {count_things(hidden_count, 'more line')} above"
            return [
                self.draw_hidden_note(words if hidden_count else "… the start of this line"),
                *rows,
            ]
        if not hidden_count:
            return rows
        return [self.draw_hidden_note(f"… {count_things(hidden_count, 'more line')} above"), *rows]

    def draw_hidden_note(self, words: str) -> Row:
        """Return the row that stands for hidden rows; while the call is folded,
        with a hint on how to show them.
        """
        style = self.style("text_muted", "italic")
        if self.is_open:
            return cut_line([Segment(words, style)], self.room)
        key = self.canvas.open_key
        # The longest hint that fits is shown.
        hints = (f"  {key} or a click shows all", f"  {key}") if key else ("  a click shows all",)
        for hint in hints:
            if measure_row([Segment(words + hint)]) <= self.room:
                return [
                    Segment(words, style + self.toggle_style),
                    Segment(hint, self.style("text_muted") + self.toggle_style),
                ]
        return cut_line([Segment(words, style + self.toggle_style)], self.room)

    def list_duration_notes(self) -> list[str]:
        """Return a note with the duration of the call; none if that is less than half a second."""
        return (
            [format_duration(self.elapsed_ms)]
            if self.elapsed_ms is not None and self.elapsed_ms >= 500
            else []
        )

    def read_objects(self, *keys: str) -> list[dict[str, Any]]:
        """Return the list of objects under the first of these keys in the metadata,
        else in the input.

        Items that are not objects are left out.
        """
        sources: list[object] = [
            source[key] for source in (self.metadata, self.input) for key in keys if key in source
        ]
        return [
            fields
            for each in as_list(sources[0] if sources else None)
            if (fields := as_mapping(each))
        ]


def count_things(number: int, name: str) -> str:
    """Return a number with the name of what is counted, such as `2 files`."""
    return f"{number:,} {name}{'' if number == 1 else 's'}"


def make_relative_path(path: str, directory: str) -> str:
    """Return a path relative to a directory, if it is below that."""
    directory = directory.rstrip("/")
    if path == directory and path:
        return "."
    return path.removeprefix(f"{directory}/") if directory else path


def as_mapping(value: object) -> dict[str, Any]:
    """Return a value as an object, or an empty one if it is not an object: models and
    servers may write anything.
    """
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def as_list(value: object) -> list[Any]:
    """Return a value as a list, or an empty one if it is not a list."""
    return cast("list[Any]", value) if isinstance(value, list) else []


def draw_heading(call: ToolCall, body: CallBody) -> Row:
    """Return the heading: the mark of the call's state, the tool's name, the subject, and notes."""
    status = "failed" if body.is_failed and call.status == "done" else call.status
    mark, colour = _STATUS_MARKS[status]
    click = Style(meta={"open": body.link}) if body.link else call.toggle_style
    name = Segment(
        one_line(body.name or call.tool, _MAX_NAME_LENGTH), call.style("text_muted", "bold") + click
    )
    notes = [_STATUS_NOTES[status]] if status in _STATUS_NOTES else []
    notes += [one_line(note, _MAX_NAME_LENGTH) for note in body.notes]
    note_style = call.style("warning" if status in {"asking", "denied"} else "text_muted") + click
    note_row = [Segment("  " + " · ".join(notes), note_style)] if notes else []
    row = [Segment(f"{mark} ", call.style(colour) + click), name]
    if body.subject:
        room = call.room - measure_row([name]) - 1
        # A long subject is cut, so that up to half of the room is left for the notes.
        notes_width = min(measure_row(note_row), room // 2)
        subject_style = call.style("text_muted" if status == "pending" else "text") + click
        subject = cut_line([Segment(_join_lines(body.subject), subject_style)], room - notes_width)
        row += [Segment(" ", click), *subject]
    return cut_line([*row, *note_row], call.canvas.width)


def _join_lines(text: str) -> str:
    """Return a subject on one line, with a mark for each line end."""
    lines = (
        " ".join(line.split())
        for line in escape_controls(text[:_MAX_SUBJECT_LENGTH]).strip().split("\n")
    )
    return " ⏎ ".join(line for line in lines if line)


def draw_notes(call: ToolCall) -> list[Row]:
    """Return the rows of the notes below a result, such as new errors after earlier edits."""
    text = call.metadata.get(TOLD_KEY)
    return call.fold_rows(call.draw_text(text, "warning")) if isinstance(text, str) else []


def draw_failure(call: ToolCall) -> list[Row]:
    """Return the rows of a failed call's error."""
    if not call.error or call.status == "interrupted":
        return []
    # The user's own reason; the error is addressed to the model.
    if reason := call.metadata.get("said"):
        return call.fold_rows(call.draw_text(f"“{reason}”", "text"))
    if call.status == "declined":
        return []
    colour = "error" if call.status == "failed" else "text_muted"
    return call.fold_rows(call.draw_text(call.error.strip("\n"), colour))
