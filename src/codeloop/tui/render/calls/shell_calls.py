"""Renders calls of the tools for shell commands: the command, its output, and its exit code."""

from rich.segment import Segment

from codeloop.client.formatting import describe_command_end, format_duration
from codeloop.kit.text.terminal_text import escape_controls
from codeloop.schema.part import remove_model_notes
from codeloop.tui.render.ansi_text import AnsiText
from codeloop.tui.render.calls.tool_call import FOLDED_ROWS, MAX_ROWS, CallBody, ToolCall, as_list
from codeloop.tui.render.canvas import Row
from codeloop.tui.render.cells import expand_tabs, fold_line


def render_bash(call: ToolCall) -> CallBody:
    """Render a shell command: the end of its output, and its exit code if that is not 0."""
    rows = _draw_command(call) if call.is_open else []
    rows += _draw_output_with_notes(call)
    job_id = call.metadata.get("id")
    if isinstance(job_id, str) and job_id:
        return CallBody(call.get_input("command"), [f"in the background as {job_id}"], rows)
    ending = describe_command_end(call.metadata) if call.status == "done" else ""
    heading_notes = [ending] if ending else []
    # The tool's own measure, which does not include the wait for a permission.
    duration_ms = call.metadata.get("duration")
    if call.status == "running":
        heading_notes.append(format_duration(call.elapsed_ms or 0))
    elif isinstance(duration_ms, int) and duration_ms >= 500:
        heading_notes.append(format_duration(duration_ms))
    return CallBody(call.get_input("command"), heading_notes, rows, is_failed=bool(ending))


def render_bash_output(call: ToolCall) -> CallBody:
    """Render the new output of a background command."""
    status, ending = str(call.metadata.get("status", "")), describe_command_end(call.metadata)
    state = ending if status == "exited" and ending else status
    return CallBody(
        subject=call.title or call.get_input("id"),
        notes=[state] if state else [],
        rows=_draw_output_with_notes(call),
        is_failed=bool(ending),
    )


def render_bash_kill(call: ToolCall) -> CallBody:
    """Render the end of a background command."""
    return CallBody(call.title or call.get_input("id"), ["ended"] if call.status == "done" else [])


def _draw_output_with_notes(call: ToolCall) -> list[Row]:
    """Return the rows of the output, and below them codeloop's notes about it."""
    output, notes = _split_output(call)
    rows = _draw_command_output(call, output)
    for note in notes:
        rows += call.draw_text(note, "warning")
    return rows


def _draw_command_output(call: ToolCall, output: str) -> list[Row]:
    """Return the rows of an output's end, in its own colours; an open call shows all of the output."""
    text = output.strip("\n").removesuffix("\r")
    if not text.strip():
        return []
    lines = text.split("\n")
    # The result holds only the end of a long output, but the number of all its lines.
    total = call.metadata.get("lines")
    missing_count = max(total - len(lines), 0) if isinstance(total, int) and call.metadata.get("truncated") else 0
    visible_lines = lines[-(MAX_ROWS if call.is_open else FOLDED_ROWS + 1) :]
    ansi_text = AnsiText(call.canvas.styles, "text_muted")
    rows = [row for line in visible_lines for row in fold_line(ansi_text.draw_line(line), call.room)]
    undrawn_count = missing_count + len(lines) - len(visible_lines)
    return call.fold_rows(rows, keeps_end=True, undrawn_count=undrawn_count)


def _split_output(call: ToolCall) -> tuple[str, list[str]]:
    """Return a command's output, and codeloop's notes about it that the heading does not show."""
    output = call.metadata.get("output")
    if call.status != "done":
        return (remove_model_notes(output, call.metadata) if isinstance(output, str) else ""), []
    notes = [str(note) for note in as_list(call.metadata.get("notes"))]
    # For an empty output, the result has a sentence that is meant for the model.
    return "" if output == "" else call.output, notes


def _draw_command(call: ToolCall) -> list[Row]:
    """Return the rows of the command; none if it fits into the heading."""
    command = call.get_input("command").strip()
    if "\n" not in command and len(command) <= call.room // 2:
        return []
    style = call.style("markdown_code")
    lines = escape_controls(command).split("\n")
    return [row for line in lines for row in fold_line([Segment(expand_tabs(line), style)], call.room)]
