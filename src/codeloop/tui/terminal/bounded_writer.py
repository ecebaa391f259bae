"""`BoundedWriter` writes to the terminal in a thread, and notices when that reads nothing."""

from contextlib import suppress
from queue import Full
from typing import Any, TextIO, cast

from codeloop.kit.small_files import write_all
from codeloop.tui.terminal.textual_private import WriterThread

_STALL_TIMEOUT = 0.5
"""Seconds after which a terminal that reads nothing counts as stalled."""
_FLUSH_LENGTH = 1 << 16
"""Characters of output that are written without waiting for a flush."""


class BoundedWriter(WriterThread):
    """Textual's writer thread, except that `write` raises after _STALL_TIMEOUT if
    the terminal reads nothing.
    """

    def __init__(self, file: TextIO) -> None:
        self._output = _ErrorProofFile(file.fileno(), file.encoding)
        self._queued_count = 0
        super().__init__(cast("Any", self._output))

    def write(self, text: str) -> None:
        """Queue a text. Raises Full if the terminal reads nothing."""
        self._queue.put(text, timeout=_STALL_TIMEOUT)
        self._queued_count += 1

    @property
    def is_idle(self) -> bool:
        """Whether the terminal has taken all queued texts."""
        return self._output.written_count == self._queued_count

    def stop(self) -> None:
        """Write the queue and stop, unless the terminal reads nothing."""
        with suppress(Full):
            self._queue.put(None, timeout=_STALL_TIMEOUT)
        self.join(_STALL_TIMEOUT)


class _ErrorProofFile:
    """An output that ignores errors, since the writer thread must survive a closed terminal:
    other threads wait for it.

    It replaces `sys.stderr`, whose lock the exit of the program needs.
    """

    def __init__(self, descriptor: int, encoding: str) -> None:
        self._descriptor = descriptor
        self._encoding = encoding
        self._texts: list[str] = []
        self._length = 0
        self._taken_count = 0
        self.written_count = 0
        """How many texts the terminal has taken."""

    def fileno(self) -> int:
        return self._descriptor

    def write(self, text: str) -> None:
        self._texts.append(text)
        self._taken_count += 1
        self._length += len(text)
        if self._length > _FLUSH_LENGTH:
            self.flush()

    def flush(self) -> None:
        data = "".join(self._texts).encode(self._encoding, "replace")
        self._texts, self._length = [], 0
        with suppress(OSError):
            write_all(self._descriptor, data)
        self.written_count = self._taken_count
