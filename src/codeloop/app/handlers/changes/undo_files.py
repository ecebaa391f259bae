"""Handler that undoes or redoes a turn's changes to some files; the conversation stays as it is."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from msgspec import Struct

from codeloop.agent.answer.turn_diffs import find_step_changes
from codeloop.app.handlers.changes.outcome import add_conflicts, describe_outcome
from codeloop.app.handlers.changes.revert import (
    lock_unless_dry_run,
    read_idle_session,
    restore_files,
)
from codeloop.app.project import Project
from codeloop.kit.text.undecodable import find_undecodable
from codeloop.schema.api.session_undo import UndoFiles, UndoneFiles
from codeloop.schema.errors import OperationError
from codeloop.schema.message import Session
from codeloop.store.conversation import Conversation, Entry, find_turn_start, find_undo_start
from codeloop.store.subagents import list_positioned_entries
from codeloop.workspace.snapshot.file_jobs import JobFailure
from codeloop.workspace.snapshot.object_store import TreeEntry
from codeloop.workspace.snapshot.restore import (
    Conflict,
    Restoration,
    find_restorable_entry,
    is_fully_restorable,
)
from codeloop.workspace.snapshot.snapshots import Snapshots
from codeloop.workspace.snapshot.stored_trees import TreeChange

_NOT_CHANGED_REASON = "no turn of this session changed it"


class _ChangingTurn(NamedTuple):
    """A turn that changed files."""

    prompt_id: str
    changes: Mapping[str, list[TreeChange]]
    """The changes by path, oldest first."""


class _FilesPlan(Struct, frozen=True):
    """The changes to make. `prompt_id`: that of the turn; None: no turn is left to undo or redo."""

    prompt_id: str | None
    restorations: tuple[Restoration, ...] = ()
    conflicts: tuple[Conflict, ...] = ()


async def undo_files(project: Project, args: UndoFiles) -> UndoneFiles:
    """Undo the last turn's changes to some files, where these still have the turn's content;
    or redo them.

    The last turn is the newest one that changed one of the files and is not undone there.
    Raises OperationError.
    """
    session, conversation = await read_idle_session(project, args.session_id)
    snapshots = project.snapshots
    positions = list_positioned_entries(project.store, conversation)
    names = [_make_relative(snapshots.root, session, each) for each in args.files]
    async with lock_unless_dry_run(project, args):
        plan = await snapshots.jobs.run_job(
            lambda: _plan_files(snapshots, conversation, positions, names, redo=args.redo)
        )
        if isinstance(plan, JobFailure):
            raise OperationError("UnknownError", f"Nothing was changed: {plan.reason}.")
        outcome = await restore_files(snapshots, plan.restorations, dry_run=args.dry_run)
    outcome = add_conflicts(outcome, plan.conflicts)
    return UndoneFiles(
        message_id=plan.prompt_id, outcome=describe_outcome(outcome, plan.restorations)
    )


def _make_relative(root: Path, session: Session, name: str) -> str:
    """Return a path relative to the work tree; empty for its top.
    Raises OperationError when it is outside.
    """
    path = Path(
        find_undecodable(os.path.normpath(Path(find_undecodable(session.directory)) / name))
    )
    # A link as the last part is a file of its own; links above it lead to the real folder.
    real = root if path == root else Path(os.path.realpath(path.parent)) / path.name
    if not name or "\0" in name or not real.is_relative_to(root):
        raise OperationError(
            "BadRequest", f"{name or 'An empty name'} is not in {root}. Nothing was changed."
        )
    return "" if real == root else str(real.relative_to(root))


def _plan_files(
    snapshots: Snapshots,
    conversation: Conversation,
    positions: Sequence[tuple[int, Entry]],
    names: Sequence[str],
    *,
    redo: bool,
) -> _FilesPlan:
    """Choose the turn, and return the changes to make. Blocks. Raises MissingObject, OSError."""
    snapshots.objects.create_if_missing()
    turns = _list_turns(snapshots, conversation, positions)
    paths = {
        path
        for turn in turns
        for path in turn.changes
        if any(_names_file(path, name) for name in names)
    }
    now = {path: snapshots.store_entry(path) for path in paths}
    find_turn = _find_redoable if redo else _find_undoable
    turn_indexes = {path: find_turn(now[path], path, turns) for path in sorted(paths)}
    indexes = [index for index in turn_indexes.values() if index is not None]
    conflicts = [
        Conflict(name or ".", _NOT_CHANGED_REASON)
        for name in names
        if not any(_names_file(each, name) for each in paths)
    ]
    if not indexes:
        why = "nothing of it is undone" if redo else "what the session did to it is undone"
        return _FilesPlan(
            None,
            conflicts=(*conflicts, *(Conflict(path, why) for path in sorted(paths & set(names)))),
        )
    # One turn at a time: the last one that is not undone, or the first one that is.
    index = min(indexes) if redo else max(indexes)
    prompt_id, changes = turns[index]
    restorations: list[Restoration] = []
    for path in (path for path, each in turn_indexes.items() if each == index):
        desired = (
            changes[path][-1].after if redo else find_restorable_entry(now[path], changes[path])
        )
        if desired != now[path]:
            restorations.append(Restoration(path, now[path], desired))
        if not redo and not is_fully_restorable(now[path], changes[path]):
            conflicts.append(Conflict(path, "it was changed since"))
    others = (path for path, each in turn_indexes.items() if each != index and path in names)
    conflicts += (Conflict(path, "the last turn did not change it") for path in others)
    return _FilesPlan(prompt_id, tuple(restorations), tuple(conflicts))


def _list_turns(
    snapshots: Snapshots, conversation: Conversation, positions: Sequence[tuple[int, Entry]]
) -> list[_ChangingTurn]:
    """Return the changes of the turns that are not undone, oldest first."""
    point = conversation.session.revert
    end = (
        find_undo_start(conversation, point.message_id, point.part_id)
        if point is not None
        else None
    )
    turns: dict[str, dict[str, list[TreeChange]]] = {}
    for index, entry in positions:
        if (end is None or index < end) and (step := find_step_changes(snapshots, entry, index)):
            prompt_id = conversation.entries[find_turn_start(conversation.entries, index)].info.id
            changes = turns.setdefault(prompt_id, {})
            for change in step.changes:
                changes.setdefault(change.path, []).append(change)
    return [_ChangingTurn(prompt_id, changes) for prompt_id, changes in turns.items()]


def _names_file(path: str, name: str) -> bool:
    """Return whether a name is the path of a file, a folder above it, or "" for all files."""
    return name in {"", path} or path.startswith(f"{name}/")


def _find_undoable(now: TreeEntry | None, path: str, turns: Sequence[_ChangingTurn]) -> int | None:
    """Return the index of the newest turn whose content a file has;
    without one, of the newest turn that changed it.

    None if all changes of the file are undone.
    """
    changed = [index for index in range(len(turns) - 1, -1, -1) if path in turns[index].changes]
    for index in changed:
        if find_restorable_entry(now, turns[index].changes[path]) != now:
            return index
    return (
        None
        if any(now == turns[index].changes[path][0].before for index in changed)
        else changed[0]
    )


def _find_redoable(now: TreeEntry | None, path: str, turns: Sequence[_ChangingTurn]) -> int | None:
    """Return the index of the oldest turn whose change of a file is undone;
    None if the last change is not undone.
    """
    for index in range(len(turns) - 1, -1, -1):
        changes = turns[index].changes.get(path)
        if changes and now == changes[-1].after:
            return None
        if changes and now == changes[0].before:
            return index
    return None
