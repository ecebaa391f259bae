"""Shows changes between two trees as file diffs, for undo and for a turn's diff."""

from collections.abc import Iterable

from codeloop.schema.limits import SNAPSHOT_DIFF, SNAPSHOT_DIFFS
from codeloop.schema.message import SnapshotFileDiff
from codeloop.workspace.snapshot.object_store import MissingObject, ObjectStore, TreeEntry
from codeloop.workspace.snapshot.tree_diff import TreeChange


def make_file_diffs(objects: ObjectStore, changes: Iterable[TreeChange]) -> tuple[SnapshotFileDiff, ...]:
    """Return a diff for each change: with no patch if the file is binary or large, or after SNAPSHOT_DIFFS files."""
    return tuple(
        _make_file_diff(objects, change, has_patch=index < SNAPSHOT_DIFFS.value) for index, change in enumerate(changes)
    )


def _make_file_diff(objects: ObjectStore, change: TreeChange, *, has_patch: bool) -> SnapshotFileDiff:
    status = "added" if change.before is None else "deleted" if change.after is None else "modified"
    before, after = (_read_text(objects, entry) if has_patch else None for entry in (change.before, change.after))
    if before is None or after is None:
        return SnapshotFileDiff(file=change.path, additions=0, deletions=0, patch="", status=status)
    from codeloop.kit.diff import make_unified_diff  # 2 ms, and most steps change no file

    diff = make_unified_diff(change.path, before, after)
    return SnapshotFileDiff(
        file=change.path, additions=diff.additions, deletions=diff.deletions, patch=diff.patch, status=status
    )


def _read_text(objects: ObjectStore, entry: TreeEntry | None) -> str | None:
    """Return a file's text, "" for no file. None: the file is binary, too large, or no longer stored."""
    if entry is None:
        return ""
    try:
        data = objects.blob(entry.blob)
        return None if len(data) > SNAPSHOT_DIFF.value or b"\0" in data else data.decode()
    except (MissingObject, UnicodeDecodeError):
        return None
