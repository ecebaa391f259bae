"""Files read and replaced safely: never through a link that was not there when leave was given, never half-written."""

import asyncio
import errno
import os
import stat
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from weakref import WeakValueDictionary

from msgspec import Struct

from codeloop.kit import fault
from codeloop.schema.errors import CodeloopError
from codeloop.schema.limits import FILE_EDIT
from codeloop.workspace.notes import new_name, noted

_DIRECTORY = os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC | getattr(os, "O_PATH", os.O_RDONLY)
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_KINDS = (
    (stat.S_ISDIR, "a directory"),
    (stat.S_ISFIFO, "a named pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
    (stat.S_ISLNK, "a symbolic link now"),
)


class FileRefused(CodeloopError):
    """A file can't be read or written as asked; nothing was changed."""


class FileChanged(FileRefused):
    """A file is not what it was when it was read; nothing was changed."""


class Stamp(Struct, frozen=True):
    """What a file was: modification time in ns, size in bytes, and a hash of its bytes when all of them were read."""

    mtime_ns: int
    size: int
    digest: bytes | None = None

    def same(self, other: "Stamp") -> bool:
        """Tell whether the bytes are the same, by the hashes where both are known."""
        if self.digest is not None and other.digest is not None:
            return self.digest == other.digest
        return (self.mtime_ns, self.size) == (other.mtime_ns, other.size)


class Loaded(Struct, frozen=True):
    """A whole file: its bytes, its stamp, its mode, owner and group."""

    data: bytes
    stamp: Stamp
    mode: int
    owner: tuple[int, int]


class Replacement(Struct, frozen=True):
    """What a file is to become. `before`: what it must still be (None: not there). `data`: None deletes it.

    `mode`: for a new file that takes the place of a moved one.
    """

    real: Path
    before: Loaded | None
    data: bytes | None
    mode: int | None = None


class FileLog:
    """Which files each session has seen, as what, and the lock of each file that is being changed."""

    def __init__(self) -> None:
        self._seen: dict[tuple[str, Path], Stamp] = {}
        self._told: set[tuple[str, Path]] = set()
        self._locks: WeakValueDictionary[Path, asyncio.Lock] = WeakValueDictionary()

    def record(self, session_id: str, real: Path, stamp: Stamp) -> None:
        """Note that the session knows the file as it is now."""
        self._seen[session_id, real] = stamp

    def forget(self, session_id: str, real: Path) -> None:
        """Note that the file is gone."""
        self._seen.pop((session_id, real), None)

    def seen(self, session_id: str, real: Path) -> Stamp | None:
        """Give what the session last knew of the file."""
        return self._seen.get((session_id, real))

    def tell_once(self, session_id: str, real: Path) -> bool:
        """Tell whether the session has not been told of this instruction file, and note that it is now."""
        if (session_id, real) in self._told:
            return False
        self._told.add((session_id, real))
        return True

    def lock(self, real: Path) -> asyncio.Lock:
        """Give the file's lock; hold the reference while it is needed."""
        lock = self._locks.get(real)
        if lock is None:
            lock = self._locks[real] = asyncio.Lock()
        return lock


def digest(data: bytes) -> bytes:
    """Give the hash that stamps carry."""
    from hashlib import blake2b

    return blake2b(data, digest_size=16).digest()


@contextmanager
def open_folder(real: Path, *, create: bool = False) -> Generator[int]:
    """Open a directory by its resolved path, refusing any link on the way; gives its descriptor.

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
                    raise FileRefused(f"{real}: {name} on its way is no directory (perhaps a link now)") from error
                raise
            os.close(here)
            here = down
        yield here
    finally:
        os.close(here)


@contextmanager
def open_file(real: Path) -> Generator[int]:
    """Open a regular file for reading by its resolved path; gives its descriptor.

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
        _check_regular(real, os.fstat(fd).st_mode)
        yield fd
    finally:
        os.close(fd)


def load(real: Path, cap: int = FILE_EDIT.value) -> Loaded:
    """Read a whole file of at most `cap` bytes. Raises as `open_file`, and FileRefused when it is larger."""
    with open_file(real) as fd:
        info = os.fstat(fd)
        if info.st_size > cap:
            raise FileRefused(
                f"{real} has {info.st_size:,} bytes, more than the {cap:,} that fit; use a program instead"
            )
        with os.fdopen(os.dup(fd), "rb") as file:
            data = file.read(cap + 1)
        if len(data) > cap:
            raise FileRefused(f"{real} has more than {cap:,} bytes; use a program instead")
        stamp = Stamp(info.st_mtime_ns, len(data), digest(data))
        return Loaded(data, stamp, stat.S_IMODE(info.st_mode), (info.st_uid, info.st_gid))


def load_if_there(real: Path) -> Loaded | None:
    """Read a whole file, or give None when there is none."""
    try:
        return load(real)
    except FileNotFoundError:
        return None


def replace(change: Replacement, notes: Path | None = None) -> Stamp | None:
    """Make one change of a file, atomically. Gives the new stamp, None for a deletion; raises as `replace_all`."""
    return replace_all([change], notes)[0]


def replace_all(replacements: Sequence[Replacement], notes: Path | None = None) -> list[Stamp | None]:
    """Make all changes or none: write all new bytes beside the files, sync, check everything once more, rename.

    `notes`: our folder in which temporary names are noted, for the next run to remove what a kill leaves.
    Raises FileChanged when a file is not `before` any more, FileRefused for links and the like, OSError (no space, no
    leave); in each case every file keeps its old bytes. A kill leaves each file old or new, never partial.
    """
    names = [(new_name(), new_name()) for _ in replacements]
    paths = [change.real.with_name(name) for change, both in zip(replacements, names, strict=True) for name in both]
    with noted(notes, paths):
        return _replace_all([*zip(replacements, names, strict=True)])


def _replace_all(replacements: Sequence[tuple[Replacement, tuple[str, str]]]) -> list[Stamp | None]:
    staged: list[_Staged] = []
    try:
        staged.extend(_Staged(change, names) for change, names in replacements)
        for change in staged:
            change.check()
        done: list[_Staged] = []
        try:
            for change in staged:
                done.append(change)
                change.commit()
        except (OSError, FileRefused):
            for change in reversed(done):
                change.roll_back()
            raise
        return [change.stamp for change in staged]
    finally:
        for change in staged:
            change.close()


class _Staged:
    """One replacement under way: the folder, the new bytes in a temporary file, a second name of the old ones."""

    def __init__(self, change: Replacement, names: tuple[str, str]) -> None:
        self._change = change
        self._names = names
        self._name = change.real.name
        self._new: str | None = None
        self._old: str | None = None
        self._committed = False
        self.stamp: Stamp | None = None
        with open_folder(change.real.parent, create=change.data is not None) as folder:
            self._folder = os.dup(folder)
        try:
            if change.data is not None:
                self._write(change.data)
        except (OSError, FileRefused):
            self.close()
            raise

    def _write(self, data: bytes) -> None:
        before = self._change.before
        self._new = self._names[0]
        fd = os.open(self._new, _CREATE, 0o600 if before else 0o666, dir_fd=self._folder)
        try:
            view = memoryview(data)
            while view:
                view = view[os.write(fd, view) :]
            if before is not None:
                self._take_over(fd, before)
            elif self._change.mode is not None:
                os.fchmod(fd, self._change.mode)
            os.fsync(fd)
            self.stamp = Stamp(os.fstat(fd).st_mtime_ns, len(data), digest(data))
        finally:
            os.close(fd)

    def _take_over(self, fd: int, before: Loaded) -> None:
        """Give the new file the owner, mode and extended attributes of the old one, as far as allowed."""
        if before.owner != (os.geteuid(), os.getegid()):
            with suppress(OSError):
                os.fchown(fd, *before.owner)
        os.fchmod(fd, before.mode)
        if not hasattr(os, "listxattr"):
            return
        with suppress(OSError, FileRefused), open_file(self._change.real) as old:
            for name in os.listxattr(old):
                with suppress(OSError):
                    os.setxattr(fd, name, os.getxattr(old, name))

    def check(self) -> None:
        """Raise FileChanged unless the file is what it was read as."""
        real, before = self._change.real, self._change.before
        try:
            info = os.stat(self._name, dir_fd=self._folder, follow_symlinks=False)
        except FileNotFoundError:
            if before is None:
                return
            raise FileChanged(f"{real} was deleted after it was read; nothing was written") from None
        _check_regular(real, info.st_mode)
        if before is None:
            raise FileChanged(f"{real} came to be in the meantime; read it, then decide")
        if not load(real).stamp.same(before.stamp):
            raise FileChanged(
                f"{real} changed after it was read; read it again, then repeat the change on what it holds"
            )

    def commit(self) -> None:
        """Put the new bytes in place, keeping a second name of the old ones until `close`."""
        self.check()
        if self._change.before is not None:
            self._old = self._names[1]
            try:
                os.link(self._name, self._old, src_dir_fd=self._folder, dst_dir_fd=self._folder, follow_symlinks=False)
            except OSError:
                self._copy_old(self._change.before)
        fault.point("files.write.before")
        if self._new is None:
            os.unlink(self._name, dir_fd=self._folder)
        elif self._change.before is None:
            self._link_new()
        else:
            os.replace(self._new, self._name, src_dir_fd=self._folder, dst_dir_fd=self._folder)
            self._new = None
        self._committed = True
        fault.point("files.write.after")
        self._sync()

    def _link_new(self) -> None:
        """Give a new file its name only if nobody else took it."""
        real = self._change.real
        try:
            os.link(
                self._new or "", self._name, src_dir_fd=self._folder, dst_dir_fd=self._folder, follow_symlinks=False
            )
        except FileExistsError as error:
            raise FileChanged(f"{real} came to be in the meantime; read it, then decide") from error
        except OSError:  # a file system without hard links
            os.rename(self._new or "", self._name, src_dir_fd=self._folder, dst_dir_fd=self._folder)
            self._new = None

    def _copy_old(self, before: Loaded) -> None:
        fd = os.open(self._old or "", _CREATE, before.mode, dir_fd=self._folder)
        with os.fdopen(fd, "wb") as file:
            file.write(before.data)

    def roll_back(self) -> None:
        """Give the file its old bytes again."""
        if not self._committed:
            return
        if self._old is None:
            os.unlink(self._name, dir_fd=self._folder)
        else:
            os.replace(self._old, self._name, src_dir_fd=self._folder, dst_dir_fd=self._folder)
            self._old = None

    def close(self) -> None:
        """Remove what is left of the temporary names."""
        for name in (self._new, self._old):
            if name is not None:
                with suppress(OSError):
                    os.unlink(name, dir_fd=self._folder)
        os.close(self._folder)

    def _sync(self) -> None:
        with suppress(OSError):
            fd = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=self._folder)
            try:
                os.fsync(fd)
            finally:
                os.close(fd)


def _check_regular(real: Path, mode: int) -> None:
    if not stat.S_ISREG(mode):
        kind = next((name for test, name in _KINDS if test(mode)), "no regular file")
        raise FileRefused(f"{real} is {kind}; only regular files are read and written")
