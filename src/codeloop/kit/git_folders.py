"""Finds the git directory of a work tree, and files in it on which git would block. Runs no git."""

import os
import stat
from contextlib import suppress
from pathlib import Path

from codeloop.kit.small_files import read_start

_MAX_POINTER_BYTES = 4096
# The size of an index of ten million files.
_MAX_FILE_BYTES = 1024**3
_FILES_READ_BY_EVERY_CALL = (
    *("HEAD", "config", "config.worktree", "commondir", "gitdir", "packed-refs", "shallow", "index"),
    *("info/attributes", "info/exclude", "info/grafts", "objects/info/alternates"),
)


def find_git_folder(top: Path) -> Path | None:
    """Return the git directory of a work tree by its top folder; None when there is none."""
    entry = top / ".git"
    try:
        # In a linked work tree, `.git` is a file: `gitdir: /path/of/the/git/directory`.
        folder = entry if entry.is_dir() else _follow_pointer(entry, b"gitdir:", top)
        return folder if folder is not None and (folder / "HEAD").is_file() else None
    except (OSError, ValueError):  # ValueError: the file names no path
        return None


def find_blocking_file(folder: Path) -> Path | None:
    """Return a file of a git directory on which git would block: a pipe, a device, or a far too large file.

    None: git can read the directory. Checks the files that every call of git reads, not each reference and object.
    """
    names = list(_FILES_READ_BY_EVERY_CALL)
    with suppress(OSError):
        head = read_start(folder / "HEAD", _MAX_POINTER_BYTES)
        if head.startswith(b"ref: refs/") and b"\0" not in head:
            names.append(os.fsdecode(head.removeprefix(b"ref:").strip()))
    return next((path for path in (folder / name for name in names) if not _is_readable(path)), None)


def _is_readable(path: Path) -> bool:
    """Return whether git does not block on a path: it is absent, a folder, or a regular file that is not too large."""
    try:
        status = path.stat()
    except OSError:
        # Git fails on it at once, without waiting.
        return True
    return stat.S_ISDIR(status.st_mode) or (stat.S_ISREG(status.st_mode) and status.st_size <= _MAX_FILE_BYTES)


def find_common_folder(folder: Path) -> Path:
    """Return the git directory with the objects: for a linked work tree, that of the main one."""
    return _follow_pointer(folder / "commondir", b"", folder) or folder


def _follow_pointer(file: Path, prefix: bytes, base: Path) -> Path | None:
    """Return the path that a file of git's holds after `prefix`, relative to `base`; None when it holds none."""
    try:
        content = read_start(file, _MAX_POINTER_BYTES)
    except OSError:
        return None
    if not content.startswith(prefix) or not content or b"\0" in content:
        return None
    return base / os.fsdecode(content.removeprefix(prefix).strip())
