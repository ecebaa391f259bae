"""Writes to the terminal in a thread of its own, and never has the rest of the program wait for a terminal for long."""

from contextlib import suppress
from queue import Full
from typing import Any, TextIO, cast

from textual.drivers._writer_thread import WriterThread

from codeloop.kit.small_files import write_all

STALLED = 0.5
"""Seconds without reading after which a terminal is not waited for any more."""
_AT_ONCE = 1 << 16
"""Characters that are written at a time."""


class PatientWriter(WriterThread):
    """The library's thread, whose caller is told of a terminal that reads nothing, instead of waiting for it."""

    def __init__(self, file: TextIO) -> None:
        super().__init__(cast("Any", _LastingFile(file.fileno(), file.encoding)))

    def write(self, text: str) -> None:
        """Write soon. Raises Full when the terminal reads nothing."""
        self._queue.put(text, timeout=STALLED)

    @property
    def is_done(self) -> bool:
        """Whether everything was handed to the terminal, but for the last text perhaps."""
        return self._queue.empty()

    def stop(self) -> None:
        """Write what waits, and end, unless the terminal reads nothing."""
        with suppress(Full):
            self._queue.put(None, timeout=STALLED)
        self.join(STALLED)


class _LastingFile:
    """Output that may be lost: the thread that writes must not end with the terminal, because others wait for it.

    It takes no lock of `sys.stderr`, which the end of the program needs.
    """

    def __init__(self, descriptor: int, encoding: str) -> None:
        self._descriptor = descriptor
        self._encoding = encoding
        self._texts: list[str] = []
        self._length = 0

    def fileno(self) -> int:
        return self._descriptor

    def write(self, text: str) -> None:
        self._texts.append(text)
        self._length += len(text)
        if self._length > _AT_ONCE:
            self.flush()

    def flush(self) -> None:
        data = "".join(self._texts).encode(self._encoding, "replace")
        self._texts, self._length = [], 0
        with suppress(OSError):
            write_all(self._descriptor, data)
