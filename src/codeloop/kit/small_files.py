"""Small files: private folders for them, bounded reads that never block, atomic writes, locks."""

import errno
import fcntl
import os
import stat
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from codeloop.kit.new_file import open_new_file

# Without O_NONBLOCK, opening a pipe waits for a writer.
_READ_FLAGS = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC
_LOCK_POLL_SECONDS = 0.02
# os.read allocates its buffer before it reads, so a bound of gigabytes must not be passed to it.
_CHUNK_BYTES = 1024 * 1024
FileState = tuple[int, int, int] | None
"""Inode, modification time in ns, size in bytes; None: there is no such file."""


def create_private_folder(folder: Path) -> None:
    """Create a folder and its missing parents, each for its owner only;
    existing ones stay as they are.

    Raises OSError. `Path.mkdir` gives its mode to the last folder only.
    """
    if folder.is_dir():
        return
    if folder.parent != folder:
        create_private_folder(folder.parent)
    folder.mkdir(mode=0o700, exist_ok=True)


@contextmanager
def open_regular(path: Path) -> Generator[int]:
    """Open a regular file for reading; yields its descriptor.
    Raises OSError, for pipes and devices too.
    """
    descriptor = os.open(path, _READ_FLAGS)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(0, "not a regular file")
        yield descriptor
    finally:
        os.close(descriptor)


def read_start(path: Path, max_bytes: int) -> bytes:
    """Return the first `max_bytes` bytes of a regular file. Raises OSError."""
    with open_regular(path) as descriptor:
        return _read_at_most(descriptor, max_bytes)


def read_end(path: Path, max_bytes: int) -> bytes:
    """Return the last `max_bytes` bytes of a regular file. Raises OSError."""
    with open_regular(path) as descriptor:
        os.lseek(descriptor, max(os.fstat(descriptor).st_size - max_bytes, 0), os.SEEK_SET)
        return _read_at_most(descriptor, max_bytes)


def read_start_or_empty(path: Path, max_bytes: int) -> bytes:
    """Return the first `max_bytes` bytes of a regular file; b"" when it can't be read."""
    try:
        return read_start(path, max_bytes)
    except OSError:
        return b""


def read_bounded(path: Path, max_bytes: int) -> bytes:
    """Return all bytes of a regular file. Raises OSError,
    for example for a file of more than `max_bytes` bytes.
    """
    with open_regular(path) as descriptor:
        # A file of many gigabytes is refused before anything of it is read.
        data = (
            _read_at_most(descriptor, max_bytes + 1)
            if os.fstat(descriptor).st_size <= max_bytes
            else b""
        )
        if len(data) > max_bytes or os.fstat(descriptor).st_size > max_bytes:
            raise OSError(errno.EFBIG, os.strerror(errno.EFBIG), str(path))
        return data


def _read_at_most(descriptor: int, max_bytes: int) -> bytes:
    pieces: list[bytes] = []
    while max_bytes > 0 and (piece := os.read(descriptor, min(max_bytes, _CHUNK_BYTES))):
        pieces.append(piece)
        max_bytes -= len(piece)
    return b"".join(pieces)


def read_file_state(path: Path) -> FileState:
    """Return a value that differs once a file or folder has changed;
    None: it is not there, or can't be looked at.
    """
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_ino, status.st_mtime_ns, status.st_size


def write_all(fd: int, data: bytes | memoryview) -> None:
    """Write all of `data`. Raises OSError."""
    unwritten = memoryview(data)
    while unwritten:
        unwritten = unwritten[os.write(fd, unwritten) :]


def write_atomically(path: Path, data: bytes, *, sync: bool = False) -> None:
    """Write a file that only its owner may read, so that it is never half-written;
    see `open_new_file`.

    `sync`: wait until it is on the disk. Raises OSError.
    """
    with open_new_file(path, sync=sync) as file:
        file.write(data)


@contextmanager
def lock(path: Path, seconds: float) -> Generator[None]:
    """Hold a lock among all processes: on a folder, or on a file, which is created when missing.

    Raises TimeoutError when another process holds it for longer, OSError.
    """
    end = time.monotonic() + seconds
    descriptor = os.open(
        path, os.O_RDONLY | os.O_CLOEXEC | (0 if path.is_dir() else os.O_CREAT), 0o600
    )
    try:
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > end:
                    raise TimeoutError from None
                time.sleep(_LOCK_POLL_SECONDS)
        yield
    finally:
        os.close(descriptor)
