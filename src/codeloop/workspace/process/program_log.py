"""What a program says beside the protocol that it speaks: in a file that never grows beyond its limit."""

from contextlib import suppress
from pathlib import Path

from codeloop.kit.small_files import make_private
from codeloop.schema.limits import MCP_LOG

_LAST = 400  # characters of the end that an error message repeats


class ProgramLog:
    """One file, and the one before it. A disk that takes nothing loses lines, nothing else."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self._size = 0
        self._end = ""

    @property
    def last_line(self) -> str:
        """The last line that was written since this was made; "" for none."""
        lines = self._end.strip().splitlines()
        return lines[-1].strip() if lines else ""

    def feed(self, data: bytes) -> None:
        """Take what the program wrote."""
        self._end = (self._end + data[-_LAST:].decode("utf-8", "replace"))[-_LAST:]
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
        """Write a line of ours, or of the server's log."""
        self.feed(f"{line}\n".encode("utf-8", "replace"))

    def read(self) -> str:
        """Return what was kept, the older file first."""
        texts: list[str] = []
        for file in (self.file.with_suffix(".old.log"), self.file):
            with suppress(OSError):
                texts.append(file.read_bytes().decode("utf-8", "replace"))
        return "".join(texts)
