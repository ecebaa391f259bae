"""Keeping the output of a process in flat memory: all of it while short, else its head, its tail and a capped file."""

import os
from pathlib import Path

from codeloop.kit.small_files import write_all
from codeloop.kit.truncate import byte_length, count_lines, cut
from codeloop.schema.limits import SHELL_FILE, SHELL_OUTPUT, TOOL_OUTPUT_BYTES, TOOL_OUTPUT_LINES
from codeloop.workspace.files.scratch import create

_ROOM = 4 * SHELL_OUTPUT.value  # bytes: what that many characters can take in UTF-8
_LINES = TOOL_OUTPUT_LINES.value - 20  # these two leave room for the notes around the output
_BYTES = TOOL_OUTPUT_BYTES.value - 4096


class OutputBuffer:
    """Takes chunks of output. `path`: the file with the whole, made when there is more than is shown, or `at_once`."""

    def __init__(self, folder: Path, *, at_once: bool = False) -> None:
        self.path: Path | None = None
        self.total = 0
        self.lines = 0
        self.folder = folder
        self._head = bytearray()
        self._tail = bytearray()
        self._seen = 0
        self._file = -1
        self._stored = 0
        self._failure = ""
        if at_once:
            self._open()

    def feed(self, chunk: bytes) -> None:
        """Take the next bytes."""
        self.total += len(chunk)
        self.lines += chunk.count(b"\n")
        if self.path is None and not self._failure and self.total - self._seen > _ROOM:
            self._open()
        room = _ROOM - len(self._head)
        self._head += chunk[:room]
        self._tail += chunk[room:]
        if len(self._tail) > 2 * _ROOM:
            del self._tail[:-_ROOM]
        self._store(chunk)

    def recent(self) -> str:
        """Return the last characters, with a mark before them when something is left out: what a screen shows."""
        text = _decode((self._head + self._tail)[-_ROOM:])
        if self.total - self._seen <= _ROOM and len(text) <= SHELL_OUTPUT.value:
            return text
        return "...\n\n" + text[-SHELL_OUTPUT.value :]

    def take(self) -> tuple[str, bool]:
        """Return what came since the last `take`, and whether it was cut: then its head, a note and its tail."""
        size = self.total - self._seen
        gapless = size == len(self._head) + len(self._tail)
        start = _decode(self._head + self._tail if gapless else self._head)
        if (
            gapless
            and len(start) <= SHELL_OUTPUT.value
            and byte_length(start) <= _BYTES
            and count_lines(start) <= _LINES
        ):
            self._forget()
            return start, False
        if self.path is None and not self._failure:
            self._open()
            self.close()
        head = cut(start, _LINES // 3, SHELL_OUTPUT.value // 3, "head").head
        end = cut(start[len(head) :] if gapless else _decode(self._tail), _LINES // 3 * 2, _ROOM // 6, "tail")
        tail = end.tail if end.is_cut else end.head
        missing = max(0, size - byte_length(head) - byte_length(tail))
        self._forget()
        return f"{head.rstrip()}\n\n[{self._note(missing)}]\n\n{tail}", True

    def close(self) -> None:
        """Close the file."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def _forget(self) -> None:
        self._seen = self.total
        self._head.clear()
        self._tail.clear()

    def _note(self, missing: int) -> str:
        capped = f", up to its first {SHELL_FILE.value} bytes" if self.total > SHELL_FILE.value else ""
        saved = f"the whole is in {self.path}{capped}" if self.path else f"not saved: {self._failure}"
        return f"... {missing} bytes left out; {saved} ..."

    def _open(self) -> None:
        try:
            self.path, self._file = create(self.folder)
        except OSError as error:
            self._failure = str(error)
            return
        self._store(bytes(self._head + self._tail))

    def _store(self, chunk: bytes) -> None:
        rest = SHELL_FILE.value - self._stored
        if self._file < 0 or rest <= 0:
            return
        try:
            write_all(self._file, chunk[:rest])
        except OSError as error:
            self.close()
            self._failure = str(error)
            self.path = None
            return
        self._stored += len(chunk[:rest])


def _decode(raw: bytearray | bytes) -> str:
    """Read as UTF-8; what is not text shows as replacement characters, NUL too."""
    return raw.decode("utf-8", "replace").replace("\0", "\ufffd")
