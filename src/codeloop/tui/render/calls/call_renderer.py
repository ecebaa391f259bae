"""`draw_call` draws a tool call: which function renders the calls of which tool,
and what all calls have in common.
"""

from collections.abc import Callable, Iterator
from typing import Any

from rich.segment import Segment
from rich.style import Style

from codeloop.client.formatting import describe_command_end, format_duration
from codeloop.kit.text.terminal_text import escape_controls
from codeloop.schema.part import STRUCTURED_OUTPUT_TOOL, ToolStateCompleted, remove_model_notes
from codeloop.tui.render.ansi_text import AnsiText
from codeloop.tui.render.attachments import describe_attachment
from codeloop.tui.render.calls.file_calls import (
    render_change,
    render_language_server,
    render_read,
)
from codeloop.tui.render.calls.generic_calls import (
    render_data_answer,
    render_generic,
)
from codeloop.tui.render.calls.session_calls import (
    render_batch,
    render_invalid,
    render_plan_exit,
    render_question,
    render_skill,
    render_task,
    render_task_output,
    render_todos,
)
from codeloop.tui.render.calls.tool_call import (
    CALL_MARGIN,
    CallBody,
    ToolCall,
    as_list,
    as_mapping,
    draw_failure,
    draw_heading,
    draw_notes,
)
from codeloop.tui.render.canvas import GUTTER, Canvas, Row
from codeloop.tui.render.cells import cut_line, expand_tabs, fold_line, prefix_rows
from codeloop.tui.render.formats import format_size
from codeloop.tui.render.picture_rows import PictureRow, is_picture, reserve_rows
from codeloop.tui.state.conversation_items import ToolItem


def _render_bash(call: ToolCall) -> CallBody:
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


def _render_bash_output(call: ToolCall) -> CallBody:
    """Render the new output of a background command."""
    status, ending = str(call.metadata.get("status", "")), describe_command_end(call.metadata)
    state = ending if status == "exited" and ending else status
    return CallBody(
        subject=call.title or call.get_input("id"),
        notes=[state] if state else [],
        rows=_draw_output_with_notes(call),
        is_failed=bool(ending),
    )


def _render_bash_kill(call: ToolCall) -> CallBody:
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
    """Return the rows of an output's end, in its own colours;
    an open call shows all of the output.
    """
    text = output.strip("\n").removesuffix("\r")
    if not text.strip():
        return []
    lines = text.split("\n")
    # The result holds only the end of a long output, but the number of all its lines.
    total = call.metadata.get("lines")
    missing_count = (
        max(total - len(lines), 0)
        if isinstance(total, int) and call.metadata.get("truncated")
        else 0
    )
    visible_lines = lines[-call.get_max_rows() - 1 :]
    ansi_text = AnsiText(call.canvas.styles, "text_muted")
    drawn_lines = [fold_line(ansi_text.draw_line(line), call.room) for line in visible_lines]
    return call.fold_lines(drawn_lines, missing_count + len(lines) - len(visible_lines))


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
    return [
        row for line in lines for row in fold_line([Segment(expand_tabs(line), style)], call.room)
    ]


def _render_grep(call: ToolCall) -> CallBody:
    """Render a search in files: how many lines match, in how many files;
    an open call shows the lines by file.
    """
    where = call.get_path("path") or call.get_input("include")
    subject = call.get_input("pattern") + (f"  in {where}" if where else "")
    matches, files = call.metadata.get("matches"), call.metadata.get("files")
    if not isinstance(matches, int) or not matches:
        return CallBody(subject, ["no matches"] if call.status == "done" else [])
    note = f"{matches} match{'' if matches == 1 else 'es'}"
    # Earlier versions did not store the number of files.
    if isinstance(files, int):
        file_count = f"{files} file{'' if files == 1 else 's'}"
        note = file_count if call.get_input("mode") == "files" else f"{note} in {file_count}"
    files_with_hits = [as_mapping(each) for each in as_list(call.metadata.get("display"))]
    if files_with_hits and call.is_open:
        rows = call.fold_rows(list(_draw_hits(call, files_with_hits)))
    else:
        rows = call.draw_output_if_open()
    return CallBody(subject, [note], rows)


def _draw_hits(call: ToolCall, files: list[dict[str, Any]]) -> Iterator[Row]:
    """Yield the lines that match, and those around them, below the names of their files."""
    path_style, number_style = call.style("text", "bold"), call.style("diff_line_number") + GUTTER
    match_style, context_style = call.style("text"), call.style("text_muted")
    for file in files:
        yield from fold_line([Segment(_flatten(str(file.get("path", ""))), path_style)], call.room)
        # A line is a list of its number, whether it matches, and its text.
        for line in as_list(file.get("lines")):
            match line:
                case [int(number), bool(is_match), str(text)] if number:
                    style = match_style if is_match else context_style
                    label = Segment(f"{number:>5} ", number_style)
                    yield from fold_line([label, Segment(_flatten(text), style)], call.room)
                # Without a number it is a note, such as that lines were left out.
                case [_, _, str(text)]:
                    yield from fold_line([Segment(_flatten(text), context_style)], call.room)
                case _:
                    pass


def _flatten(text: str) -> str:
    """Return a text on one line that can be drawn."""
    return expand_tabs(escape_controls(text).replace("\n", " "))


def _render_files(call: ToolCall) -> CallBody:
    """Render a search for files, or the list of a folder: how many were found;
    an open call shows their names.
    """
    pattern, where = call.get_input("pattern"), call.get_path("path")
    subject = f"{pattern}  in {where}" if pattern and where else pattern or where or "."
    count = call.metadata.get("count")
    notes: list[str] = []
    if count is not None:
        notes = [f"{count} file{'' if count == 1 else 's'}" if count else "no files"]
    return CallBody(subject, notes, call.draw_output_if_open())


def _render_web_page(call: ToolCall) -> CallBody:
    """Render a fetched page: its address and size; an open call shows its text."""
    size, status = call.metadata.get("bytes"), call.metadata.get("status")
    notes = [f"status {status}"] if isinstance(status, int) and status != 200 else []
    notes += [format_size(size)] if isinstance(size, int) else []
    return CallBody(
        call.get_input("url"), [*notes, *call.list_duration_notes()], call.draw_output_if_open()
    )


def _render_web_search(call: ToolCall) -> CallBody:
    """Render a web search: its query and the number of results; an open call shows the results."""
    count = call.metadata.get("results")
    notes = [f"{count} result{'' if count == 1 else 's'}"] if isinstance(count, int) else []
    return CallBody(
        call.get_input("query"), [*notes, *call.list_duration_notes()], call.draw_output_if_open()
    )


_RENDERERS: dict[str, Callable[[ToolCall], CallBody]] = {
    "bash": _render_bash,
    "bash_output": _render_bash_output,
    "bash_kill": _render_bash_kill,
    "read": render_read,
    "write": render_change,
    "edit": render_change,
    "multiedit": render_change,
    "apply_patch": render_change,
    "lsp": render_language_server,
    "grep": _render_grep,
    "glob": _render_files,
    "list": _render_files,
    "webfetch": _render_web_page,
    "websearch": _render_web_search,
    "codesearch": _render_web_search,
    "todowrite": render_todos,
    "todoread": render_todos,
    "task": render_task,
    "task_output": render_task_output,
    "question": render_question,
    "skill": render_skill,
    "plan_exit": render_plan_exit,
    "batch": render_batch,
    "invalid": render_invalid,
    STRUCTURED_OUTPUT_TOOL: render_data_answer,
}


def draw_call(item: ToolItem, canvas: Canvas, now: int) -> list[Row]:
    """Return a call as rows; `now`: ms since the epoch, for how long it has been running."""
    call = ToolCall(item, canvas, now)
    body = _RENDERERS.get(call.tool, render_generic)(call)
    heading = draw_heading(call, body)
    if not canvas.details and not call.is_open:
        return [heading]
    rows = [*body.rows, *draw_failure(call), *draw_notes(call)]
    return [heading, *prefix_rows(rows, Segment(" " * CALL_MARGIN)), *_draw_attachments(call)]


def _draw_attachments(call: ToolCall) -> list[Row]:
    """Return the rows of a result's attachments: for each a row that describes it,
    and below that a picture's rows.
    """
    state = call.part.state
    files = state.attachments if isinstance(state, ToolStateCompleted) else None
    margin = Segment(" " * CALL_MARGIN)
    rows: list[Row] = []
    for file in files or ():
        caption = Segment(
            describe_attachment(file), call.style("text_muted") + Style(meta={"image": file.id})
        )
        row = [margin, *cut_line([caption], call.room)]
        rows.append(PictureRow(row) if is_picture(file) else row)
        rows += reserve_rows(file, call.canvas.pictures, call.room + CALL_MARGIN, [margin], Style())
    return rows
