"""Mount points and links in our own folders, made by descriptors, so that no link is followed.

Commands wrote such a folder's contents: a link planted there for the next sandbox must not lead us out.
"""

import os
import stat
import time

from codeloop.workspace.sandbox.launcher.suppress import Suppress

_FOLDER = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_ANY_KIND = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC


def open_point(path: str, *, is_folder: bool, is_ours: bool) -> int:
    """Return a descriptor of a folder or a file at an absolute path, which is made if absent. Raises OSError.

    `is_ours`: it lies in a folder of ours, where an entry of another kind, such as a link, is moved away.
    """
    *above, name = path.strip("/").split("/")
    at = _open_folders(above, is_ours=is_ours)
    try:
        if is_folder:
            return _enter(at, name, is_ours=is_ours)
        if is_ours and _read_kind(at, name) in {stat.S_IFLNK, stat.S_IFDIR}:
            _stash(at, name)
        with Suppress(FileExistsError):
            os.close(os.open(name, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600, dir_fd=at))
        return os.open(name, _ANY_KIND, dir_fd=at)
    finally:
        os.close(at)


def make_link(path: str, target: str) -> None:
    """Make a link at an absolute path in our folder, replacing whatever else is there. Raises OSError."""
    *above, name = path.strip("/").split("/")
    at = _open_folders(above, is_ours=True)
    try:
        if _read_kind(at, name) == stat.S_IFLNK and os.readlink(name, dir_fd=at) == target:
            return
        if _read_kind(at, name):
            _stash(at, name)
        os.symlink(target, name, dir_fd=at)
    finally:
        os.close(at)


def _open_folders(names: list[str], *, is_ours: bool) -> int:
    at = os.open("/", _FOLDER)
    for name in names:
        try:
            below = _enter(at, name, is_ours=is_ours)
        finally:
            os.close(at)
        at = below
    return at


def _enter(at: int, name: str, *, is_ours: bool) -> int:
    """Return a descriptor of a folder in another one; an entry of another kind is moved away."""
    try:
        return os.open(name, _FOLDER, dir_fd=at)
    except FileNotFoundError:
        pass
    except NotADirectoryError:
        if not is_ours:
            raise
        _stash(at, name)
    with Suppress(FileExistsError):  # another sandbox is made at the same time
        os.mkdir(name, 0o755, dir_fd=at)
    return os.open(name, _FOLDER, dir_fd=at)


def _stash(at: int, name: str) -> None:

    os.rename(name, f"{name}.replaced-{time.time_ns()}", src_dir_fd=at, dst_dir_fd=at)


def _read_kind(at: int, name: str) -> int:
    """Return the kind of a file; 0 when it is not there."""
    try:
        return stat.S_IFMT(os.stat(name, dir_fd=at, follow_symlinks=False).st_mode)
    except FileNotFoundError:
        return 0
