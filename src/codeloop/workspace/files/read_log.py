"""Which files each session has read, so that no edit overwrites content that the model has not seen."""

import asyncio
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path
from weakref import WeakValueDictionary

from codeloop.workspace.files.safe_open import FileRefused, Stamp, load

_MOST_FILES = 500  # files, those read last
_MOST_COMPARED = 1024 * 1024  # bytes; larger files are compared by time alone
_State = tuple[int, int] | None
"""Modification time in ns and size in bytes; None: there is no such file."""


class ReadLog:
    """What each session has read of which file, and the lock of each file that is being changed.

    Methods that look at the disk are called in threads, while other sessions go on reading.
    """

    def __init__(self) -> None:
        self._read_stamps: dict[tuple[str, Path], Stamp] = {}
        self._reported: dict[tuple[str, Path], _State] = {}
        self._waiting: dict[str, dict[Path, _State]] = {}
        self._own: set[str] = set()
        self._unseen: set[tuple[str, Path]] = set()
        self._refused_files: set[tuple[str, Path]] = set()
        self._instructions: set[tuple[str, Path]] = set()
        self._locks: WeakValueDictionary[Path, asyncio.Lock] = WeakValueDictionary()

    def record(self, session_id: str, real: Path, stamp: Stamp) -> None:
        """Record that the session knows the file as it is now."""
        self._unseen.discard((session_id, real))
        self._read_stamps.pop((session_id, real), None)  # the one read last is the last
        self._read_stamps[session_id, real] = stamp
        self._reported.pop((session_id, real), None)
        self._waiting.get(session_id, {}).pop(real, None)

    def forget(self, session_id: str, real: Path) -> None:
        """Record that the file is gone."""
        self._unseen.discard((session_id, real))
        self._read_stamps.pop((session_id, real), None)
        self._reported.pop((session_id, real), None)
        self._waiting.get(session_id, {}).pop(real, None)

    @property
    def is_empty(self) -> bool:
        """Return whether no session has read any file."""
        return not self._read_stamps

    def last_stamp(self, session_id: str, real: Path) -> Stamp | None:
        """Return the session's last stamp of the file; None: it was not read."""
        return self._read_stamps.get((session_id, real))

    def note_unseen(self, session_id: str, real: Path) -> None:
        """Record that the file holds changes that the session has not read, though it edited the file since."""
        self._unseen.add((session_id, real))

    def is_unseen(self, session_id: str, real: Path) -> bool:
        """Return whether the file holds changes that the session has not read, though it edited the file since."""
        return (session_id, real) in self._unseen

    def note_refusal(self, session_id: str, real: Path) -> None:
        """Record that a change of the file was refused: the next read is to show its lines."""
        self._refused_files.add((session_id, real))

    def take_refusal(self, session_id: str, real: Path) -> bool:
        """Return whether a change of the file was refused since it was read last, and forget it."""
        was_refused = (session_id, real) in self._refused_files
        self._refused_files.discard((session_id, real))
        return was_refused

    def take_changed(self, session_id: str) -> dict[Path, bool]:
        """Return the files that others changed since the session read them, each with whether it is still there.

        A change is returned once. Looks at the disk: one `stat` for each file, of the 500 that were read last.
        """
        self._note(session_id)
        waiting = self._waiting.pop(session_id, {})
        return {real: state is not None for real, state in waiting.items()}

    def before_own(self, session_id: str) -> None:
        """Call before a command of the session that may change files: what changed until now, others changed."""
        self._own.add(session_id)
        self._note(session_id)

    def after_own(self, session_id: str) -> None:
        """Call after that command, and after any other call: changes of the session's own are not reported."""
        if session_id not in self._own:
            return
        self._own.remove(session_id)
        for real, state in self._differing(session_id):
            self._reported[session_id, real] = state

    def _note(self, session_id: str) -> None:
        for real, state in self._differing(session_id):
            self._reported[session_id, real] = state
            self._waiting.setdefault(session_id, {})[real] = state

    def _differing(self, session_id: str) -> Iterator[tuple[Path, _State]]:
        """Yield the files that differ from what the session read and from what was noted last."""
        files = islice((key for key in self._latest_first() if key[0] == session_id), _MOST_FILES)
        for key in files:
            stamp, state = self._read_stamps.get(key), _read_state(key[1])
            if stamp is None:  # it was deleted meanwhile
                continue
            if state == (stamp.mtime_ns, stamp.size):
                self._reported.pop(key, None)
            elif key not in self._reported or self._reported[key] != state:
                if _is_same(key[1], state, stamp):
                    self._reported[key] = state
                else:
                    yield key[1], state

    def list_files(self) -> list[Path]:
        """Return the files that any session has read, the latest first."""
        return list(dict.fromkeys(real for _, real in self._latest_first()))

    def _latest_first(self) -> Iterator[tuple[str, Path]]:
        """Return the files read so far, the latest first: a copy, whatever is recorded meanwhile."""
        return reversed(list(self._read_stamps))

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


def _read_state(real: Path) -> _State:
    try:
        status = real.lstat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size


def _is_same(real: Path, state: _State, stamp: Stamp) -> bool:
    """Return whether a rewritten file still holds what was read; False when that is too slow to find out."""
    if state is None or state[1] != stamp.size or stamp.digest is None or stamp.size > _MOST_COMPARED:
        return False
    with suppress(FileRefused, OSError):
        return load(real).stamp.same(stamp)
    return False
