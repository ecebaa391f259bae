"""Detects changes of folders and files by their change times, which no program can set back."""

import os
import time
from collections.abc import Iterable

# A second change within this time may leave the same change time: file systems' clocks tick every few milliseconds.
_CLOCK_TICK_NS = 100_000_000

# Change time in ns, inode, size; None: there is nothing at the path.
_State = tuple[int, int, int] | None


class PathStates:
    """The state of some paths at creation, before anything is read from them.

    A folder changes when an entry is added, removed or renamed in it; a file, when it is written or replaced.
    """

    def __init__(self, paths: Iterable[str]) -> None:
        self._states: dict[str, _State] | None = {path: _read_state(path) for path in paths}
        newest = max((state[0] for state in self._states.values() if state is not None), default=0)
        if newest > time.time_ns() - _CLOCK_TICK_NS:
            # Not known: the next change could leave the same time.
            self._states = None

    def are_unchanged(self) -> bool:
        """Return whether each path is as it was; False if that can't be known."""
        return self._states is not None and all(_read_state(path) == state for path, state in self._states.items())


def _read_state(path: str) -> _State:
    try:
        status = os.lstat(path)
    except OSError:
        return None
    return status.st_ctime_ns, status.st_ino, status.st_size
