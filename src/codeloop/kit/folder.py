"""Folders that only their owner may enter."""

from pathlib import Path


def make_private(folder: Path) -> None:
    """Make a folder and those above it that are missing, each private; those that exist stay as they are.

    Raises OSError. `Path.mkdir` gives its mode to the last folder only.
    """
    if folder.is_dir():
        return
    if folder.parent != folder:
        make_private(folder.parent)
    folder.mkdir(mode=0o700, exist_ok=True)
