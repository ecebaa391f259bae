"""`SessionPins`: the user's pinned sessions, in a file that all processes of the user share."""

from contextlib import suppress
from pathlib import Path

import msgspec

from codeloop.kit.small_files import create_private_folder, lock, read_start, write_atomically
from codeloop.schema.wire import DECODE_ERRORS

# Bounds what is read of a damaged file.
_MAX_FILE_BYTES = 1_000_000
_MAX_PINS = 1_000
_LOCK_TIMEOUT_SECONDS = 1.0
"""How long a change waits for another process's change of the file; after that it is given up."""


class SessionPins:
    """Stores the ids of pinned sessions in `folder`. Where it can't be written, nothing is pinned,
    without an error.
    """

    def __init__(self, folder: Path) -> None:
        self._file = folder / "pinned.json"

    def read(self) -> tuple[str, ...]:
        """Return the ids of pinned sessions, the latest last;
        none if the file is missing or damaged.
        """
        with suppress(OSError, *DECODE_ERRORS):
            return msgspec.json.decode(
                read_start(self._file, _MAX_FILE_BYTES), type=tuple[str, ...]
            )
        return ()

    def toggle(self, session_id: str) -> None:
        """Pin or unpin a session."""
        # A pin is a convenience: a full disk or another process must not end the UI.
        with suppress(OSError, TimeoutError):
            create_private_folder(self._file.parent)
            with lock(self._file.parent, _LOCK_TIMEOUT_SECONDS):
                # Read again under the lock: another process may have changed the file.
                before = self.read()
                ids = tuple(each for each in before if each != session_id)
                if session_id not in before:
                    ids = (*ids, session_id)
                write_atomically(self._file, msgspec.json.encode(ids[-_MAX_PINS:]))
