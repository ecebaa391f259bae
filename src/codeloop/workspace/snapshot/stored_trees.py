"""Works on the stored trees of snapshots: compares two, also by diffs, looks up a path,
and stores one with changes.
"""

from collections.abc import Iterable, Iterator, Mapping

import msgspec

from codeloop.kit.paths import join_relative
from codeloop.schema.limits import SNAPSHOT_DIFF, SNAPSHOT_DIFFS
from codeloop.schema.message import SnapshotFileDiff
from codeloop.workspace.snapshot.object_store import (
    EMPTY_TREE,
    FOLDER_MODE,
    MissingObject,
    ObjectStore,
    TreeEntry,
)


class TreeChange(msgspec.Struct, frozen=True):
    """One file (relative to the work tree) that differs; None: it does not exist."""

    path: str
    before: TreeEntry | None
    after: TreeEntry | None


def list_differences(
    objects: ObjectStore, before: str, after: str, folder: str = ""
) -> Iterator[TreeChange]:
    """Yield the files that differ between two trees, by path.
    Raises MissingObject when a tree is no longer kept.
    """
    if before == after:
        return
    old, new = dict(objects.read_tree(before)), dict(objects.read_tree(after))
    for name in sorted(old.keys() | new.keys()):
        old_entry, new_entry = old.get(name), new.get(name)
        if old_entry == new_entry:
            continue
        path = join_relative(folder, name)
        # A file may have become a folder, or the other way round: then both the folder's
        # files and the file differ.
        yield from list_differences(objects, _get_subtree(old_entry), _get_subtree(new_entry), path)
        old_file, new_file = _get_file(old_entry), _get_file(new_entry)
        if old_file != new_file:
            yield TreeChange(path, old_file, new_file)


def _get_subtree(entry: TreeEntry | None) -> str:
    return entry.blob if entry is not None and entry.mode == FOLDER_MODE else EMPTY_TREE


def _get_file(entry: TreeEntry | None) -> TreeEntry | None:
    return None if entry is not None and entry.mode == FOLDER_MODE else entry


def find_entry(objects: ObjectStore, tree: str, path: str) -> TreeEntry | None:
    """Return a tree's entry at a path; None for nothing and for a folder. Raises MissingObject."""
    *folders, name = path.split("/")
    for folder in folders:
        tree_entry = dict(objects.read_tree(tree)).get(folder)
        if tree_entry is None or tree_entry.mode != FOLDER_MODE:
            return None
        tree = tree_entry.blob
    return _get_file(dict(objects.read_tree(tree)).get(name))


def store_changed_tree(
    objects: ObjectStore, tree: str, changes: Mapping[str, TreeEntry | None]
) -> str:
    """Store a tree with some paths changed (None: removed); return its id.
    Raises MissingObject, OSError.
    """
    if not changes:
        return tree
    entries = dict(objects.read_tree(tree))
    changes_below: dict[str, dict[str, TreeEntry | None]] = {}
    for path, entry in changes.items():
        name, _, rest = path.partition("/")
        if rest:
            changes_below.setdefault(name, {})[rest] = entry
        elif entry is not None:
            entries[name] = entry
        elif _get_file(entries.get(name)) is not None:
            del entries[name]
    for name, inside in changes_below.items():
        # To remove paths below a file is to do nothing; the file must stay.
        if _get_file(entries.get(name)) is not None and not any(inside.values()):
            continue
        subtree = store_changed_tree(objects, _get_subtree(entries.get(name)), inside)
        # git stores no empty folders.
        if subtree == EMPTY_TREE:
            entries.pop(name, None)
        else:
            entries[name] = TreeEntry(FOLDER_MODE, subtree)
    return objects.put_tree(entries)


def make_file_diffs(
    objects: ObjectStore, changes: Iterable[TreeChange]
) -> tuple[SnapshotFileDiff, ...]:
    """Return a diff for each change, with an empty patch if the file is binary,
    large or not stored any more.

    Those after the first SNAPSHOT_DIFFS have no patch either.
    """
    return tuple(
        _make_file_diff(objects, change, has_patch=index < SNAPSHOT_DIFFS.value)
        for index, change in enumerate(changes)
    )


def _make_file_diff(
    objects: ObjectStore, change: TreeChange, *, has_patch: bool
) -> SnapshotFileDiff:
    match (change.before, change.after):
        case (None, _):
            status = "added"
        case (_, None):
            status = "deleted"
        case _:
            status = "modified"
    before, after = (
        _read_text(objects, entry) if has_patch else None for entry in (change.before, change.after)
    )
    if before is None or after is None:
        return SnapshotFileDiff(file=change.path, additions=0, deletions=0, patch="", status=status)
    # Imported late: it takes 2 ms, and most steps change no file.
    from codeloop.kit.text.diff import make_unified_diff

    diff = make_unified_diff(change.path, before, after)
    return SnapshotFileDiff(
        file=change.path,
        additions=diff.additions,
        deletions=diff.deletions,
        patch=diff.patch,
        status=status,
    )


def _read_text(objects: ObjectStore, entry: TreeEntry | None) -> str | None:
    """Return a file's text, "" for no file. None: the file is binary, too large,
    or no longer stored.
    """
    if entry is None:
        return ""
    try:
        data = objects.read_blob(entry.blob)
        return None if len(data) > SNAPSHOT_DIFF.value or b"\0" in data else data.decode()
    except (MissingObject, UnicodeDecodeError):
        return None
