"""Formats a tool call as a few lines of text: its tool and subject, its changes or output,
and its duration.
"""

from typing import Any, cast

from codeloop.cli.output.style import TextStyle, paint
from codeloop.client.formatting import (
    compute_elapsed_ms,
    describe_command_end,
    find_subject,
    format_duration,
    is_declined,
)
from codeloop.kit.text.readable_json import format_arguments, format_json
from codeloop.kit.text.terminal_text import escape_controls, one_line
from codeloop.schema.part import (
    STRUCTURED_OUTPUT_TOOL,
    ToolPart,
    ToolStateCompleted,
    ToolStateError,
)
from codeloop.schema.wire import JSON

# Characters of a subject, or of a line of output.
LINE_CHARS = 100
MAX_DIFF_LINES = 60
MAX_OUTPUT_LINES = 6
# Lines of an answer as data.
MAX_DATA_LINES = 40
# The style of a line of a diff, by its first character; every other line is dim.
DIFF_STYLES: dict[str, TextStyle] = {"+": "green", "-": "red"}
TODO_MARKS = {"completed": "[x]", "in_progress": "[>]", "cancelled": "[-]", "pending": "[ ]"}


def format_heading(part: ToolPart) -> str:
    """Return the tool and its subject on one line."""
    # The model called a tool that does not exist: show the name that it used.
    if part.tool == "invalid":
        return (
            f"{part.tool:<6} {one_line(str(part.state.input.get('tool', '')), LINE_CHARS)}".rstrip()
        )
    subject = find_subject(part.state.input)
    if isinstance(part.state, ToolStateCompleted) and part.state.title and part.tool != "bash":
        subject = part.state.title
    # No argument says what the call is about, so all of them are shown.
    if subject in {"", part.tool}:
        subject = format_arguments(part.state.input)
    return f"{part.tool:<6} {one_line(subject, LINE_CHARS)}".rstrip()


def format_call(part: ToolPart, *, colour: bool) -> list[str]:
    """Return a finished call as lines: the first names the call,
    the others show its changes or output.
    """
    match part.state:
        case ToolStateCompleted(metadata=metadata, time=time):
            ending = describe_command_end(metadata) if part.tool == "bash" else ""
            # The duration of a command does not include the wait for a permission.
            duration = metadata.get("duration") if part.tool == "bash" else None
            duration_ms = (
                duration if isinstance(duration, int) else compute_elapsed_ms(time.start, time.end)
            )
            notes = [
                *_format_line_counts(metadata),
                *([ending] if ending else []),
                format_duration(duration_ms),
            ]
            is_failure = bool(ending) or part.tool == "invalid"
            body = _format_body(part.tool, metadata, part.state.for_user, is_failure=is_failure)
            if part.tool == STRUCTURED_OUTPUT_TOOL:
                body = _style_lines(
                    "dim",
                    escape_controls(format_json(part.state.input)).splitlines()[:MAX_DATA_LINES],
                )
        # The error is addressed to the model, and the user knows what they said.
        case ToolStateError(metadata=metadata) if is_declined(metadata or {}):
            said = (metadata or {}).get("said")
            note = paint("you said no", "dim", colour=colour)
            return [
                f"■ {paint(format_heading(part), 'bold', colour=colour)}  {note}",
                *([f"  “{escape_controls(str(said))}”"] if said else []),
            ]
        case ToolStateError(error=error, time=time):
            notes = [format_duration(compute_elapsed_ms(time.start, time.end))]
            is_failure = True
            body = _style_lines("red", escape_controls(error).splitlines()[:MAX_OUTPUT_LINES])
        case _:
            return [format_heading(part)]
    mark = paint("✗", "red", colour=colour) if is_failure else paint("✓", "green", colour=colour)
    first = (
        f"{mark} {paint(format_heading(part), 'bold', colour=colour)}  "
        f"{paint(' · '.join(notes), 'dim', colour=colour)}"
    )
    return [first, *(f"  {paint(line, style, colour=colour)}" for style, line in body)]


def _format_line_counts(metadata: JSON) -> list[str]:
    """Return the numbers of added and removed lines of a call that changed a file."""
    filediff = metadata.get("filediff")
    if not isinstance(filediff, dict):
        return []
    diff = cast("dict[str, Any]", filediff)
    return [f"+{diff.get('additions', 0)} -{diff.get('deletions', 0)}"]


def _format_body(
    tool: str, metadata: JSON, output: str, *, is_failure: bool
) -> list[tuple[TextStyle, str]]:
    """Return the lines below the first one, each with its style: a diff, todos,
    or the end of the output.
    """
    diff = metadata.get("diff")
    if isinstance(diff, str) and diff:
        return _format_diff(diff)
    if tool == "todowrite":
        return [
            ("dim", f"{TODO_MARKS.get(todo['status'], ' ')} {escape_controls(todo['content'])}")
            for todo in metadata["todos"]
        ]
    if tool in {"bash", "invalid"} or is_failure:
        notes = (
            [escape_controls(str(note)) for note in metadata.get("notes", ())]
            if tool == "bash"
            else []
        )
        lines = escape_controls(output).strip().splitlines()
        # The stored output may be a part of the whole.
        line_count = metadata.get("lines") if metadata.get("truncated") else None
        omitted_count = (
            line_count if isinstance(line_count, int) else len(lines)
        ) - MAX_OUTPUT_LINES
        shown_lines = [line[:LINE_CHARS] for line in lines[-MAX_OUTPUT_LINES:]]
        if omitted_count > 0:
            shown_lines.insert(
                0, f"… {omitted_count:,} line{'' if omitted_count == 1 else 's'} above"
            )
        return _style_lines("dim", [*shown_lines, *notes])
    return []


def _style_lines(style: TextStyle, lines: list[str]) -> list[tuple[TextStyle, str]]:
    return [(style, line) for line in lines]


def _format_diff(diff: str) -> list[tuple[TextStyle, str]]:
    rows: list[tuple[TextStyle, str]] = []
    # The lines before the first `@@` name the file, as the first line of the call does.
    is_in_hunk = False
    for line in escape_controls(diff).splitlines():
        is_in_hunk = is_in_hunk or line.startswith("@@")
        if not is_in_hunk:
            continue
        rows.append((DIFF_STYLES.get(line[:1], "dim"), line))
    if len(rows) > MAX_DIFF_LINES:
        rows = [*rows[:MAX_DIFF_LINES], ("dim", f"… {len(rows) - MAX_DIFF_LINES} more lines")]
    return rows
