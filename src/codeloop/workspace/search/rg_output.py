"""Reads ripgrep's text (names, lines, counts) as it streams.
Its JSON is read by `json_records.py`.
"""

import codecs
import os
import re
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from codeloop.schema.limits import SEARCH_COLUMNS, SEARCH_FILES, SEARCH_MATCHES
from codeloop.workspace.search.file_filter import FileFilter
from codeloop.workspace.search.grep_query import FileMatches, GrepQuery, MatchLine

# A line of its own, instead of a match: `./a.png: binary file matches (found
# "\0" byte around offset 4)`.
_BINARY_NOTICE = rb"([^\0\n]*): (?:WARNING: stopped searching )?binary file[^\0\n]*\n"
# `12:701:2048:` before a matching line: its number, the byte of its first match (from 1), and where
# it begins in the file. `11-2040-` before a line of context.
_LINE_PREFIX = rb"(\d+)(?:(:)(\d+):(\d+):|-\d+-)"
# At the end of a line that is longer than SEARCH_COLUMNS.
_CUT_MATCH = rb" \[\.\.\. \d+ more match(?:es)?\]\Z"
_CUT_NOTE = " [... omitted end of long line]"
# The bytes shown before a match that is far from the start of its line.
_BYTES_BEFORE_MATCH = 100
_WIDE_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


class _FarMatch(NamedTuple):
    """A match that is not in the part of its line that ripgrep prints.
    `offset`: its place in the file, in bytes.
    """

    file: FileMatches
    line_index: int
    column: int
    offset: int


class NameReader:
    """Reads names, each `./` and a relative path, ended by NUL."""

    def __init__(self, root: Path, file_filter: FileFilter) -> None:
        self.paths: list[str] = []
        self._root = f"{root}/".replace("//", "/")
        self._accepts = file_filter.accepts if file_filter.path_pattern is not None else None
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
    """Reads `name NUL number:line` (`number-line` for context), `name NUL count` or `name NUL`,
    by mode.
    """

    def __init__(self, root: Path, file_filter: FileFilter, query: GrepQuery) -> None:
        self.files: dict[bytes, FileMatches | None] = {}
        """By the name that ripgrep prints; None: the filter leaves the file out."""
        self.far_matches: list[_FarMatch] = []
        self.matches = 0
        self._root = root
        self._accepts = file_filter.accepts
        self._query = query
        self._rest = b""
        self._kept_lines = 0

    def feed(self, chunk: bytes) -> bool:
        """Take the next bytes; returns True when no more are needed."""
        data, position = self._rest + chunk, 0
        while (end := self._read_record(data, position)) > position:
            position = end
        self._rest = data[position:]
        count = self.matches if self._query.mode == "content" else len(self.files)
        return count >= SEARCH_MATCHES.value

    def list_files(self) -> list[FileMatches]:
        """Return the files with matches, in the order of ripgrep's output."""
        return [matches for matches in self.files.values() if matches is not None]

    def _read_record(self, data: bytes, position: int) -> int:
        """Read the record at a position; return the position of the next,
        or the same if this one is not complete.
        """
        # A line between groups of lines that are not next to each other; with `--crlf` it ends so.
        if data.startswith((b"--\n", b"--\r\n"), position):
            return data.index(b"\n", position) + 1
        nul = data.find(b"\0", position)
        line_end = data.find(b"\n", position)
        if line_end >= 0 and (line_end < nul or nul < 0):
            notice = re.compile(_BINARY_NOTICE).match(data, position)
            if notice is not None:
                self._note_binary(notice)
                return notice.end()
        if nul < 0:
            return position
        name = data[position:nul]
        if self._query.mode == "files":
            self._add_count(name, 1)
            return nul + 1
        end = data.find(b"\n", nul)
        if end < 0:
            return position
        text = data[nul + 1 : end]
        if self._query.mode == "count":
            self._add_count(name, int(text))
        else:
            self._add_line(name, text)
        return end + 1

    def _get_or_add_file(self, name: bytes) -> FileMatches | None:
        """Return the matches of a file so far; None: the filter leaves it out."""
        if name not in self.files:
            relative = os.fsdecode(name).removeprefix("./")
            self.files[name] = (
                FileMatches(self._root / relative) if self._accepts(relative) else None
            )
        return self.files[name]

    def _add_count(self, name: bytes, count: int) -> None:
        file_matches = self._get_or_add_file(name)
        if file_matches is not None:
            file_matches.matches += count
            self.matches += count

    def _add_line(self, name: bytes, text: bytes) -> None:
        file_matches = self._get_or_add_file(name)
        if file_matches is None:
            return
        prefix = re.match(_LINE_PREFIX, text)
        if prefix is None:
            return
        is_match = prefix[2] is not None
        file_matches.matches += is_match
        self.matches += is_match
        if (
            file_matches.matches <= self._query.max_shown_matches
            and self._kept_lines < SEARCH_MATCHES.value
        ):
            line = text[prefix.end() :].rstrip(b"\r")
            cut = (
                re.search(_CUT_MATCH, line)
                if is_match and len(line) > SEARCH_COLUMNS.value
                else None
            )
            shown = (line if cut is None else line[: cut.start()]).decode("utf-8", "replace")
            shown += "" if cut is None else _CUT_NOTE
            if cut is not None and int(prefix[3]) > SEARCH_COLUMNS.value - _BYTES_BEFORE_MATCH:
                column = int(prefix[3])
                far_match = _FarMatch(
                    file_matches, len(file_matches.lines), column, int(prefix[4]) + column - 1
                )
                self.far_matches.append(far_match)
            file_matches.lines.append(MatchLine(int(prefix[1]), shown, is_match))
            self._kept_lines += 1

    def show_far_matches(self) -> None:
        """Replace the starts of long lines by the parts around their matches. Reads the files."""
        for far_match in self.far_matches:
            # The file may be gone by now, and of a wide encoding the offsets are those
            # of the text in UTF-8.
            with suppress(OSError), far_match.file.path.open("rb") as file:
                if file.read(2) in _WIDE_MARKS:
                    continue
                start = far_match.offset - min(_BYTES_BEFORE_MATCH, far_match.column - 1)
                file.seek(start)
                piece, line_end, _ = file.read(SEARCH_COLUMNS.value).partition(b"\n")
                text = piece.rstrip(b"\r").decode("utf-8", "ignore") + (
                    "" if line_end else _CUT_NOTE
                )
                column = far_match.column - (far_match.offset - start)
                line = far_match.file.lines[far_match.line_index]
                shown = f"[... from byte {column} of the line] {text}"
                far_match.file.lines[far_match.line_index] = MatchLine(
                    line.number, shown, line.is_match
                )

    def _note_binary(self, notice: re.Match[bytes]) -> None:
        # With this warning the matches before the binary part were printed,
        # so the file is counted already.
        if b"WARNING: stopped" in notice[0]:
            return
        self._add_count(notice[1], 1)
        file_matches = self._get_or_add_file(notice[1])
        if file_matches is not None:
            file_matches.lines.append(MatchLine(0, "binary file matches", is_match=True))
