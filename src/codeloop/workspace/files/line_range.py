"""Reads a range of lines of a file as a stream: memory stays flat with a line
of 50 MB or a file of 10 GB.
"""

import codecs
import os
from collections.abc import Callable, Iterator
from pathlib import Path

from msgspec import Struct

from codeloop.schema.limits import READ_BYTES, READ_COUNTED_BYTES, READ_LINE
from codeloop.workspace.files.encoding import Encoding, NotText, detect_encoding, is_binary
from codeloop.workspace.files.safe_open import FileStamp, open_file

_CHUNK_BYTES = 256 * 1024
_SAMPLE_BYTES = 64 * 1024


class LineRange(Struct, frozen=True):
    """Lines of a file from line `first` (from 1), without their ends.

    `total_lines`: of the file, None when they were not counted to its end.
    `reached_limit`: the limit that ended
    the range before the file's end, "lines" or "bytes"; "" for neither.
    """

    lines: tuple[str, ...]
    first: int
    total_lines: int | None
    reached_limit: str
    stamp: FileStamp


def read_head(real: Path, max_bytes: int = _SAMPLE_BYTES) -> bytes:
    """Return the first bytes of a file. Raises as `open_file`."""
    with open_file(real) as fd:
        return os.read(fd, max_bytes)


def read_lines(real: Path, first: int, limit: int, max_bytes: int = READ_BYTES.value) -> LineRange:
    """Read up to `limit` lines from line `first` on, at most `max_bytes` as they are shown.

    Raises as `open_file`, NotText for binary files.
    """
    from hashlib import blake2b

    with open_file(real) as fd:
        info = os.fstat(fd)
        sample = os.pread(fd, _SAMPLE_BYTES, 0)
        if is_binary(sample):
            raise NotText(f"{real} is a binary file.", "Look at it with a command instead.")
        encoding = _detect_encoding(sample)
        digest = blake2b(digest_size=16)
        collector = _LineCollector(first, limit, max_bytes)
        for chunk in _read_chunks(fd, encoding, digest.update):
            collector.feed(chunk)
        collector.finish()
        is_complete = os.lseek(fd, 0, os.SEEK_CUR) >= info.st_size
        stamp = FileStamp(info.st_mtime_ns, info.st_size, digest.digest() if is_complete else None)
    # `_read_chunks` gives UTF-16 and UTF-32 as UTF-8.
    codec = encoding.codec if encoding.codec in {"gb18030", "cp1252", "latin-1"} else "utf-8"
    return LineRange(
        lines=tuple(_cut_line(line, codec) for line in collector.lines),
        first=first,
        total_lines=collector.count if is_complete else None,
        reached_limit=collector.reached_limit,
        stamp=stamp,
    )


def _detect_encoding(sample: bytes) -> Encoding:
    """Return the encoding by the first bytes of a file, which may end within a character."""
    # A character of UTF-8 has at most four bytes, so up to three of them may be at the end.
    for dropped in range(4):
        try:
            encoding = detect_encoding(sample[: len(sample) - dropped])
        except NotText:
            continue
        if encoding.codec == "utf-8" and not encoding.keeps_stray_bytes:
            return encoding
    try:
        return detect_encoding(sample)
    except NotText:
        return Encoding("utf-8", keeps_stray_bytes=True)


def _read_chunks(fd: int, encoding: Encoding, on_read: Callable[[bytes], None]) -> Iterator[bytes]:
    """Yield the bytes of the text without the byte-order mark, UTF-16 and UTF-32 as UTF-8,
    up to the scan limit.

    `on_read` is called with the bytes as they are in the file.
    """
    # Their line ends have several bytes, which `_LineCollector` does not look for.
    is_wide = encoding.codec.startswith("utf-") and encoding.codec != "utf-8"
    decoder = codecs.getincrementaldecoder(encoding.codec)("replace") if is_wide else None
    mark_size = len(encoding.mark)
    size = 0
    while size < READ_COUNTED_BYTES.value:
        chunk = os.read(fd, _CHUNK_BYTES)
        if not chunk:
            break
        size += len(chunk)
        on_read(chunk)
        body = chunk[mark_size:]
        mark_size = 0
        yield decoder.decode(body).encode("utf-8", "replace") if decoder else body


class _LineCollector:
    """Collects the wanted lines from chunks; of each line only as many bytes
    as can be shown are kept.

    `count`: the number of lines so far, including those that are not wanted;
    `reached_limit`: as in LineRange.
    """

    def __init__(self, first: int, limit: int, max_bytes: int) -> None:
        self.lines: list[bytes] = []
        self.count = 0
        self.reached_limit = ""
        self._first = first
        self._end = first + limit
        self._max_bytes = max_bytes
        # A character takes up to four bytes; a few more show that the line is longer.
        self._max_line_bytes = READ_LINE.value * 4 + 8
        self._line = b""
        # Whether a line has begun that has no end yet.
        self._is_line_open = False
        self._shown_bytes = 0

    def feed(self, chunk: bytes) -> None:
        """Take the next bytes."""
        start = 0
        while start < len(chunk):
            if self.reached_limit or self.count + 1 < self._first:
                start = self._skip(chunk, start)
                continue
            line_end = chunk.find(b"\n", start)
            stop = line_end if line_end >= 0 else len(chunk)
            remaining = max(self._max_line_bytes - len(self._line), 0)
            self._line += chunk[start : min(stop, start + remaining)]
            self._is_line_open = line_end < 0
            start = stop + 1
            if line_end >= 0:
                self._end_line()

    def finish(self) -> None:
        """Take the last line when no line end follows it."""
        if self._is_line_open:
            self._end_line()

    def _skip(self, chunk: bytes, start: int) -> int:
        """Count lines to the end of the chunk, or to the first wanted line;
        return the position there.
        """
        ends = chunk.count(b"\n", start)
        if self.reached_limit or self.count + ends + 1 < self._first:
            self.count += ends
            self._is_line_open = not chunk.endswith(b"\n")
            return len(chunk)
        for _ in range(self._first - 1 - self.count):
            start = chunk.index(b"\n", start) + 1
        self.count = self._first - 1
        self._is_line_open = False
        return start

    def _end_line(self) -> None:
        self.count += 1
        self._is_line_open = False
        line, self._line = self._line.removesuffix(b"\r"), b""
        if self.reached_limit:
            return
        if self.count >= self._end:
            self.reached_limit = "lines"
            return
        # Each line is shown with its number, a separator and a line end.
        self._shown_bytes += min(len(line), READ_LINE.value * 4) + len(str(self.count)) + 3
        # One line is shown even if it is longer than the limit.
        if self._shown_bytes > self._max_bytes and self.lines:
            self.reached_limit = "bytes"
            return
        self.lines.append(line)


def _cut_line(line: bytes, codec: str) -> str:
    text = line.decode(codec, "replace")
    if len(text) <= READ_LINE.value:
        return text
    return f"{text[: READ_LINE.value]}... (line cut after {READ_LINE.value} characters)"
