"""Remembers which files each session has read, so that no edit overwrites content
that the model has not seen.

It also finds the files that others have changed since, for a note to the model.
"""

import asyncio
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path
from weakref import WeakValueDictionary

from codeloop.workspace.files.safe_open import FileRefused, FileStamp, read_file

# The number of files that are looked at for changes of others: those that were read last.
_MAX_COMPARED_FILES = 500
# Larger files are compared by time and size alone.
_MAX_COMPARED_BYTES = 1024 * 1024
# Modification time in ns and size in bytes; None: there is no such file.
_State = tuple[int, int] | None


class ReadLog:
    """The stamp of each file that a session has read,
    and the lock of each file that is being changed.

    Also what else is known of files by session: changes of others and refused ones,
    loaded instructions.

    Methods that look at the disk are called in threads, while other sessions go on reading. `real`
    is always a resolved path.
    """

    def __init__(self) -> None:
        # By session and file; the file that was read last is the last.
        self._read_stamps: dict[tuple[str, Path], FileStamp] = {}
        # States that need not be reported to the model (again).
        self._reported: dict[tuple[str, Path], _State] = {}
        # By session: changes of others that the model has not been told yet.
        self._pending_changes: dict[str, dict[Path, _State]] = {}
        # Sessions in which a command that may change files runs now.
        self._changing_sessions: set[str] = set()
        # Files with changes that the session has not read, though it edited the file since.
        self._unseen: set[tuple[str, Path]] = set()
        self._refused_changes: set[tuple[str, Path]] = set()
        self.expected_files: set[Path] = set()
        """Files that codeloop writes, or the user put back,
        where sandboxed programs may create none.
        """
        # By the id of the message and the file.
        self._loaded_instructions: set[tuple[str, Path]] = set()
        # A lock is dropped when nobody holds a reference to it.
        self._locks: WeakValueDictionary[Path, asyncio.Lock] = WeakValueDictionary()

    def record_read(self, session_id: str, real: Path, stamp: FileStamp) -> None:
        """Record that the session knows the file as it is now."""
        self._unseen.discard((session_id, real))
        # Removed first, so that it becomes the last one.
        self._read_stamps.pop((session_id, real), None)
        self._read_stamps[session_id, real] = stamp
        self._reported.pop((session_id, real), None)
        self._pending_changes.get(session_id, {}).pop(real, None)

    def forget_file(self, session_id: str, real: Path) -> None:
        """Record that the file is gone."""
        self._unseen.discard((session_id, real))
        self._read_stamps.pop((session_id, real), None)
        self._reported.pop((session_id, real), None)
        self._pending_changes.get(session_id, {}).pop(real, None)

    @property
    def is_empty(self) -> bool:
        """Whether no session has read any file."""
        return not self._read_stamps

    def find_last_stamp(self, session_id: str, real: Path) -> FileStamp | None:
        """Return the stamp of the file when the session read or wrote it last;
        None: it has done neither.
        """
        return self._read_stamps.get((session_id, real))

    def mark_unseen(self, session_id: str, real: Path) -> None:
        """Record that the file holds changes that the session has not read,
        though it edited the file since.
        """
        self._unseen.add((session_id, real))

    def has_unseen_changes(self, session_id: str, real: Path) -> bool:
        """Return whether the file holds changes that the session has not read,
        though it edited the file since.
        """
        return (session_id, real) in self._unseen

    def record_refusal(self, session_id: str, real: Path) -> None:
        """Record that a change of the file was refused: the next read is to show its lines."""
        self._refused_changes.add((session_id, real))

    def take_refusal(self, session_id: str, real: Path) -> bool:
        """Return whether a change of the file was refused since it was read last, and forget it."""
        was_refused = (session_id, real) in self._refused_changes
        self._refused_changes.discard((session_id, real))
        return was_refused

    def take_changed_files(self, session_id: str) -> dict[Path, bool]:
        """Return the files that others changed since the session read them,
        each with whether it is still there.

        A change is returned once. Looks at the disk: one `stat` for each file, of the 500 that were
        read last; one that was written again in the same size, up to 1 MiB, is read.
        """
        self._record_differing(session_id)
        waiting = self._pending_changes.pop(session_id, {})
        return {real: state is not None for real, state in waiting.items()}

    def begin_own_change(self, session_id: str) -> None:
        """Call before a command of the session that may change files: others made
        the changes until now.
        """
        self._changing_sessions.add(session_id)
        self._record_differing(session_id)

    def end_own_change(self, session_id: str) -> None:
        """Call after that command, and after any other call: changes of the session's
        own are not reported.
        """
        if session_id not in self._changing_sessions:
            return
        self._changing_sessions.remove(session_id)
        for real, state in self._find_differing(session_id):
            self._reported[session_id, real] = state

    def _record_differing(self, session_id: str) -> None:
        for real, state in self._find_differing(session_id):
            self._reported[session_id, real] = state
            self._pending_changes.setdefault(session_id, {})[real] = state

    def _find_differing(self, session_id: str) -> Iterator[tuple[Path, _State]]:
        """Yield the files whose state differs from when the session read them
        and from the last report.

        What was reported of files that have the same bytes again is brought up to date.
        """
        files = islice(
            (key for key in self._list_latest_first() if key[0] == session_id), _MAX_COMPARED_FILES
        )
        for key in files:
            stamp, state = self._read_stamps.get(key), _read_state(key[1])
            # Another thread has forgotten the file since.
            if stamp is None:
                continue
            if state == (stamp.mtime_ns, stamp.size):
                self._reported.pop(key, None)
            elif key not in self._reported or self._reported[key] != state:
                if _has_same_bytes(key[1], state, stamp):
                    self._reported[key] = state
                else:
                    yield key[1], state

    def list_files(self) -> list[Path]:
        """Return the files that any session has read, the latest first."""
        return list(dict.fromkeys(real for _, real in self._list_latest_first()))

    def _list_latest_first(self) -> Iterator[tuple[str, Path]]:
        """Return each session with a file that it has read, the latest first."""
        # A copy, since other threads record meanwhile.
        return reversed(list(self._read_stamps))

    def record_first_load(self, message_id: str, real: Path) -> bool:
        """Record that a call of this step has loaded an instruction file;
        return whether it is the first to do so.

        The calls of one step run at the same time;
        the files loaded by earlier steps are in the store.
        """
        if (message_id, real) in self._loaded_instructions:
            return False
        self._loaded_instructions.add((message_id, real))
        return True

    def get_lock(self, real: Path) -> asyncio.Lock:
        """Return the lock of a file. Keep the reference for as long as the lock is held."""
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


def _has_same_bytes(real: Path, state: _State, stamp: FileStamp) -> bool:
    """Return whether a rewritten file has the same bytes as when it was read;
    False when comparing is too slow.
    """
    if (
        state is None
        or state[1] != stamp.size
        or stamp.digest is None
        or stamp.size > _MAX_COMPARED_BYTES
    ):
        return False
    with suppress(FileRefused, OSError):
        return read_file(real).stamp.matches(stamp)
    return False
