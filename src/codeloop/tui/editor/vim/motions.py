"""The motions of vi: functions that find the offset in a text to which a motion goes."""

from typing import Literal

from msgspec import Struct

from codeloop.kit.text.patterns import compile_once
from codeloop.tui.editor.grapheme_bounds import find_next_edge, find_previous_edge, snap_to_edge
from codeloop.tui.editor.words import (
    classify_character,
    find_next_word,
    find_previous_word,
    find_word_end,
)

_LAST_LINE = 1 << 30
"""A line number that no text has, and which therefore means the last line."""
_SENTENCE_END = r"[.!?][\])\"']*\s+"
_BLANK_LINES = r"\n\n+"
OperatorReach = Literal["exclusive", "inclusive", "lines"]
"""The text that an operator covers: up to the motion's end, including the character there,
or whole lines.
"""


class MotionEnd(Struct, frozen=True):
    """The offset at which a motion ends, and how far an operator reaches."""

    offset: int
    reach: OperatorReach = "exclusive"


def find_line_start(text: str, offset: int) -> int:
    """Return the start of the line around an offset."""
    return text.rfind("\n", 0, offset) + 1


def find_line_end(text: str, offset: int) -> int:
    """Return the end of the line around an offset, before its line feed."""
    end = text.find("\n", offset)
    return len(text) if end < 0 else end


def find_last_character(text: str, offset: int) -> int:
    """Return the offset of the last character of the line, or if it is empty, its start."""
    start, end = find_line_start(text, offset), find_line_end(text, offset)
    return max(start, find_previous_edge(text, end)) if end > start else start


def find_first_nonblank(text: str, offset: int) -> int:
    """Return the offset of the first character of the line that is not blank."""
    index, end = find_line_start(text, offset), find_line_end(text, offset)
    while index < end and text[index].isspace():
        index += 1
    return min(index, find_last_character(text, offset)) if index == end else index


def find_character(text: str, offset: int, kind: str, char: str, count: int) -> int | None:
    """Return the offset to which `f`, `F`, `t` or `T` goes in the line;
    None: the line has no such character.
    """
    low, high = find_line_start(text, offset), find_line_end(text, offset)
    index = offset
    for _ in range(count):
        index = text.find(char, index + 1, high) if kind in "ft" else text.rfind(char, low, index)
        if index < 0:
            return None
    if kind == "t":
        return find_previous_edge(text, index)
    return find_next_edge(text, index) if kind == "T" else index


def find_vertical_offset(text: str, offset: int, lines: int, column: int) -> int | None:
    """Return the offset in a column (characters) of a line below, or above if `lines` is negative;
    None: none there.
    """
    start = find_line_start(text, offset)
    for _ in range(abs(lines)):
        if lines > 0:
            end = find_line_end(text, start)
            if end == len(text):
                return None
            start = end + 1
        else:
            if start == 0:
                return None
            start = find_line_start(text, start - 1)
    end = find_line_end(text, start)
    return (
        snap_to_edge(text, min(start + column, find_last_character(text, start)))
        if end > start
        else start
    )


def find_numbered_line(text: str, number: int) -> int:
    """Return the start of a line by its number, from 1;
    if there are fewer lines, of the last one.
    """
    start = 0
    for _ in range(number - 1):
        end = text.find("\n", start)
        if end < 0:
            break
        start = end + 1
    return start


def find_paragraph(text: str, offset: int, step: int) -> int:
    """Return the offset of the next empty line, or if `step` is negative, of the previous one."""
    if step > 0:
        index = text.find("\n\n", offset + 1 if text[offset : offset + 1] == "\n" else offset)
        return len(text) if index < 0 else index + 1
    index = text.rfind("\n\n", 0, max(offset - 1, 0))
    return 0 if index < 0 else index + 1


def _move_right(text: str, offset: int, count: int) -> int:
    end = find_line_end(text, offset)
    for _ in range(count):
        if offset >= end:
            break
        offset = find_next_edge(text, offset)
    return offset


def _move_left(text: str, offset: int, count: int) -> int:
    start = find_line_start(text, offset)
    for _ in range(count):
        if offset <= start:
            break
        offset = find_previous_edge(text, offset)
    return offset


def find_motion_end(text: str, offset: int, keys: str, count: int | None) -> MotionEnd | None:
    """Return the end of a motion that depends on the text alone;
    None: it is another motion, or impossible.
    """
    times = count or 1
    match keys:
        case "h":
            return MotionEnd(_move_left(text, offset, times))
        case "l" | " ":
            return MotionEnd(_move_right(text, offset, times))
        case "0":
            return MotionEnd(find_line_start(text, offset))
        case "^":
            return MotionEnd(find_first_nonblank(text, offset))
        case "$":
            below = find_vertical_offset(text, offset, times - 1, 0) if times > 1 else offset
            return MotionEnd(
                find_last_character(text, offset if below is None else below), "inclusive"
            )
        case "(" | ")":
            for _ in range(times):
                offset = _find_sentence(text, offset, 1 if keys == ")" else -1)
            return MotionEnd(offset)
        case "gg":
            return MotionEnd(find_first_nonblank(text, find_numbered_line(text, times)), "lines")
        case "G":
            number = _LAST_LINE if count is None else count
            return MotionEnd(find_first_nonblank(text, find_numbered_line(text, number)), "lines")
        case "{" | "}":
            for _ in range(times):
                offset = find_paragraph(text, offset, 1 if keys == "}" else -1)
            return MotionEnd(offset)
        case "%":
            return _find_pair(text, offset)
        case _:
            return _move_lines(text, offset, keys, times) or _move_words(text, offset, keys, times)


def _move_lines(text: str, offset: int, keys: str, times: int) -> MotionEnd | None:
    """Return the end of a motion within a line, or to one below or above;
    None: it is another motion, or impossible.
    """
    match keys:
        case "_" | "+" | "-":
            lines = {"_": times - 1, "+": times, "-": -times}[keys]
            start = find_vertical_offset(text, offset, lines, 0)
            return None if start is None else MotionEnd(find_first_nonblank(text, start), "lines")
        case "|":
            start = find_line_start(text, offset)
            return MotionEnd(
                snap_to_edge(text, min(start + times - 1, find_last_character(text, offset)))
            )
        case "g_":
            start = find_vertical_offset(text, offset, times - 1, 0)
            if start is None:
                return None
            line = text[start : find_line_end(text, start)].rstrip()
            return MotionEnd(snap_to_edge(text, start + max(len(line) - 1, 0)), "inclusive")
        case _:
            return None


def _move_words(text: str, offset: int, keys: str, times: int) -> MotionEnd | None:
    """Return the end of `w`, `b`, `e`, `ge` or one of their upper-case forms;
    None: it is another motion.
    """
    step = _WORD_MOTIONS.get(keys.lower())
    if step is None:
        return None
    for _ in range(times):
        offset = step(text, offset, big=keys[-1].isupper())
    return MotionEnd(snap_to_edge(text, offset), "inclusive" if keys[-1] in "eE" else "exclusive")


def _find_previous_end(text: str, offset: int, *, big: bool = False) -> int:
    """Return the offset of the last character of the previous word."""
    index, kind = (
        offset,
        classify_character(text[offset], big=big) if offset < len(text) else "blank",
    )
    while kind != "blank" and index > 0 and classify_character(text[index], big=big) == kind:
        index -= 1
    if kind == "blank" or index == offset:
        index = max(index - 1, 0)
    while index > 0 and text[index].isspace() and not (text[index] == text[index - 1] == "\n"):
        index -= 1
    return index


_WORD_MOTIONS = {
    "w": find_next_word,
    "b": find_previous_word,
    "e": find_word_end,
    "ge": _find_previous_end,
}


def list_sentence_starts(text: str) -> list[int]:
    """Return the offsets at which sentences begin;
    blank lines between paragraphs count as a sentence.
    """
    starts = {0, *(end.end() for end in compile_once(_SENTENCE_END).finditer(text))}
    starts -= {index for index in starts if text[index : index + 1] == "\n"}
    starts |= {
        index
        for gap in compile_once(_BLANK_LINES).finditer(text)
        for index in (gap.start() + 1, gap.end())
    }
    return sorted(index for index in starts if index < len(text))


def _find_sentence(text: str, offset: int, step: int) -> int:
    if step > 0:
        return min(
            (index for index in list_sentence_starts(text) if index > offset), default=len(text)
        )
    return max((index for index in list_sentence_starts(text) if index < offset), default=0)


def find_text(text: str, offset: int, needle: str, step: int) -> int | None:
    """Return the offset of the next (`step` 1) or previous (-1) occurrence of a text,
    wrapping around; None: none.
    """
    if step > 0:
        index = text.find(needle, offset + 1)
        index = text.find(needle) if index < 0 else index
    else:
        index = text.rfind(needle, 0, max(offset + len(needle) - 1, 0))
        index = text.rfind(needle) if index < 0 else index
    return None if index < 0 or not needle else index


def find_word_at(text: str, offset: int) -> str:
    """Return the word at an offset, or the next one in the line."""
    end = find_line_end(text, offset)
    while offset < end and classify_character(text[offset]) != "word":
        offset += 1
    start = last = offset
    while start > 0 and classify_character(text[start - 1]) == "word":
        start -= 1
    while last < end and classify_character(text[last]) == "word":
        last += 1
    return text[start:last]


def _find_pair(text: str, offset: int) -> MotionEnd | None:
    """Return the offset of the bracket that matches the next bracket in the line;
    None: there is none.
    """
    end = find_line_end(text, offset)
    start = next((index for index in range(offset, end) if text[index] in "()[]{}"), None)
    if start is None:
        return None
    char = text[start]
    partner = dict(zip("()[]{}", ")(][}{", strict=True))[char]
    depth = 0
    for index in range(start, len(text)) if char in "([{" else range(start, -1, -1):
        # A bracket within the pair that is like the first one needs a partner of its own.
        depth += (text[index] == char) - (text[index] == partner)
        if depth == 0:
            return MotionEnd(index, "inclusive")
    return None
