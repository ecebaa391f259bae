"""Reads the content of a path as git's blobs have it: the bytes of a regular file,
or the target of a link.
"""

import os
import stat

from codeloop.kit.git import compute_blob_id
from codeloop.workspace.snapshot.object_store import TreeEntry

LINK_MODE = 0o120000
_FOLDER_FLAGS = os.O_DIRECTORY | os.O_CLOEXEC | getattr(os, "O_PATH", os.O_RDONLY)
# Without O_NONBLOCK, opening a named pipe waits for a writer.
_READ_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_CHUNK_BYTES = 1 << 20


class Unreadable(Exception):
    """The content of a path can't be stored; the message is a clause that says why."""


def to_git_mode(mode: int) -> int:
    """Convert a file's mode to git's (644 or 755); unlike git,
    to 600 or 700 if only its owner may read the file.
    """
    if stat.S_ISLNK(mode):
        return LINK_MODE
    readable = 0o100600 if not mode & 0o077 else 0o100644
    # Whoever may read it may run it.
    executable = readable | (readable & 0o444) >> 2
    return executable if mode & 0o100 else readable


def read_contents(path: str, cap: int) -> tuple[bytes, os.stat_result]:
    """Read a regular file of at most `cap` bytes, or a link; return it with its stat.
    Raises Unreadable, OSError.
    """
    info = os.lstat(path)
    if stat.S_ISLNK(info.st_mode):
        return _read_target(path), info
    if not stat.S_ISREG(info.st_mode):
        raise Unreadable("not a regular file")
    return read_regular_file(path, cap)


def read_regular_file(path: str, cap: int) -> tuple[bytes, os.stat_result]:
    """Read what was a regular file just now, as `read_contents` does."""
    fd = os.open(path, _READ_FLAGS)
    try:
        # Something else may have taken the path since.
        # The stat comes before the content: if the file
        # changes in between, it looks changed to the next scan.
        info = os.fstat(fd)
        if not stat.S_ISREG(info.st_mode):
            raise Unreadable("not a regular file")
        if info.st_size > cap:
            raise Unreadable(f"larger than {cap:,} bytes")
        # One byte more than there should be: if it does not come, the file is read, mostly at once.
        wanted = min(info.st_size + 1, _CHUNK_BYTES)
        data = os.read(fd, wanted)
        if len(data) < wanted and len(data) == info.st_size:
            return data, info
        chunks = [data]
        size = len(data)
        while size <= cap and (chunk := os.read(fd, _CHUNK_BYTES)):
            chunks.append(chunk)
            size += len(chunk)
        if size > cap:
            raise Unreadable(f"larger than {cap:,} bytes")
        return b"".join(chunks), info
    finally:
        os.close(fd)


def read_tree_entry(path: str, cap: int) -> TreeEntry | None:
    """Return the entry of a path without storing its content; None: there is nothing, or a folder.

    Raises Unreadable, OSError.
    """
    try:
        if stat.S_ISDIR(os.lstat(path).st_mode):
            return None
        data, info = read_contents(path, cap)
    except (FileNotFoundError, NotADirectoryError):
        return None
    return TreeEntry(to_git_mode(info.st_mode), compute_blob_id(data).hex())


def _read_target(path: str) -> bytes:
    """Return the target of a link, byte for byte."""
    # `Path.readlink` would normalise it: `a//b` would become `a/b`, another blob.
    folder, _, name = path.rpartition("/")
    fd = os.open(folder or "/", _FOLDER_FLAGS)
    try:
        return os.fsencode(os.readlink(name, dir_fd=fd))
    finally:
        os.close(fd)
