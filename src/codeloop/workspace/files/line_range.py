"""A range of lines of a file, read as a stream: memory stays flat with a 50 MB line or a 10 GB file."""

import codecs
import os
from collections.abc import Callable, Iterator
from pathlib import Path

from msgspec import Struct

from codeloop.schema.limits import READ_BYTES, READ_COUNTED_BYTES, READ_LINE
from codeloop.workspace.files.encoding import Encoding, NotText, detect, is_binary
from codeloop.workspace.files.safe_open import Stamp, open_file

_CHUNK = 256 * 1024
_SAMPLE = 64 * 1024


class LineRange(Struct, frozen=True):
    """Lines of a file from line `first` (from 1), without their ends.

    `total`: how many lines there are, None when they were not counted to the end. `cut`: what ended the window
    before the file's end: "lines", "bytes", or "" for neither.
    """

    lines: tuple[str, ...]
    first: int
    total: int | None
    cut: str
    stamp: Stamp


def read_head(real: Path, size: int = _SAMPLE) -> bytes:
    """Return the first bytes of a file. Raises as `open_file`."""
    with open_file(real) as fd:
        return os.read(fd, size)


def read_lines(real: Path, first: int, limit: int) -> LineRange:
    """Read up to `limit` lines from line `first` on. Raises as `open_file`, NotText for binary files."""
    from hashlib import blake2b

    with open_file(real) as fd:
        info = os.fstat(fd)
        sample = os.pread(fd, _SAMPLE, 0)
        if is_binary(sample):
            raise NotText(f"{real} is a binary file.", "Look at it with a command instead.")
        encoding = _detect_encoding(sample)
        digest = blake2b(digest_size=16)
        chunks = _read_chunks(fd, encoding, digest.update)
        reader = _Reader(first, limit)
        for chunk in chunks:
            reader.feed(chunk)
        reader.finish()
        is_complete = os.lseek(fd, 0, os.SEEK_CUR) >= info.st_size
        stamp = Stamp(info.st_mtime_ns, info.st_size, digest.digest() if is_complete else None)
    codec = encoding.codec if encoding.codec in {"gb18030", "cp1252", "latin-1"} else "utf-8"
    lines = tuple(_cut_line(line, codec) for line in reader.lines)
    return LineRange(lines, first, reader.count if is_complete else None, reader.cut, stamp)


def _detect_encoding(sample: bytes) -> Encoding:
    """Return the encoding from the first bytes, which may end within a character."""
    for size in range(4):
        try:
            encoding = detect(sample[: len(sample) - size])
        except NotText:
            continue
        if encoding.codec == "utf-8" and not encoding.lax:
            return encoding
    try:
        return detect(sample)
    except NotText:
        return Encoding("utf-8", lax=True)


def _read_chunks(fd: int, encoding: Encoding, on_read: Callable[[bytes], None]) -> Iterator[bytes]:
    """Return the bytes of the text without the mark, wide encodings as UTF-8, up to the scan limit."""
    wide = codecs.getincrementaldecoder(encoding.codec)("replace") if encoding.codec.startswith("utf-") else None
    skip = len(encoding.mark)
    size = 0
    while size < READ_COUNTED_BYTES.value:
        chunk = os.read(fd, _CHUNK)
        if not chunk:
            break
        size += len(chunk)
        on_read(chunk)
        body = chunk[skip:]
        skip = 0
        yield wide.decode(body).encode("utf-8", "replace") if wide and encoding.codec != "utf-8" else body


class _Reader:
    """Collects the wanted lines from chunks; of each line only as many bytes as can be shown are kept."""

    def __init__(self, first: int, limit: int) -> None:
        self.lines: list[bytes] = []
        self.count = 0
        self.cut = ""
        self._first = first
        self._last = first + limit
        self._kept_bytes = READ_LINE.value * 4 + 8
        self._line = b""
        self._open = False
        self._size = 0

    def feed(self, chunk: bytes) -> None:
        """Take the next bytes."""
        at = 0
        while at < len(chunk):
            if self.cut or self.count + 1 < self._first:
                at = self._skip(chunk, at)
                continue
            end = chunk.find(b"\n", at)
            stop = end if end >= 0 else len(chunk)
            self._line += (
                chunk[at : min(stop, at + self._kept_bytes - len(self._line))]
                if len(self._line) < self._kept_bytes
                else b""
            )
            self._open = end < 0
            at = stop + 1
            if end >= 0:
                self._close()

    def finish(self) -> None:
        """Take the last line when no line end follows it."""
        if self._open:
            self._close()

    def _skip(self, chunk: bytes, at: int) -> int:
        """Only count, to the end of the chunk or to where the window begins."""
        ends = chunk.count(b"\n", at)
        if self.cut or self.count + ends + 1 < self._first:
            self.count += ends
            self._open = not chunk.endswith(b"\n")
            return len(chunk)
        for _ in range(self._first - 1 - self.count):
            at = chunk.index(b"\n", at) + 1
        self.count = self._first - 1
        self._open = False
        return at

    def _close(self) -> None:
        self.count += 1
        self._open = False
        line, self._line = self._line.removesuffix(b"\r"), b""
        if self.cut:
            return
        if self.count >= self._last:
            self.cut = "lines"
            return
        self._size += min(len(line), READ_LINE.value * 4) + len(str(self.count)) + 3
        if self._size > READ_BYTES.value and self.lines:
            self.cut = "bytes"
            return
        self.lines.append(line)


def _cut_line(line: bytes, codec: str) -> str:
    text = line.decode(codec, "replace")
    if len(text) <= READ_LINE.value:
        return text
    return f"{text[: READ_LINE.value]}... (line cut after {READ_LINE.value} characters)"
