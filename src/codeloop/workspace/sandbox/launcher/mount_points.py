"""Makes mount points and links below folders of ours, without following any link.

Commands have written into these folders: a link that one of them left there must not lead the next
sandbox's mounts out of the folder. So each step of a path is opened by itself, relative to the
descriptor of the one before. Some mount points only pin a folder, which can't be renamed then.
"""

from __future__ import annotations

import os
import stat
import time

from codeloop.workspace.sandbox.launcher.suppress import Suppress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

_FOLDER_FLAGS = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_ANY_FILE_FLAGS = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC


def open_point(path: str, *, is_folder: bool, is_ours: bool) -> int:
    """Open a folder or a file at an absolute path, and make it if it is absent. Raises OSError.

    Returns a descriptor. `is_ours`: the path lies in a folder of ours, where a link or another
    wrong kind of entry is moved out of the way.
    """
    *above, name = path.strip("/").split("/")
    parent_fd = _open_parent(above, is_ours=is_ours)
    try:
        if is_folder:
            return _open_or_make_folder(parent_fd, name, is_ours=is_ours)
        if is_ours and _read_kind(parent_fd, name) in {stat.S_IFLNK, stat.S_IFDIR}:
            _move_out_of_the_way(parent_fd, name)
        with Suppress(FileExistsError):
            os.close(
                os.open(
                    name,
                    os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC,
                    0o600,
                    dir_fd=parent_fd,
                )
            )
        return os.open(name, _ANY_FILE_FLAGS, dir_fd=parent_fd)
    finally:
        os.close(parent_fd)


def make_link(path: str, target: str) -> None:
    """Make a link at an absolute path in our folder, replacing whatever else is there.
    Raises OSError.
    """
    *above, name = path.strip("/").split("/")
    parent_fd = _open_parent(above, is_ours=True)
    try:
        if (
            _read_kind(parent_fd, name) == stat.S_IFLNK
            and os.readlink(name, dir_fd=parent_fd) == target
        ):
            return
        if _read_kind(parent_fd, name):
            _move_out_of_the_way(parent_fd, name)
        os.symlink(target, name, dir_fd=parent_fd)
    finally:
        os.close(parent_fd)


def _open_parent(names: list[str], *, is_ours: bool) -> int:
    """Open the folder that the names lead to from `/`, and make what is absent.
    Returns a descriptor.
    """
    parent_fd = os.open("/", _FOLDER_FLAGS)
    for name in names:
        try:
            below = _open_or_make_folder(parent_fd, name, is_ours=is_ours)
        finally:
            os.close(parent_fd)
        parent_fd = below
    return parent_fd


def _open_or_make_folder(parent_fd: int, name: str, *, is_ours: bool) -> int:
    """Open a folder in another one, and make it if it is absent. Returns a descriptor."""
    try:
        return os.open(name, _FOLDER_FLAGS, dir_fd=parent_fd)
    except FileNotFoundError:
        pass
    except NotADirectoryError:
        if not is_ours:
            raise
        _move_out_of_the_way(parent_fd, name)
    # Another sandbox may be made at the same time.
    with Suppress(FileExistsError):
        os.mkdir(name, 0o755, dir_fd=parent_fd)
    return os.open(name, _FOLDER_FLAGS, dir_fd=parent_fd)


def _move_out_of_the_way(parent_fd: int, name: str) -> None:
    # Renamed, not removed: a command may have put its results there.
    os.rename(name, f"{name}.replaced-{time.time_ns()}", src_dir_fd=parent_fd, dst_dir_fd=parent_fd)


def _read_kind(parent_fd: int, name: str) -> int:
    """Return the kind of an entry as in `st_mode`; 0 for a missing one."""
    try:
        return stat.S_IFMT(os.stat(name, dir_fd=parent_fd, follow_symlinks=False).st_mode)
    except FileNotFoundError:
        return 0


def list_pinned_folders(writable: Collection[str], guarded: Iterable[str]) -> list[str]:
    """Return the folders between a writable path and each guarded (protected or
    hidden) path below it, sorted.

    They must not be renamed: the next sandbox would not guard the path under its new name.
    """
    # A path in a guarded folder is left out. It can't be renamed anyway, and a mount of its own
    # would stay writable when the folder's mount turns read-only.
    guarded, pinned = set(guarded), set[str]()
    for path in guarded:
        between: list[str] = []
        above = os.path.dirname(path)
        while above not in writable and above not in guarded and is_below(above, writable):
            between.append(above)
            above = os.path.dirname(above)
        if above not in guarded:
            pinned.update(between)
    return sorted(pinned)


def is_below(path: str, folders: Iterable[str]) -> bool:
    """Return whether a path is one of the folders or lies below one."""
    return any(path == folder or path.startswith(f"{folder}/") for folder in folders)
