"""Which files each session has read, so that no change is made on top of a state that the model never saw."""

import asyncio
from pathlib import Path
from weakref import WeakValueDictionary

from codeloop.workspace.files.safe_open import Stamp


class ReadLog:
    """What each session has read of which file, and the lock of each file that is being changed."""

    def __init__(self) -> None:
        self._seen: dict[tuple[str, Path], Stamp] = {}
        self._instructions: set[tuple[str, Path]] = set()
        self._locks: WeakValueDictionary[Path, asyncio.Lock] = WeakValueDictionary()

    def record(self, session_id: str, real: Path, stamp: Stamp) -> None:
        """Record that the session knows the file as it is now."""
        self._seen[session_id, real] = stamp

    def forget(self, session_id: str, real: Path) -> None:
        """Record that the file is gone."""
        self._seen.pop((session_id, real), None)

    def seen(self, session_id: str, real: Path) -> Stamp | None:
        """Return what the session last knew of the file."""
        return self._seen.get((session_id, real))

    def known(self) -> list[Path]:
        """Return the files that any session has read, the latest first."""
        return list(dict.fromkeys(real for _, real in reversed(self._seen)))

    def is_first_load(self, message_id: str, real: Path) -> bool:
        """Return whether no call of this step has loaded the instruction file yet, and record that one has now.

        What earlier steps have loaded is stored; the calls of one step run side by side.
        """
        if (message_id, real) in self._instructions:
            return False
        self._instructions.add((message_id, real))
        return True

    def lock(self, real: Path) -> asyncio.Lock:
        """Return the file's lock; hold the reference while it is needed."""
        lock = self._locks.get(real)
        if lock is None:
            lock = self._locks[real] = asyncio.Lock()
        return lock
