"""Renders calls of tools that search: in files, for files, on the web."""

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
    number = f"{matches} match{'' if matches == 1 else 'es'}"
    # Earlier versions did not store the number of files.
    if isinstance(files, int):
        in_files = f"{files} file{'' if files == 1 else 's'}"
        number = in_files if call.get_input("mode") == "files" else f"{number} in {in_files}"
    hits = [as_mapping(each) for each in as_list(call.metadata.get("display"))]
    rows = call.fold_rows(list(_draw_hits(call, hits))) if hits and call.is_open else draw_output_if_open(call)
    return CallBody(subject, [number], rows)


def _draw_hits(call: ToolCall, hits: list[dict[str, Any]]) -> Iterator[Row]:
    """Yield the lines that match, and those around them, below the names of their files."""
    name, number, context_style = call.style("text", "bold"), call.style("diff_line_number"), call.style("text_muted")
    for each in hits:
        yield from fold_line([Segment(_flatten(str(each.get("path", ""))), name)], call.room)
        for line in as_list(each.get("lines")):
            match line:
                case [int(at), bool(is_match), str(text)] if at:
                    style = call.style("text") if is_match else context_style
                    yield from fold_line([Segment(f"{at:>5} ", number), Segment(_flatten(text), style)], call.room)
                case [_, _, str(text)]:
                    yield from fold_line([Segment(_flatten(text), context_style)], call.room)
                case _:
                    pass


def _flatten(text: str) -> str:
    """Return a text on one line that can be drawn."""
    return expand_tabs(escape_controls(text).replace("\n", " "))


def render_files(call: ToolCall) -> CallBody:
    """Render a search for files: how many were found; an open call shows their names."""
    pattern, where = call.get_input("pattern"), call.get_path("path")
    subject = f"{pattern}  in {where}" if pattern and where else pattern or where or "."
    number = call.metadata.get("count")
    notes = [] if number is None else ["no files" if not number else f"{number} file{'' if number == 1 else 's'}"]
    return CallBody(subject, notes, draw_output_if_open(call))


def render_web_page(call: ToolCall) -> CallBody:
    """Render a fetched page: its address and size; an open call shows its text."""
    size, status = call.metadata.get("bytes"), call.metadata.get("status")
    notes = [f"status {status}"] if isinstance(status, int) and status != 200 else []
    notes += [format_size(size)] if isinstance(size, int) else []
    return CallBody(call.get_input("url"), [*notes, *call.list_duration_notes()], draw_output_if_open(call))


def render_web_search(call: ToolCall) -> CallBody:
    """Render a web search: its query and the number of results; an open call shows the results."""
    number = call.metadata.get("results")
    notes = [f"{number} result{'' if number == 1 else 's'}"] if isinstance(number, int) else []
    return CallBody(call.get_input("query"), [*notes, *call.list_duration_notes()], draw_output_if_open(call))


def draw_output_if_open(call: ToolCall) -> list[Row]:
    """Return the rows of a call's output; none while the call is folded."""
    return call.fold_rows(call.draw_text(call.output.strip("\n"))) if call.is_open and call.output.strip() else []
