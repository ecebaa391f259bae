"""Files that hold complete tool outputs: private, in the scratch folder, named by an id."""

import asyncio
import os
import re
import stat
import time
from pathlib import Path

from codeloop.kit.small_files import CREATE_FLAGS, make_private, write_all
from codeloop.schema.limits import SCRATCH_AGE, SCRATCH_DELAY, SCRATCH_SIZE

_FRESH = 3600.0  # seconds: a younger file may belong to a command that still runs


_NAME = re.compile(r"(?<![\w./-])tool_[0-9a-f]{8}(?:\.\w{1,8})?(?![\w-])")
_PLAIN = re.compile(r"[\w/.%+@:,-]+", re.ASCII)
"""A path that a shell reads as it is, also within quotes."""


def shorten_output(path: Path) -> str:
    """Return how the model reads the path of a saved output: its name alone, which tools find in the scratch folder."""
    return path.name if _PLAIN.fullmatch(str(path)) else str(path)


def expand_outputs(line: str, folder: Path, directory: Path) -> str:
    """Return a shell line with the full paths of the saved outputs that it names; files in `directory` come first."""

    def expand(match: re.Match[str]) -> str:
        path = folder / match[0]
        is_one = _PLAIN.fullmatch(str(path)) and path.is_file() and not os.path.lexists(directory / match[0])
        return str(path) if is_one else match[0]

    return _NAME.sub(expand, line) if "tool_" in line else line


def create(folder: Path) -> tuple[Path, int]:
    """Make a new empty file that only its owner can read. Returns its path and a descriptor; raises OSError."""
    make_private(folder)
    while True:
        path = folder / f"tool_{os.urandom(4).hex()}"  # short, since the model reads and repeats it
        try:
            return path, os.open(path, CREATE_FLAGS, 0o600)
        except FileExistsError:
            continue


def save(folder: Path, data: bytes) -> Path:
    """Write `data` to a new file and return its path. Raises OSError; then no file is left."""
    path, fd = create(folder)
    try:
        write_all(fd, data)
    except OSError:
        path.unlink(missing_ok=True)
        raise
    finally:
        os.close(fd)
    return path


async def prune_in_background(folder: Path, delay: float = SCRATCH_DELAY.seconds) -> None:
    """After `delay` seconds remove old files of outputs, those of the project's other directories too, in a thread.

    Cancel it to leave the rest for another time.
    """
    await asyncio.sleep(delay)
    for each in await asyncio.to_thread(_list_siblings, folder):
        await asyncio.to_thread(prune, each)


def _list_siblings(folder: Path) -> list[Path]:
    """Return the folders of all directories, and the one that they are in."""
    try:
        return [folder.parent, *(each for each in folder.parent.iterdir() if each.is_dir() and not each.is_symlink())]
    except OSError:
        return [folder]


def prune(folder: Path, age: float = SCRATCH_AGE.seconds, size: int = SCRATCH_SIZE.value) -> list[Path]:
    """Remove the files not written for `age` seconds, then the oldest until the rest has at most `size` bytes.

    Only regular files that `create` made more than an hour ago are removed. Returns what was removed; a file or folder
    that is gone or can't be changed is skipped.
    """
    now = time.time()
    removed: list[Path] = []
    total = 0
    for modified, length, path in sorted(_list_files(folder), reverse=True):
        total += length
        if now - modified > _FRESH and (now - modified > age or total > size):
            try:
                path.unlink()
            except OSError:
                continue
            removed.append(path)
    return removed


def _list_files(folder: Path) -> list[tuple[float, int, Path]]:
    files: list[tuple[float, int, Path]] = []
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                info = entry.stat(follow_symlinks=False)
                if stat.S_ISREG(info.st_mode) and entry.name.startswith("tool_"):
                    files.append((info.st_mtime, info.st_size, Path(entry.path)))
    except OSError:
        return files
    return files
