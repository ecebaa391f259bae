"""Replaces files atomically, all of them or none: each is old or new, never half-written.

A file with several names (hard links) is written in place instead, so that it keeps them.
"""

import os
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import NamedTuple

from msgspec import Struct

from codeloop.kit import fault_injection
from codeloop.kit.new_file import CREATE_FLAGS
from codeloop.kit.small_files import write_all
from codeloop.workspace.files.safe_open import (
    FileRefused,
    FileStamp,
    LoadedFile,
    check_regular,
    compute_digest,
    open_file,
    open_folder,
    read_file,
)
from codeloop.workspace.files.temp_files import make_temporary_name, record_temporary_files

# Package managers link files in these from a cache that all projects share.
_PACKAGE_FOLDERS = frozenset({"node_modules", "site-packages", "dist-packages"})


class FileChanged(FileRefused):
    """A file has changed since it was read; nothing was written."""


class Replacement(Struct, frozen=True):
    """The planned content of the file `real`, a resolved path.

    `before`: the content that it must still have (None: there is no file); `data`: the new bytes
    (None: the file is deleted); `mode`: of a file that is created, such as that of a moved or
    restored one (None: the default of the user's umask). `keeps_links`: whether the other names of
    a file with hard links get the new bytes, too.
    """

    real: Path
    before: LoadedFile | None
    data: bytes | None
    mode: int | None = None
    keeps_links: bool = True


class _TemporaryNames(NamedTuple):
    """Names in the folder of a file: for its new bytes,
    and for its old ones until all files are replaced.
    """

    new: str
    old: str


def replace_file(replacement: Replacement, records_folder: Path | None = None) -> FileStamp | None:
    """Replace one file. Returns the new stamp, None for a deletion; raises as `replace_files`."""
    return replace_files([replacement], records_folder)[0]


def replace_files(
    replacements: Sequence[Replacement], records_folder: Path | None = None
) -> list[FileStamp | None]:
    """Replace all files or none: write all new bytes to temporary files, sync,
    check everything once more, rename.

    `records_folder`: where temporary names are recorded, for the next run to remove the files that
    a kill leaves. Returns the new stamps, None for a deletion. Raises FileChanged when a file is no
    longer `before`, FileRefused for links and the like, OSError (no space, no permission); in each
    case every file keeps its old bytes.
    """
    names = [_TemporaryNames(make_temporary_name(), make_temporary_name()) for _ in replacements]
    named_replacements = [*zip(replacements, names, strict=True)]
    temporary_paths = [
        replacement.real.with_name(name)
        for replacement, temporary_names in named_replacements
        for name in temporary_names
    ]
    with record_temporary_files(records_folder, temporary_paths):
        return _replace_files(named_replacements)


def _replace_files(
    named_replacements: Sequence[tuple[Replacement, _TemporaryNames]],
) -> list[FileStamp | None]:
    pending: list[_PendingReplacement] = []
    try:
        pending.extend(
            _PendingReplacement(replacement, names) for replacement, names in named_replacements
        )
        # All are checked before the first is replaced, so that a roll-back is rarely needed.
        for each in pending:
            each.check()
        started: list[_PendingReplacement] = []
        try:
            for each in pending:
                started.append(each)
                each.commit()
        except (OSError, FileRefused):
            for each in reversed(started):
                each.roll_back()
            raise
        return [each.stamp for each in pending]
    finally:
        for each in pending:
            each.close()


class _PendingReplacement:
    """One replacement in progress: new bytes in a temporary file, old bytes under a second name."""

    def __init__(self, replacement: Replacement, names: _TemporaryNames) -> None:
        self._replacement = replacement
        self._names = names
        self._name = replacement.real.name
        # The temporary names that exist now.
        self._new: str | None = None
        self._old: str | None = None
        self._is_committed = False
        self._is_in_place = False
        self.stamp: FileStamp | None = None
        # Everything below goes through the folder's descriptor: its path may
        # become a link meanwhile.
        with open_folder(replacement.real.parent, create=replacement.data is not None) as folder:
            self._folder = os.dup(folder)
        try:
            if replacement.data is not None:
                self._write_new(replacement.data)
        except (OSError, FileRefused):
            self.close()
            raise

    def _write_new(self, data: bytes) -> None:
        before = self._replacement.before
        self._new = self._names.new
        # The copy of an existing file is private until it has that file's mode.
        fd = os.open(self._new, CREATE_FLAGS, 0o600 if before else 0o666, dir_fd=self._folder)
        try:
            write_all(fd, data)
            if before is not None:
                self._copy_attributes(fd, before)
            elif self._replacement.mode is not None:
                os.fchmod(fd, self._replacement.mode)
            os.fsync(fd)
            self.stamp = FileStamp(os.fstat(fd).st_mtime_ns, len(data), compute_digest(data))
        finally:
            os.close(fd)

    def _copy_attributes(self, fd: int, before: LoadedFile) -> None:
        """Copy to the new file the owner, mode and extended attributes of the old one,
        as far as allowed.
        """
        # The owner first, since a change of owner clears bits of the mode.
        if before.owner != (os.geteuid(), os.getegid()):
            with suppress(OSError):
                os.fchown(fd, *before.owner)
        # Another owner's file keeps its mode anyway, but for bits such as setuid.
        with suppress(PermissionError):
            os.fchmod(fd, before.mode)
        # Python has these functions on Linux only.
        if not hasattr(os, "listxattr"):
            return
        with suppress(OSError, FileRefused), open_file(self._replacement.real) as old:
            for name in os.listxattr(old):
                with suppress(OSError):
                    os.setxattr(fd, name, os.getxattr(old, name))

    def check(self) -> None:
        """Raise FileChanged unless the file still has the content that it was read with."""
        real, before = self._replacement.real, self._replacement.before
        try:
            info = os.stat(self._name, dir_fd=self._folder, follow_symlinks=False)
        except FileNotFoundError:
            if before is None:
                return
            raise FileChanged(
                f"{real} was deleted after it was read; nothing was written"
            ) from None
        check_regular(real, info.st_mode)
        if before is None:
            raise FileChanged(f"{real} was created in the meantime.", "Read it first.")
        if not read_file(real).stamp.matches(before.stamp):
            raise FileChanged(
                f"{real} changed after it was read.",
                "Read it again, then make the change on its current content.",
            )

    def commit(self) -> None:
        """Put the new bytes in place, or remove the file;
        the old bytes keep a second name until `close`.

        A file with other names is written in place, so that these show the new bytes too. That is
        not atomic, but the old bytes are in a file beside it until all files are written.
        """
        self.check()
        with ExitStack() as stack:
            in_place = self._open_in_place()
            if in_place is not None:
                stack.callback(os.close, in_place)
            self._keep_old(is_copied=in_place is not None)
            fault_injection.pass_point("files.write.before")
            if in_place is not None:
                self._write_in_place(in_place)
            elif self._new is None:
                os.unlink(self._name, dir_fd=self._folder)
            elif self._replacement.before is None:
                self._link_new()
            else:
                os.replace(self._new, self._name, src_dir_fd=self._folder, dst_dir_fd=self._folder)
                self._new = None
        self._is_committed = True
        fault_injection.pass_point("files.write.after")
        self._sync()

    def _open_in_place(self) -> int | None:
        """Open a file that is to be written in place; None: it is replaced."""
        replacement = self._replacement
        if replacement.before is None or replacement.data is None or not replacement.keeps_links:
            return None
        if not self._has_other_names():
            return None
        # Such as a program that runs, or a file of another owner: those are replaced.
        with suppress(OSError):
            flags = os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
            return os.open(self._name, flags, dir_fd=self._folder)
        return None

    def _keep_old(self, *, is_copied: bool) -> None:
        """Link the old bytes to a second name, or copy them where the file itself is written."""
        before = self._replacement.before
        if before is None:
            return
        if is_copied:
            # Not a name in the record of temporary files: after a kill in the middle of the
            # write the copy is all that is left, and stays.
            self._old = make_temporary_name()
            self._copy_old(before)
            self._is_in_place = True
            return
        self._old = self._names.old
        try:
            os.link(
                self._name,
                self._old,
                src_dir_fd=self._folder,
                dst_dir_fd=self._folder,
                follow_symlinks=False,
            )
        except OSError:  # a file system without hard links
            self._copy_old(before)

    def _has_other_names(self) -> bool:
        """Return whether the file has hard links that it keeps;
        one into a package manager's cache must not be kept.
        """
        info = os.stat(self._name, dir_fd=self._folder, follow_symlinks=False)
        return info.st_nlink > 1 and _PACKAGE_FOLDERS.isdisjoint(self._replacement.real.parts)

    def _write_in_place(self, fd: int) -> None:
        """Write the new bytes into the file. Raises OSError, after the old ones are back."""
        before, data = self._replacement.before, self._replacement.data
        assert before is not None
        assert data is not None
        try:
            _overwrite(fd, data)
        except OSError:
            self._put_back(fd, before.data)
            raise
        os.fchmod(fd, before.mode)
        self.stamp = FileStamp(os.fstat(fd).st_mtime_ns, len(data), compute_digest(data))

    def _put_back(self, fd: int, old: bytes) -> None:
        """Write the old bytes into the file again. Raises OSError, which names their copy."""
        try:
            _overwrite(fd, old)
        except OSError as error:
            copy = self._replacement.real.parent / str(self._old)
            self._old = None
            number = error.errno or 0
            raise OSError(number, f"{os.strerror(number)}; the old content is in {copy}") from error

    def _link_new(self) -> None:
        """Link a new file to its name; a rename would replace a file that was
        created in the meantime.
        """
        real = self._replacement.real
        try:
            os.link(
                self._new or "",
                self._name,
                src_dir_fd=self._folder,
                dst_dir_fd=self._folder,
                follow_symlinks=False,
            )
        except FileExistsError as error:
            raise FileChanged(f"{real} was created in the meantime.", "Read it first.") from error
        except OSError:  # a file system without hard links
            os.rename(self._new or "", self._name, src_dir_fd=self._folder, dst_dir_fd=self._folder)
            self._new = None

    def _copy_old(self, before: LoadedFile) -> None:
        fd = os.open(self._old or "", CREATE_FLAGS, before.mode, dir_fd=self._folder)
        with os.fdopen(fd, "wb") as file:
            file.write(before.data)

    def roll_back(self) -> None:
        """Put the old bytes in place again; a file that was new is removed."""
        if not self._is_committed:
            return
        if self._is_in_place and self._replacement.before is not None:
            fd = os.open(
                self._name, os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=self._folder
            )
            try:
                _overwrite(fd, self._replacement.before.data)
            finally:
                os.close(fd)
        elif self._old is None:
            os.unlink(self._name, dir_fd=self._folder)
        else:
            os.replace(self._old, self._name, src_dir_fd=self._folder, dst_dir_fd=self._folder)
            self._old = None

    def close(self) -> None:
        """Remove the temporary names that still exist."""
        for name in (self._new, self._old):
            if name is not None:
                with suppress(OSError):
                    os.unlink(name, dir_fd=self._folder)
        os.close(self._folder)

    def _sync(self) -> None:
        # The new name is an entry of the folder. Some file systems can't sync one;
        # the file itself is on the disk.
        with suppress(OSError):
            fd = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=self._folder)
            try:
                os.fsync(fd)
            finally:
                os.close(fd)


def _overwrite(fd: int, data: bytes) -> None:
    """Write these bytes alone to an open file, and wait until they are on the disk."""
    os.lseek(fd, 0, os.SEEK_SET)
    write_all(fd, data)
    os.ftruncate(fd, len(data))
    os.fsync(fd)
