"""Finds which of many paths exist, by listing the folders that they are in rather
than by looking at each path.
"""

import os
from collections.abc import Iterable
from itertools import islice

# To list a folder with more entries takes longer than to look at each path.
_MAX_ENTRIES = 200


def list_existing(paths: Iterable[str]) -> list[str]:
    """Return the paths (absolute) at which there is something, a link of any kind as well,
    in their order.

    As exact as `os.path.lexists` of each: also where file names have no case,
    and where a folder can't be listed.
    """
    names: dict[str, frozenset[str] | None] = {}
    existing: list[str] = []
    for path in paths:
        folder, _, name = path.rpartition("/")
        if folder not in names:
            names[folder] = _list_names(folder, names)
        listed = names[folder]
        if (listed is None or not name or name.lower() in listed) and os.path.lexists(path):
            existing.append(path)
    return existing


def _list_names(folder: str, known: dict[str, frozenset[str] | None]) -> frozenset[str] | None:
    """Return the names in a folder, in small letters; None: any name may lead to something in it.

    `known`: those of folders that were listed before.
    """
    above, _, name = folder.rpartition("/")
    listed = known.get(above)
    if listed is not None and name.lower() not in listed:
        return frozenset()
    try:
        with os.scandir(folder or "/") as entries:
            found = [entry.name for entry in islice(entries, _MAX_ENTRIES + 1)]
    except (FileNotFoundError, NotADirectoryError):
        return frozenset()
    except OSError:
        return None
    # Where names have no case, or are stored in another form,
    # a letter beyond ASCII may be found by another name.
    if len(found) > _MAX_ENTRIES or not all(map(str.isascii, found)):
        return None
    return frozenset(map(str.lower, found))
