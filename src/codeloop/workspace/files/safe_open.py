"""Opening and reading files without following a link that appeared after permission was given."""

import errno
import os
import stat
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

from msgspec import Struct

from codeloop.schema.errors import CodeloopError
from codeloop.schema.limits import FILE_EDIT

_DIRECTORY = os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC | getattr(os, "O_PATH", os.O_RDONLY)
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_KINDS = (
    (stat.S_ISDIR, "a directory"),
    (stat.S_ISFIFO, "a named pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
    (stat.S_ISLNK, "a symbolic link now"),
)


class FileRefused(CodeloopError):
    """A file can't be read or written as asked; nothing was changed. `advice` is for the model alone."""

    def __init__(self, message: str, advice: str = "") -> None:
        super().__init__(message)
        self.advice = advice


class Stamp(Struct, frozen=True):
    """A file as read: modification time in ns, size in bytes, and a hash of its bytes when all of them were read."""

    mtime_ns: int
    size: int
    digest: bytes | None = None

    def same(self, other: "Stamp") -> bool:
        """Return whether the bytes are the same, by the hashes where both are known."""
        if self.digest is not None and other.digest is not None:
            return self.digest == other.digest
        return (self.mtime_ns, self.size) == (other.mtime_ns, other.size)


class LoadedFile(Struct, frozen=True):
    """A whole file: its bytes, its stamp, its mode, owner and group."""

    data: bytes
    stamp: Stamp
    mode: int
    owner: tuple[int, int]


def digest(data: bytes) -> bytes:
    """Return the hash that stamps carry."""
    from hashlib import blake2b

    return blake2b(data, digest_size=16).digest()


@contextmanager
def open_folder(real: Path, *, create: bool = False) -> Generator[int]:
    """Open a directory by its resolved path, refusing any link on the way; returns its descriptor.

    Raises FileRefused when a component became a link, OSError else. `create` makes what is missing.
    """
    here = os.open("/", _DIRECTORY)
    try:
        for name in real.parts[1:]:
            try:
                down = os.open(name, _DIRECTORY, dir_fd=here)
            except FileNotFoundError:
                if not create:
                    raise
                with suppress(FileExistsError):
                    os.mkdir(name, dir_fd=here)
                down = os.open(name, _DIRECTORY, dir_fd=here)
            except OSError as error:
                if error.errno in {errno.ENOTDIR, errno.ELOOP}:
                    raise FileRefused(f"{real}: {name} on its way is not a directory (perhaps a link now)") from error
                raise
            os.close(here)
            here = down
        yield here
    finally:
        os.close(here)


@contextmanager
def open_file(real: Path) -> Generator[int]:
    """Open a regular file for reading by its resolved path; returns its descriptor.

    Raises FileRefused for links, directories, pipes and devices, OSError else (FileNotFoundError when it is not there).
    """
    with open_folder(real.parent) as folder:
        try:
            fd = os.open(real.name or ".", _READ, dir_fd=folder)
        except OSError as error:
            if error.errno in {errno.ELOOP, errno.ENXIO}:
                raise FileRefused(f"{real} is a link now, or a socket; only regular files are read") from error
            raise
    try:
        check_regular(real, os.fstat(fd).st_mode)
        yield fd
    finally:
        os.close(fd)


def load(real: Path, cap: int = FILE_EDIT.value) -> LoadedFile:
    """Read a whole file of at most `cap` bytes. Raises as `open_file`, and FileRefused when it is larger."""
    with open_file(real) as fd:
        info = os.fstat(fd)
        if info.st_size > cap:
            raise FileRefused(
                f"{real} has {info.st_size:,} bytes, more than the {cap:,} that can be edited.",
                "Use a command instead.",
            )
        with os.fdopen(os.dup(fd), "rb") as file:
            data = file.read(cap + 1)
        if len(data) > cap:
            raise FileRefused(f"{real} has more than {cap:,} bytes.", "Use a command instead.")
        stamp = Stamp(info.st_mtime_ns, len(data), digest(data))
        return LoadedFile(data, stamp, stat.S_IMODE(info.st_mode), (info.st_uid, info.st_gid))


def load_if_there(real: Path) -> LoadedFile | None:
    """Read a whole file; None when there is no such file."""
    try:
        return load(real)
    except FileNotFoundError:
        return None


def check_regular(real: Path, mode: int) -> None:
    """Raise FileRefused unless the mode is that of a regular file."""
    if not stat.S_ISREG(mode):
        kind = next((name for test, name in _KINDS if test(mode)), "not a regular file")
        raise FileRefused(f"{real} is {kind}; only regular files are read and written")
