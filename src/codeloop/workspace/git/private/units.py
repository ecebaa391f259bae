"""Which git folders lie in a real one, of work trees and of submodules,
which of them commands may change, and what in them shows changes.
"""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from codeloop.kit.git import find_outside_link
from codeloop.kit.git.settings import read_file_settings
from codeloop.kit.small_files import read_start_or_empty
from codeloop.workspace.git.planted.layout import list_subfolders, read_pointer, read_reference
from codeloop.workspace.git.private.names import STATE_FOLDERS, TREE_REFS
from codeloop.workspace.git.private.open_folder import OpenFolder
from codeloop.workspace.git.private.refs import list_ref_folders

_CONFIG_BYTES = 256 * 1024
_MAX_UNITS = 2_000
MAX_STATE_FILES = 10_000
"""The most files of one folder in a git folder that are looked at."""


class Unit(NamedTuple):
    """A git folder in the top one. `path`: below it, with a slash at its end;
    "" for the top one itself.

    `is_main`: it has objects and references; else it is the folder of a linked work tree.
    `has_tree`: its work tree is one in which commands work here;
    what is checked out in another one stays as it is.
    """

    path: str
    is_main: bool
    has_tree: bool


def list_units(real: Path, roots: Sequence[Path]) -> list[Unit]:
    """Return the git folders in a top one, itself first, of linked work trees and of submodules.

    Left out are those of which no work tree is one of commands here.
    """
    units = [Unit("", is_main=True, has_tree=is_below(real, roots) or _leads_to(real, roots))]
    for unit in units:
        if not unit.is_main or len(units) > _MAX_UNITS:
            continue
        for folder in list_subfolders(real / unit.path / "worktrees"):
            tree = read_pointer(folder / "gitdir")
            path = f"{unit.path}worktrees/{folder.name}/"
            units.append(
                Unit(path, is_main=False, has_tree=tree is not None and is_below(tree, roots))
            )
        units += [
            Unit(path, is_main=True, has_tree=_leads_to(real / path, roots))
            for path in _list_modules(real, unit)
            if _is_needed(real / path, roots)
        ]
    return units


def list_foreign_modules(real: Path, units: Sequence[Unit]) -> list[str]:
    """Return the paths of submodules' git folders that are none of the `units`."""
    own = {unit.path for unit in units}
    found = (path for unit in units if unit.is_main for path in _list_modules(real, unit))
    return [path.rstrip("/") for path in found if path not in own]


def list_closed_refs(real: Path, unit: Unit, units: Sequence[Unit]) -> frozenset[str]:
    """Return the references that commands here may not change: what is checked
    out in other work trees.
    """
    if not unit.is_main:
        return frozenset()
    trees = [
        each
        for each in units
        if each.path == unit.path or each.path.startswith(f"{unit.path}worktrees/")
    ]
    own, others = (
        {read_reference(real / each.path / "HEAD") for each in trees if each.has_tree == has_tree}
        for has_tree in (True, False)
    )
    return frozenset({*(others - own), *(() if unit.has_tree else TREE_REFS)} - {""})


def is_supported(real: Path) -> bool:
    """Return whether a git folder can have a private one: references as files,
    and no links to another repository.
    """
    config = read_start_or_empty(real / "config", _CONFIG_BYTES).lower()
    if b"reftable" in config:
        return False
    if not all((real / name).is_dir() for name in ("objects", "refs")):
        return False
    return (real / "HEAD").is_file() and find_outside_link(real) is None


def is_below(path: Path, folders: Sequence[Path]) -> bool:
    """Return whether a path is one of the folders or lies below one."""
    return any(path.is_relative_to(folder) for folder in folders)


def _list_modules(real: Path, unit: Unit) -> Iterator[str]:
    """Yield the paths of submodules' git folders in another one; not of those in these."""
    waiting = [Path(each) for each in list_subfolders(real / unit.path / "modules")]
    for folder in waiting:
        if (folder / "HEAD").is_file():
            yield f"{folder.relative_to(real)}/"
        elif len(waiting) < _MAX_UNITS:
            waiting += list_subfolders(folder)


def _is_needed(folder: Path, roots: Sequence[Path]) -> bool:
    """Return whether a submodule is checked out where commands work,
    and its git folder can have a private one.
    """
    pointers = (read_pointer(each / "gitdir") for each in list_subfolders(folder / "worktrees"))
    has_linked = any(tree is not None and is_below(tree, roots) for tree in pointers)
    return (has_linked or _leads_to(folder, roots)) and is_supported(folder)


def _leads_to(folder: Path, roots: Sequence[Path]) -> bool:
    """Return whether the work tree that a git folder names is one of commands,
    or a `.git` file there names it.
    """
    trees = [
        setting.value
        for setting in read_file_settings(folder / "config")
        if setting.name == "core.worktree"
    ]
    if trees:
        return is_below(Path(os.path.realpath(folder / trees[-1])), roots)
    return any(read_pointer(root / ".git", "gitdir:") == folder for root in roots)


def list_watched(top: OpenFolder, unit: Unit, *, is_private: bool) -> Iterator[str]:
    """Yield the paths whose times show that something in a git folder has changed.

    In the real one, git itself replaces files, which shows in their folder;
    a command may write into a private one.
    """
    names = [".", *(("index", "logs/HEAD", *STATE_FOLDERS) if unit.has_tree else ())]
    names += ["HEAD"] if is_private else []
    if unit.is_main:
        names += ["info", "worktrees", "modules", "logs/refs"]
        own = ("packed-refs", "objects", "objects/info", "objects/pack", "info/exclude")
        names += own if is_private else ()
        yield from list_ref_folders(top, unit.path)
    yield from (f"{unit.path}{name}" for name in names)


def remove_locks(private: OpenFolder, units: Sequence[Unit]) -> None:
    """Remove the locks that ended commands left."""
    for unit in units:
        for name in ("index", "HEAD", "packed-refs", "shallow", "config"):
            private.remove(f"{unit.path}{name}.lock")
        if unit.is_main:
            for path in private.walk(f"{unit.path}refs", MAX_STATE_FILES):
                if path.endswith(".lock"):
                    private.remove(path)
