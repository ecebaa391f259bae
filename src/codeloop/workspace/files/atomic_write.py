"""Atomic replacement of files, all of them or none: each is old or new, never half-written."""

import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

from codeloop.kit import fault_injection
from codeloop.kit.small_files import CREATE_FLAGS, write_all
from codeloop.workspace.files.safe_open import (
    FileRefused,
    LoadedFile,
    Stamp,
    check_regular,
    digest,
    load,
    open_file,
    open_folder,
)
from codeloop.workspace.files.temp_files import new_name, note_temporary


class FileChanged(FileRefused):
    """A file is not what it was when it was read; nothing was changed."""


class Replacement(Struct, frozen=True):
    """The planned content of a file. `before`: what it must still be (None: not there). `data`: None deletes it.

    `mode`: that of a new file which takes the place of a moved one.
    """

    real: Path
    before: LoadedFile | None
    data: bytes | None
    mode: int | None = None


def replace_file(change: Replacement, notes: Path | None = None) -> Stamp | None:
    """Make one change of a file, atomically. Returns the new stamp, None for a deletion; raises as `replace_files`."""
    return replace_files([change], notes)[0]


def replace_files(replacements: Sequence[Replacement], notes: Path | None = None) -> list[Stamp | None]:
    """Make all changes or none: write all new bytes to temporary files, sync, check everything once more, rename.

    `notes`: our folder in which temporary names are noted, for the next run to remove what a kill leaves.
    Raises FileChanged when a file is no longer `before`, FileRefused for links and the like, OSError (no space, no
    permission); in each case every file keeps its old bytes. A kill leaves each file old or new, never partial.
    """
    names = [(new_name(), new_name()) for _ in replacements]
    paths = [change.real.with_name(name) for change, both in zip(replacements, names, strict=True) for name in both]
    with note_temporary(notes, paths):
        return _replace_files([*zip(replacements, names, strict=True)])


def _replace_files(replacements: Sequence[tuple[Replacement, tuple[str, str]]]) -> list[Stamp | None]:
    pending: list[_PendingReplacement] = []
    try:
        pending.extend(_PendingReplacement(change, names) for change, names in replacements)
        for change in pending:
            change.check()
        replaced_files: list[_PendingReplacement] = []
        try:
            for change in pending:
                replaced_files.append(change)
                change.commit()
        except (OSError, FileRefused):
            for change in reversed(replaced_files):
                change.roll_back()
            raise
        return [change.stamp for change in pending]
    finally:
        for change in pending:
            change.close()


class _PendingReplacement:
    """One replacement in progress: new bytes in a temporary file, old bytes under a second name."""

    def __init__(self, change: Replacement, names: tuple[str, str]) -> None:
        self._change = change
        self._names = names
        self._name = change.real.name
        self._new: str | None = None
        self._old: str | None = None
        self._is_committed = False
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
        fd = os.open(self._new, CREATE_FLAGS, 0o600 if before else 0o666, dir_fd=self._folder)
        try:
            write_all(fd, data)
            if before is not None:
                self._take_over(fd, before)
            elif self._change.mode is not None:
                os.fchmod(fd, self._change.mode)
            os.fsync(fd)
            self.stamp = Stamp(os.fstat(fd).st_mtime_ns, len(data), digest(data))
        finally:
            os.close(fd)

    def _take_over(self, fd: int, before: LoadedFile) -> None:
        """Copy to the new file the owner, mode and extended attributes of the old one, as far as allowed."""
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
        check_regular(real, info.st_mode)
        if before is None:
            raise FileChanged(f"{real} was created in the meantime.", "Read it first.")
        if not load(real).stamp.same(before.stamp):
            raise FileChanged(
                f"{real} changed after it was read.", "Read it again, then make the change on its current content."
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
        fault_injection.point("files.write.before")
        if self._new is None:
            os.unlink(self._name, dir_fd=self._folder)
        elif self._change.before is None:
            self._link_new()
        else:
            os.replace(self._new, self._name, src_dir_fd=self._folder, dst_dir_fd=self._folder)
            self._new = None
        self._is_committed = True
        fault_injection.point("files.write.after")
        self._sync()

    def _link_new(self) -> None:
        """Name a new file unless the name has been taken."""
        real = self._change.real
        try:
            os.link(
                self._new or "", self._name, src_dir_fd=self._folder, dst_dir_fd=self._folder, follow_symlinks=False
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
        """Write the old bytes of the file back."""
        if not self._is_committed:
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
