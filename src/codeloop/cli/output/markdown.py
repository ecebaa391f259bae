"""Renders Markdown for a terminal while it streams in.
Nothing is drawn twice, because a terminal may have scrolled.

A mark such as `**` is held back until it is closed; one that is never closed is shown as it came.
Patterns are compiled when first used, because a pipe needs none.

The terminal UI has a renderer of its own (`tui/render/markdown`), which may draw the end of a text
again, and makes rows of a toolkit that takes longer to load than a whole run.
"""

import re

from codeloop.cli.output.markdown_table import SGR_PATTERN, draw_table, split_cells
from codeloop.cli.output.style import TextStyle, paint

# The start of a line that may still become a heading, a list, a fence, a quotation or a rule,
# such as `##` or `12.`.
UNDECIDED_PATTERN = r" *(#{1,6}|[-*+]|\d{1,9}[.)]?|[`~]{1,2}|>|[-*_ ]+)?"
# The start of a line that is only rendered whole: a heading, a row of a table, a fence.
WHOLE_LINE_PATTERN = r" *(#{1,6}\s|\||```|~~~)"
# The mark of a list or a quotation: `- `, `12. ` or `> `.
# Groups: indentation, bullet, gap after it, number, `>`.
PREFIX_PATTERN = r"( *)(?:([-*+])( +)(?=\S)|(\d{1,9}[.)] +)|(> ?))"
# Such as `---` or `* * *`.
RULE_PATTERN = r" {0,3}([-*_])( *\1){2,} *"
# Such as `## Title` or `## Title ##`. Group: the title.
HEADING_PATTERN = r" {0,3}#{1,6}\s+(.*?)\s*#*\s*"
# Such as ```` ```python ````. Groups: the fence, the language.
FENCE_PATTERN = r" *(`{3,}|~{3,})\s*([^`]*)"
# The line below a table's header, such as `| --- | :---: |`.
TABLE_DELIMITER_PATTERN = r"\|?\s*:?-+:?\s*(\|\s*:?-+:?\s*)*\|?\s*"
# A part of a link's target, which may contain brackets if they are closed. The quantifiers are
# possessive: with backtracking, a hostile text could make the search exponential.
LINK_TARGET_PART = r"(?:[^()\s]++|\([^()\s]*+\))"
LINK_PATTERN = rf"\[([^\[\]\n]++)\]\(({LINK_TARGET_PART}++)\)"
# The start of a link whose rest is still to come, such as `[text](https://exa`.
OPEN_LINK_PATTERN = rf"\[[^\[\]\n]*+(\](\({LINK_TARGET_PART}*+(\([^()\s]*+)?)?)?"
# What may begin a span: code, emphasis, a link, an escaped character.
MARK_PATTERN = r"`+|\*+|\[|\\"
LINE_BREAK_PATTERN = r"<br */?>"
# Elsewhere a star is text, as in `src/*.py` or `2*3`.
CHARS_BEFORE_EMPHASIS = " ([{\"'“>-—"
CHARS_AFTER_EMPHASIS = " .,;:!?)]}\"'”-—"
# Characters of a line to hold back for a mark that may still be closed;
# a longer line is shown as it is.
MAX_HELD_CHARS = 4_000


class Markdown:
    """Renders one text piece by piece. `styled`: False to leave it unchanged.
    `columns`: the terminal's width.
    """

    def __init__(self, *, styled: bool, columns: int) -> None:
        self._styled = styled
        self._columns = columns
        self._line = ""
        # The character before the text that is held back: it decides whether a
        # star can begin emphasis.
        self._previous_char = " "
        self._is_line_begun = False
        self._fence = ""
        self._table_rows: list[str] = []

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
        return output + self._render_settled_part()

    def end(self) -> str:
        """Return the text that is still held back, at the end of the whole text."""
        return self._end_line("") + self._render_table() if self._line or self._table_rows else ""

    def _render_settled_part(self) -> str:
        """Return the part of an incomplete line that can't change any more."""
        line = self._line
        if not line or self._table_rows:
            return ""
        if self._fence:
            # This may become the line that closes the fence.
            if not self._is_line_begun and self._fence.startswith(line.strip()[:3]):
                return ""
            output = ("" if self._is_line_begun else "  ") + paint(line, "cyan", colour=True)
            self._line, self._is_line_begun = "", True
            return output
        output = ""
        if not self._is_line_begun:
            if re.fullmatch(UNDECIDED_PATTERN, line) or re.match(WHOLE_LINE_PATTERN, line):
                return ""
            output = self._begin_line()
        spans, self._line = self._render_spans(
            self._line, is_final=len(self._line) > MAX_HELD_CHARS
        )
        return output + spans

    def _end_line(self, end: str) -> str:
        """Return the rest of the line, now that it is complete;
        `end`: its newline, "" at the end of the text.
        """
        if self._fence:
            return self._end_code_line(end)
        output = ""
        if not self._is_line_begun:
            line = self._line
            # The widths of a table's columns depend on all of its rows.
            if line.lstrip().startswith("|"):
                self._table_rows.append(line)
                self._line = ""
                return ""
            table = self._render_table()
            block_line = self._render_block_line(line)
            if block_line is not None:
                self._line = ""
                return table + block_line + (end if block_line else "")
            output = table + self._begin_line()
        spans, _ = self._render_spans(self._line, is_final=True)
        self._line, self._is_line_begun, self._previous_char = "", False, " "
        return output + spans + end

    def _end_code_line(self, end: str) -> str:
        """Return the rest of a line between two fences; "" for the closing fence itself."""
        line, is_begun = self._line, self._is_line_begun
        self._line, self._is_line_begun = "", False
        is_closing_fence = line.strip().startswith(self._fence) and not line.strip().strip(
            self._fence[0]
        )
        if is_closing_fence and not is_begun:
            self._fence = ""
            return ""
        indent = "" if is_begun or not line else "  "
        return indent + paint(line, "cyan", colour=True) + end

    def _render_block_line(self, line: str) -> str | None:
        """Render a line that opens a fence, or is a rule or a heading;
        return None for any other line.
        """
        if fence := re.fullmatch(FENCE_PATTERN, line):
            self._fence = fence[1]
            return paint(f"  {fence[2].strip()}", "dim", colour=True) if fence[2].strip() else ""
        if re.fullmatch(RULE_PATTERN, line):
            return paint("─" * min(self._columns - 1, 40), "dim", colour=True)
        if heading := re.fullmatch(HEADING_PATTERN, line):
            return paint(_strip_styles(_render_inline(heading[1])), "bold", colour=True)
        return None

    def _begin_line(self) -> str:
        """Remove the mark of a list or a quotation from the line, and return it rendered."""
        self._is_line_begun, self._previous_char = True, " "
        prefix = re.match(PREFIX_PATTERN, self._line)
        if prefix is None:
            return ""
        self._line = self._line[prefix.end() :]
        indent, bullet, gap, number, _ = prefix.groups()
        if bullet:
            return f"{indent}•{gap}"
        return f"{indent}{number}" if number else indent + paint("│ ", "dim", colour=True)

    def _render_spans(self, text: str, *, is_final: bool) -> tuple[str, str]:
        """Do as the function of this name does, and note the last character
        that it has rendered.
        """
        rendered, remainder = _render_spans(text, self._previous_char, is_final=is_final)
        consumed = text[: len(text) - len(remainder)]
        self._previous_char = consumed[-1:] or self._previous_char
        return rendered, remainder

    def _render_table(self) -> str:
        """Return the rows that were held back: as a table if the second one is a delimiter,
        else as text.
        """
        rows, self._table_rows = self._table_rows, []
        if not rows:
            return ""
        if len(rows) < 2 or not re.fullmatch(TABLE_DELIMITER_PATTERN, rows[1].strip()):
            return "".join(_render_inline(row) + "\n" for row in rows)
        alignments = [_read_alignment(cell) for cell in split_cells(rows[1])]
        cells = [
            [
                "\n".join(map(_render_inline, re.split(LINE_BREAK_PATTERN, cell)))
                for cell in split_cells(row)
            ]
            for row in (rows[0], *rows[2:])
        ]
        return draw_table(cells, alignments, self._columns)


def _read_alignment(mark: str) -> str:
    if mark.endswith(":"):
        return "middle" if mark.startswith(":") else "right"
    return "left"


def _render_inline(text: str) -> str:
    """Render emphasis, code and links of a text that is complete."""
    return _render_spans(text, " ", is_final=True)[0]


def _strip_styles(text: str) -> str:
    return re.sub(SGR_PATTERN, "", text)


def _render_spans(text: str, before: str, *, is_final: bool) -> tuple[str, str]:
    """Render emphasis, code and links; return the rendered text,
    and the rest that waits for more of the line.

    `before`: the character before the text. `is_final`: there is no more, so that nothing waits.
    """
    output, position = "", 0
    never_closed: set[str] = set()
    marks = re.compile(MARK_PATTERN)
    while (match := marks.search(text, position)) is not None:
        start, run = match.start(), match.group()
        output += text[position:start]
        position = start + len(run)
        if run in never_closed or not _can_open(
            text, start, run, text[start - 1] if start else before
        ):
            output += run
            continue
        span, end = _read_span(text, start, run)
        if not is_final and (span is None or end == len(text)):
            return output, text[start:]
        if span is None:
            output += run
            if run not in {"[", "\\"}:
                # A mark without an end has none for the same mark further on. Searching for each
                # again would make a line of many open marks quadratic.
                never_closed.add(run)
        else:
            output, position = output + span, end
    return output + text[position:], ""


def _can_open(text: str, start: int, run: str, before: str) -> bool:
    """Return whether a mark (`run`: with its repetitions) can begin a span.
    `before`: the character before it.
    """
    after = start + len(run)
    match run[0]:
        case "*":
            return (
                before in CHARS_BEFORE_EMPHASIS and len(run) < 4 and text[after : after + 1] != " "
            )
        case "[":
            return bool(
                _match_at(LINK_PATTERN, text, start)
                or _match_at(OPEN_LINK_PATTERN + r"\Z", text, start)
            )
        case _:
            return True


def _read_span(text: str, start: int, run: str) -> tuple[str | None, int]:
    """Return the rendered span that begins with a mark, None while it is incomplete,
    and the index of its end.
    """
    inside = start + len(run)
    if run == "\\":
        escaped_char = text[inside : inside + 1]
        if not escaped_char:
            return None, inside
        # Before other characters, the backslash is text.
        return escaped_char if escaped_char in "*`[" else run + escaped_char, inside + 1
    if run == "[":
        link = _match_at(LINK_PATTERN, text, start)
        if link is None:
            return None, inside
        target = "" if link[1] == link[2] else paint(f" ({link[2]})", "dim", colour=True)
        return paint(link[1], "underline", colour=True) + target, link.end()
    for close in re.compile(r"`+" if run[0] == "`" else r"\*+").finditer(text, inside):
        if close.group() != run:
            continue
        inner, end = text[inside : close.start()], close.end()
        if run[0] == "`":
            return paint(inner.strip() or inner, "cyan", colour=True), end
        if inner[-1:] != " " and text[end : end + 1] in CHARS_AFTER_EMPHASIS:
            return _render_emphasis(inner, len(run)), end
    return None, inside


def _match_at(pattern: str, text: str, start: int) -> re.Match[str] | None:
    # `re.compile` caches the pattern; `re.match` would need a copy of the text from `start` on.
    return re.compile(pattern).match(text, start)


def _render_emphasis(inner: str, mark_length: int) -> str:
    style: TextStyle = "italic" if mark_length == 1 else "bold"
    # Styles can't be nested: the end of an inner one resets the outer one as well.
    return paint(_strip_styles(_render_inline(inner)), style, colour=True)
