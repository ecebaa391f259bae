"""Streaming parser of ripgrep's JSON output: the first matching lines, each cut, in flat memory."""

import base64
import re
from collections.abc import Iterator

import msgspec

from codeloop.schema.api.files import FoundLine, FoundText, Submatch
from codeloop.schema.limits import FILES_LINE, FILES_LINES

_RECORD = 256 * 1024  # bytes read of the start of one record, and again from its numbers on
_STRING = rb'\{"(text|bytes)":"((?:[^"\\]|\\.)*+)"\}'
_START = re.compile(rb'\{"type":"match","data":\{"path":' + _STRING + rb',"lines":\{"(text|bytes)":"')
_TEXT = re.compile(rb'(?:[^"\\]|\\u[0-9a-fA-F]{4}|\\[^u])*+')
_NUMBERS = re.compile(rb'"\},"line_number":(\d+),"absolute_offset":(\d+),"submatches":\[')
_MARK = b'"},"line_number":'  # no string contains it: its quotes would be escaped
_SUBMATCH = re.compile(rb'\{"match":' + _STRING + rb',"start":(\d+),"end":(\d+)\}')


class RecordReader:
    """Reads one record a line. Of a longer one its start, and what follows its text, are kept."""

    def __init__(self) -> None:
        self.lines: list[FoundLine] = []
        self._head = bytearray()
        self._tail = bytearray()

    def feed(self, chunk: bytes) -> bool:
        """Take the next bytes; returns True when no more are needed."""
        at = 0
        while (end := chunk.find(b"\n", at)) >= 0:
            self._take(chunk[at:end])
            self._finish()
            if len(self.lines) >= FILES_LINES.value:
                return True
            at = end + 1
        self._take(chunk[at:])
        return False

    def _take(self, piece: bytes) -> None:
        room = _RECORD - len(self._head)
        self._head += piece[:room]
        rest = piece[room:] if room > 0 else piece
        if not rest or len(self._tail) > _RECORD:
            return
        self._tail += rest if self._tail else self._head[-len(_MARK) :] + rest
        at = self._tail.find(_MARK)
        del self._tail[: at if at >= 0 else -len(_MARK)]

    def _finish(self) -> None:
        line = _parse_line(bytes(self._head), bytes(self._tail))
        if line is not None:
            self.lines.append(line)
        self._head.clear()
        self._tail.clear()


def _parse_line(head: bytes, tail: bytes) -> FoundLine | None:
    start = _START.match(head)
    if start is None:
        return None
    numbers, rest = _NUMBERS.search(head, start.end()), head
    if numbers is None:  # the text, or what is kept of it, fills the head
        numbers, rest = _NUMBERS.search(tail), tail
    if numbers is None:
        return None
    line = _cut(_decode_line(head[start.end() :], start[3]))
    text = line.decode("utf-8", "replace")
    submatches = [each for each in _list_submatches(rest[numbers.end() :]) if each.end <= len(line)]
    if text.encode() != line:  # not UTF-8: the offsets are to fit the text that is shown
        submatches = [_move(each, line) for each in submatches]
    path = _decode_string(start[1], start[2]).decode("utf-8", "replace").removeprefix("./")
    return FoundLine(
        path=FoundText(text=path),
        lines=FoundText(text=text),
        line_number=int(numbers[1]),
        absolute_offset=int(numbers[2]),
        submatches=submatches,
    )


def _decode_line(data: bytes, kind: bytes) -> bytes:
    """Return the bytes of a line, from the start of its string in a record to that string's end or that of `data`."""
    if kind == b"bytes":
        digits = data.partition(b'"')[0]
        return base64.b64decode(digits[: len(digits) // 4 * 4])
    match = _TEXT.match(data)
    return _decode_string(b"text", match[0] if match else b"")


def _decode_string(kind: bytes, string: bytes) -> bytes:
    """Decode a JSON string: text as UTF-8, or bytes in base64."""
    if kind == b"bytes":
        return base64.b64decode(string)
    text = string.decode("utf-8", "ignore")  # it may have been cut in a character
    return msgspec.json.decode(f'"{text}"', type=str).encode()


def _cut(line: bytes) -> bytes:
    """Return at most FILES_LINE bytes of a line, no half character at the end."""
    if len(line) <= FILES_LINE.value:
        return line
    text = line[: FILES_LINE.value]
    end = len(text)
    while end > len(text) - 4 and line[end] & 0xC0 == 0x80:
        end -= 1
    return text[:end]


def _list_submatches(data: bytes) -> Iterator[Submatch]:
    for match in _SUBMATCH.finditer(data):
        text = _decode_string(match[1], match[2]).decode("utf-8", "replace")
        yield Submatch(match=FoundText(text=text), start=int(match[3]), end=int(match[4]))
        if int(match[4]) > FILES_LINE.value:
            return


def _move(submatch: Submatch, line: bytes) -> Submatch:
    start, end = (len(line[:at].decode("utf-8", "replace").encode()) for at in (submatch.start, submatch.end))
    return Submatch(match=submatch.match, start=start, end=end)
