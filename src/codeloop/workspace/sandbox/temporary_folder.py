"""The temporary folder of a process's sandboxes,
which the next process removes if this one is killed.
"""

import fcntl
import os
import stat
from pathlib import Path

from msgspec import Struct

from codeloop.kit.remove_tree import find_temporary_base, remove_tree
from codeloop.workspace.git.planted.layout import list_entries
from codeloop.workspace.sandbox.paths.restricted_paths import TEMPORARY_FOLDERS
from codeloop.workspace.sandbox.policy import SandboxPolicy

_PREFIX = "codeloop-sandboxes-"
# Linux follows this many links in one path; then it fails with ELOOP.
_MAX_LINKS = 40


class TemporaryFolder(Struct, frozen=True):
    """A folder in one that only its owner may enter, whatever commands make of its mode.

    `lock`: the descriptor of the outer one, locked as long as the process lives.
    """

    path: Path
    lock: int

    def resolve(self, path: Path, policy: SandboxPolicy) -> Path | None:
        """Resolve a path as commands see it in a sandbox that has this folder for temporary files;
        None for what is in it. See `Sandboxes.resolve_inside`.
        """
        shown = [*policy.writable, *policy.layered, *policy.visible, *policy.replaced]
        for _ in range(_MAX_LINKS):
            top = next((each for each in TEMPORARY_FOLDERS if path.is_relative_to(each)), None)
            is_shown = any(path.is_relative_to(each) or each.is_relative_to(path) for each in shown)
            if top is None or is_shown:
                return path
            resolved = Path(os.path.realpath(self.path / path.relative_to(top)))
            if resolved.is_relative_to(self.path):
                return None
            path = resolved
        return None

    def remove(self) -> None:
        """Remove the folders with all that is in them."""
        remove_tree(self.path.parent)
        os.close(self.lock)


def make_temporary_folder() -> TemporaryFolder:
    """Make a folder in the system's one for temporary files, and remove those of killed processes.
    Raises OSError.
    """
    parent = find_temporary_base()
    _remove_abandoned(parent)
    folder = parent / f"codeloop-new-{os.urandom(8).hex()}"
    folder.mkdir(mode=0o700)
    lock = _try_lock(folder)
    # It gets the name that others look for once it is locked,
    # so none of them takes it for an abandoned one.
    path = folder.with_name(_PREFIX + folder.name.rpartition("-")[2])
    folder.rename(path)
    inner = path / "tmp"
    inner.mkdir(mode=0o700)
    return TemporaryFolder(inner, lock)


def _remove_abandoned(parent: Path) -> None:
    """Remove the folders of this user that no process holds any more."""
    for folder in list_entries(parent):
        if not folder.name.startswith(_PREFIX):
            continue
        try:
            lock = _try_lock(folder)
        except OSError:  # a process holds it, or it is not ours
            continue
        try:
            status = os.fstat(lock)
            if stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid():
                remove_tree(folder)
        finally:
            os.close(lock)


def _try_lock(folder: Path) -> int:
    """Lock a folder, and return its descriptor. Raises OSError: BlockingIOError if
    another process has locked it.
    """
    lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(lock)
        raise
    return lock
