"""Finds the paths that a grant makes writable: what is granted, or the folder where it is made."""

import itertools
import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from codeloop.workspace.sandbox.paths.linked_paths import is_below_any

# The most files next to a granted one that are protected one by one.
_MAX_NEIGHBOURS = 500


def expand_grants(
    granted: Iterable[Path], guarded: Sequence[Path], writable: Sequence[Path], home: Path
) -> tuple[list[Path], list[Path]]:
    """Return the paths that a grant makes writable, and their neighbours that stay protected.

    An absent path in a work folder of the home makes that folder writable, so that folders and
    links can be made there, too; its present entries are protected. Elsewhere an empty file is
    made, since only existing paths can be mounted.
    """
    writable_paths: dict[Path, None] = {}
    neighbours: dict[Path, None] = {}
    granted = list(granted)
    for path in granted:
        guard = next((each for each in guarded if path.is_relative_to(each)), None)
        if guard is not None:
            if path == guard or not os.path.lexists(guard):
                # It lies in the project, and is no longer protected since it is granted.
                continue
        elif any(path.is_relative_to(each) for each in writable):
            continue
        if not os.path.lexists(path):
            above = next(folder for folder in path.parents if folder.is_dir())
            if _is_work_folder(above, home):
                writable_paths[above] = None
                neighbours |= dict.fromkeys(_list_neighbours(above))
                continue
            try:
                path.touch()
            except OSError:
                continue
        writable_paths[path] = None
    writable = [*granted, *writable]
    # Links are left out: a mount at one would cover the file that it leads to.
    return list(writable_paths), [
        path for path in neighbours if not path.is_symlink() and not is_below_any(path, writable)
    ]


def _is_work_folder(folder: Path, home: Path) -> bool:
    """Return whether a folder is for the user's work: below the home,
    and in no folder whose name begins with a dot.
    """
    if folder == home or not folder.is_relative_to(home):
        return False
    return not any(part.startswith(".") for part in folder.relative_to(home).parts)


def _list_neighbours(folder: Path) -> list[Path]:
    """Return the entries of a folder, at most _MAX_NEIGHBOURS."""
    try:
        with os.scandir(folder) as entries:
            return [Path(entry.path) for entry in itertools.islice(entries, _MAX_NEIGHBOURS)]
    except OSError:
        return []
