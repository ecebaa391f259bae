"""Reads ripgrep's JSON as it streams. Only clients need it: they are shown where
in its line each match is.

Its JSON takes as long as its text, but lists every match of a line. For a line of ten million equal
characters ripgrep then needs 950 MB and prints 540 MB, instead of 14 MB and half a kilobyte.
"""

import base64
import re
from collections.abc import Iterator

import msgspec

from codeloop.schema.api.files import FoundLine, FoundText, Submatch
from codeloop.schema.limits import FILES_LINE, FILES_LINES

# The most bytes kept of the start of one record, and again from its numbers on.
_MAX_RECORD_BYTES = 256 * 1024
_JSON_STRING = rb'\{"(text|bytes)":"((?:[^"\\]|\\.)*+)"\}'
# The records of ripgrep, each on a line:
# {"type":"match","data":{"path":{"text":"./a"},"lines":{"text":"x
# y\n"},"line_number":1,"absolute_offset":0,
# "submatches":[{"match":{"text":"y"},"start":2,"end":3}]}}
_RECORD_START = (
    rb'\{"type":"match","data":\{"path":' + _JSON_STRING + rb',"lines":\{"(text|bytes)":"'
)
_JSON_TEXT = rb'(?:[^"\\]|\\u[0-9a-fA-F]{4}|\\[^u])*+'
_LINE_NUMBERS = rb'"\},"line_number":(\d+),"absolute_offset":(\d+),"submatches":\['
# No string contains it, since its quotes would be escaped.
_NUMBERS_START = b'"},"line_number":'
_SUBMATCH = rb'\{"match":' + _JSON_STRING + rb',"start":(\d+),"end":(\d+)\}'


class RecordReader:
    """Reads one record a line. Of a longer one only the start, and the part after its text,
    are kept.
    """

    def __init__(self) -> None:
        self.lines: list[FoundLine] = []
        self._head = bytearray()
        self._tail = bytearray()

    def feed(self, chunk: bytes) -> bool:
        """Take the next bytes; returns True when no more are needed."""
        position = 0
        while (end := chunk.find(b"\n", position)) >= 0:
            self._add_piece(chunk[position:end])
            self._end_record()
            if len(self.lines) >= FILES_LINES.value:
                return True
            position = end + 1
        self._add_piece(chunk[position:])
        return False

    def _add_piece(self, piece: bytes) -> None:
        """Add a piece of the present record."""
        remaining = _MAX_RECORD_BYTES - len(self._head)
        self._head += piece[:remaining]
        rest = piece[remaining:] if remaining > 0 else piece
        if not rest or len(self._tail) > _MAX_RECORD_BYTES:
            return
        # The tail begins with the mark of the numbers; until it is found,
        # only as many bytes as the mark has are kept.
        self._tail += rest if self._tail else self._head[-len(_NUMBERS_START) :] + rest
        start = self._tail.find(_NUMBERS_START)
        del self._tail[: start if start >= 0 else -len(_NUMBERS_START)]

    def _end_record(self) -> None:
        line = _parse_line(bytes(self._head), bytes(self._tail))
        if line is not None:
            self.lines.append(line)
        self._head.clear()
        self._tail.clear()


def _parse_line(head: bytes, tail: bytes) -> FoundLine | None:
    """Parse a record, given by its start and, of a long one, the part from its numbers on;
    None: it is not a match.
    """
    start = re.match(_RECORD_START, head)
    if start is None:
        return None
    numbers, rest = re.compile(_LINE_NUMBERS).search(head, start.end()), head
    # The text fills the head, so the numbers are in the tail.
    if numbers is None:
        numbers, rest = re.search(_LINE_NUMBERS, tail), tail
    if numbers is None:
        return None
    line = _cut_line(_decode_line(head[start.end() :], start[3]))
    text = line.decode("utf-8", "replace")
    submatches = [each for each in _list_submatches(rest[numbers.end() :]) if each.end <= len(line)]
    # The line is not UTF-8, and the offsets must fit the text that is shown.
    if text.encode() != line:
        submatches = [_convert_offsets(each, line) for each in submatches]
    path = _decode_string(start[1], start[2]).decode("utf-8", "replace").removeprefix("./")
    return FoundLine(
        path=FoundText(text=path),
        lines=FoundText(text=text),
        line_number=int(numbers[1]),
        absolute_offset=int(numbers[2]),
        submatches=submatches,
    )


def _decode_line(data: bytes, kind: bytes) -> bytes:
    """Return the bytes of a line, from the start of its string in a record to that
    string's end or that of `data`.
    """
    if kind == b"bytes":
        digits = data.partition(b'"')[0]
        return base64.b64decode(digits[: len(digits) // 4 * 4])
    match = re.match(_JSON_TEXT, data)
    return _decode_string(b"text", match[0] if match else b"")


def _decode_string(kind: bytes, string: bytes) -> bytes:
    """Decode a JSON string: text as UTF-8, or bytes in base64."""
    if kind == b"bytes":
        return base64.b64decode(string)
    # It may have been cut within a character.
    text = string.decode("utf-8", "ignore")
    return msgspec.json.decode(f'"{text}"', type=str).encode()


def _cut_line(line: bytes) -> bytes:
    """Return at most FILES_LINE bytes of a line, no half character at the end."""
    if len(line) <= FILES_LINE.value:
        return line
    end = FILES_LINE.value
    # A character of UTF-8 has at most four bytes; those after the first one are 0b10xxxxxx.
    while end > FILES_LINE.value - 4 and line[end] & 0xC0 == 0x80:
        end -= 1
    return line[:end]


def _list_submatches(data: bytes) -> Iterator[Submatch]:
    for match in re.finditer(_SUBMATCH, data):
        text = _decode_string(match[1], match[2]).decode("utf-8", "replace")
        yield Submatch(match=FoundText(text=text), start=int(match[3]), end=int(match[4]))
        if int(match[4]) > FILES_LINE.value:
            return


def _convert_offsets(submatch: Submatch, line: bytes) -> Submatch:
    """Return a submatch whose offsets fit the line as it is shown, with replacement characters."""
    start, end = (
        len(line[:offset].decode("utf-8", "replace").encode())
        for offset in (submatch.start, submatch.end)
    )
    return Submatch(match=submatch.match, start=start, end=end)
