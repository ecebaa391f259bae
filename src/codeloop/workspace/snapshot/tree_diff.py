"""Comparing stored trees, looking up a path, and overlaying changed paths."""

from collections.abc import Iterator, Mapping

import msgspec

from codeloop.workspace.snapshot.object_store import EMPTY_TREE, FOLDER, ObjectStore, TreeEntry
from codeloop.workspace.snapshot.stat_cache import join


class TreeChange(msgspec.Struct, frozen=True):
    """One file (relative to the work tree) that differs; None: it is not there."""

    path: str
    before: TreeEntry | None
    after: TreeEntry | None


def list_differences(objects: ObjectStore, before: str, after: str, folder: str = "") -> Iterator[TreeChange]:
    """Return the files that differ between two trees, by path. Raises MissingObject when a tree is no longer kept."""
    if before == after:
        return
    old, new = dict(objects.tree(before)), dict(objects.tree(after))
    for name in sorted(old.keys() | new.keys()):
        was, now = old.get(name), new.get(name)
        if was == now:
            continue
        path = join(folder, name)
        old_below, new_below = (
            item.blob if item is not None and item.mode == FOLDER else EMPTY_TREE for item in (was, now)
        )
        yield from list_differences(objects, old_below, new_below, path)
        was, now = (None if item is not None and item.mode == FOLDER else item for item in (was, now))
        if was != now:
            yield TreeChange(path, was, now)


def find_entry(objects: ObjectStore, tree: str, path: str) -> TreeEntry | None:
    """Return a tree's entry at a path; None for nothing and for a folder. Raises MissingObject."""
    *folders, name = path.split("/")
    for folder in folders:
        tree_entry = dict(objects.tree(tree)).get(folder)
        if tree_entry is None or tree_entry.mode != FOLDER:
            return None
        tree = tree_entry.blob
    tree_entry = dict(objects.tree(tree)).get(name)
    return None if tree_entry is None or tree_entry.mode == FOLDER else tree_entry


def store_overlaid(objects: ObjectStore, tree: str, items: Mapping[str, TreeEntry | None]) -> str:
    """Store a tree with some paths changed (None: taken out); returns its name. Raises MissingObject, OSError."""
    if not items:
        return tree
    rows = dict(objects.tree(tree))
    below: dict[str, dict[str, TreeEntry | None]] = {}
    for path, item in items.items():
        name, _, rest = path.partition("/")
        if rest:
            below.setdefault(name, {})[rest] = item
        elif item is not None:
            rows[name] = item
        elif name in rows and rows[name].mode != FOLDER:
            del rows[name]
    for name, inside in below.items():
        tree_entry = rows.get(name)
        if tree_entry is not None and tree_entry.mode != FOLDER and not any(inside.values()):
            continue
        name_below = tree_entry.blob if tree_entry is not None and tree_entry.mode == FOLDER else EMPTY_TREE
        subtree = store_overlaid(objects, name_below, inside)
        if subtree == EMPTY_TREE:
            rows.pop(name, None)
        else:
            rows[name] = TreeEntry(FOLDER, subtree)
    return objects.put_tree(rows)
