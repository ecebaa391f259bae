"""Parses ripgrep's output as it streams, and filters its files by a glob.

`NameReader` and `LineReader` read ripgrep's text (names, lines, counts) for tools. `RecordReader` reads its JSON, only
for clients, which are shown where each match is: its JSON takes as long, but lists every match of a line. For a line of
ten million equal characters ripgrep then needs 950 MB and prints 540 MB, instead of 14 MB and half a kilobyte.
"""

import base64
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import msgspec
from msgspec import Struct
from msgspec import field as struct_field

from codeloop.kit.glob import compile_glob
from codeloop.schema.api.files import FoundLine, FoundText, Submatch
from codeloop.schema.limits import FILES_LINE, FILES_LINES, SEARCH_FILES, SEARCH_MATCHES, SEARCH_PATTERN

GrepMode = Literal["content", "files", "count"]

# The name of the file type that `FileFilter` defines for ripgrep.
_TYPE_NAME = "codeloop"
_BINARY_NOTICE = re.compile(rb"([^\0\n]*): (?:WARNING: stopped searching )?binary file[^\0\n]*\n")
_LINE_PREFIX = re.compile(rb"(\d+)([:-])")
# The most bytes kept of the start of one record, and again from its numbers on.
_MAX_RECORD_BYTES = 256 * 1024
_JSON_STRING = rb'\{"(text|bytes)":"((?:[^"\\]|\\.)*+)"\}'
_RECORD_START = re.compile(rb'\{"type":"match","data":\{"path":' + _JSON_STRING + rb',"lines":\{"(text|bytes)":"')
_JSON_TEXT = re.compile(rb'(?:[^"\\]|\\u[0-9a-fA-F]{4}|\\[^u])*+')
_LINE_NUMBERS = re.compile(rb'"\},"line_number":(\d+),"absolute_offset":(\d+),"submatches":\[')
# No string contains it, since its quotes would be escaped.
_NUMBERS_START = b'"},"line_number":'
_SUBMATCH = re.compile(rb'\{"match":' + _JSON_STRING + rb',"start":(\d+),"end":(\d+)\}')


class SearchFailed(Exception):
    """The search failed: a bad pattern, or ripgrep is missing. The text is the reason."""


class MatchLine(Struct, frozen=True):
    """A line of a file, without its end, cut when long. `number` from 1. `is_match`: false for a line of context."""

    number: int
    text: str
    is_match: bool


class FileMatches(Struct):
    """The matches in one file. `matches` counts all of its matching lines, `lines` holds the first of them."""

    path: Path
    matches: int = 0
    lines: list[MatchLine] = struct_field(default_factory=list[MatchLine])


class GrepQuery(Struct, frozen=True):
    """The inputs of a search.

    `include`: a glob for paths (`!` before it excludes); `lines_before`, `lines_after`: around a match;
    `is_plain_text`: so the pattern is no regular expression; `max_shown_matches`: of how many matches in a file the
    lines are kept.
    """

    pattern: str
    include: str | None = None
    mode: GrepMode = "content"
    lines_before: int = 0
    lines_after: int = 0
    ignore_case: bool = False
    multiline: bool = False
    is_plain_text: bool = False
    max_shown_matches: int = 100


class GrepResult(Struct, frozen=True):
    """The result of a search, files with the newest first. `stop_reason`: why it ended early (empty: it did not)."""

    files: list[FileMatches]
    matches: int
    stop_reason: str


class FileList(Struct, frozen=True):
    """The result of a listing. `stop_reason` as in GrepResult."""

    paths: list[str]
    stop_reason: str


class FileFilter(Struct, frozen=True):
    """Filters files by a glob: with a slash it matches the path below the root, else the name alone.

    ripgrep's own --glob would also show ignored files, so names are chosen as a file type.
    """

    options: tuple[str, ...]
    path: re.Pattern[str] | None = None
    is_included: bool = True

    @staticmethod
    def parse(pattern: str | None) -> "FileFilter":
        """Parse a glob; None accepts every file. Raises SearchFailed for one that is not valid."""
        if not pattern:
            return FileFilter(())
        if len(pattern) > SEARCH_PATTERN.value:
            raise SearchFailed(f"it has {len(pattern)} characters, and at most {SEARCH_PATTERN.value} are read")
        is_included = not pattern.startswith("!")
        glob = pattern.removeprefix("!").removeprefix("./").lstrip("/")
        rooted = pattern.startswith(("/", "!/"))
        anywhere = glob.removeprefix("**/")
        if anywhere and "/" not in anywhere and not rooted:
            # `**/*.py` means the same as `*.py`, which ripgrep filters by itself.
            glob = anywhere
        try:
            compiled = compile_glob(glob)
        except ValueError as error:
            raise SearchFailed(str(error)) from error
        if "/" not in glob and not rooted:
            options = (
                f"--type-add={_TYPE_NAME}:{glob}",
                f"--type={_TYPE_NAME}" if is_included else f"--type-not={_TYPE_NAME}",
            )
            return FileFilter(options if glob.strip("*") else ())
        # ripgrep can't filter by the path, but by the name at its end, which leaves fewer paths to match here.
        last = glob.rpartition("/")[2]
        narrows = is_included and bool(last.strip("*")) and last.count("{") == last.count("}")
        return FileFilter(
            (f"--type-add={_TYPE_NAME}:{last}", f"--type={_TYPE_NAME}") if narrows else (), compiled, is_included
        )

    def accepts(self, relative: str) -> bool:
        """Return whether a relative path passes."""
        return self.path is None or (self.path.fullmatch(relative) is not None) == self.is_included


class NameReader:
    """Reads names, each `./` and a relative path, ended by NUL."""

    def __init__(self, root: Path, file_filter: FileFilter) -> None:
        self.paths: list[str] = []
        self._root = f"{root}/".replace("//", "/")
        self._accepts = file_filter.accepts if file_filter.path is not None else None
        self._rest = b""

    def feed(self, chunk: bytes) -> bool:
        """Take the next bytes; returns True when no more are needed."""
        complete, end, self._rest = (self._rest + chunk).rpartition(b"\0")
        names = os.fsdecode(complete).split("\0") if end else ()
        for name in names:
            if self._accepts is None or self._accepts(name[2:]):
                self.paths.append(self._root + name[2:])
        return len(self.paths) >= SEARCH_FILES.value


class LineReader:
    """Reads `name NUL number:line` (`number-line` for context), `name NUL count` or `name NUL`, by mode."""

    def __init__(self, root: Path, file_filter: FileFilter, query: GrepQuery) -> None:
        self.files: dict[bytes, FileMatches | None] = {}
        self.matches = 0
        self._root = root
        self._accepts = file_filter.accepts
        self._query = query
        self._rest = b""
        self._kept_lines = 0

    def feed(self, chunk: bytes) -> bool:
        """Take the next bytes; returns True when no more are needed."""
        data, at = self._rest + chunk, 0
        while (end := self._read_record(data, at)) > at:
            at = end
        self._rest = data[at:]
        count = self.matches if self._query.mode == "content" else len(self.files)
        return count >= SEARCH_MATCHES.value

    def list_files(self) -> list[FileMatches]:
        """Return the files with matches, in the order of ripgrep's output."""
        return [hits for hits in self.files.values() if hits is not None]

    def _read_record(self, data: bytes, at: int) -> int:
        """Read one record from `at`; return the position of the next, or `at` when this one is not complete yet."""
        if data.startswith(b"--\n", at):
            return at + 3
        nul = data.find(b"\0", at)
        line = data.find(b"\n", at)
        if line >= 0 and (line < nul or nul < 0):
            notice = _BINARY_NOTICE.match(data, at)
            if notice is not None:
                self._note_binary(notice)
                return notice.end()
        if nul < 0:
            return at
        if self._query.mode == "files":
            self._add_count(data[at:nul], 1)
            return nul + 1
        end = data.find(b"\n", nul)
        if end < 0:
            return at
        name, text = data[at:nul], data[nul + 1 : end]
        if self._query.mode == "count":
            self._add_count(name, int(text))
        else:
            self._add_line(name, text)
        return end + 1

    def _find_hits(self, name: bytes) -> FileMatches | None:
        if name not in self.files:
            relative = os.fsdecode(name).removeprefix("./")
            self.files[name] = FileMatches(self._root / relative) if self._accepts(relative) else None
        return self.files[name]

    def _add_count(self, name: bytes, count: int) -> None:
        hits = self._find_hits(name)
        if hits is not None:
            hits.matches += count
            self.matches += count

    def _add_line(self, name: bytes, text: bytes) -> None:
        hits = self._find_hits(name)
        if hits is None:
            return
        digits = _LINE_PREFIX.match(text)
        if digits is None:
            return
        is_match = digits[2] == b":"
        hits.matches += is_match
        self.matches += is_match
        if hits.matches <= self._query.max_shown_matches and self._kept_lines < SEARCH_MATCHES.value:
            shown = text[digits.end() :].rstrip(b"\r").decode("utf-8", "replace")
            hits.lines.append(MatchLine(int(digits[1]), shown, is_match))
            self._kept_lines += 1

    def _note_binary(self, notice: re.Match[bytes]) -> None:
        if b"WARNING: stopped" in notice[0]:
            return
        self._add_count(notice[1], 1)
        hits = self._find_hits(notice[1])
        if hits is not None:
            hits.lines.append(MatchLine(0, "binary file matches", is_match=True))


class RecordReader:
    """Reads one record a line. Of a longer one only the start, and the part after its text, are kept."""

    def __init__(self) -> None:
        self.lines: list[FoundLine] = []
        self._head = bytearray()
        self._tail = bytearray()

    def feed(self, chunk: bytes) -> bool:
        """Take the next bytes; returns True when no more are needed."""
        at = 0
        while (end := chunk.find(b"\n", at)) >= 0:
            self._keep(chunk[at:end])
            self._end_record()
            if len(self.lines) >= FILES_LINES.value:
                return True
            at = end + 1
        self._keep(chunk[at:])
        return False

    def _keep(self, piece: bytes) -> None:
        remaining = _MAX_RECORD_BYTES - len(self._head)
        self._head += piece[:remaining]
        rest = piece[remaining:] if remaining > 0 else piece
        if not rest or len(self._tail) > _MAX_RECORD_BYTES:
            return
        # The tail begins with the mark of the numbers; until it is found, only as many bytes as the mark has are kept.
        self._tail += rest if self._tail else self._head[-len(_NUMBERS_START) :] + rest
        at = self._tail.find(_NUMBERS_START)
        del self._tail[: at if at >= 0 else -len(_NUMBERS_START)]

    def _end_record(self) -> None:
        line = _parse_line(bytes(self._head), bytes(self._tail))
        if line is not None:
            self.lines.append(line)
        self._head.clear()
        self._tail.clear()


def _parse_line(head: bytes, tail: bytes) -> FoundLine | None:
    start = _RECORD_START.match(head)
    if start is None:
        return None
    numbers, rest = _LINE_NUMBERS.search(head, start.end()), head
    # The text fills the head, so the numbers are in the tail.
    if numbers is None:
        numbers, rest = _LINE_NUMBERS.search(tail), tail
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
    """Return the bytes of a line, from the start of its string in a record to that string's end or that of `data`."""
    if kind == b"bytes":
        digits = data.partition(b'"')[0]
        return base64.b64decode(digits[: len(digits) // 4 * 4])
    match = _JSON_TEXT.match(data)
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


def _convert_offsets(submatch: Submatch, line: bytes) -> Submatch:
    start, end = (len(line[:at].decode("utf-8", "replace").encode()) for at in (submatch.start, submatch.end))
    return Submatch(match=submatch.match, start=start, end=end)
