"""Lists what sandboxes see in place of a git folder: a private one, and the real objects,
hooks and settings in it.
"""

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from codeloop.kit.remove_tree import remove_tree
from codeloop.kit.small_files import read_start_or_empty
from codeloop.workspace.git.private.names import (
    POINTER_FILES,
    SHARED_INDEX_PREFIX,
    STATE_FOLDERS,
    TREE_FILES,
)
from codeloop.workspace.git.private.open_folder import OpenFolder
from codeloop.workspace.git.private.units import is_below, list_foreign_modules, list_units

SHOWN_FOLDER = "real"
"""The folder in a private git folder where the real objects are mounted."""
_ALTERNATES_BYTES = 256 * 1024
_SHARED_STORES = ("objects", "lfs")
_OWN_ENTRIES = frozenset({
    *("HEAD", "index", "packed-refs", "refs", "objects", "lfs", "logs", "worktrees", "modules", "shallow", "info"),
    *(name.partition("/")[0] for name in TREE_FILES), *STATE_FOLDERS, *POINTER_FILES, SHOWN_FOLDER,
    *("rr-cache", "branches", "description", "gc.log", "gc.pid", "gitk.cache"),
})  # fmt: skip
"""Entries that a private folder has of its own;
any other one of the real folder is shown, read-only.
"""


class Mount(NamedTuple):
    """A file or folder that a sandbox sees at another path."""

    source: str
    point: str
    is_writable: bool


def list_mounts(
    real: Path,
    private: OpenFolder,
    roots: Sequence[Path],
    granted: Sequence[str],
    find_objects: Callable[[str], Path | None] | None,
) -> list[Mount]:
    """Return the mounts for a real git folder, the outer ones first,
    and make their points in the private one.

    `roots`: the folders that commands write; `granted`: the paths below `real` that they may change
    although others may not; `find_objects`: as of HiddenContent, if files are hidden.
    Raises OSError.
    """
    mounts = [Mount(str(private.path), str(real), is_writable=True)]
    granted_files = list_granted_files(real, granted)
    units = list_units(real, roots)
    for unit in units:
        shown = [(name, f"{SHOWN_FOLDER}/{name}") for name in _SHARED_STORES if unit.is_main]
        with os.scandir(real / unit.path) as entries:
            others = sorted(entry.name for entry in entries if _is_shown(entry.name))
        shown += [(name, name) for name in (*others, "info/attributes", "info/grafts")]
        objects = find_objects(unit.path) if find_objects is not None else None
        for name, point in shown:
            path = f"{unit.path}{point}"
            source = _find_source(real, f"{unit.path}{name}", roots)
            if name == "objects" and objects is not None:
                source = objects
            if source is None or path in granted_files:
                continue
            _make_point(private, path, is_folder=source.is_dir())
            mounts.append(Mount(str(source), f"{real}/{path}", is_writable=path in granted))
        if objects is None and (real / unit.path / "objects/info/alternates").exists():
            # Its paths begin at another place here: the private one names the same folders.
            point = f"{real / unit.path / SHOWN_FOLDER}/objects/info/alternates"
            mounts.append(Mount(os.devnull, point, is_writable=False))
    for path in list_foreign_modules(real, units):
        _make_point(private, path, is_folder=True)
        mounts.append(Mount(str(real / path), str(real / path), is_writable=False))
    for path in set(granted) - set(granted_files):
        source = _find_source(real, path, roots)
        if source is not None and not any(mount.point == f"{real}/{path}" for mount in mounts):
            mounts.append(Mount(str(source), f"{real}/{path}", is_writable=True))
    return mounts


def list_granted_files(real: Path, granted: Sequence[str]) -> list[str]:
    """Return the granted paths that are carried as files;
    others are mounted: folders, and files in shown ones.
    """
    tops = {path: path.partition("/")[0] for path in granted}
    is_in_shown = {path: _is_shown(top) and (real / top).is_dir() for path, top in tops.items()}
    return [path for path in granted if not is_in_shown[path] and not (real / path).is_dir()]


def _find_source(real: Path, path: str, roots: Sequence[Path]) -> Path | None:
    """Return the file or folder to be shown for a path of the real folder;
    None: there is none that may be.
    """
    source = Path(os.path.realpath(real / path))
    is_inside = is_below(source, (real, *roots))
    return source if is_inside and (source.is_file() or source.is_dir()) else None


def _is_shown(name: str) -> bool:
    return (
        name not in _OWN_ENTRIES
        and not name.startswith((SHARED_INDEX_PREFIX, "tmp_"))
        and ".lock" not in name
    )


def _make_point(private: OpenFolder, path: str, *, is_folder: bool) -> None:
    """Make the point of a mount in a private folder; what else a command left there is removed."""
    point = private.path / path
    if point.is_symlink() or (point.exists() and point.is_dir() != is_folder):
        remove_tree(point)
    if is_folder:
        private.make_folder(path)
    elif private.read_stamp(path) is None:
        private.write(path, b"")


def list_alternates(objects: Path) -> list[str]:
    """Return the further folders from which a real one takes objects, as absolute paths."""
    lines = os.fsdecode(
        read_start_or_empty(objects / "info/alternates", _ALTERNATES_BYTES)
    ).splitlines()
    return [os.path.normpath(objects / line) for line in lines if line and not line.startswith("#")]
