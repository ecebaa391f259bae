"""Markdown for a terminal, rendered as it streams in; nothing is drawn twice.

A mark is held back until its meaning is known; one that is never closed is shown as it came. Patterns are compiled when
first used, because a pipe needs none.

The terminal UI has a renderer of its own (`tui/render/markdown`): it may draw the end of a text again, as a terminal
that has scrolled can't, and it makes rows of a toolkit that costs more to load than a whole run.
"""

import re

from codeloop.cli.output.style import Look, paint
from codeloop.cli.output.table import SGR, draw_table, split_cells

UNDECIDED = r" *(#{1,6}|[-*+]|\d{1,9}[.)]?|[`~]{1,2}|>|[-*_ ]+)?"
WHOLE_LINES = r" *(#{1,6}\s|\||```|~~~)"
PREFIX = r"( *)(?:([-*+])( +)(?=\S)|(\d{1,9}[.)] +)|(> ?))"
RULE = r" {0,3}([-*_])( *\1){2,} *"
HEADING = r" {0,3}#{1,6}\s+(.*?)\s*#*\s*"
FENCE = r" *(`{3,}|~{3,})\s*([^`]*)"
DELIMITER = r"\|?\s*:?-+:?\s*(\|\s*:?-+:?\s*)*\|?\s*"
TARGET_PART = r"(?:[^()\s]++|\([^()\s]*+\))"
"""Of a link's target; closed brackets belong to it. One that is open ends it: nothing is looked through twice."""
LINK = rf"\[([^\[\]\n]++)\]\(({TARGET_PART}++)\)"
OPEN_LINK = rf"\[[^\[\]\n]*+(\](\({TARGET_PART}*+(\([^()\s]*+)?)?)?"
MARK = r"`+|\*+|\[|\\"
BREAK = r"<br */?>"
BEFORE = " ([{\"'“>-—"
AFTER = " .,;:!?)]}\"'”-—"
MOST_HELD_BACK = 4_000
"""Characters to hold back for a mark that may still be closed."""


class Markdown:
    """Renders text piece by piece, unchanged without `styled`. `columns`: the terminal's width."""

    def __init__(self, *, styled: bool, columns: int) -> None:
        self._styled = styled
        self._columns = columns
        self._line = ""
        self._before = " "
        """The character before what is held back."""
        self._is_begun = False
        self._fence = ""
        self._rows: list[str] = []

    def feed(self, text: str) -> str:
        """Take more text; return the part that can be printed now."""
        if not self._styled:
            return text
        *complete, last = text.split("\n")
        output = ""
        for line in complete:
            self._line += line
            output += self._end_line("\n")
        self._line += last
        return output + self._settled_part()

    def end(self) -> str:
        """Return the rest, at the end of a text."""
        return self._end_line("") + self._table() if self._line or self._rows else ""

    def _settled_part(self) -> str:
        """Return the part of an incomplete line that can't change any more."""
        line = self._line
        if not line or self._rows:
            return ""
        if self._fence:
            if not self._is_begun and self._fence.startswith(line.strip()[:3]):
                return ""
            output = ("" if self._is_begun else "  ") + paint(line, "cyan", colour=True)
            self._line, self._is_begun = "", True
            return output
        output = ""
        if not self._is_begun:
            if re.fullmatch(UNDECIDED, line) or re.match(WHOLE_LINES, line):
                return ""
            output = self._begin()
        spans, self._line = self._inline(self._line, is_final=len(self._line) > MOST_HELD_BACK)
        return output + spans

    def _end_line(self, end: str) -> str:
        line, is_begun = self._line, self._is_begun
        if self._fence:
            self._line, self._is_begun = "", False
            if not is_begun and line.strip().startswith(self._fence) and not line.strip().strip(self._fence[0]):
                self._fence = ""
                return ""
            return ("" if is_begun or not line else "  ") + paint(line, "cyan", colour=True) + end
        if not is_begun:
            if line.lstrip().startswith("|"):
                self._rows.append(line)
                self._line = ""
                return ""
            before = self._table()
            special = self._special(line)
            if special is not None:
                self._line = ""
                return before + special + (end if special else "")
            output = before + self._begin()
        else:
            output = ""
        spans, _ = self._inline(self._line, is_final=True)
        self._line, self._is_begun, self._before = "", False, " "
        return output + spans + end

    def _special(self, line: str) -> str | None:
        """Return a fence, a rule or a heading; None for text."""
        if fence := re.fullmatch(FENCE, line):
            self._fence = fence[1]
            return paint(f"  {fence[2].strip()}", "dim", colour=True) if fence[2].strip() else ""
        if re.fullmatch(RULE, line):
            return paint("─" * min(self._columns - 1, 40), "dim", colour=True)
        if heading := re.fullmatch(HEADING, line):
            return paint(_strip_styles(_inline(heading[1])), "bold", colour=True)
        return None

    def _begin(self) -> str:
        """Take the mark of a list or a quotation from the line."""
        self._is_begun, self._before = True, " "
        prefix = re.match(PREFIX, self._line)
        if prefix is None:
            return ""
        self._line = self._line[prefix.end() :]
        indent, bullet, gap, number, _ = prefix.groups()
        if bullet:
            return f"{indent}•{gap}"
        return f"{indent}{number}" if number else indent + paint("│ ", "dim", colour=True)

    def _inline(self, text: str, *, is_final: bool) -> tuple[str, str]:
        rendered, remainder = _spans(text, self._before, is_final=is_final)
        consumed = text[: len(text) - len(remainder)]
        self._before = consumed[-1:] or self._before
        return rendered, remainder

    def _table(self) -> str:
        """Return the rows that were held back, as a table if they are one."""
        rows, self._rows = self._rows, []
        if not rows:
            return ""
        if len(rows) < 2 or not re.fullmatch(DELIMITER, rows[1].strip()):
            return "".join(_inline(row) + "\n" for row in rows)
        sides = [_side(cell) for cell in split_cells(rows[1])]
        cells = [
            ["\n".join(map(_inline, re.split(BREAK, cell))) for cell in split_cells(row)]
            for row in (rows[0], *rows[2:])
        ]
        return draw_table(cells, sides, self._columns)


def _side(mark: str) -> str:
    if mark.endswith(":"):
        return "middle" if mark.startswith(":") else "right"
    return "left"


def _inline(text: str) -> str:
    return _spans(text, " ", is_final=True)[0]


def _strip_styles(text: str) -> str:
    return re.sub(SGR, "", text)


def _spans(text: str, before: str, *, is_final: bool) -> tuple[str, str]:
    """Return text with emphasis, code and links, and what has to wait for more of the line."""
    output, at = "", 0
    never_closed: set[str] = set()
    marks = re.compile(MARK)
    while (match := marks.search(text, at)) is not None:
        start, run = match.start(), match.group()
        output += text[at:start]
        at = start + len(run)
        if run in never_closed or not _can_open(text, start, run, text[start - 1] if start else before):
            output += run
            continue
        span, end = _read_span(text, start, run)
        if not is_final and (span is None or end == len(text)):
            return output, text[start:]
        if span is None:
            output += run
            if run not in {"[", "\\"}:
                never_closed.add(run)  # nothing further on closes the next one either
        else:
            output, at = output + span, end
    return output + text[at:], ""


def _can_open(text: str, start: int, run: str, before: str) -> bool:
    """Return whether a mark can begin a span; patterns such as `src/*.py` are text."""
    after = start + len(run)
    match run[0]:
        case "*":
            return before in BEFORE and len(run) < 4 and text[after : after + 1] != " "
        case "[":
            return bool(_match(LINK, text, start) or _match(OPEN_LINK + r"\Z", text, start))
        case _:
            return True


def _read_span(text: str, start: int, run: str) -> tuple[str | None, int]:
    """Return the span that begins with a mark, None while it is incomplete, and its end."""
    inside = start + len(run)
    if run == "\\":
        follows = text[inside : inside + 1]
        return (None, inside) if not follows else (follows if follows in "*`[" else run + follows, inside + 1)
    if run == "[":
        link = _match(LINK, text, start)
        if link is None:
            return None, inside
        where = "" if link[1] == link[2] else paint(f" ({link[2]})", "dim", colour=True)
        return paint(link[1], "underline", colour=True) + where, link.end()
    for close in re.compile(r"`+" if run[0] == "`" else r"\*+").finditer(text, inside):
        if close.group() != run:
            continue
        inner, end = text[inside : close.start()], close.end()
        if run[0] == "`":
            return paint(inner.strip() or inner, "cyan", colour=True), end
        if inner[-1:] != " " and text[end : end + 1] in AFTER:
            return _emphasis(inner, len(run)), end
    return None, inside


def _match(pattern: str, text: str, at: int) -> re.Match[str] | None:
    return re.compile(pattern).match(text, at)


def _emphasis(inner: str, marks: int) -> str:
    look: Look = "italic" if marks == 1 else "bold"
    return paint(_strip_styles(_inline(inner)), look, colour=True)
