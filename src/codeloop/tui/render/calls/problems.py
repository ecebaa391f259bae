"""Renders the diagnostics of files that a call has changed."""

from collections.abc import Iterator

from msgspec import Struct
from rich.segment import Segment

from codeloop.kit.terminal_text import escape_controls, one_line
from codeloop.tui.render.calls.call import MOST, ToolCall, mapping, sequence
from codeloop.tui.render.canvas import Row
from codeloop.tui.render.cells import cut, cut_path

_SHOWN = 4
"""Diagnostics shown while the call is folded."""
_MESSAGE = 400
"""Characters of a message."""
_LOOKS = {1: ("✗", "error"), 2: ("!", "warning")}
"""Severity -> mark and colour; lesser severities are not shown."""


class FileProblem(Struct, frozen=True):
    """A diagnostic: `place` is the file, `line` from 1."""

    severity: int
    place: str
    line: int
    message: str


def problem_rows(call: ToolCall) -> list[Row]:
    """Return a row for each error and then each warning, at most a few until the call is opened."""
    file_problems = sorted(_problems(call), key=lambda each: each.severity)
    most = MOST if call.is_open else _SHOWN
    left_out = (
        len(file_problems) - most if len(file_problems) > most + 1 else 0
    )  # the note would take as much room as one more row
    rows = [_row(call, each) for each in (file_problems[:most] if left_out else file_problems)]
    if left_out:
        rows.append(call.note(f"… and {left_out:,} more"))
    return rows


def _row(call: ToolCall, problem: FileProblem) -> Row:
    mark, colour = _LOOKS[problem.severity]
    line = f":{problem.line}"
    location = cut_path(escape_controls(call.relative_path(problem.place)), max(call.room // 2 - len(line), 4))
    look = call.style(colour)
    where = Segment(f"{location}{line}  ", call.style("text_muted"))
    return cut([Segment(f"{mark} ", look), where, Segment(problem.message, look)], call.room)


def _problems(call: ToolCall) -> Iterator[FileProblem]:
    """Yield the valid diagnostics of a call's files."""
    for file, diagnostics in mapping(call.metadata.get("diagnostics")).items():
        for each in map(mapping, sequence(diagnostics)):
            line = mapping(mapping(each.get("range")).get("start")).get("line")
            severity, message = each.get("severity", 1), each.get("message")
            if isinstance(severity, int) and severity in _LOOKS and isinstance(line, int) and isinstance(message, str):
                yield FileProblem(severity, file.replace("\n", " "), line + 1, one_line(message, _MESSAGE))
