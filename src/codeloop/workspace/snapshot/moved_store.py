"""Takes the snapshots of a work tree along when its path or its project's folder changes."""

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from shutil import copy2

from codeloop.workspace.snapshot.object_store import (
    EMPTY_TREE,
    FOLDER_MODE,
    MissingObject,
    ObjectStore,
    TreeEntry,
)
from codeloop.workspace.snapshot.snapshots import CACHE_NAME

# Made anew for the other place: the caches of stats, and the list of the repository's objects.
_LEFT_NAMES = frozenset((CACHE_NAME, "alternates"))


def link_objects(source: Path, target: Path) -> None:
    """Add the snapshots of one folder to those of another; nothing that is there is replaced.
    Raises OSError.
    """
    for folder, _, names in os.walk(source):
        there = target / os.path.relpath(folder, source)
        there.mkdir(mode=0o700, parents=True, exist_ok=True)
        for name in names:
            if name in _LEFT_NAMES:
                continue
            with suppress(FileExistsError):
                _link(Path(folder, name), there / name)


def _link(source: Path, target: Path) -> None:
    """Link a file under a second name; a copy where a disk knows no links."""
    try:
        os.link(source, target)
    except FileExistsError:
        raise
    except OSError:
        copy2(source, target)


def make_tree_mapping(objects: ObjectStore, old_top: str, new_top: str) -> Callable[[str], str]:
    """Return a function that makes a tree of the one top into one of the other, above or below it.
    Raises OSError.

    A tree that is not kept any more stays as it is.
    """
    if old_top == new_top:
        return lambda tree: tree
    if old_top.startswith(new_top.rstrip("/") + "/"):
        names = os.path.relpath(old_top, new_top).split("/")

        def put_inside(tree: str) -> str:
            for name in reversed(names):
                tree = objects.put_tree({name: TreeEntry(FOLDER_MODE, tree)})
            return tree

        return put_inside
    below = os.path.relpath(new_top, old_top).split("/")

    def take_out(tree: str) -> str:
        for name in below:
            entry = dict(objects.read_tree(tree)).get(name)
            tree = entry.blob if entry is not None and entry.mode == FOLDER_MODE else EMPTY_TREE
        return tree

    def take_out_kept(tree: str) -> str:
        try:
            return take_out(tree)
        except MissingObject:
            return tree

    return take_out_kept
