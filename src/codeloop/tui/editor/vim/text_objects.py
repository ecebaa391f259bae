"""The text objects of vi, such as `iw`, `a"` and `i(`: functions that find
an object around an offset.
"""

from collections.abc import Sequence
from typing import NamedTuple

from codeloop.tui.editor.vim.motions import find_line_end, find_line_start, list_sentence_starts
from codeloop.tui.editor.words import classify_character

_BRACKET_PAIRS = {
    "(": "()",
    ")": "()",
    "b": "()",
    "[": "[]",
    "]": "[]",
    "{": "{}",
    "}": "{}",
    "B": "{}",
    "<": "<>",
    ">": "<>",
}
"""The brackets that each key after `i` or `a` stands for."""
TEXT_OBJECT_KINDS = frozenset({"w", "W", "p", "s", '"', "'", "`", *_BRACKET_PAIRS})


class Line(NamedTuple):
    """A line of a text, from its start to its end, which is before its line feed."""

    start: int
    end: int

    @property
    def is_blank(self) -> bool:
        """Whether the line is empty."""
        return self.start == self.end


def find_text_object(text: str, offset: int, kind: str, *, around: bool) -> tuple[int, int] | None:
    """Return the start and end of an object; None: there is none at this offset.

    `kind`: the key after `i` or `a`. `around`: it was `a`, which includes blanks, brackets or
    quotes around the object.
    """
    if kind in {"w", "W"}:
        return _find_word(text, offset, around=around, big=kind == "W")
    if kind == "p":
        return _find_paragraph(text, offset, around=around)
    if kind == "s":
        return _find_sentence(text, offset, around=around)
    if kind in _BRACKET_PAIRS:
        return _find_brackets(text, offset, _BRACKET_PAIRS[kind], around=around)
    return _find_quotes(text, offset, kind, around=around)


def _find_word(text: str, offset: int, *, around: bool, big: bool) -> tuple[int, int] | None:
    low, high = find_line_start(text, offset), find_line_end(text, offset)
    if low == high:
        return offset, offset
    offset = min(offset, high - 1)
    start, end = _find_run(text, offset, low, high, big=big)
    if not around:
        return start, end
    if text[offset].isspace():
        return start, _find_run(text, end, low, high, big=big)[1] if end < high else end
    if end < high and text[end].isspace():
        return start, _find_run(text, end, low, high, big=big)[1]
    return _include_blanks_before(text, start, low), end


def _include_blanks_before(text: str, start: int, low: int) -> int:
    """Return the start of the blanks before an offset;
    the offset itself if these are the indentation of the line.
    """
    index = start
    while index > low and text[index - 1].isspace():
        index -= 1
    return index if index > low else start


def _find_run(text: str, offset: int, low: int, high: int, *, big: bool) -> tuple[int, int]:
    """Return the bounds of the characters of one class around an offset,
    between `low` and `high`.
    """
    kind = classify_character(text[offset], big=big)
    if kind == "chip":
        return offset, offset + 1
    start = end = offset
    while start > low and classify_character(text[start - 1], big=big) == kind:
        start -= 1
    while end < high and classify_character(text[end], big=big) == kind:
        end += 1
    return start, end


def _find_paragraph(text: str, offset: int, *, around: bool) -> tuple[int, int]:
    """Return the lines of a paragraph, or the blank lines between two.

    `around`: with the blank lines, or the paragraph, that follow; without any, with those before.
    """
    lines, current = _split_lines(text), text.count("\n", 0, offset)
    first, last = _find_similar_lines(lines, current)
    if around:
        if last + 1 < len(lines):
            last = _find_similar_lines(lines, last + 1)[1]
        elif first > 0 and not lines[current].is_blank:
            first = _find_similar_lines(lines, first - 1)[0]
    return lines[first].start, lines[last].end


def _split_lines(text: str) -> list[Line]:
    lines: list[Line] = []
    start = 0
    for line in text.split("\n"):
        lines.append(Line(start, start + len(line)))
        start += len(line) + 1
    return lines


def _find_similar_lines(lines: Sequence[Line], index: int) -> tuple[int, int]:
    """Return the first and the last of the adjacent lines that are blank like this one,
    or not blank like it.
    """
    is_blank, first, last = lines[index].is_blank, index, index
    while first > 0 and lines[first - 1].is_blank == is_blank:
        first -= 1
    while last + 1 < len(lines) and lines[last + 1].is_blank == is_blank:
        last += 1
    return first, last


def _find_sentence(text: str, offset: int, *, around: bool) -> tuple[int, int]:
    """Return the sentence at an offset. `around`: with the blanks behind it;
    without any, with those before it.
    """
    starts = list_sentence_starts(text)
    start = max((index for index in starts if index <= offset), default=0)
    next_start = min((index for index in starts if index > offset), default=len(text))
    end = start + len(text[start:next_start].rstrip())
    # In the blanks behind a sentence: these are the object,
    # around with the sentence that follows them.
    if offset >= end > start:
        if around:
            next_start = min((index for index in starts if index > next_start), default=len(text))
        return end, next_start
    if not around:
        return start, end
    return (
        (start, next_start)
        if next_start > end
        else (_include_blanks_before(text, start, 0), next_start)
    )


def _find_brackets(text: str, offset: int, pair: str, *, around: bool) -> tuple[int, int] | None:
    """Return the text within the innermost brackets around an offset;
    None: there are none, or they are not closed.
    """
    opening, closing = pair
    depth, start = 0, -1
    for index in range(min(offset, len(text) - 1), -1, -1):
        if text[index] == closing and index != offset:
            depth += 1
        elif text[index] == opening:
            if depth == 0:
                start = index
                break
            depth -= 1
    # Not within brackets: the next ones in the line, as in newer versions of Vim.
    if start < 0:
        start = text.find(opening, offset, find_line_end(text, offset))
    if start < 0:
        return None
    depth = 0
    for index in range(start, len(text)):
        depth += (text[index] == opening) - (text[index] == closing)
        if depth == 0:
            return (start, index + 1) if around else (start + 1, index)
    return None


def _find_quotes(text: str, offset: int, quote: str, *, around: bool) -> tuple[int, int] | None:
    """Return the text between two quotes of a line,
    the first pair that ends at or behind the offset.
    """
    # As in vi, quotes are paired from the start of the line;
    # a quotation never goes on in the next line.
    low, high = find_line_start(text, offset), find_line_end(text, offset)
    quotes = [
        index
        for index in range(low, high)
        if text[index] == quote and (index == low or text[index - 1] != "\\")
    ]
    for first, last in zip(quotes[::2], quotes[1::2], strict=False):
        if last >= offset:
            if not around:
                return first + 1, last
            end = last + 1
            while end < high and text[end].isspace():
                end += 1
            return (first if end > last + 1 else _include_blanks_before(text, first, low)), end
    return None
