"""Paths that users write, and paths relative to a folder."""

import os
from contextlib import suppress
from pathlib import Path


def expand_user_path(name: str | os.PathLike[str]) -> Path:
    """Expand `~` and `~name` in a path; unknown users leave it unchanged."""
    with suppress(RuntimeError, ValueError):
        return Path(name).expanduser()
    return Path(name)


def join_relative(folder: str, name: str) -> str:
    """Join a name to a relative folder; "" is the folder that paths are relative to."""
    return f"{folder}/{name}" if folder else name


def find_folder(path: Path) -> Path:
    """Return the path itself if it is a folder that can be seen, else its parent."""
    try:
        return path if path.is_dir() else path.parent
    except OSError:
        return path.parent
