"""The terminal as the UI uses it: given back after any end, also when it is closed or the process is killed."""

from contextlib import suppress
from typing import IO, Any, cast

from textual.drivers.linux_driver import LinuxDriver

from codeloop.tui.terminal.watcher import TerminalWatcher


class WatchedDriver(LinuxDriver):
    """The library's terminal, with somebody who restores it if we can't."""

    _watcher: TerminalWatcher | None = None

    def start_application_mode(self) -> None:
        """Take the terminal, at the start and after a stop."""
        if not isinstance(self._file, _LastingFile):
            self._file = cast("Any", _LastingFile(self._file))
        super().start_application_mode()
        if self.attrs_before is not None:
            self._watcher = self._watcher or TerminalWatcher(self.fileno, self.attrs_before)
            self._watcher.set_on(True)

    def close(self) -> None:
        """Write what still has to be written; the terminal is as it was before."""
        super().close()
        if self._watcher is not None:
            self._watcher.set_on(False)


class _LastingFile:
    """Output that may be lost: the thread that writes must not end with the terminal, because others wait for it."""

    def __init__(self, file: IO[str]) -> None:
        self._file = file
        self.fileno = file.fileno

    def write(self, text: str) -> None:
        with suppress(OSError):
            self._file.write(text)

    def flush(self) -> None:
        with suppress(OSError):
            self._file.flush()
