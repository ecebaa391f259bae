"""The files that a setting was read from, and whether one of them has changed since."""

from collections.abc import Iterable
from pathlib import Path

from msgspec import Struct

State = tuple[int, int, int] | None


class SettingFiles(Struct, frozen=True):
    """Files and folders with the state each was in when it was looked at: inode, ms of the last change, size."""

    paths: tuple[Path, ...] = ()
    states: tuple[State, ...] = ()

    def changed(self) -> "SettingFiles | None":
        """Return the files as they are now, if one of them is not as it was."""
        now = looked_at(self.paths)
        return None if now.states == self.states else now


def looked_at(paths: Iterable[Path]) -> SettingFiles:
    """Look at the files as they are now."""
    paths = tuple(paths)
    return SettingFiles(paths, tuple(map(_state, paths)))


def _state(path: Path) -> State:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_ino, status.st_mtime_ns, status.st_size
