"""Records of the steps that may be changing files,
on the disk: the next start finds a step that a kill cut off.
"""

import os
import time
from contextlib import suppress
from pathlib import Path

import msgspec

from codeloop.kit.small_files import write_atomically
from codeloop.schema.wire import DECODE_ERRORS
from codeloop.workspace.snapshot.object_store import TreeEntry

HEARTBEAT_SECONDS = 5.0
"""How often the process of a step touches its record."""
# A file that changed so long after the last touch was changed by somebody else: a
# busy machine touches late.
_MAX_SILENCE_SECONDS = 20.0


class OpenStep(msgspec.Struct, frozen=True):
    """A step that was begun. `base`: the tree before its first command; None: there is none.

    `entries`: the files that calls named, as they were before, by path; `omitted`: those that the
    snapshot left out, with their stat and the reason.
    Paths are relative to the work tree, as bytes.
    """

    session_id: str
    message_id: str
    base: str | None
    entries: dict[bytes, tuple[int, str] | None]
    omitted: dict[bytes, tuple[tuple[int, ...] | None, str]]
    unrecorded: dict[bytes, str]

    def list_entries(self) -> dict[str, TreeEntry | None]:
        """Return `entries` by their names."""
        return {
            os.fsdecode(path): TreeEntry(*each) if each else None
            for path, each in self.entries.items()
        }


class OpenSteps:
    """The records of one work tree, a file for each step in a folder. Raises OSError."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._is_made = False

    def store(self, step: OpenStep) -> None:
        """Store a step's record, in place of its earlier one."""
        if not self._is_made:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._is_made = True
        write_atomically(self._folder / step.message_id, msgspec.msgpack.encode(step))

    def touch(self, message_id: str) -> None:
        """Record that a step is still going on."""
        with suppress(OSError):
            os.utime(self._folder / message_id)

    def remove(self, message_id: str) -> None:
        """Remove a step's record, if it has one, and if its folder can be written."""
        with suppress(OSError):
            (self._folder / message_id).unlink()

    def list_ids(self) -> list[str]:
        """Return the ids of the messages of all steps with a record."""
        try:
            return sorted(
                path.name for path in self._folder.iterdir() if path.name.startswith("msg")
            )
        except OSError:
            return []

    def read(self, message_id: str) -> OpenStep | None:
        """Return a step's record; None: it has none, or a crash of the machine has damaged it."""
        try:
            return msgspec.msgpack.decode((self._folder / message_id).read_bytes(), type=OpenStep)
        except (OSError, *DECODE_ERRORS):
            return None

    def find_end(self, message_id: str) -> int:
        """Return the time after which a cut-off step can't have changed a file any more,
        in ns since the epoch.
        """
        try:
            touched_at = (self._folder / message_id).stat().st_mtime
        except OSError:
            touched_at = time.time()
        return int((touched_at + _MAX_SILENCE_SECONDS) * 1e9)
