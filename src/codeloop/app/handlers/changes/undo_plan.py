"""Plans an undo or redo: which files are restored to what, and which stay as they are."""

from collections.abc import Mapping, Sequence

from msgspec import Struct

from codeloop.agent.answer.turn_diffs import MessageChanges, find_step_changes
from codeloop.schema.message import Revert, SnapshotFileDiff
from codeloop.store.conversation import Conversation, Entry, find_undo_start
from codeloop.workspace.snapshot.object_store import EMPTY_TREE, TreeEntry
from codeloop.workspace.snapshot.restore import (
    Conflict,
    Restoration,
    find_restorable_entry,
    is_fully_restorable,
)
from codeloop.workspace.snapshot.snapshots import Snapshots
from codeloop.workspace.snapshot.stored_trees import (
    TreeChange,
    find_entry,
    make_file_diffs,
    store_changed_tree,
)

COMMANDS_NAME = "what commands changed"
"""The name of a conflict that stands for any file."""


class UndoPlan(Struct, frozen=True):
    """The file changes of an undo or redo.

    `snapshot`: the tree with the files as they were before the first undo.
    `restorations`: the files to restore.
    `conflicts`: the files that stay as they are. `diffs`: the changes that are undone afterwards.
    """

    snapshot: str
    restorations: tuple[Restoration, ...]
    conflicts: tuple[Conflict, ...]
    diffs: tuple[SnapshotFileDiff, ...]


def plan_undo(
    snapshots: Snapshots,
    conversation: Conversation,
    positions: Sequence[tuple[int, Entry]],
    target: int | None,
) -> UndoPlan:
    """Return the plan for moving the files to the message at index `target`;
    None: to the end of the conversation.

    `positions`: the answers, those of subagents too, each with the index of the message that it
    belongs to. Blocks. Raises MissingObject, OSError.
    """
    objects = snapshots.objects
    objects.create_if_missing()
    earlier_undo = conversation.session.revert
    present_start = None
    if earlier_undo is not None:
        present_start = find_undo_start(conversation, earlier_undo.message_id, earlier_undo.part_id)
    points = [point for point in (present_start, target) if point is not None]
    first = min(points) if points else len(conversation.entries)
    changes = (
        find_step_changes(snapshots, entry, index) for index, entry in positions if index >= first
    )
    steps = [each for each in changes if each is not None]
    tree_entries, tree = _store_present_entries(snapshots, earlier_undo, steps, present_start)
    restorations: list[Restoration] = []
    conflicts: list[Conflict] = []
    undone: list[TreeChange] = []
    for path, now in tree_entries.items():
        # If the same undo is repeated, a killed process may have left this file as it was.
        if present_start == target:
            expected = now
        else:
            expected, _ = _find_entry_at(now, steps, path, present_start)
        desired, is_complete = _find_entry_at(now, steps, path, target)
        if expected != desired:
            restorations.append(Restoration(path, expected, desired))
        if not is_complete:
            conflicts.append(Conflict(path, "it was changed since"))
        if desired != now:
            undone.append(TreeChange(path, desired, now))
    return UndoPlan(
        snapshot=tree,
        restorations=tuple(restorations),
        conflicts=(*conflicts, *_list_unplanned(snapshots, steps, present_start, target)),
        diffs=make_file_diffs(objects, undone),
    )


def _list_unplanned(
    snapshots: Snapshots,
    steps: Sequence[MessageChanges],
    present_start: int | None,
    target: int | None,
) -> tuple[Conflict, ...]:
    """Return a conflict for each file that can't be restored, whatever it holds now: its content
    is not kept, it is outside the work tree, or its change was not recorded.
    """
    missing = tuple(
        Conflict(path, "what it held is not kept any more")
        for step in steps
        for path in step.missing
    )
    outside = tuple(
        Conflict(path, f"it is not in {snapshots.root}") for step in steps for path in step.outside
    )
    unrecorded = tuple(
        Conflict(path or COMMANDS_NAME, reason)
        for step in steps
        if target is not None
        and target <= step.index
        and (present_start is None or step.index < present_start)
        for path, reason in step.unrecorded.items()
    )
    return (*missing, *outside, *unrecorded)


def _store_present_entries(
    snapshots: Snapshots,
    earlier_undo: Revert | None,
    steps: Sequence[MessageChanges],
    present_start: int | None,
) -> tuple[Mapping[str, TreeEntry | None], str]:
    """Return each file's entry before the first undo,
    and a tree that stores these entries for a later redo.

    Files of an earlier undo (to `present_start`) are taken from the tree of that undo,
    the others from the disk.
    """
    objects = snapshots.objects
    tree = (
        EMPTY_TREE
        if earlier_undo is None or earlier_undo.snapshot is None
        else earlier_undo.snapshot
    )
    undone_paths = {
        each.path
        for step in steps
        if present_start is not None and step.index >= present_start
        for each in step.changes
    }
    tree_entries: dict[str, TreeEntry | None] = {}
    for path in dict.fromkeys(each.path for step in steps for each in step.changes):
        if path in undone_paths:
            tree_entries[path] = find_entry(objects, tree, path)
        else:
            tree_entries[path] = snapshots.store_entry(path)
    # The first undo starts from the tree of the last snapshot, which has most files already.
    if tree == EMPTY_TREE and snapshots.last is not None and objects.has(snapshots.last.tree):
        tree = snapshots.last.tree
    added_entries = {
        path: entry for path, entry in tree_entries.items() if path not in undone_paths
    }
    return tree_entries, store_changed_tree(objects, tree, added_entries)


def _find_entry_at(
    stored_entry: TreeEntry | None, steps: Sequence[MessageChanges], path: str, point: int | None
) -> tuple[TreeEntry | None, bool]:
    """Return a file's entry at `point` of the session,
    and whether all later changes of the file can be undone.
    """
    if point is None:
        return stored_entry, True
    changes = [
        each for step in steps if step.index >= point for each in step.changes if each.path == path
    ]
    return find_restorable_entry(stored_entry, changes), is_fully_restorable(stored_entry, changes)
