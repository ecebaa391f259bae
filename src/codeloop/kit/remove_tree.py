"""Removes folders that programs have filled, however deep or protected they are: the
only way here to remove a tree.
"""

import errno
import os
import stat
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

TEMPORARY_BASES = (Path(os.sep, "tmp"), Path(os.sep, "var/tmp"))
_FOLDER_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def remove_tree(folder: Path) -> None:
    """Remove a folder, even if it is read-only or nested deeper than a path may be long.
    What can't be removed stays.

    A link or a file in its place is removed itself. `shutil.rmtree` calls itself for each level, so
    it fails after a thousand: here folders are moved up, one level at a time.
    """
    try:
        top = os.open(folder, _FOLDER_FLAGS)
    except OSError:
        with suppress(OSError):
            folder.unlink()
        return
    failures: set[str] = set()
    try:
        with suppress(OSError):
            os.fchmod(top, stat.S_IRWXU)
        # Until nothing is left but failures: each round moves the folders of one
        # level up into this one.
        while names := [name for name in _list_names(top) if name not in failures]:
            failures.update(name for name in names if not _remove_entry(top, name))
    except OSError:
        return
    finally:
        os.close(top)
    with suppress(OSError):
        folder.rmdir()


@contextmanager
def temporary_folder(prefix: str = "codeloop-", parent: Path | None = None) -> Generator[Path]:
    """Make a folder that only its owner may enter, and remove it in the end.
    Raises OSError when it can't be made.

    `parent`: the folder to make it in; None: the system's for temporary files.
    """
    folder = (parent or find_temporary_base()) / f"{prefix}{os.urandom(8).hex()}"
    folder.mkdir(mode=stat.S_IRWXU)
    try:
        yield folder
    finally:
        remove_tree(folder)


def find_temporary_base() -> Path:
    """Return the system's folder for temporary files, without links. Raises FileNotFoundError."""
    # As `tempfile` does, which takes long to import, but anew each time: it may have been removed.
    named = [path for name in ("TMPDIR", "TEMP", "TMP") if (path := os.environ.get(name))]
    for each in (*named, *TEMPORARY_BASES):
        path = Path(os.path.realpath(each))
        if path.is_dir() and os.access(path, os.W_OK | os.X_OK):
            return path
    raise FileNotFoundError(errno.ENOENT, "no folder for temporary files can be written", "TMPDIR")


def _list_names(folder: int) -> list[str]:
    with os.scandir(folder) as entries:
        return [entry.name for entry in entries]


def _remove_entry(top: int, name: str) -> bool:
    """Remove an entry of the folder `top`; if it is a folder, its files too,
    while its folders are moved to `top`.

    Return whether the entry is gone.
    """
    with suppress(OSError):
        os.unlink(name, dir_fd=top)
        return True
    try:
        if stat.S_ISDIR(os.stat(name, dir_fd=top, follow_symlinks=False).st_mode):
            os.chmod(name, stat.S_IRWXU, dir_fd=top)
        inside = os.open(name, _FOLDER_FLAGS, dir_fd=top)
        try:
            for each in _list_names(inside):
                try:
                    os.unlink(each, dir_fd=inside)
                except OSError:  # it is a folder
                    os.chmod(each, stat.S_IRWXU, dir_fd=inside)
                    # A new name: folders of several levels meet in `top`,
                    # and may have the same one.
                    os.rename(each, os.urandom(12).hex(), src_dir_fd=inside, dst_dir_fd=top)
        finally:
            os.close(inside)
        os.rmdir(name, dir_fd=top)
    except OSError:
        return False
    return True
