"""The log of a program's stderr: a file of limited size, and the file before it."""

import re
from contextlib import suppress
from pathlib import Path

from codeloop.kit.small_files import create_private_folder
from codeloop.schema.limits import MCP_LOG

# The end of the log that is kept in memory, for messages about the program's end.
_END_CHARS = 2_000
# The characters of a line that an error message repeats.
_LINE_CHARS = 400
# `ValueError: ...`, `fatal: ...`
_ERROR_LINE = r"(?i)^[\w.]*(Error|Exception)\b|\b(error|fatal|panic)\b.*:"


class ProgramLog:
    """A log file and its predecessor. On a full disk lines are lost, without an error."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self._size = 0
        self._recent_text = ""

    @property
    def last_line(self) -> str:
        """The last line since the last start, preferably one of an error; "" for none."""
        lines = [line.strip() for line in self.recent_text.splitlines()]
        errors = [line for line in lines if re.search(_ERROR_LINE, line)]
        return (errors or lines or [""])[-1][-_LINE_CHARS:]

    @property
    def recent_text(self) -> str:
        """The end of the text since the last start."""
        return self._recent_text.strip()

    def record_start(self) -> None:
        """Record a new start of the program. Earlier output stays in the file only."""
        self._recent_text = ""

    def feed(self, data: bytes) -> None:
        """Add output of the program."""
        self._recent_text = (self._recent_text + data[-_END_CHARS:].decode("utf-8", "replace"))[
            -_END_CHARS:
        ]
        data = data[-MCP_LOG.value :]
        # The first output of this object begins a new file,
        # too: the one that is there is of an earlier run.
        with suppress(OSError):
            if self._size + len(data) > MCP_LOG.value or not self._size:
                create_private_folder(self.file.parent)
                if self.file.exists():
                    self.file.replace(self.file.with_suffix(".old.log"))
                self._size = 0
            with self.file.open("ab") as file:
                file.write(data)
            self._size += len(data)

    def add_line(self, line: str) -> None:
        """Add a line that did not come from stderr: one of ours,
        or a log message of the program's protocol.
        """
        self.feed(f"{line}\n".encode("utf-8", "replace"))

    def read(self) -> str:
        """Return the stored text of the log, the older file first."""
        texts: list[str] = []
        for file in (self.file.with_suffix(".old.log"), self.file):
            with suppress(OSError):
                texts.append(file.read_bytes().decode("utf-8", "replace"))
        return "".join(texts)
