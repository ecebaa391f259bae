"""Detects changes of folders and files by their change times, which no program can set back."""

import os
import stat
import time
from collections.abc import Iterable
from pathlib import Path

# A second change within this time may leave the same change time: file systems' clocks
# tick every few milliseconds.
_CLOCK_TICK_NS = 100_000_000

# Change time in ns (0: a folder's does not count), inode, size (or device);
# None: there is nothing at the path.
_State = tuple[int, int, int] | None


class PathStates:
    """The state of some paths at creation, before anything is read from them.

    A folder changes when an entry is added, removed or renamed in it;
    a file, when it is written or replaced.
    """

    def __init__(self, paths: Iterable[str]) -> None:
        self._states: dict[str, _State] | None = {path: _read_state(path) for path in paths}
        newest = max((state[0] for state in self._states.values() if state is not None), default=0)
        if newest > time.time_ns() - _CLOCK_TICK_NS:
            # Not known: the next change could leave the same time.
            self._states = None

    def are_unchanged(self) -> bool:
        """Return whether each path is as it was; False if that can't be known."""
        return self._states is not None and all(
            _read_state(path) == state for path, state in self._states.items()
        )


class PathSurvey:
    """What stands at some paths, and which folders lead there: as long as it is unchanged,
    they mean the same files.

    Of a folder only its identity counts, so what else is made in it changes nothing.
    """

    def __init__(self) -> None:
        self._states: dict[str, _State] = {}
        self._is_certain = True

    def look_at(self, path: Path) -> None:
        """Record what stands at a path. To be called before anything is read there."""
        text = str(path)
        while text != "/" and text not in self._states:
            self._states[text] = _read_identity(text)
            text = text.rpartition("/")[0] or "/"
        # Through a link, folders lead there that were not looked at.
        self._is_certain = self._is_certain and os.path.realpath(path) == str(path)

    def end(self) -> None:
        """Say that all was read: what changed just before may change again
        without a new change time.
        """
        newest = max((state[0] for state in self._states.values() if state is not None), default=0)
        self._is_certain = self._is_certain and newest <= time.time_ns() - _CLOCK_TICK_NS

    def is_unchanged(self) -> bool:
        """Return whether all is as it was; False if that can't be known."""
        return self._is_certain and all(
            _read_identity(path) == state for path, state in self._states.items()
        )


def _read_identity(path: str) -> _State:
    """Return the state of what stands at a path, of a folder without its change time and size."""
    try:
        status = os.lstat(path)
    except OSError:
        return None
    if stat.S_ISDIR(status.st_mode):
        return 0, status.st_ino, status.st_dev
    return status.st_ctime_ns, status.st_ino, status.st_size


def _read_state(path: str) -> _State:
    try:
        status = os.lstat(path)
    except OSError:
        return None
    return status.st_ctime_ns, status.st_ino, status.st_size
