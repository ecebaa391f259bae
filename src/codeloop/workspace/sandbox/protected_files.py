"""Files that no sandboxed command may change or create: restored afterwards where the kernel can't protect them."""

import itertools
import os
import re
import shutil
import stat
import time
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from msgspec import Struct

from codeloop.kit.small_files import read_bounded
from codeloop.workspace.git.planted.repositories import PlantedRepositories
from codeloop.workspace.sandbox.policy import SandboxPolicy

_MAX_BYTES = 1024 * 1024  # of a file whose content is remembered
_MAX_FILES = 500  # below one protected path
_PATHS_SHOWN = 3  # in a note
_MAX_LIST_BYTES = 64 * 1024 * 1024
_LISTS = {
    "packed-refs": rb"(?:# pack-refs with:[^\n]*\n)?(?:[0-9a-f]{%d} refs/[^\0- \x7f]+\n(?:\^[0-9a-f]{%d}\n)?)*",
    "shallow": rb"(?:[0-9a-f]{%d}\n)*",
}
"""File -> a pattern of its content as git writes it, with a place for the number of digits of a hash."""
_HASH_DIGITS = (40, 64)


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


class _GitList(NamedTuple):
    """A list of git's: its change time, inode and size, and its content; None: there is none, or it is too large."""

    state: tuple[int, int, int] | None
    data: bytes | None


class ProtectedFiles:
    """The state of a policy's protected files before a command. `folder`: where new ones are moved to.

    `keep`: remember the contents, too, since the sandbox can't keep the files from being written. `repositories`: the
    check of repositories that was started before the command; `warnings`: its results, for the model and the user.
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
        self._lists = {path: _read_list(path) for path in policy.git_lists}

    def is_little(self) -> bool:
        """Return whether `restore` will be quick, for example since nothing has changed in the repositories."""
        if self._repositories is not None and self._repositories.count_if_unchanged(-1):
            self._repositories = None
        has_same_lists = all(_read_state(path) == before.state for path, before in self._lists.items())
        return self._repositories is None and not self._protected and not self._granted and has_same_lists

    def restore(self) -> list[str]:
        """Restore changed files and move away new ones; return what was done, for the model."""
        notes: list[str] = []
        if self._repositories is not None:
            warning, self._repositories = self._repositories.end_command(), None
            self.warnings += [warning] if warning else []
        self.set_aside += [SetAside(path, moved_to) for path in self._list_new() if (moved_to := self._move(path))]
        notes += [note for path, before in self._lists.items() for note in self._restore_list(path, before)]
        if not self._protected:
            return notes
        now = self._read_contents(self._protected)
        changed = [path for path, before in self._before.items() if now.get(path) != before]
        more = sorted(now.keys() - self._before.keys())
        paths = [path for path in more if not self._move(path)]
        paths += [path for path in changed if not _put_back(path, self._before[path])]
        changed += more
        if changed:
            paths_shown = ", ".join(map(str, changed[:_PATHS_SHOWN])) + (" ..." if len(changed) > _PATHS_SHOWN else "")
            notes.append(f"blocked: change of {paths_shown}, which is protected; it is as it was before.")
        if paths:
            paths_shown = ", ".join(map(str, paths[:_PATHS_SHOWN]))
            notes.append(f"{paths_shown} could not be put back: look at it before anything runs in this repository.")
        return notes

    def _list_new(self) -> list[Path]:
        """Return the paths that were absent and exist now; of a folder with granted entries, the other entries.

        A protected file that a command moved, with a folder above it, is still protected. What the command put at its
        old path is new.
        """
        new = (path for path, parent in self._parents.items() if _identify_folder(path.parent) != parent)
        paths = [path for path in (*self._absent, *new) if os.path.lexists(path) and path not in self._granted]
        open_ = [path for path in paths if any(each.is_relative_to(path) for each in self._granted)]
        below = [Path(top, name) for path in open_ for top, _, names in os.walk(path) for name in names]
        rest = [path for path in below if not any(map(path.is_relative_to, self._granted))]
        return [*(path for path in paths if path not in open_), *rest]

    def _restore_list(self, path: Path, before: _GitList) -> list[str]:
        """Put a list of git's back, or move it away where there was none, if git can't read it any more."""
        if _read_state(path) == before.state or _is_list(path.name, before.data, _read_list(path).data):
            return []
        if before.data is None:
            is_done = self._move(path) is not None
        else:
            is_done = (not path.is_dir() or self._move(path) is not None) and _put_list_back(path, before.data)
        if not is_done:
            return [f"git can't read {path} any more, and it could not be put back: look at it first."]
        return [f"blocked: change of {path}, which git could not read any more; it is as it was before."]

    def _read_contents(self, paths: tuple[Path, ...]) -> dict[Path, tuple[int, bytes]]:
        """Return the files at or below the paths but those that may be written this time."""
        contents = _read_contents(paths)
        return {path: each for path, each in contents.items() if not any(map(path.is_relative_to, self._free))}

    def _move(self, path: Path) -> Path | None:
        """Move a new file or folder away; None when that can't be done."""
        name = f"{time.time_ns()}-{path.name}"
        if not _is_real(path):
            return None
        for target in (self._folder / name, path.with_name(f"set-aside-{name}")):
            try:
                self._folder.mkdir(parents=True, exist_ok=True)
                path.rename(target)
            except OSError:
                continue  # our folder is on another disk, for example: then beside the file
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
    """Return whether no folder above a path has become a link, through which we would change another file."""
    return os.path.realpath(path.parent) == str(path.parent)


def _read_contents(paths: tuple[Path, ...]) -> dict[Path, tuple[int, bytes]]:
    """Return mode and bytes of each file at or below the paths, of a link where it leads."""
    contents: dict[Path, tuple[int, bytes]] = {}
    for start in paths:
        below = (Path(top) / name for top, _, names in os.walk(start) for name in names)
        for path in itertools.islice((start, *below), _MAX_FILES):
            try:
                status = path.lstat()
                if stat.S_ISLNK(status.st_mode):
                    contents[path] = (status.st_mode, os.readlink(os.fsencode(path)))
                elif stat.S_ISREG(status.st_mode) and status.st_size <= _MAX_BYTES:
                    contents[path] = (status.st_mode, read_bounded(path, _MAX_BYTES))
            except OSError:
                continue
    return contents


def _read_state(path: Path) -> tuple[int, int, int] | None:
    """Return a file's change time, inode and size; None: there is none."""
    try:
        status = path.lstat()
    except OSError:
        return None
    return status.st_ctime_ns, status.st_ino, status.st_size


def _read_list(path: Path) -> _GitList:
    state = _read_state(path)
    with suppress(OSError):
        if state is not None and state[2] <= _MAX_LIST_BYTES and not path.is_symlink():
            return _GitList(state, read_bounded(path, _MAX_LIST_BYTES))
    return _GitList(state, None)


def _is_list(name: str, before: bytes | None, now: bytes | None) -> bool:
    """Return whether git can read a list as it is now, with the hashes that it had before."""
    if now is None:
        return before is None  # git itself removes none
    if not now and before:
        return False
    patterns = [re.compile(_LISTS[name].replace(b"%d", b"%d" % digits)) for digits in _HASH_DIGITS]
    readable = [pattern for pattern in patterns if not before or pattern.fullmatch(before)]
    return b"/.." not in now and (not readable or any(pattern.fullmatch(now) for pattern in readable))


def _put_list_back(path: Path, data: bytes) -> bool:
    """Write a list of git's as git does, while it has the list's lock."""
    lock = path.with_name(f"{path.name}.lock")
    try:
        with lock.open("xb") as file:
            file.write(data)
        lock.rename(path)
    except OSError:
        return False
    return True


def _put_back(path: Path, before: tuple[int, bytes]) -> bool:
    mode, data = before
    try:
        path.parent.mkdir(exist_ok=True)
        if not _is_real(path):
            return False
        path.unlink(missing_ok=True)  # never written in place: it may be a link or another name of some file now
        if stat.S_ISLNK(mode):
            path.symlink_to(os.fsdecode(data))
        else:
            path.write_bytes(data)
            path.chmod(stat.S_IMODE(mode))
    except OSError:
        return False
    return True
