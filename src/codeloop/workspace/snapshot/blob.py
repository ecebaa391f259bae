"""The content of a path as a git blob: the bytes of a regular file, or the target of a link."""

import os
import stat
from hashlib import sha1

from codeloop.workspace.snapshot.object_store import TreeEntry

LINK = 0o120000
_FOLDER = os.O_DIRECTORY | os.O_CLOEXEC | getattr(os, "O_PATH", os.O_RDONLY)
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_CHUNK = 1 << 20


class Unreadable(Exception):
    """A path's content is not stored; the message says why."""


def to_git_mode(mode: int) -> int:
    """Return git's mode (644 or 755) for a file's; unlike git, 600 or 700 for one that only its owner may read."""
    if stat.S_ISLNK(mode):
        return LINK
    readable = 0o100600 if not mode & 0o077 else 0o100644
    executable = readable | (readable & 0o444) >> 2
    return executable if mode & 0o100 else readable


def read_contents(path: str, cap: int) -> tuple[bytes, os.stat_result]:
    """Read a regular file of at most `cap` bytes, or a link, and its earlier stat. Raises Unreadable, OSError."""
    info = os.lstat(path)
    if stat.S_ISLNK(info.st_mode):
        return _read_target(path), info
    if not stat.S_ISREG(info.st_mode):
        raise Unreadable("not a regular file")
    fd = os.open(path, _READ)
    try:
        info = os.fstat(fd)
        if not stat.S_ISREG(info.st_mode):
            raise Unreadable("not a regular file")
        if info.st_size > cap:
            raise Unreadable(f"larger than {cap:,} bytes")
        chunks: list[bytes] = []
        size = 0
        while chunk := os.read(fd, _CHUNK):
            chunks.append(chunk)
            size += len(chunk)
            if size > cap:
                raise Unreadable(f"larger than {cap:,} bytes")
        return b"".join(chunks), info
    finally:
        os.close(fd)


def tree_entry_of(path: str, cap: int) -> TreeEntry | None:
    """Return the entry of a path without storing it; None: nothing, or a folder. Raises Unreadable, OSError."""
    try:
        if stat.S_ISDIR(os.lstat(path).st_mode):
            return None
        data, info = read_contents(path, cap)
    except (FileNotFoundError, NotADirectoryError):
        return None
    return TreeEntry(to_git_mode(info.st_mode), blob_name(data))


def blob_name(data: bytes) -> str:
    """Return git's name of a blob with these bytes."""
    return sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()


def _read_target(path: str) -> bytes:
    folder, _, name = path.rpartition("/")
    fd = os.open(folder or "/", _FOLDER)
    try:
        return os.fsencode(os.readlink(name, dir_fd=fd))
    finally:
        os.close(fd)
