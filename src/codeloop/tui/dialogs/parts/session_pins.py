"""The user's pinned sessions, in a file that many processes share."""

from contextlib import suppress
from pathlib import Path

import msgspec

from codeloop.kit.small_files import lock, make_private, read_start, write_atomically

_MOST_BYTES = 1_000_000
_MOST = 1_000
"""How many pins are kept."""
_LOCK_SECONDS = 1.0


class SessionPins:
    """Stores the ids in `folder`. Where that can't be written, pins last only as long as the process."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / "pinned.json"

    def read(self) -> tuple[str, ...]:
        """Return the ids, the latest last."""
        with suppress(OSError, msgspec.MsgspecError):
            return msgspec.json.decode(read_start(self._file, _MOST_BYTES), type=tuple[str, ...])
        return ()

    def toggle(self, session_id: str) -> None:
        """Pin or unpin a session."""
        with suppress(OSError, TimeoutError):
            make_private(self._file.parent)
            with lock(self._file.parent, _LOCK_SECONDS):
                before = self.read()
                ids = tuple(each for each in before if each != session_id)
                if session_id not in before:
                    ids = (*ids, session_id)
                write_atomically(self._file, msgspec.json.encode(ids[-_MOST:]))
