"""Saves complete tool outputs to private files in the scratch folder, named by an id,
and removes old ones.
"""

import asyncio
import os
import re
import stat
import time
from pathlib import Path

from codeloop.kit.new_file import CREATE_FLAGS
from codeloop.kit.small_files import create_private_folder, write_all
from codeloop.schema.limits import SCRATCH_AGE, SCRATCH_SIZE

# A younger file may belong to a command that still runs.
_MIN_AGE_SECONDS = 3600.0
# `tool_12ab34cd`, but not after a slash, since that is a path already.
_OUTPUT_NAME = r"(?<![\w./-])tool_[0-9a-f]{8}(?:\.\w{1,8})?(?![\w-])"
# A path that a shell reads as it is, with or without quotes.
_UNQUOTED_PATH = r"(?a)[\w/.%+@:,-]+"


def shorten_output(path: Path) -> str:
    """Return the path of a saved output for the model: its name alone,
    which tools find in the scratch folder.

    The whole path if a shell would not read it as it is,
    since `expand_outputs` leaves such a name alone.
    """
    return path.name if re.fullmatch(_UNQUOTED_PATH, str(path)) else str(path)


def expand_outputs(line: str, folder: Path, directory: Path) -> str:
    """Return a shell line with the full paths of the saved outputs in `folder` that it names.

    A name stays where the shell would find a file of that name in `directory`.
    """

    def expand(match: re.Match[str]) -> str:
        path = folder / match[0]
        has_namesake = os.path.lexists(directory / match[0])
        can_expand = not has_namesake and re.fullmatch(_UNQUOTED_PATH, str(path)) and path.is_file()
        return str(path) if can_expand else match[0]

    return re.sub(_OUTPUT_NAME, expand, line) if "tool_" in line else line


def create_output_file(folder: Path) -> tuple[Path, int]:
    """Make a new empty file that only its owner can read. Returns its path and a descriptor;
    raises OSError.
    """
    create_private_folder(folder)
    while True:
        # Short, since the model reads and repeats it.
        path = folder / f"tool_{os.urandom(4).hex()}"
        try:
            return path, os.open(path, CREATE_FLAGS, 0o600)
        except FileExistsError:
            continue


def save_output(folder: Path, data: bytes) -> Path:
    """Write `data` to a new file and return its path. Raises OSError; then no file is left."""
    path, fd = create_output_file(folder)
    try:
        write_all(fd, data)
    except OSError:
        path.unlink(missing_ok=True)
        raise
    finally:
        os.close(fd)
    return path


async def prune_all_outputs(folder: Path) -> None:
    """Remove old outputs in a thread, those of the project's other directories too.

    `folder`: the scratch folder of one of them. Cancel it to leave the rest for another time.
    """
    for scratch_folder in await asyncio.to_thread(_list_scratch_folders, folder):
        await asyncio.to_thread(prune_outputs, scratch_folder)


def _list_scratch_folders(folder: Path) -> list[Path]:
    """Return the scratch folders of all directories of a project,
    and the folder that they are in.
    """
    try:
        return [
            folder.parent,
            *(each for each in folder.parent.iterdir() if each.is_dir() and not each.is_symlink()),
        ]
    except OSError:
        return [folder]


def prune_outputs(
    folder: Path, age: float = SCRATCH_AGE.seconds, size: int = SCRATCH_SIZE.value
) -> list[Path]:
    """Remove the outputs not written for `age` seconds,
    then the oldest until the rest has at most `size` bytes.

    Only regular files named `tool_...` that were not written for an hour are removed. Returns their
    paths; files and folders that are missing or can't be changed are skipped.
    """
    now = time.time()
    removed: list[Path] = []
    total = 0
    for modified, length, path in sorted(_list_outputs(folder), reverse=True):
        total += length
        if now - modified > _MIN_AGE_SECONDS and (now - modified > age or total > size):
            try:
                path.unlink()
            except OSError:
                continue
            removed.append(path)
    return removed


def _list_outputs(folder: Path) -> list[tuple[float, int, Path]]:
    """Return modification time, size and path of each saved output in a folder;
    [] when it can't be read.
    """
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
