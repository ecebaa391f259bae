"""One tool call in a few lines of text: its tool and subject, what it changed, how long it took."""

from typing import Any, cast

from codeloop.cli.output.style import Look, paint
from codeloop.client.formatting import compute_elapsed_ms, describe_command_end, format_duration
from codeloop.kit.terminal_text import escape_controls, format_arguments, format_json, one_line
from codeloop.schema.part import STRUCTURED_OUTPUT_TOOL, ToolPart, ToolStateCompleted, ToolStateError
from codeloop.schema.wire import JSON

SUBJECT_KEYS = ("command", "filePath", "path", "pattern", "url", "query", "description", "name")
LINE_CHARS = 100
MAX_DIFF_LINES = 60
MAX_OUTPUT_LINES = 6
MAX_DATA_LINES = 40


def format_heading(part: ToolPart) -> str:
    """Return the tool and its subject on one line."""
    # The model called a tool that does not exist: show the name that it used.
    if part.tool == "invalid":
        return f"{part.tool:<6} {one_line(str(part.state.input.get('tool', '')), LINE_CHARS)}".rstrip()
    subject = next((str(part.state.input[key]) for key in SUBJECT_KEYS if part.state.input.get(key)), "")
    if isinstance(part.state, ToolStateCompleted) and part.state.title and part.tool != "bash":
        subject = part.state.title
    # There is no telling argument, so show all of them.
    if subject in {"", part.tool}:
        subject = format_arguments(part.state.input)
    return f"{part.tool:<6} {one_line(subject, LINE_CHARS)}".rstrip()


def format_call(part: ToolPart, *, colour: bool) -> list[str]:
    """Return a finished call as lines; the first one alone says what it was."""
    match part.state:
        case ToolStateCompleted(metadata=metadata, time=time):
            ending = describe_command_end(metadata) if part.tool == "bash" else ""
            # Without the wait for a permission.
            took = metadata.get("duration") if part.tool == "bash" else None
            took = took if isinstance(took, int) else compute_elapsed_ms(time.start, time.end)
            notes = [*_format_line_counts(metadata), *([ending] if ending else []), format_duration(took)]
            is_failure = bool(ending) or part.tool == "invalid"
            body = _format_body(part.tool, metadata, part.state.for_user, is_failure=is_failure)
            if part.tool == STRUCTURED_OUTPUT_TOOL:
                body = _style_lines("dim", escape_controls(format_json(part.state.input)).splitlines()[:MAX_DATA_LINES])
        case ToolStateError(error=error, time=time):
            notes = [format_duration(compute_elapsed_ms(time.start, time.end))]
            is_failure = True
            body = _style_lines("red", escape_controls(error).splitlines()[:MAX_OUTPUT_LINES])
        case _:
            return [format_heading(part)]
    mark = paint("✗", "red", colour=colour) if is_failure else paint("✓", "green", colour=colour)
    first = (
        f"{mark} {paint(format_heading(part), 'bold', colour=colour)}  {paint(' · '.join(notes), 'dim', colour=colour)}"
    )
    return [first, *(f"  {paint(line, look, colour=colour)}" for look, line in body)]


def _format_line_counts(metadata: JSON) -> list[str]:
    filediff = metadata.get("filediff")
    if not isinstance(filediff, dict):
        return []
    diff = cast("dict[str, Any]", filediff)
    return [f"+{diff.get('additions', 0)} -{diff.get('deletions', 0)}"]


def _format_body(tool: str, metadata: JSON, output: str, *, is_failure: bool) -> list[tuple[Look, str]]:
    diff = metadata.get("diff")
    if isinstance(diff, str) and diff:
        return _format_diff(diff)
    if tool == "todowrite":
        return [
            ("dim", f"{TODO_MARKS.get(todo['status'], ' ')} {escape_controls(todo['content'])}")
            for todo in metadata["todos"]
        ]
    if tool in {"bash", "invalid"} or is_failure:
        notes = [escape_controls(str(note)) for note in metadata.get("notes", ())] if tool == "bash" else []
        rows = escape_controls(output).strip().splitlines()
        line_count = metadata.get("lines") if metadata.get("truncated") else None
        before = (line_count if isinstance(line_count, int) else len(rows)) - MAX_OUTPUT_LINES
        more = [f"… {before:,} line{'' if before == 1 else 's'} above"] if before > 0 else []
        return _style_lines("dim", [*more, *(line[:LINE_CHARS] for line in rows[-MAX_OUTPUT_LINES:]), *notes])
    return []


def _style_lines(look: Look, lines: list[str]) -> list[tuple[Look, str]]:
    return [(look, line) for line in lines]


TODO_MARKS = {"completed": "[x]", "in_progress": "[>]", "cancelled": "[-]", "pending": "[ ]"}


def _format_diff(diff: str) -> list[tuple[Look, str]]:
    rows: list[tuple[Look, str]] = []
    inside = False
    for line in escape_controls(diff).splitlines():
        inside = inside or line.startswith("@@")
        if not inside:
            continue
        look: Look = "green" if line.startswith("+") else "red" if line.startswith("-") else "dim"
        rows.append((look, line))
    if len(rows) > MAX_DIFF_LINES:
        rows = [*rows[:MAX_DIFF_LINES], ("dim", f"… {len(rows) - MAX_DIFF_LINES} more lines")]
    return rows
