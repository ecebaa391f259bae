"""Reads and writes files below a folder that sandboxed commands write to,
without following any link in it.
"""

import os
import stat
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from codeloop.kit.small_files import write_all

Stamp = tuple[int, int, int, int]
"""Shows whether a file has changed: its inode, size in bytes,
and times of modification and change in ns.
"""
_FOLDER_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# Without O_NONBLOCK, opening a pipe waits for a writer.
_READ_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_NEW_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_NO_NAMES = frozenset({"", ".", ".."})
_CHUNK_BYTES = 1024 * 1024


class FileChangedError(OSError):
    """A file is not what it was expected to be."""


class OpenFolder:
    """A folder that stays the same one, whatever a command puts at its path.
    Paths are relative to it.

    Every method raises OSError; where a link stands in the way, NotADirectoryError or another one.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.fd = os.open(path, _FOLDER_FLAGS)

    def close(self) -> None:
        """Close it."""
        os.close(self.fd)

    def read_stamp(self, path: str) -> Stamp | None:
        """Return the stamp of what is at a path, which may be a link or a folder;
        None: there is nothing.
        """
        try:
            return make_stamp(os.stat(path, dir_fd=self.fd, follow_symlinks=False))
        except OSError:
            return None

    @contextmanager
    def open_file(self, path: str) -> Generator[int]:
        """Open a regular file for reading; yields its descriptor."""
        with self.open_parent(path) as (parent, name):
            fd = os.open(name, _READ_FLAGS, dir_fd=parent)
        try:
            if not stat.S_ISREG(os.fstat(fd).st_mode):
                raise OSError(0, "not a regular file", path)
            yield fd
        finally:
            os.close(fd)

    def read(self, path: str, max_bytes: int) -> tuple[bytes, os.stat_result]:
        """Return a regular file and its status from before it was read;
        an error if it has more bytes.
        """
        with self.open_file(path) as fd:
            status = os.fstat(fd)
            pieces: list[bytes] = []
            remaining = max_bytes + 1
            while remaining > 0 and (piece := os.read(fd, min(remaining, _CHUNK_BYTES))):
                pieces.append(piece)
                remaining -= len(piece)
            if remaining <= 0:
                raise OSError(0, "too large", path)
            return b"".join(pieces), status

    def write(
        self,
        path: str,
        data: bytes,
        *,
        like: os.stat_result | None = None,
        expected: Stamp | None = None,
        is_locked: bool = False,
    ) -> Stamp:
        """Replace a file at once, and make its missing folders. Returns its new stamp.

        `like`: the status of another file, whose mode and times it gets. `is_locked`: its lock file
        is held meanwhile, as by git, and FileExistsError is raised while git holds that; then the
        present file must have the stamp `expected` (None: it must be missing), otherwise
        FileChangedError is raised.
        """
        with self.open_parent(path, make=True) as (parent, name):
            draft = f"{name}.lock" if is_locked else f"{name}.codeloop-{os.urandom(4).hex()}"
            mode = stat.S_IMODE(like.st_mode) if like is not None else 0o644
            fd = os.open(draft, _NEW_FLAGS, mode, dir_fd=parent)
            try:
                try:
                    write_all(fd, data)
                    if like is not None:
                        os.utime(fd, ns=(like.st_atime_ns, like.st_mtime_ns))
                finally:
                    os.close(fd)
                if is_locked and self.read_stamp(path) != expected:
                    raise FileChangedError(0, "it was changed meanwhile", path)
                os.rename(draft, name, src_dir_fd=parent, dst_dir_fd=parent)
            except OSError:
                with suppress(OSError):
                    os.unlink(draft, dir_fd=parent)
                raise
            # After the rename, which changes the time of change.
            return make_stamp(os.stat(name, dir_fd=parent, follow_symlinks=False))

    def create(self, path: str) -> None:
        """Make an empty file. Raises FileExistsError if there is one."""
        with self.open_parent(path) as (parent, name):
            os.close(os.open(name, _NEW_FLAGS, 0o644, dir_fd=parent))

    def append(self, path: str, data: bytes) -> None:
        """Append to a file, which is made with its folders if it is missing."""
        with self.open_parent(path, make=True) as (parent, name):
            flags = (
                os.O_WRONLY
                | os.O_APPEND
                | os.O_CREAT
                | os.O_NOFOLLOW
                | os.O_NONBLOCK
                | os.O_CLOEXEC
            )
            fd = os.open(name, flags, 0o644, dir_fd=parent)
        try:
            if not stat.S_ISREG(os.fstat(fd).st_mode):
                raise OSError(0, "not a regular file", path)
            write_all(fd, data)
        finally:
            os.close(fd)

    def remove(self, path: str) -> None:
        """Remove a file or a link, if it is there."""
        with suppress(FileNotFoundError), self.open_parent(path) as (parent, name):
            os.unlink(name, dir_fd=parent)

    def remove_folder(self, path: str) -> None:
        """Remove a folder if it is empty."""
        with suppress(OSError), self.open_parent(path) as (parent, name):
            os.rmdir(name, dir_fd=parent)

    def make_folder(self, path: str) -> None:
        """Make a folder, with those above it, unless it is there."""
        with self.open_parent(f"{path}/x", make=True):
            pass

    def list_entries(self, path: str = "") -> list[tuple[str, bool]]:
        """Return the name of each entry of a folder, and whether it is a folder itself;
        [] for a missing one.
        """
        try:
            with (
                self.open_parent(f"{path}/x" if path else "x") as (parent, _),
                os.scandir(parent) as entries,
            ):
                return [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries]
        except OSError:
            return []

    def walk(self, path: str, max_count: int) -> Iterator[str]:
        """Yield the paths of the files below a folder, at most `max_count`."""
        waiting = [path]
        while waiting:
            folder = waiting.pop()
            for name, is_folder in self.list_entries(folder):
                below = f"{folder}/{name}"
                if is_folder:
                    waiting.append(below)
                elif max_count > 0:
                    max_count -= 1
                    yield below

    @contextmanager
    def open_parent(self, path: str, *, make: bool = False) -> Generator[tuple[int, str]]:
        """Open the folder of a path, step by step; yields its descriptor and the path's last name.

        `make`: missing folders are made. A path that leads upwards is refused.
        """
        *above, name = path.split("/")
        if not _NO_NAMES.isdisjoint((*above, name)):
            raise OSError(0, "not a path below the folder", path)
        fd, steps = self.fd, list[int]()
        try:
            for step in above:
                if make:
                    with suppress(FileExistsError):
                        os.mkdir(step, 0o755, dir_fd=fd)
                fd = os.open(step, _FOLDER_FLAGS, dir_fd=fd)
                steps.append(fd)
            yield fd, name
        finally:
            for each in steps:
                os.close(each)


def make_stamp(status: os.stat_result) -> Stamp:
    """Return the stamp of a file's status."""
    return status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns
