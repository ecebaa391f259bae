"""Renders calls of tools that read or change files, with the diagnostics that language servers report."""

import re
from collections.abc import Iterator
from itertools import islice

from msgspec import Struct
from rich.segment import Segment

from codeloop.kit.text.terminal_text import escape_controls, one_line
from codeloop.tui.render.calls.generic_calls import render_generic
from codeloop.tui.render.calls.tool_call import MAX_ROWS, CallBody, ToolCall, as_list, as_mapping
from codeloop.tui.render.canvas import Row
from codeloop.tui.render.cells import cut_line, cut_path, expand_tabs, fold_line
from codeloop.tui.render.code_highlighter import CodeHighlighter, find_language
from codeloop.tui.render.diff.diff_rows import DiffRows
from codeloop.tui.render.diff.patch import PatchedFile, parse_patches

_FOLDED_PROBLEM_ROWS = 4
"""Diagnostics that are shown while the call is folded."""
_MAX_MESSAGE_LENGTH = 400
"""Characters of a diagnostic's message."""
_SEVERITY_LOOKS = {1: ("✗", "error"), 2: ("!", "warning")}
"""The mark and the colour of each severity; lesser severities are not shown."""


class FileProblem(Struct, frozen=True):
    """A diagnostic of a language server. `line` counts from 1."""

    severity: int
    path: str
    line: int
    message: str


def draw_problems(call: ToolCall) -> list[Row]:
    """Return a row for each error, then for each warning; while the call is folded, at most a few."""
    file_problems = sorted(_read_problems(call), key=lambda each: each.severity)
    most = MAX_ROWS if call.is_open else _FOLDED_PROBLEM_ROWS
    # One more row is shown rather than a note, which would take as much room.
    left_out = len(file_problems) - most if len(file_problems) > most + 1 else 0
    rows = [_draw_problem(call, each) for each in (file_problems[:most] if left_out else file_problems)]
    if left_out:
        rows.append(call.draw_hidden_note(f"… and {left_out:,} more"))
    return rows


def _draw_problem(call: ToolCall, problem: FileProblem) -> Row:
    mark, colour = _SEVERITY_LOOKS[problem.severity]
    line = f":{problem.line}"
    location = cut_path(escape_controls(call.make_relative(problem.path)), max(call.room // 2 - len(line), 4))
    style = call.style(colour)
    where = Segment(f"{location}{line}  ", call.style("text_muted"))
    return cut_line([Segment(f"{mark} ", style), where, Segment(problem.message, style)], call.room)


def _read_problems(call: ToolCall) -> Iterator[FileProblem]:
    """Yield the valid diagnostics of a call's files."""
    for file, diagnostics in as_mapping(call.metadata.get("diagnostics")).items():
        for each in map(as_mapping, as_list(diagnostics)):
            line = as_mapping(as_mapping(each.get("range")).get("start")).get("line")
            severity, message = each.get("severity", 1), each.get("message")
            if (
                isinstance(severity, int)
                and severity in _SEVERITY_LOOKS
                and isinstance(line, int)
                and isinstance(message, str)
            ):
                yield FileProblem(severity, file.replace("\n", " "), line + 1, one_line(message, _MAX_MESSAGE_LENGTH))


FOLDED_DIFF_ROWS = 24
"""Rows of a diff that are shown while the call is folded."""
# In a new file there is less to check than in a diff.
FOLDED_NEW_FILE_ROWS = 10
"""Rows of a new file that are shown while the call is folded."""
# More than is ever drawn: the call is drawn again whenever it changes.
_MAX_DIFF_LENGTH = 150_000
"""Characters of a diff that are parsed."""
# The arguments of a call that the model is still writing are incomplete JSON, which no parser reads.
_JSON_PATH = re.compile(r'"(?:filePath|path)"\s*:\s*"((?:[^"\\]|\\.)*)"')
_PATCH_FILE_HEADER = re.compile(r"\*\*\* (?:Update|Add|Delete) File: (.+?)(?:\\n|\n|$)")


def render_read(call: ToolCall) -> CallBody:
    """Render which lines of which file were read; the lines themselves when the call is open."""
    display = as_mapping(call.metadata.get("display"))
    path = call.get_path("filePath", "path")
    match display.get("type"):
        case "directory":
            return CallBody(
                path, [_format_count(display.get("totalEntries"), "entry", "entries")], _draw_read_lines(call)
            )
        case "file":
            first, last = display.get("lineStart"), display.get("lineEnd")
            total = display.get("totalLines")
            is_part = first != 1 or last != total
            subject = f"{path}:{first}-{last}" if is_part and last else path
            return CallBody(
                subject, [_format_count(total, "line", "lines", "of " if is_part else "")], _draw_read_lines(call)
            )
        case _:
            return CallBody(path)


def _format_count(count: object, one: str, many: str, before: str = "") -> str:
    """Return a count with a noun, such as `of 40 lines`."""
    return f"{before}{count} {one if count == 1 else many}"


def _draw_read_lines(call: ToolCall) -> list[Row]:
    """Return the rows of what was read, if the call is open: lines with numbers, in the colours of the language."""
    display = as_mapping(call.metadata.get("display"))
    if not call.is_open:
        return []
    if display.get("type") == "directory":
        return call.fold_rows(call.draw_text(call.output.strip("\n")))
    text, first = str(display.get("text", "")), display.get("lineStart")
    number = first if isinstance(first, int) else 1
    code = CodeHighlighter(find_language(call.get_path("filePath")), call.canvas.styles)
    lines = text.split("\n")[:MAX_ROWS]
    digits = len(str(number + len(lines)))
    gutter = call.style("diff_line_number")
    rows: list[Row] = []
    for at, line in enumerate(lines, number):
        for index, row in enumerate(
            fold_line(code.highlight(expand_tabs(escape_controls(line))), call.room - digits - 1)
        ):
            rows.append([Segment(f"{'' if index else at:>{digits}} ", gutter), *row])
    return call.fold_rows(rows)


def render_change(call: ToolCall) -> CallBody:
    """Render a change of files as diffs, with the new diagnostics below."""
    diff = call.metadata.get("diff")
    patches = list(parse_patches(diff[:_MAX_DIFF_LENGTH])) if isinstance(diff, str) and call.status != "asking" else []
    additions, deletions = _count_changes(call, patches)
    notes = [f"+{additions} -{deletions}"] if patches else []
    room = MAX_ROWS if call.is_open else FOLDED_DIFF_ROWS if deletions else FOLDED_NEW_FILE_ROWS
    # Rows are drawn lazily: of a long diff, no more than are shown, and two that decide whether a note is needed.
    rows = list(islice(_draw_diffs(call, patches), room + 2))
    if len(rows) > room + 1:
        lines = max(sum(len(hunk) for patch in patches for hunk in patch.hunks), additions + deletions)
        rows = call.fold_rows(rows[:room], room, above=max(lines - room, 1))
    return CallBody(
        _describe_subject(call, patches), [*notes, *_describe_progress(call)], [*rows, *draw_problems(call)]
    )


def render_language_server(call: ToolCall) -> CallBody:
    """Render a request to a language server; a rename as a diff."""
    return render_change(call) if "diff" in call.metadata else render_generic(call)


def _count_changes(call: ToolCall, patches: list[PatchedFile]) -> tuple[int, int]:
    """Return how many lines were added and deleted, as the tool counted them, else counted in the patches."""
    diffs = call.read_objects("files") or [as_mapping(call.metadata.get("filediff"))]
    counts = [(each.get("additions"), each.get("deletions")) for each in diffs]
    tool_counts = [
        (additions, deletions)
        for additions, deletions in counts
        if isinstance(additions, int) and isinstance(deletions, int)
    ]
    totals = tool_counts or [patch.counts for patch in patches]
    return sum(additions for additions, _ in totals), sum(deletions for _, deletions in totals)


def _describe_subject(call: ToolCall, patches: list[PatchedFile]) -> str:
    """Return the path of the changed file, or the number of files."""
    path = call.get_path("filePath", "path")
    if path:
        return path
    names = [call.make_relative(patch.path) for patch in patches]
    if not names:
        raw = getattr(call.part.state, "raw", "") or call.get_input("patchText")
        match = _JSON_PATH.search(raw)
        names = (
            [call.make_relative(match[1])]
            if match
            else [call.make_relative(name) for name in _PATCH_FILE_HEADER.findall(raw)]
        )
    return names[0] if len(names) == 1 else f"{len(names)} files" if names else ""


def _describe_progress(call: ToolCall) -> list[str]:
    """Return a note with how many lines the model has written of a text that it is still writing."""
    # In JSON, a line end within a text is the two characters backslash and n.
    raw = getattr(call.part.state, "raw", "")
    lines = raw.count("\\n") if call.status == "pending" else 0
    return [f"{lines} lines so far"] if lines > 1 else []


def _draw_diffs(call: ToolCall, patches: list[PatchedFile]) -> Iterator[Row]:
    """Yield the rows of the diffs; if there are several, each below its path and counts."""
    for patch in patches:
        if len(patches) > 1:
            additions, deletions = patch.counts
            room = call.room - len(f"  +{additions} -{deletions}")
            yield [
                Segment(cut_path(escape_controls(call.make_relative(patch.path)), room), call.style("text", "bold")),
                Segment(f"  +{additions} -{deletions}", call.style("text_muted")),
            ]
        yield from DiffRows(patch, call.canvas, call.room).draw()
