"""Moves files away while commands may still run,
without following a link that is planted meanwhile.
"""

import os
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path


def locate_quarantine(scratch: Path) -> Path:
    """Return the folder for what is moved away in a project; `scratch`: as in Workspace."""
    return scratch.with_name("set-aside")


def move_away(path: Path, folder: Path, remainder: bytes | None = None) -> Path | None:
    """Move a file, link or folder into `folder`;
    return its new path, or None when that can't be done.

    `remainder`: the text left in its place. Where `folder` is on another disk,
    the file is renamed beside its old path.
    """
    name = f"{time.time_ns()}-{path.name}"
    try:
        with _open_folder(path.parent) as parent:
            target = folder / name
            try:
                folder.mkdir(parents=True, exist_ok=True)
                os.rename(path.name, target, src_dir_fd=parent)
            except OSError:
                target = path.with_name(f"set-aside-{name}")
                os.rename(path.name, target.name, src_dir_fd=parent, dst_dir_fd=parent)
            if remainder is not None:
                # O_EXCL: a command may have put a file or a link there since.
                fd = os.open(
                    path.name,
                    os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC,
                    0o644,
                    dir_fd=parent,
                )
                with os.fdopen(fd, "wb") as file:
                    file.write(remainder)
    except OSError:
        return None
    return target


@contextmanager
def _open_folder(folder: Path) -> Generator[int]:
    """Open a folder, unless a link is on the way to it. Raises OSError."""
    parent = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        there = Path(f"/proc/self/fd/{parent}")
        if (there.readlink() if there.is_symlink() else Path(os.path.realpath(folder))) != folder:
            raise NotADirectoryError(0, "a link leads to it", str(folder))
        yield parent
    finally:
        os.close(parent)
