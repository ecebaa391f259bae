"""Finds ignore files that ripgrep can't read, or would wait for: named pipes, devices,
very large files.
"""

import os
import stat
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

# Each ignore file, and the option that keeps ripgrep from reading it.
_IGNORE_FILES = {
    ".gitignore": "--no-ignore-vcs",
    ".ignore": "--no-ignore-dot",
    ".rgignore": "--no-ignore-dot",
    ".git/info/exclude": "--no-ignore-exclude",
}
# ripgrep reads an ignore file whole into memory.
_MAX_IGNORE_FILE_BYTES = 16 * 1024 * 1024
# The time for which folders below are searched for the cause, after ripgrep ran out of time.
_UNREADABLE_SEARCH_SECONDS = 0.5


class UnreadableIgnoreFile(NamedTuple):
    """An ignore file that ripgrep can't read, or would wait for.
    `reason`: what it is, such as `not a regular file`.
    """

    path: Path
    reason: str


def avoid_unreadable_files(folder: Path) -> tuple[list[str], str]:
    """Return the options that keep ripgrep from unreadable ignore files of a folder and
    those above it, and a note.

    Folders below are not checked: that would cost more than most searches;
    see `find_unreadable_file`.
    """
    files = [file for each in (folder, *folder.parents) for file in _list_unreadable_files(each)]
    if not files:
        return [], ""
    options = {
        option
        for name, option in _IGNORE_FILES.items()
        for file in files
        if str(file.path).endswith(f"/{name}")
    }
    note = (
        f"{files[0].path} is {files[0].reason}, so files that ignore files name were searched too"
    )
    return sorted(options), note


def find_unreadable_file(folder: Path) -> UnreadableIgnoreFile | None:
    """Return an unreadable ignore file somewhere below a folder,
    None when none is found in half a second. Blocks.
    """
    end = time.monotonic() + _UNREADABLE_SEARCH_SECONDS
    for top, _, _ in os.walk(folder):
        if file := next(_list_unreadable_files(Path(top)), None):
            return file
        if time.monotonic() > end:
            return None
    return None


def _list_unreadable_files(folder: Path) -> Iterator[UnreadableIgnoreFile]:
    for name in _IGNORE_FILES:
        path = folder / name
        try:
            status = path.stat()
        except OSError:
            # It is missing, or ripgrep itself reports that it can't be read.
            continue
        if stat.S_ISREG(status.st_mode):
            if status.st_size > _MAX_IGNORE_FILE_BYTES:
                yield UnreadableIgnoreFile(
                    path, f"larger than {_MAX_IGNORE_FILE_BYTES // 1024 // 1024} MiB"
                )
        elif not stat.S_ISDIR(status.st_mode):
            yield UnreadableIgnoreFile(path, "not a regular file")
