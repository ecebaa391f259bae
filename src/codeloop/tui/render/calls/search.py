"""Searches: in files, for files, on the web."""

import re

from rich.segment import Segment

from codeloop.kit.terminal_text import inert
from codeloop.tui.render.calls.call import CallBody, ToolCall
from codeloop.tui.render.canvas import Row
from codeloop.tui.render.layout import expand_tabs, fold
from codeloop.tui.terminal.images import size_text

_LINE = re.compile(r"(\d+)([:-]) ?(.*)")


def grep(call: ToolCall) -> CallBody:
    """Return how many lines match in how many files; the lines by file, when it is open."""
    head, _, rest = call.output.partition("\n")
    where = call.path("path") or call.text("include")
    subject = call.text("pattern") + (f"  in {where}" if where else "")
    if not call.metadata.get("matches"):
        return CallBody(subject, ["no matches"] if call.status == "done" else [])
    rows = _hits(call, rest) if call.is_open else []
    return CallBody(subject, [head.partition(" (")[0]], call.folded(rows))


def _hits(call: ToolCall, text: str) -> list[Row]:
    """Return the lines that match below the names of their files."""
    rows: list[Row] = []
    is_name = True
    name, number, muted = call.style("text", "bold"), call.style("diff_line_number"), call.style("text_muted")
    for line in inert(text).split("\n"):
        found = _LINE.match(line)
        if not line:
            is_name = True
        elif is_name or found is None:
            rows += fold([Segment(expand_tabs(line), name if is_name else muted)], call.room)
            is_name = False
        else:
            style = call.style("text") if found[2] == ":" else muted
            rows += fold([Segment(f"{found[1]:>5} ", number), Segment(expand_tabs(found[3]), style)], call.room)
    return rows


def files(call: ToolCall) -> CallBody:
    """Return how many files were found; which ones, when it is open."""
    pattern, where = call.text("pattern"), call.path("path")
    subject = f"{pattern}  in {where}" if pattern and where else pattern or where or "."
    number = call.metadata.get("count")
    notes = [] if number is None else ["no files" if not number else f"{number} file{'' if number == 1 else 's'}"]
    return CallBody(subject, notes, opened(call))


def web_page(call: ToolCall) -> CallBody:
    """Return which page was fetched; its text, when it is open."""
    size, status = call.metadata.get("bytes"), call.metadata.get("status")
    notes = [f"status {status}"] if isinstance(status, int) and status != 200 else []
    notes += [size_text(size)] if isinstance(size, int) else []
    return CallBody(call.text("url"), [*notes, *call.took()], opened(call))


def web_search(call: ToolCall) -> CallBody:
    """Draw a web search: its query and the number of results; the results when it is open."""
    number = call.metadata.get("results")
    notes = [f"{number} result{'' if number == 1 else 's'}"] if isinstance(number, int) else []
    return CallBody(call.text("query"), [*notes, *call.took()], opened(call))


def opened(call: ToolCall) -> list[Row]:
    """Return the output, if the call is open."""
    return call.folded(call.plain(call.output.strip("\n"))) if call.is_open and call.output.strip() else []
