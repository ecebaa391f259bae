"""Diagnostics, parsed tolerantly from a server's messages."""

from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from codeloop.kit.jsonc import is_list
from codeloop.lsp.client.text import Encoding, count_units, find_index
from codeloop.schema.bounds.language import LSP_DIAGNOSTICS_PER_FILE
from codeloop.schema.wire import JSON

ERROR, WARNING = 1, 2
_MAX_MESSAGE_CHARS = 2_000


class Diagnostic(Struct, frozen=True):
    """A diagnostic. `start` and `end`: line and column from 0, columns in characters; `line`: the text of its line."""

    start: tuple[int, int]
    end: tuple[int, int]
    severity: int
    code: str
    source: str
    message: str
    line: str

    @property
    def key(self) -> tuple[int, str, str, str]:
        """What identifies the diagnostic, whatever its position."""
        return (self.severity, self.source, self.code, self.message)

    def to_wire(self) -> JSON:
        """Return the diagnostic in the wire form, with columns in UTF-16 code units."""
        span = {
            name: {
                "line": line,
                "character": count_units(self.line[:column], "utf-16") if line == self.start[0] else column,
            }
            for name, (line, column) in (("start", self.start), ("end", self.end))
        }
        more = {name: value for name, value in (("code", self.code), ("source", self.source)) if value}
        return {"range": span, "severity": self.severity, "message": self.message, **more}


def parse_diagnostics(value: Any, lines: Sequence[str], encoding: Encoding) -> tuple[Diagnostic, ...]:
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
        # A line that the text lacks means another version of it.
        if not (0 <= first <= len(lines) and 0 <= last <= len(lines) + 1):
            return None
        columns = [
            find_index(_find_line(lines, at), int(each["character"]), encoding)
            for at, each in ((first, start), (last, end))
        ]
    except (KeyError, TypeError, ValueError, AttributeError):
        return None
    code = item.get("code")
    return Diagnostic(
        start=(first, columns[0]),
        end=(last, columns[1]),
        severity=severity if isinstance(severity, int) else ERROR,
        code=str(code) if isinstance(code, str | int) else "",
        source=str(item.get("source") or ""),
        message=text[:_MAX_MESSAGE_CHARS].strip(),
        line=_find_line(lines, first).rstrip("\r\n"),
    )


def _find_line(lines: Sequence[str], number: int) -> str:
    return lines[number] if number < len(lines) else ""
