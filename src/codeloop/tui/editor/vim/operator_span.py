"""Finds the span of text that a vi operator covers when a motion follows it."""

from msgspec import Struct

from codeloop.tui.editor.grapheme_bounds import find_next_edge
from codeloop.tui.editor.vim.motions import MotionEnd, find_line_end, find_line_start
from codeloop.tui.editor.words import find_word_end


class OperatorSpan(Struct, frozen=True):
    """The text between two offsets; `is_lines`: the whole lines around both."""

    low: int
    high: int
    is_lines: bool = False


def find_change_word_span(text: str, offset: int, count: int, *, big: bool) -> OperatorSpan:
    """Return the span of `cw` on a word: up to the word's end,
    without the blank behind it that `dw` includes.
    """
    index = offset - 1
    for _ in range(count):
        index = find_word_end(text, index, big=big)
    return OperatorSpan(offset, min(find_next_edge(text, index), len(text)))


def find_motion_span(
    text: str, offset: int, target: MotionEnd, keys: str, operator: str
) -> OperatorSpan:
    """Return the span of an operator from an offset to the end of a motion."""
    low, high = sorted((offset, target.offset))
    if target.reach == "lines":
        return OperatorSpan(low, high, is_lines=True)
    if target.reach == "inclusive":
        high = find_next_edge(text, high) if high < find_line_end(text, high) else high
    elif keys in {"w", "W"}:
        low, high = _exclude_line_feed(text, low, high)
    # As in vi, the line feed before the motion's end is left out;
    # from a line's first letter on, whole lines are meant.
    elif low < high and text[high - 1] == "\n":
        if not text[find_line_start(text, low) : low].strip():
            return OperatorSpan(low, high - 1, is_lines=True)
        return OperatorSpan(low, max(high - 1, low))
    return _extend_to_lines(text, low, high) if operator == "d" else OperatorSpan(low, high)


def _exclude_line_feed(text: str, low: int, high: int) -> tuple[int, int]:
    """Return a span without the line feed after the last word of a line."""
    start = find_line_start(text, high)
    if low < start and not text[start:high].strip():
        return low, max(start - 1, low)
    return low, high


def _extend_to_lines(text: str, low: int, high: int) -> OperatorSpan:
    """Return the span of a deletion: whole lines, if it leaves only blanks of the
    first and of the last line.
    """
    is_whole = (
        not text[find_line_start(text, low) : low].strip()
        and not text[high : find_line_end(text, high)].strip()
    )
    return OperatorSpan(low, high, is_lines="\n" in text[low:high] and is_whole)
