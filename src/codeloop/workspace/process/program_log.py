"""The log of a program's stderr: a file that never grows beyond its limit."""

import re
from contextlib import suppress
from pathlib import Path

from codeloop.kit.small_files import make_private
from codeloop.schema.limits import MCP_LOG

_END = 2_000  # characters of the end that a message shows
_LINE = 400  # characters of the line that an error message repeats
_ERROR = re.compile(r"^[\w.]*(Error|Exception)\b|\b(error|fatal|panic)\b.*:", re.IGNORECASE)


class ProgramLog:
    """A log file and its predecessor. On a full disk lines are lost, nothing else."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self._size = 0
        self._end = ""

    @property
    def last_line(self) -> str:
        """The last line since the last start, an error's if there is one; "" for none."""
        lines = [line.strip() for line in self.end.splitlines()]
        errors = [line for line in lines if _ERROR.search(line)]
        return (errors or lines or [""])[-1][-_LINE:]

    @property
    def end(self) -> str:
        """The end of what was written since the last start."""
        return self._end.strip()

    def begin(self) -> None:
        """Note a start of the program: earlier output stays in the file only."""
        self._end = ""

    def feed(self, data: bytes) -> None:
        """Take what the program wrote."""
        self._end = (self._end + data[-_END:].decode("utf-8", "replace"))[-_END:]
        data = data[-MCP_LOG.value :]
        with suppress(OSError):
            if self._size + len(data) > MCP_LOG.value or not self._size:
                make_private(self.file.parent)
                if self.file.exists():
                    self.file.replace(self.file.with_suffix(".old.log"))
                self._size = 0
            with self.file.open("ab") as file:
                file.write(data)
            self._size += len(data)

    def note(self, line: str) -> None:
        """Write one line, ours or of the server's log."""
        self.feed(f"{line}\n".encode("utf-8", "replace"))

    def read(self) -> str:
        """Return the stored text of the log, the older file first."""
        texts: list[str] = []
        for file in (self.file.with_suffix(".old.log"), self.file):
            with suppress(OSError):
                texts.append(file.read_bytes().decode("utf-8", "replace"))
        return "".join(texts)
