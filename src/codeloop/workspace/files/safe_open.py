"""Opens and reads files without following a link that appeared after permission was given."""

import errno
import os
import stat
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

from msgspec import Struct

from codeloop.schema.errors import CodeloopError
from codeloop.schema.limits import FILE_EDIT

_FOLDER_FLAGS = os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC | getattr(os, "O_PATH", os.O_RDONLY)
# Without O_NONBLOCK, opening a named pipe waits for a writer.
_READ_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_FILE_KINDS = (
    (stat.S_ISDIR, "a directory"),
    (stat.S_ISFIFO, "a named pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
    (stat.S_ISLNK, "a symbolic link that leads nowhere, or became one just now"),
)


# A file may grow after its size was looked at, and those of /proc have none.
_SLACK_BYTES = 4_096


class FileRefused(CodeloopError):
    """A file can't be read or written as asked; nothing was changed.
    `advice` is for the model alone.
    """

    def __init__(self, message: str, advice: str = "") -> None:
        super().__init__(message)
        self.advice = advice


class FileStamp(Struct, frozen=True):
    """A file as read: modification time in ns, size in bytes,
    and a hash of its bytes when all of them were read.
    """

    mtime_ns: int
    size: int
    digest: bytes | None = None

    def matches(self, other: "FileStamp") -> bool:
        """Return whether the bytes are the same: by the hashes where both are known,
        else by time and size.
        """
        if self.digest is not None and other.digest is not None:
            return self.digest == other.digest
        return (self.mtime_ns, self.size) == (other.mtime_ns, other.size)


class LoadedFile(Struct, frozen=True):
    """A whole file: its bytes, its stamp, its mode, owner and group."""

    data: bytes
    stamp: FileStamp
    mode: int
    owner: tuple[int, int]


def compute_digest(data: bytes) -> bytes:
    """Return the hash that stamps carry."""
    from hashlib import blake2b

    return blake2b(data, digest_size=16).digest()


@contextmanager
def open_folder(real: Path, *, create: bool = False) -> Generator[int]:
    """Open a directory by its resolved path, refusing any link on the way; yields its descriptor.

    `create`: missing directories are made. Raises FileRefused when a directory on the way became a
    link, OSError for other failures.
    """
    # O_NOFOLLOW looks at the last name only, so each folder on the way is
    # opened from the one before.
    descriptor = os.open("/", _FOLDER_FLAGS)
    try:
        for name in real.parts[1:]:
            try:
                child = os.open(name, _FOLDER_FLAGS, dir_fd=descriptor)
            except FileNotFoundError:
                if not create:
                    raise
                with suppress(FileExistsError):
                    os.mkdir(name, dir_fd=descriptor)
                child = os.open(name, _FOLDER_FLAGS, dir_fd=descriptor)
            except OSError as error:
                if error.errno in {errno.ENOTDIR, errno.ELOOP}:
                    raise FileRefused(
                        f"{real}: {name} on its way is not a directory (perhaps a link now)"
                    ) from error
                raise
            os.close(descriptor)
            descriptor = child
        yield descriptor
    finally:
        os.close(descriptor)


@contextmanager
def open_file(real: Path) -> Generator[int]:
    """Open a regular file for reading by its resolved path; yields its descriptor.

    Raises FileRefused for links, directories, pipes and devices, OSError for other failures,
    such as FileNotFoundError.
    """
    with open_folder(real.parent) as folder:
        try:
            fd = os.open(real.name or ".", _READ_FLAGS, dir_fd=folder)
        except OSError as error:
            if error.errno in {errno.ELOOP, errno.ENXIO}:
                # A link, a socket, or a device without hardware, such as a terminal that is gone.
                check_regular(
                    real, os.stat(real.name, dir_fd=folder, follow_symlinks=False).st_mode
                )
            raise
    try:
        check_regular(real, os.fstat(fd).st_mode)
        yield fd
    finally:
        os.close(fd)


def read_file(real: Path, max_bytes: int = FILE_EDIT.value) -> LoadedFile:
    """Read a whole file of at most `max_bytes` bytes.
    Raises as `open_file`, and FileRefused when it is larger.
    """
    with open_file(real) as fd:
        info = os.fstat(fd)
        if info.st_size > max_bytes:
            raise FileRefused(
                f"{real} has {info.st_size:,} bytes, more than the {max_bytes:,} that can be edited.",
                "Use a command instead.",
            )
        data = _read_up_to(fd, max_bytes + 1, info.st_size + _SLACK_BYTES)
        if len(data) > max_bytes:
            raise FileRefused(
                f"{real} has more than {max_bytes:,} bytes.", "Use a command instead."
            )
        stamp = FileStamp(info.st_mtime_ns, len(data), compute_digest(data))
        return LoadedFile(data, stamp, stat.S_IMODE(info.st_mode), (info.st_uid, info.st_gid))


def _read_up_to(fd: int, max_bytes: int, chunk_bytes: int) -> bytes:
    """Read to the end, or `max_bytes`. Raises BlockingIOError for a file of /proc
    that has nothing to say now.
    """
    chunks: list[bytes] = []
    left = max_bytes
    while left > 0 and (chunk := os.read(fd, min(chunk_bytes, left))):
        chunks.append(chunk)
        left -= len(chunk)
    return b"".join(chunks)


def read_file_if_exists(real: Path) -> LoadedFile | None:
    """Read a whole file; None when there is no such file."""
    try:
        return read_file(real)
    except FileNotFoundError:
        return None


def check_regular(real: Path, mode: int) -> None:
    """Raise FileRefused unless the mode is that of a regular file."""
    if not stat.S_ISREG(mode):
        kind = next((name for test, name in _FILE_KINDS if test(mode)), "not a regular file")
        raise FileRefused(f"{real} is {kind}; only regular files are read and written")
