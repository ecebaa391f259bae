"""Cuts texts to a number of lines and bytes (the head or the tail is kept),
and shares such a limit. Pure.
"""

from collections.abc import Sequence
from math import ceil
from typing import Literal

from msgspec import Struct

Keep = Literal["head", "tail"]


# A longer line is cut: its head and its tail stay.
_MAX_LINE_CHARS = 8_000
_LINE_HEAD_CHARS = 1_500
_LINE_TAIL_CHARS = 500


class CutText(Struct, frozen=True):
    """The start and the end of a text that are kept, and how many lines and bytes (UTF-8)
    were left out between them.

    When the text fits, `head` is the whole text.
    """

    head: str
    tail: str
    omitted_lines: int
    omitted_bytes: int

    @property
    def is_cut(self) -> bool:
        """Whether anything was left out."""
        return self.omitted_bytes > 0


def count_lines(text: str) -> int:
    """Count lines; a last line without a line end counts too."""
    return text.count("\n") + (bool(text) and not text.endswith("\n"))


def cut_text(text: str, max_lines: int, max_bytes: int, keep: Keep = "head") -> CutText:
    """Keep at most `max_lines` lines and `max_bytes` bytes of a text: its head or its tail.

    Whole lines are kept where possible, whole characters always: only a line that alone
    is too long is cut inside.
    """
    size = count_bytes(text)
    if size <= max_bytes and count_lines(text) <= max_lines:
        return CutText(head=text, tail="", omitted_lines=0, omitted_bytes=0)
    if keep == "head":
        head, tail = _cut_head(text, max_lines, max_bytes), ""
    else:
        head, tail = "", _cut_tail(text, max_lines, max_bytes)
    omitted_text = text[len(head) : len(text) - len(tail)]
    return CutText(
        head, tail, omitted_lines=count_lines(omitted_text), omitted_bytes=count_bytes(omitted_text)
    )


def cut_line(line: str) -> str:
    """Return a line without the middle of it, if it is very long, as of minified code."""
    if len(line) <= _MAX_LINE_CHARS:
        return line
    omitted = len(line) - _LINE_HEAD_CHARS - _LINE_TAIL_CHARS
    return f"{line[:_LINE_HEAD_CHARS]} ... {omitted} characters of this line ... {line[-_LINE_TAIL_CHARS:]}"


def count_bytes(text: str) -> int:
    """Return the bytes of the text in UTF-8; lone surrogates count as three."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def share_fairly(claims: Sequence[int], total: int) -> list[int]:
    """Divide a total, such as of bytes, among claims: each gets what it wants,
    or an equal share of what others leave.

    >>> share_fairly([10, 100, 100], 90)
    [10, 40, 40]
    """
    shares = [0] * len(claims)
    remaining = total
    # Small claims come first, so that the others share what these do not use.
    for number, index in enumerate(sorted(range(len(claims)), key=claims.__getitem__)):
        equal_share = ceil(remaining / (len(claims) - number))
        shares[index] = min(claims[index], equal_share)
        remaining -= shares[index]
    return shares


def _cut_head(text: str, max_lines: int, max_bytes: int) -> str:
    if max_lines <= 0 or max_bytes <= 0:
        return ""
    fitting_bytes = text[:max_bytes].encode("utf-8", "surrogatepass")[:max_bytes]
    head = _decode_whole_characters(fitting_bytes, text)
    line_end = _find_nth_line_end(head, max_lines)
    if line_end >= 0:
        return head[: line_end + 1]
    if len(head) == len(text):
        return head
    # The head ends inside a line, which is dropped unless it alone is too long.
    line_start = head.rfind("\n") + 1
    line_end = text.find("\n", len(head))
    line_length = (line_end if line_end >= 0 else len(text)) - line_start
    return head[:line_start] if line_start > 0 and line_length < max_bytes else head


def _cut_tail(text: str, max_lines: int, max_bytes: int) -> str:
    if max_lines <= 0 or max_bytes <= 0:
        return ""
    raw = text[-max_bytes:].encode("utf-8", "surrogatepass")[-max_bytes:]
    # Bytes of the form 10xxxxxx at the start are the rest of a character that was cut.
    while raw and raw[0] & 0xC0 == 0x80:
        raw = raw[1:]
    fitting_text = raw.decode("utf-8", "surrogatepass")
    line_start = len(fitting_text) - 1 if fitting_text.endswith("\n") else len(fitting_text)
    for _ in range(max_lines):
        line_start = fitting_text.rfind("\n", 0, line_start)
        if line_start < 0:
            break
    if line_start >= 0:
        return fitting_text[line_start + 1 :]
    if len(fitting_text) == len(text) or text[len(text) - len(fitting_text) - 1] == "\n":
        return fitting_text
    # The tail begins inside a line, which is dropped unless nothing would be left.
    line_end = fitting_text.find("\n")
    return fitting_text[line_end + 1 :] if 0 <= line_end < len(fitting_text) - 1 else fitting_text


def _decode_whole_characters(fitting_bytes: bytes, text: str) -> str:
    """Return the start of `text` that bytes of its UTF-8 hold;
    of a character cut at their end, nothing.
    """
    while fitting_bytes:
        try:
            return text[: len(fitting_bytes.decode("utf-8", "surrogatepass"))]
        except UnicodeDecodeError as error:
            fitting_bytes = fitting_bytes[: error.start]
    return ""


def _find_nth_line_end(text: str, count: int) -> int:
    """Return the index of the line end of line `count`, from 1; -1: the text has fewer."""
    index = -1
    for _ in range(count):
        index = text.find("\n", index + 1)
        if index < 0:
            return -1
    return index
