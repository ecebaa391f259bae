"""Files that no sandboxed command may change or create: restored afterwards where the kernel can't protect them."""

import itertools
import os
import shutil
import stat
import time
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

from codeloop.kit.small_files import read_bounded
from codeloop.workspace.git.planted.repositories import PlantedRepositories
from codeloop.workspace.sandbox.policy import SandboxPolicy

_LARGEST = 1024 * 1024  # bytes
_MOST = 500  # files
_SHOWN = 3


class SetAside(Struct, frozen=True):
    """A file or folder that appeared while a sandboxed command ran, and where it was moved to.

    The command may have made it, or the user meanwhile.
    """

    path: Path
    moved: Path

    def give_back(self) -> bool:
        """Put it back where it was; return whether it is there now."""
        if not os.path.lexists(self.path) and _is_real(self.path):
            with suppress(OSError):
                shutil.move(self.moved, self.path)
        return not os.path.lexists(self.moved)


class ProtectedFiles:
    """The state of a policy's protected files before a command. `folder`: where new ones are moved to.

    `keep`: remember the contents, too, since the sandbox can't keep the files from being written. `repositories`: begun
    for the command; `warnings`: what was found in them, for the model and the user.
    """

    def __init__(
        self, policy: SandboxPolicy, folder: Path, repositories: PlantedRepositories | None, *, keep: bool
    ) -> None:
        self.set_aside: list[SetAside] = []
        self.warnings: list[str] = []
        self._repositories = repositories
        self._absent = policy.absent
        self._granted = policy.granted
        self._folder = folder
        self._parents = {path: _identify_folder(path.parent) for path in policy.protected}
        self._free = tuple(path for path in policy.writable if any(map(path.is_relative_to, policy.protected)))
        self._before = self._read_contents(policy.protected) if keep else {}
        self._protected = policy.protected if keep else ()

    def is_little(self) -> bool:
        """Return whether `restore` will be quick: no change in the repositories, for example."""
        if self._repositories is not None and self._repositories.count_at_once(-1):
            self._repositories = None
        return self._repositories is None and not self._protected and not self._granted

    def restore(self) -> list[str]:
        """Restore changed files and move away new ones; return what was done, for the model."""
        notes: list[str] = []
        if self._repositories is not None:
            warning, self._repositories = self._repositories.end(), None
            self.warnings += [warning] if warning else []
        self.set_aside += [SetAside(path, moved_to) for path in self._list_new() if (moved_to := self._move(path))]
        if not self._protected:
            return notes
        now = self._read_contents(self._protected)
        changed = [path for path, before in self._before.items() if now.get(path) != before]
        more = sorted(now.keys() - self._before.keys())
        paths = [path for path in more if not self._move(path)]
        paths += [path for path in changed if not _put_back(path, self._before[path])]
        changed += more
        if changed:
            paths_shown = ", ".join(map(str, changed[:_SHOWN])) + (" ..." if len(changed) > _SHOWN else "")
            notes.append(f"blocked: change of {paths_shown}, which is protected; it is as it was before.")
        if paths:
            paths_shown = ", ".join(map(str, paths[:_SHOWN]))
            notes.append(f"{paths_shown} could not be put back: look at it before anything runs in this repository.")
        return notes

    def _list_new(self) -> list[Path]:
        """Return paths that were absent, exist now, and must not; of a folder with allowed entries, the other entries.

        What is protected stays so where it is moved to with a folder above it; what is in its place then is new.
        """
        new = (path for path, parent in self._parents.items() if _identify_folder(path.parent) != parent)
        paths = [path for path in (*self._absent, *new) if os.path.lexists(path) and path not in self._granted]
        open_ = [path for path in paths if any(each.is_relative_to(path) for each in self._granted)]
        below = [Path(top, name) for path in open_ for top, _, names in os.walk(path) for name in names]
        rest = [path for path in below if not any(map(path.is_relative_to, self._granted))]
        return [*(path for path in paths if path not in open_), *rest]

    def _read_contents(self, paths: tuple[Path, ...]) -> dict[Path, tuple[int, bytes]]:
        """Return the files at or below the paths but those that may be written this time."""
        contents = _read_contents(paths)
        return {path: each for path, each in contents.items() if not any(map(path.is_relative_to, self._free))}

    def _move(self, path: Path) -> Path | None:
        """Move away what appeared; None when that can't be done."""
        name = f"{time.time_ns()}-{path.name}"
        if not _is_real(path):
            return None
        for target in (self._folder / name, path.with_name(f"set-aside-{name}")):
            try:
                self._folder.mkdir(parents=True, exist_ok=True)
                path.rename(target)
            except OSError:
                continue  # on another disk, for one
            else:
                return target
        return None


def _identify_folder(folder: Path) -> tuple[int, int]:
    """Return the device and inode of a folder, zeros if it is missing."""
    try:
        status = folder.stat()
    except OSError:
        return 0, 0
    return status.st_dev, status.st_ino


def _is_real(path: Path) -> bool:
    """Return whether a path still leads where it did: a folder above it may have become a link to somewhere else."""
    return os.path.realpath(path.parent) == str(path.parent)


def _read_contents(paths: tuple[Path, ...]) -> dict[Path, tuple[int, bytes]]:
    """Return mode and bytes of each file at or below the paths, of a link where it leads."""
    contents: dict[Path, tuple[int, bytes]] = {}
    for start in paths:
        below = (Path(top) / name for top, _, names in os.walk(start) for name in names)
        for path in itertools.islice((start, *below), _MOST):
            try:
                status = path.lstat()
                if stat.S_ISLNK(status.st_mode):
                    contents[path] = (status.st_mode, os.fsencode(path.readlink()))
                elif stat.S_ISREG(status.st_mode) and status.st_size <= _LARGEST:
                    contents[path] = (status.st_mode, read_bounded(path, _LARGEST))
            except OSError:
                continue
    return contents


def _put_back(path: Path, before: tuple[int, bytes]) -> bool:
    mode, data = before
    try:
        path.parent.mkdir(exist_ok=True)
        if not _is_real(path):
            return False
        path.unlink(missing_ok=True)
        if stat.S_ISLNK(mode):
            path.symlink_to(os.fsdecode(data))
        else:
            path.write_bytes(data)
            path.chmod(stat.S_IMODE(mode))
    except OSError:
        return False
    return True
