"""Streaming parser of ripgrep's text output (names, lines, counts), and the filter of its files.

Its JSON (see `rg_records`) takes as long, but lists every match of a line: for a line of ten million equal characters
ripgrep then needs 950 MB and prints 540 MB, instead of 14 MB and half a kilobyte. It is only read for clients, which
are shown where each match is.
"""

import os
import re
from pathlib import Path
from typing import Literal

from msgspec import Struct
from msgspec import field as struct_field

from codeloop.kit.glob import compile_glob
from codeloop.schema.limits import SEARCH_FILES, SEARCH_MATCHES, SEARCH_PATTERN

Mode = Literal["content", "files", "count"]

_NAME = "codeloop"
_BINARY = re.compile(rb"([^\0\n]*): (?:WARNING: stopped searching )?binary file[^\0\n]*\n")
_NUMBER = re.compile(rb"(\d+)([:-])")


class SearchFailed(Exception):
    """The search failed: a bad pattern, or ripgrep is missing. The text is the reason."""


class MatchLine(Struct, frozen=True):
    """A line of a file, without its end, cut when long. `number` from 1. `is_match`: false for a line of context."""

    number: int
    text: str
    is_match: bool


class FileMatches(Struct):
    """What was found in one file. `matches` counts all of its matching lines, `lines` holds the first of them."""

    path: Path
    matches: int = 0
    lines: list[MatchLine] = struct_field(default_factory=list[MatchLine])


class Query(Struct, frozen=True):
    """What to look for.

    `include`: a pattern for paths (`!` before it excludes). `before` and `after`: lines around a match.
    `fixed`: the pattern is plain text.
    """

    pattern: str
    include: str | None = None
    mode: Mode = "content"
    before: int = 0
    after: int = 0
    ignore_case: bool = False
    multiline: bool = False
    fixed: bool = False
    shown: int = 100


class GrepResult(Struct, frozen=True):
    """The result of a search, files with the newest first. `stopped`: why it ended early (empty: it did not)."""

    files: list[FileMatches]
    matches: int
    stopped: str


class FileList(Struct, frozen=True):
    """The result of a listing. `stopped` as in GrepResult."""

    paths: list[str]
    stopped: str


class FileFilter(Struct, frozen=True):
    """Filters files by a glob: with a slash it matches the path below the root, else the name alone.

    ripgrep's own --glob would also show ignored files, so names are chosen as a file type.
    """

    options: tuple[str, ...]
    path: re.Pattern[str] | None = None
    wanted: bool = True

    @staticmethod
    def of(pattern: str | None) -> "FileFilter":
        """Read a pattern. Raises SearchFailed for one that is not valid."""
        if not pattern:
            return FileFilter(())
        if len(pattern) > SEARCH_PATTERN.value:
            raise SearchFailed(f"it has {len(pattern)} characters, and at most {SEARCH_PATTERN.value} are read")
        is_included = not pattern.startswith("!")
        glob = pattern.removeprefix("!").removeprefix("./").lstrip("/")
        rooted = pattern.startswith(("/", "!/"))
        anywhere = glob.removeprefix("**/")
        if anywhere and "/" not in anywhere and not rooted:
            glob = anywhere  # `**/*.py` means the same as `*.py`, which ripgrep finds by itself
        try:
            compiled = compile_glob(glob)
        except ValueError as error:
            raise SearchFailed(str(error)) from error
        if "/" not in glob and not rooted:
            options = (f"--type-add={_NAME}:{glob}", f"--type={_NAME}" if is_included else f"--type-not={_NAME}")
            return FileFilter(options if glob.strip("*") else ())
        last = glob.rpartition("/")[2]
        narrows = is_included and bool(last.strip("*")) and last.count("{") == last.count("}")
        return FileFilter((f"--type-add={_NAME}:{last}", f"--type={_NAME}") if narrows else (), compiled, is_included)

    def takes(self, relative: str) -> bool:
        """Return whether a relative path passes."""
        return self.path is None or (self.path.fullmatch(relative) is not None) == self.wanted


class NameReader:
    """Reads names, each `./` and a relative path, ended by NUL."""

    def __init__(self, root: Path, file_filter: FileFilter) -> None:
        self.paths: list[str] = []
        self._root = f"{root}/".replace("//", "/")
        self._takes = file_filter.takes if file_filter.path is not None else None
        self._rest = b""

    def feed(self, chunk: bytes) -> bool:
        """Take the next bytes; returns True when no more are needed."""
        complete, end, self._rest = (self._rest + chunk).rpartition(b"\0")
        names = os.fsdecode(complete).split("\0") if end else ()
        for name in names:
            if self._takes is None or self._takes(name[2:]):
                self.paths.append(self._root + name[2:])
        return len(self.paths) >= SEARCH_FILES.value


class LineReader:
    """Reads `name NUL number:line` (`number-line` for context), `name NUL count` or `name NUL`, by mode."""

    def __init__(self, root: Path, file_filter: FileFilter, query: Query) -> None:
        self.files: dict[bytes, FileMatches | None] = {}
        self.matches = 0
        self._root = root
        self._takes = file_filter.takes
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
        """Return the files with something in them, in the order of coming."""
        return [hits for hits in self.files.values() if hits is not None]

    def _read_record(self, data: bytes, at: int) -> int:
        """Read one record from `at`; returns where the next starts, or `at` when this one is not whole yet."""
        if data.startswith(b"--\n", at):
            return at + 3
        nul = data.find(b"\0", at)
        line = data.find(b"\n", at)
        if line >= 0 and (line < nul or nul < 0):
            notice = _BINARY.match(data, at)
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
            self.files[name] = FileMatches(self._root / relative) if self._takes(relative) else None
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
        digits = _NUMBER.match(text)
        if digits is None:
            return
        is_match = digits[2] == b":"
        hits.matches += is_match
        self.matches += is_match
        if hits.matches <= self._query.shown and self._kept_lines < SEARCH_MATCHES.value:
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
