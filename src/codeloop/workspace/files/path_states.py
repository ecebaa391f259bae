"""Whether folders and files are as they were, by the times that nobody can set back."""

import os
import time
from collections.abc import Iterable

_TICK = 100_000_000
"""Nanoseconds in which a second change may leave the same time: file systems count in steps of some milliseconds."""

_State = tuple[int, int, int] | None


class PathStates:
    """What some paths were like when this was made, before anything was read of them.

    A folder is another one when something was added, removed or renamed in it; a file, when it was written or replaced.
    """

    def __init__(self, paths: Iterable[str]) -> None:
        self._states: dict[str, _State] | None = {path: _state(path) for path in paths}
        newest = max((state[0] for state in self._states.values() if state is not None), default=0)
        if newest > time.time_ns() - _TICK:
            self._states = None  # what changes next could leave the same time

    def are_same(self) -> bool:
        """Return whether each path is as it was; False, too, where that can't be known."""
        return self._states is not None and all(_state(path) == known for path, known in self._states.items())


def _state(path: str) -> _State:
    try:
        status = os.lstat(path)
    except OSError:
        return None
    return status.st_ctime_ns, status.st_ino, status.st_size
