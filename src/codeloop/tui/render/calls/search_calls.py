"""Renders calls of tools that search (in files, for files, on the web), list a folder, or fetch a page."""

from collections.abc import Iterator
from typing import Any

from rich.segment import Segment

from codeloop.kit.text.terminal_text import escape_controls
from codeloop.tui.render.calls.tool_call import CallBody, ToolCall, as_list, as_mapping
from codeloop.tui.render.canvas import Row
from codeloop.tui.render.cells import expand_tabs, fold_line
from codeloop.tui.render.formats import format_size


def render_grep(call: ToolCall) -> CallBody:
    """Render a search in files: how many lines match, in how many files; an open call shows the lines by file."""
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
    path_style, number_style = call.style("text", "bold"), call.style("diff_line_number")
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


def render_files(call: ToolCall) -> CallBody:
    """Render a search for files, or the list of a folder: how many were found; an open call shows their names."""
    pattern, where = call.get_input("pattern"), call.get_path("path")
    subject = f"{pattern}  in {where}" if pattern and where else pattern or where or "."
    count = call.metadata.get("count")
    notes: list[str] = []
    if count is not None:
        notes = [f"{count} file{'' if count == 1 else 's'}" if count else "no files"]
    return CallBody(subject, notes, call.draw_output_if_open())


def render_web_page(call: ToolCall) -> CallBody:
    """Render a fetched page: its address and size; an open call shows its text."""
    size, status = call.metadata.get("bytes"), call.metadata.get("status")
    notes = [f"status {status}"] if isinstance(status, int) and status != 200 else []
    notes += [format_size(size)] if isinstance(size, int) else []
    return CallBody(call.get_input("url"), [*notes, *call.list_duration_notes()], call.draw_output_if_open())


def render_web_search(call: ToolCall) -> CallBody:
    """Render a web search: its query and the number of results; an open call shows the results."""
    count = call.metadata.get("results")
    notes = [f"{count} result{'' if count == 1 else 's'}"] if isinstance(count, int) else []
    return CallBody(call.get_input("query"), [*notes, *call.list_duration_notes()], call.draw_output_if_open())
