"""A diagnostic: parsed from a server's message, compared with those before, sent to clients,
and formatted for a model.

Parsing is tolerant: an invalid diagnostic is left out, so that the valid ones still help.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from codeloop.kit.jsonc import is_list
from codeloop.lsp.client.text_positions import (
    Encoding,
    TextPosition,
    count_units,
    find_index,
    get_line,
)
from codeloop.schema.bounds.language_tools import LSP_DIAGNOSTICS_PER_FILE, LSP_DIAGNOSTICS_SHOWN
from codeloop.schema.wire import JSON

ERROR, WARNING = 1, 2
_MAX_MESSAGE_CHARS = 2_000
_MAX_MESSAGE_LINES = 4
# The most files that are named without showing their errors.
_MAX_NAMED_FILES = 8


class Diagnostic(Struct, frozen=True):
    """A diagnostic, from `start` to `end`. `line`: the text of its first line."""

    start: TextPosition
    end: TextPosition
    severity: int
    code: str
    source: str
    message: str
    line: str

    @property
    def key(self) -> tuple[int, str, str, str]:
        """The identity of the diagnostic, which stays the same when it moves to another line."""
        return (self.severity, self.source, self.code, self.message)

    def to_wire(self) -> JSON:
        """Return the diagnostic in the form that clients get, with columns in UTF-16 code units."""
        span = {
            "start": self._convert_position(self.start),
            "end": self._convert_position(self.end),
        }
        extra = {
            name: value for name, value in (("code", self.code), ("source", self.source)) if value
        }
        return {"range": span, "severity": self.severity, "message": self.message, **extra}

    def _convert_position(self, position: TextPosition) -> JSON:
        character = position.column
        # The text of other lines is not known: there columns stay in characters.
        if position.line == self.start.line:
            character = count_units(self.line[:character], "utf-16")
        return {"line": position.line, "character": character}


def parse_diagnostics(
    value: Any, lines: Sequence[str], encoding: Encoding
) -> tuple[Diagnostic, ...]:
    """Parse the list that a server sent about a text; invalid entries are left out."""
    items: list[Any] = value[: LSP_DIAGNOSTICS_PER_FILE.value] if is_list(value) else []
    diagnostics = (_parse_diagnostic(item, lines, encoding) for item in items)
    return tuple(each for each in diagnostics if each is not None)


def _parse_diagnostic(item: Any, lines: Sequence[str], encoding: Encoding) -> Diagnostic | None:
    try:
        start, end = item["range"]["start"], item["range"]["end"]
        first, last = int(start["line"]), int(end["line"])
        message = item["message"]
        text = message if isinstance(message, str) else str(message["value"])
        severity = item.get("severity", ERROR)
        # The diagnostic is about another version of the text if it names a
        # line that this one lacks.
        if not (0 <= first <= len(lines) and 0 <= last <= len(lines) + 1):
            return None
        first_column = find_index(get_line(lines, first), int(start["character"]), encoding)
        last_column = find_index(get_line(lines, last), int(end["character"]), encoding)
    except (KeyError, TypeError, ValueError, AttributeError):
        return None
    code = item.get("code")
    return Diagnostic(
        start=TextPosition(first, first_column),
        end=TextPosition(last, last_column),
        severity=severity if isinstance(severity, int) else ERROR,
        code=str(code) if isinstance(code, str | int) else "",
        source=str(item.get("source") or ""),
        message=text[:_MAX_MESSAGE_CHARS].strip(),
        line=get_line(lines, first).rstrip("\r\n"),
    )


def find_new_diagnostics(
    before: Iterable[Diagnostic], current: Iterable[Diagnostic]
) -> list[Diagnostic]:
    """Return the diagnostics that were not there before.
    Diagnostics that only moved to another line are not new.
    """
    counts_by_line = Counter((each.key, each.line.strip()) for each in before)
    counts = Counter(each.key for each in before)
    unmatched: list[Diagnostic] = []
    for each in current:
        key = (each.key, each.line.strip())
        if counts_by_line[key]:
            counts_by_line[key] -= 1
            counts[each.key] -= 1
        else:
            unmatched.append(each)
    # An edit may have changed the text of the line: an old diagnostic with the same
    # key accounts for a new one.
    new: list[Diagnostic] = []
    for each in unmatched:
        if counts[each.key] > 0:
            counts[each.key] -= 1
        else:
            new.append(each)
    return new


def format_new_diagnostics(
    diagnostics: Sequence[tuple[Path, Diagnostic]],
    format_path: Callable[[Path], str],
    lead: str = "",
) -> str:
    """Format diagnostics for a model: their number, then one a line as `path:line: message`;
    "" for none.

    `lead`: the text before the number.
    """
    if not diagnostics:
        return ""
    shown, rest = (
        diagnostics[: LSP_DIAGNOSTICS_SHOWN.value],
        diagnostics[LSP_DIAGNOSTICS_SHOWN.value :],
    )
    lines = [f"{lead}{_format_counts(diagnostics)}:"]
    for path, diagnostic in shown:
        label = "warning: " if diagnostic.severity >= WARNING else ""
        lines.append(format_diagnostic(diagnostic, format_path(path), label))
    if rest:
        other_paths = {path for path, _ in rest} - {path for path, _ in shown}
        names = ", ".join(sorted(map(format_path, other_paths))[:_MAX_NAMED_FILES])
        if len(other_paths) > _MAX_NAMED_FILES:
            names += ", ..."
        lines.append(f"({len(rest)} more, also in {names})" if names else f"({len(rest)} more)")
    return "\n".join(lines)


def _format_counts(diagnostics: Sequence[tuple[Path, Diagnostic]]) -> str:
    """Return the numbers of errors and warnings in words,
    such as `2 new errors and 1 new warning`.
    """
    warning_count = sum(diagnostic.severity >= WARNING for _, diagnostic in diagnostics)
    counts = ((len(diagnostics) - warning_count, "error"), (warning_count, "warning"))
    return " and ".join(
        f"{count} new {noun}{'' if count == 1 else 's'}" for count, noun in counts if count
    )


def format_diagnostic(diagnostic: Diagnostic, name: str, label: str = "") -> str:
    """Format one diagnostic as compilers print it: `name:line: label message (source code)`.
    `name`: of its file.
    """
    lines = [line.strip() for line in diagnostic.message.splitlines() if line.strip()][
        :_MAX_MESSAGE_LINES
    ]
    origin = " ".join(each for each in (diagnostic.source, diagnostic.code) if each)
    return f"{name}:{diagnostic.start.line + 1}: {label}{'; '.join(lines)}{f' ({origin})' if origin else ''}"
