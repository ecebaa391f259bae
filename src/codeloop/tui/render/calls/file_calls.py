"""Renders calls of tools that read or change files, and of `lsp`;
below a change, the new diagnostics.
"""

from collections.abc import Iterator
from itertools import islice

from msgspec import Struct
from rich.segment import Segment

from codeloop.kit.text.patterns import compile_once
from codeloop.kit.text.terminal_text import escape_controls, one_line
from codeloop.tui.render.calls.generic_calls import render_generic
from codeloop.tui.render.calls.tool_call import MAX_ROWS, CallBody, ToolCall, as_list, as_mapping
from codeloop.tui.render.canvas import GUTTER, Row
from codeloop.tui.render.cells import cut_line, cut_path, expand_tabs, fold_line
from codeloop.tui.render.code_highlighter import CodeHighlighter, find_language
from codeloop.tui.render.diff.diff_renderer import draw_diffs
from codeloop.tui.render.diff.patch import ChangeCounts, PatchedFile, parse_patches, sum_counts

_FOLDED_DIFF_ROWS = 24
"""Rows of a diff that are shown while the call is folded."""
# Where nothing is deleted, such as in a new file, there is less to check.
_FOLDED_ADDITION_ROWS = 5
"""Rows of a diff without deletions that are shown while the call is folded."""
# More than is ever drawn; without a bound, a long diff would be parsed with
# each drawing of the call.
_MAX_DIFF_LENGTH = 150_000
"""Characters of a diff that are parsed."""
# The arguments of a call that the model is still writing are incomplete JSON, which no parser
# reads. Matches `"filePath": "src/a.py"` in them.
_JSON_PATH = r'"(?:filePath|path)"\s*:\s*"((?:[^"\\]|\\.)*)"'
# Matches `*** Update File: src/a.py`, up to the end of the line, which may be written as in JSON.
_PATCH_FILE_HEADER = r"\*\*\* (?:Update|Add|Delete) File: (.+?)(?:\\n|\n|$)"
_FOLDED_PROBLEM_ROWS = 4
"""Diagnostics that are shown while the call is folded."""
_MAX_MESSAGE_LENGTH = 400
"""Characters of a diagnostic's message."""
_MARKS_BY_SEVERITY = {1: ("✗", "error"), 2: ("!", "warning")}
"""The mark and the colour of each severity; lesser severities are not shown."""


def render_read(call: ToolCall) -> CallBody:
    """Render which lines of which file were read; the lines themselves when the call is open."""
    display = as_mapping(call.metadata.get("display"))
    path = call.get_path("filePath", "path")
    match display.get("type"):
        case "directory":
            count = display.get("totalEntries")
            note = f"{count} {'entry' if count == 1 else 'entries'}"
            return CallBody(path, [note], _draw_read_lines(call))
        case "file":
            first, last, total = (
                display.get("lineStart"),
                display.get("lineEnd"),
                display.get("totalLines"),
            )
            note = f"{total} {'line' if total == 1 else 'lines'}"
            if first == 1 and last == total:
                return CallBody(path, [note], _draw_read_lines(call))
            # An empty part has no last line.
            subject = f"{path}:{first}-{last}" if last else path
            return CallBody(subject, [f"of {note}"], _draw_read_lines(call))
        case _:
            return CallBody(path)


def _draw_read_lines(call: ToolCall) -> list[Row]:
    """Return the rows of what was read, if the call is open: lines with numbers,
    in the colours of the language.
    """
    display = as_mapping(call.metadata.get("display"))
    if not call.is_open:
        return []
    if display.get("type") == "directory":
        return call.fold_rows(call.draw_text(call.output.strip("\n")))
    text, line_start = str(display.get("text", "")), display.get("lineStart")
    first_number = line_start if isinstance(line_start, int) else 1
    highlighter = CodeHighlighter(find_language(call.get_path("filePath")), call.canvas.styles)
    lines = text.split("\n")[:MAX_ROWS]
    digits = len(str(first_number + len(lines)))
    number_style = call.style("diff_line_number") + GUTTER
    rows: list[Row] = []
    for number, line in enumerate(lines, first_number):
        segments = highlighter.highlight(expand_tabs(escape_controls(line)))
        # Only the first row of a line that is folded has its number.
        label = str(number)
        for row in fold_line(segments, call.room - digits - 1):
            rows.append([Segment(f"{label:>{digits}} ", number_style), *row])
            label = ""
    return call.fold_rows(rows)


def render_change(call: ToolCall) -> CallBody:
    """Render a change of files as diffs, with the new diagnostics below."""
    diff = call.metadata.get("diff")
    # While the user is asked, the request panel shows the diff.
    patches = (
        list(parse_patches(diff[:_MAX_DIFF_LENGTH]))
        if isinstance(diff, str) and call.status != "asking"
        else []
    )
    additions, deletions = _count_changes(call, patches)
    folded_rows = _FOLDED_DIFF_ROWS if deletions else _FOLDED_ADDITION_ROWS
    max_rows = MAX_ROWS if call.is_open else folded_rows
    # Rows are drawn lazily: of a long diff, no more than are shown,
    # and two that decide whether a note is needed.
    drawn_rows = draw_diffs(
        patches, call.canvas, call.room, lambda path: escape_controls(call.make_relative(path))
    )
    rows = list(islice(drawn_rows, max_rows + 2))
    if len(rows) > max_rows + 1:
        # The undrawn rows are not known, so lines are counted in their place.
        line_count = max(
            sum(len(hunk) for patch in patches for hunk in patch.hunks), additions + deletions
        )
        rows = call.fold_rows(rows[:max_rows], max_rows, hidden_lines=max(line_count - max_rows, 1))
    notes = [f"+{additions} -{deletions}"] if patches else []
    return CallBody(
        subject=_describe_subject(call, patches),
        notes=[*notes, *_describe_progress(call)],
        rows=[*rows, *_draw_problems(call)],
    )


def render_language_server(call: ToolCall) -> CallBody:
    """Render a request to a language server; a rename as a diff."""
    return render_change(call) if "diff" in call.metadata else render_generic(call)


def _count_changes(call: ToolCall, patches: list[PatchedFile]) -> ChangeCounts:
    """Return how many lines were added and deleted, as the tool counted them,
    else counted in the patches.
    """
    diffs = call.read_objects("files") or [as_mapping(call.metadata.get("filediff"))]
    counts: list[ChangeCounts] = []
    for diff in diffs:
        additions, deletions = diff.get("additions"), diff.get("deletions")
        if isinstance(additions, int) and isinstance(deletions, int):
            counts.append(ChangeCounts(additions, deletions))
    return sum_counts(counts or [patch.counts for patch in patches])


def _describe_subject(call: ToolCall, patches: list[PatchedFile]) -> str:
    """Return the path of the changed file, or the number of files; "": they are not known yet."""
    path = call.get_path("filePath", "path")
    if path:
        return path
    paths = [patch.path for patch in patches] or _find_paths(call)
    if len(paths) > 1:
        return f"{len(paths)} files"
    return call.make_relative(paths[0]) if paths else ""


def _find_paths(call: ToolCall) -> list[str]:
    """Return the paths in the arguments of a call that may still be written."""
    raw = getattr(call.part.state, "raw", "") or call.get_input("patchText")
    match = compile_once(_JSON_PATH).search(raw)
    return [match[1]] if match else compile_once(_PATCH_FILE_HEADER).findall(raw)


def _describe_progress(call: ToolCall) -> list[str]:
    """Return a note with how many lines the model has written of a text
    that it is still writing.
    """
    if call.status != "pending":
        return []
    # In JSON, a line end within a text is the two characters backslash and n.
    line_count = getattr(call.part.state, "raw", "").count("\\n")
    return [f"{line_count} lines so far"] if line_count > 1 else []


class _FileProblem(Struct, frozen=True):
    """A diagnostic of a language server. `line` counts from 1."""

    severity: int
    path: str
    line: int
    message: str


def _draw_problems(call: ToolCall) -> list[Row]:
    """Return a row for each error, then for each warning;
    while the call is folded, at most a few, and a note.
    """
    problems = sorted(_read_problems(call), key=lambda problem: problem.severity)
    max_rows = MAX_ROWS if call.is_open else _FOLDED_PROBLEM_ROWS
    # One row more is shown rather than a note, which would take as much room.
    if len(problems) <= max_rows + 1:
        return [_draw_problem(call, problem) for problem in problems]
    rows = [_draw_problem(call, problem) for problem in problems[:max_rows]]
    return [*rows, call.draw_hidden_note(f"… and {len(problems) - max_rows:,} more")]


def _draw_problem(call: ToolCall, problem: _FileProblem) -> Row:
    mark, colour = _MARKS_BY_SEVERITY[problem.severity]
    line = f":{problem.line}"
    location = cut_path(
        escape_controls(call.make_relative(problem.path)), max(call.room // 2 - len(line), 4)
    )
    style = call.style(colour)
    where = Segment(f"{location}{line}  ", call.style("text_muted"))
    return cut_line([Segment(f"{mark} ", style), where, Segment(problem.message, style)], call.room)


def _read_problems(call: ToolCall) -> Iterator[_FileProblem]:
    """Yield the errors and warnings of a call's files; diagnostics in another form are left out."""
    for file, diagnostics in as_mapping(call.metadata.get("diagnostics")).items():
        for each in map(as_mapping, as_list(diagnostics)):
            line = as_mapping(as_mapping(each.get("range")).get("start")).get("line")
            severity, message = each.get("severity", 1), each.get("message")
            if (
                isinstance(severity, int)
                and severity in _MARKS_BY_SEVERITY
                and isinstance(line, int)
                and isinstance(message, str)
            ):
                yield _FileProblem(
                    severity=severity,
                    path=file.replace("\n", " "),
                    # Language servers count lines from 0.
                    line=line + 1,
                    message=one_line(message, _MAX_MESSAGE_LENGTH),
                )
