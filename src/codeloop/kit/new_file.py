"""Writes files for the user and for CI: no link is followed, and nothing is half-written."""

import errno
import os
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

_FOLDER_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
CREATE_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_LINK_ERRORS = frozenset((errno.ELOOP, errno.ENOTDIR))
# What a shell opens for a program, such as /dev/stdout and /dev/fd/63, is written to as it is.
_DEVICES = Path("/dev")


@contextmanager
def open_new_file(
    path: Path,
    *,
    base: Path | None = None,
    mode: int = 0o600,
    sync: bool = False,
    replace: bool = True,
) -> Generator[BinaryIO]:
    """Open a file for writing, which gets its name at the end of the block, if that did not raise.

    What has the name already, a link as well, is replaced and never followed; without `replace`,
    FileExistsError is raised. On the way to the file, no folder may be a link: from `base` on,
    below which missing folders are made; else from the current folder on, if the path is relative.
    A link in an absolute path was named by the user.

    `mode`: of the file, without the bits of the umask. `sync`: wait until it is on the disk.
    Raises OSError.
    """
    if _DEVICES in path.parents:
        with path.open("wb") as device:
            yield device
        return
    folder = open_parent(path, base)
    draft = f".{path.name[:200]}.{os.urandom(6).hex()}"
    try:
        try:
            with os.fdopen(os.open(draft, CREATE_FLAGS, mode, dir_fd=folder), "wb") as file:
                yield file
                file.flush()
                if sync:
                    os.fsync(file.fileno())
            _give_name(folder, draft, path, replace=replace)
        finally:
            with suppress(OSError):
                os.unlink(draft, dir_fd=folder)
        if sync:
            # The new name is an entry of the folder, not of the file.
            # Some file systems can't sync one.
            with suppress(OSError):
                os.fsync(folder)
    finally:
        os.close(folder)


def write_new_file(
    path: Path, data: bytes, *, base: Path | None = None, mode: int = 0o600, replace: bool = True
) -> None:
    """Write a whole file; see `open_new_file`. Raises OSError."""
    with open_new_file(path, base=base, mode=mode, replace=replace) as file:
        file.write(data)


def _give_name(folder: int, draft: str, path: Path, *, replace: bool) -> None:
    if replace:
        os.replace(draft, path.name, src_dir_fd=folder, dst_dir_fd=folder)
        return
    try:
        # Unlike a rename, it fails if the name is taken, also by a link.
        os.link(draft, path.name, src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=False)
    except PermissionError:
        # A file system without hard links.
        os.close(os.open(path.name, CREATE_FLAGS, 0o600, dir_fd=folder))
        os.replace(draft, path.name, src_dir_fd=folder, dst_dir_fd=folder)


def open_parent(path: Path, base: Path | None = None) -> int:
    """Open the folder of a file, and return its descriptor.
    Raises OSError, for a link where none may be as well.
    """
    if base is None and path.is_absolute():
        return os.open(path.parent, _FOLDER_FLAGS)
    descriptor = os.open(base or Path(), _FOLDER_FLAGS)
    try:
        for name in (path.relative_to(base) if base is not None else path).parent.parts:
            try:
                child = os.open(name, _FOLDER_FLAGS | os.O_NOFOLLOW, dir_fd=descriptor)
            except FileNotFoundError:
                if base is None:
                    raise
                with suppress(FileExistsError):
                    os.mkdir(name, dir_fd=descriptor)
                child = os.open(name, _FOLDER_FLAGS | os.O_NOFOLLOW, dir_fd=descriptor)
            os.close(descriptor)
            descriptor = child
    except OSError as error:
        os.close(descriptor)
        if error.errno in _LINK_ERRORS:
            text = "a folder on the way is a link, or no folder; name the folder that it leads to"
            raise OSError(error.errno, text, str(path)) from error
        raise
    return descriptor
