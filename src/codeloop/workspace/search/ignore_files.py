"""Ignore files that ripgrep can't read: pipes and devices, for which it would wait, and files of gigabytes."""

import os
import stat
import time
from collections.abc import Iterator
from pathlib import Path

_OPTIONS = {
    ".gitignore": "--no-ignore-vcs",
    ".ignore": "--no-ignore-dot",
    ".rgignore": "--no-ignore-dot",
    ".git/info/exclude": "--no-ignore-exclude",
}
"""Each ignore file, and the option that keeps ripgrep from reading it."""
_LARGEST = 16 * 1024 * 1024  # bytes; ripgrep reads the whole file into memory
_SEARCHED = 0.5  # seconds


def avoid_unreadable(folder: Path) -> tuple[list[str], str]:
    """Return the options that keep ripgrep from unreadable ignore files of a folder and those above it, and a sentence.

    Folders below are not checked: that would cost more than most searches; see `find_unreadable`.
    """
    paths = [path for each in (folder, *folder.parents) for path in _unreadable(each)]
    if not paths:
        return [], ""
    options = {option for name, option in _OPTIONS.items() for path in paths if str(path).endswith(f"/{name}")}
    return sorted(options), f"{paths[0]} is not a regular file, so files that ignore files name were searched too"


def find_unreadable(folder: Path) -> Path | None:
    """Return an unreadable ignore file somewhere below a folder, None when none is found in half a second. Blocks."""
    end = time.monotonic() + _SEARCHED
    for top, _, _ in os.walk(folder):
        if path := next(_unreadable(Path(top)), None):
            return path
        if time.monotonic() > end:
            return None
    return None


def _unreadable(folder: Path) -> Iterator[Path]:
    for name in _OPTIONS:
        path = folder / name
        try:
            status = path.stat()
        except OSError:
            continue  # absent, or ripgrep says itself that it can't be read
        is_read = stat.S_ISREG(status.st_mode) and status.st_size <= _LARGEST
        if not is_read and not stat.S_ISDIR(status.st_mode):
            yield path
