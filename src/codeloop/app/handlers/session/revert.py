"""Handlers of undo and redo: move a session and its files back to a message, and forward again.

`undo_files` undoes single files without the conversation, with the same steps.
"""

from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext

import msgspec
from msgspec import Struct

from codeloop.agent.answer.turn_diffs import (
    MessageChanges,
    add_diffs,
    find_step_changes,
    list_diffs,
    list_files,
)
from codeloop.agent.subagent.subagent_entries import list_positioned_entries
from codeloop.app.handlers import handles
from codeloop.app.project import Project
from codeloop.schema import operation
from codeloop.schema.api.session_requests import (
    FileConflict,
    FileDone,
    FilesOutcome,
    RevertedSession,
    RevertSession,
    UndoFiles,
    UnrevertSession,
)
from codeloop.schema.errors import OperationError
from codeloop.schema.event import MessageGone, MessageRemoved, StoredEvent, make_session_updated
from codeloop.schema.ids import now_ms
from codeloop.schema.limits import UNDO_TIME
from codeloop.schema.live_events import make_session_diff
from codeloop.schema.message import NO_TOKENS, AssistantMessage, Revert, Session, SnapshotFileDiff
from codeloop.schema.wire import replace
from codeloop.store.conversation import Conversation, Entry, find_undo_start
from codeloop.store.store import Store
from codeloop.workspace.snapshot.file_jobs import JobFailure
from codeloop.workspace.snapshot.object_store import EMPTY_TREE, TreeEntry
from codeloop.workspace.snapshot.restore import (
    Conflict,
    Restoration,
    RestoreResult,
    find_restorable_entry,
    is_fully_restorable,
    restore_entries,
)
from codeloop.workspace.snapshot.snapshots import Snapshots
from codeloop.workspace.snapshot.tree_diff import TreeChange, find_entry, make_file_diffs, store_changed_tree


class _UndoPlan(Struct, frozen=True):
    """The file changes of an undo or redo.

    `snapshot`: the tree with the files as they were before the first undo. `moves`: the files to restore. `conflicts`:
    the files that stay as they are. `diffs`: the changes that are undone afterwards.
    """

    snapshot: str
    moves: tuple[Restoration, ...]
    conflicts: tuple[Conflict, ...]
    diffs: tuple[SnapshotFileDiff, ...]


@handles(operation.SESSION_REVERT)
async def revert_session(project: Project, args: RevertSession) -> RevertedSession:
    """Undo everything from a message on; for an unknown message nothing is changed.

    Only files that still have the agent's content are restored; the others are named in `outcome.conflicts`.
    Raises OperationError: NotFoundError, SessionBusyError.
    """
    session, view = require_idle(project, args.session_id)
    start = find_undo_start(view, args.message_id, args.part_id)
    if start is None:
        return _make_answer(session, RestoreResult())
    async with hold_session(project, args):
        return await _move_to_point(project, view, start, args)


@handles(operation.SESSION_UNREVERT)
async def unrevert_session(project: Project, args: UnrevertSession) -> RevertedSession:
    """Redo the undone changes. Files that were changed since the undo stay as they are."""
    session, view = require_idle(project, args.session_id)
    if session.revert is None:
        return _make_answer(session, RestoreResult())
    async with hold_session(project, args):
        return await _move_to_point(project, view, None, args)


def discard_reverted(store: Store, session_id: str) -> list[StoredEvent]:
    """Return the events that make an undo final when a new prompt is stored: the undone messages are deleted.

    Their usage leaves the session's sums. Sessions of subagents get an undo of their own, so their work stays undone.
    """
    session = store.get_session(session_id)
    point = session.revert
    if point is None:
        return []
    view = store.read_conversation(session_id)
    start = find_undo_start(view, point.message_id, point.part_id)
    entries = view.entries[start:] if start is not None else ()
    kept_files = list_files(entry.info for entry in view.entries[:start])
    cost, tokens = session.cost or 0.0, session.tokens or NO_TOKENS
    for entry in entries:
        if isinstance(entry.info, AssistantMessage):
            cost, tokens = max(cost - entry.info.cost, 0.0), tokens.plus(entry.info.all_tokens, -1)
    if session.summary is not None:
        session = add_diffs(session, [diff for entry in entries for diff in list_diffs(entry.info)], kept_files, -1)
    info = replace(session, revert=None, cost=cost, tokens=tokens, time=replace(session.time, updated=now_ms()))
    removed = (MessageGone(session_id=session.id, message_id=entry.info.id) for entry in entries)
    return [
        *(MessageRemoved(properties=each) for each in removed),
        make_session_updated(info),
        *(make_session_updated(each) for each in _undo_subagents(store, view, start, point)),
    ]


def _undo_subagents(store: Store, view: Conversation, start: int | None, point: Revert) -> list[Session]:
    """Return the sessions of the subagents that worked since the undo's message, each with an undo of its own."""
    sessions: dict[str, Session] = {}
    for index, entry in list_positioned_entries(store, view):
        child = entry.info.session_id
        if start is not None and index >= start and child != view.session.id and child not in sessions:
            revert = Revert(message_id=entry.info.id, snapshot=point.snapshot, diff="")
            sessions[child] = replace(store.get_session(child), revert=revert)
    return list(sessions.values())


async def diff_undo(project: Project, view: Conversation) -> tuple[SnapshotFileDiff, ...]:
    """Return the changes that are undone, as diffs; empty when nothing is undone."""
    point = view.session.revert
    start = find_undo_start(view, point.message_id, point.part_id) if point is not None else None
    if start is None:
        return ()
    snapshots = project.snapshots
    positions = list_positioned_entries(project.store, view)
    plan = await snapshots.jobs.run_job(lambda: _plan_undo(snapshots, view, positions, start), UNDO_TIME)
    return () if isinstance(plan, JobFailure) else plan.diffs


async def _move_to_point(
    project: Project, view: Conversation, target: int | None, args: RevertSession | UnrevertSession
) -> RevertedSession:
    """Move the session and its files to the message at index `target`; None: to the end of the conversation.

    The tree to restore files from is stored before the first file is changed. So if the process is killed on the way,
    each file is either old or new, and the same call finishes the work.
    """
    session, snapshots = view.session, project.snapshots
    positions = list_positioned_entries(project.store, view)
    plan = await snapshots.jobs.run_job(lambda: _plan_undo(snapshots, view, positions, target), UNDO_TIME)
    if isinstance(plan, JobFailure):
        raise OperationError("UnknownError", f"Nothing was undone: {plan.reason}.")
    point: Revert | None = None
    if target is not None:
        text = "".join(diff.patch or "" for diff in plan.diffs)
        part_id = args.part_id if isinstance(args, RevertSession) else None
        message_id = view.entries[target].info.id
        point = Revert(message_id=message_id, part_id=part_id, snapshot=plan.snapshot, diff=text)
    # A point without a diff marks an undo whose files are not all restored yet.
    if not args.dry_run:
        revert = replace(point, diff=None) if point is not None else None
        _store_point(project, session.id, replace(session.revert, snapshot=plan.snapshot) if session.revert else revert)
    outcome = await restore_files(snapshots, plan.moves, dry_run=args.dry_run)
    if not args.dry_run:
        session = _store_point(project, session.id, point)
        diffs = list(plan.diffs) if target is not None else []
        project.store.publish_live(make_session_diff(session.id, diffs))
    return _make_answer(session, add_conflicts(outcome, plan.conflicts), plan.moves)


async def restore_files(snapshots: Snapshots, moves: tuple[Restoration, ...], *, dry_run: bool) -> RestoreResult:
    """Restore files; with `dry_run` only return what would happen. Raises OperationError; the same call continues."""
    outcome = await snapshots.jobs.run_job(
        lambda: restore_entries(snapshots.objects, snapshots.root, moves, snapshots.undo_folder, dry_run=dry_run),
        UNDO_TIME,
    )
    # Even if it failed, some files may have been written.
    snapshots.mark_changed()
    if isinstance(outcome, JobFailure):
        raise OperationError("UnknownError", f"The files are not all put back: {outcome.reason}. Do the same again.")
    return outcome


def _store_point(project: Project, session_id: str, point: Revert | None) -> Session:
    """Store the point of a session's undo, unless it is stored already; other fields keep their newest values."""

    def set_revert(session: Session) -> Session:
        if session.revert == point:
            return session
        return replace(session, revert=point, time=replace(session.time, updated=now_ms()))

    return project.store.update_session(session_id, set_revert)


def add_conflicts(outcome: RestoreResult, further: Sequence[Conflict]) -> RestoreResult:
    """Return an outcome with further conflicts, each file once, sorted by path."""
    paths = {each.path for each in outcome.conflicts}
    added = (*outcome.conflicts, *(each for each in further if each.path not in paths))
    return RestoreResult(outcome.restored, outcome.unchanged, tuple(sorted(added, key=lambda each: each.path)))


def _plan_undo(
    snapshots: Snapshots, view: Conversation, positions: Sequence[tuple[int, Entry]], target: int | None
) -> _UndoPlan:
    """Return the plan of an undo or redo. Blocks. Raises MissingObject, OSError."""
    objects = snapshots.objects
    objects.create_if_missing()
    earlier_undo = view.session.revert
    present_start = (
        find_undo_start(view, earlier_undo.message_id, earlier_undo.part_id) if earlier_undo is not None else None
    )
    points = [point for point in (present_start, target) if point is not None]
    first = min(points) if points else len(view.entries)
    found = (find_step_changes(snapshots, entry, index) for index, entry in positions if index >= first)
    steps = [step for step in found if step is not None]
    missing_conflicts = tuple(
        Conflict(path, "what it held is not kept any more") for step in steps for path in step.missing
    )
    outside = tuple(Conflict(path, f"it is not in {snapshots.root}") for step in steps for path in step.outside)
    tree_entries, tree = _store_present_entries(snapshots, earlier_undo, steps, present_start)
    moves: list[Restoration] = []
    conflicts: list[Conflict] = []
    undone: list[TreeChange] = []
    for path, now in tree_entries.items():
        # If the same undo is repeated, a killed process may have left this file as it was.
        expected = now if present_start == target else _find_entry_at(now, steps, path, present_start)[0]
        desired, is_complete = _find_entry_at(now, steps, path, target)
        if expected != desired:
            moves.append(Restoration(path, expected, desired))
        if not is_complete:
            conflicts.append(Conflict(path, "it was changed since"))
        if desired != now:
            undone.append(TreeChange(path, desired, now))
    return _UndoPlan(tree, tuple(moves), (*conflicts, *missing_conflicts, *outside), make_file_diffs(objects, undone))


def _store_present_entries(
    snapshots: Snapshots, earlier_undo: Revert | None, steps: Sequence[MessageChanges], present_start: int | None
) -> tuple[Mapping[str, TreeEntry | None], str]:
    """Return each file's entry before the first undo, and a tree that stores these entries for a later redo.

    Files of an earlier undo (to `present_start`) are taken from the tree of that undo, the others from the disk.
    """
    objects = snapshots.objects
    start = EMPTY_TREE if earlier_undo is None or earlier_undo.snapshot is None else earlier_undo.snapshot
    before = {
        each.path
        for step in steps
        if present_start is not None and step.index >= present_start
        for each in step.changes
    }
    tree_entries: dict[str, TreeEntry | None] = {}
    for path in dict.fromkeys(each.path for step in steps for each in step.changes):
        tree_entries[path] = find_entry(objects, start, path) if path in before else snapshots.store_entry(path)
    if start == EMPTY_TREE and snapshots.last is not None and objects.has(snapshots.last.tree):
        start = snapshots.last.tree
    return tree_entries, store_changed_tree(
        objects, start, {path: item for path, item in tree_entries.items() if path not in before}
    )


def _find_entry_at(
    stored_entry: TreeEntry | None, steps: Sequence[MessageChanges], path: str, point: int | None
) -> tuple[TreeEntry | None, bool]:
    """Return a file's entry at `point` of the session, and whether all later changes of the file can be undone."""
    if point is None:
        return stored_entry, True
    changes = [each for step in steps if step.index >= point for each in step.changes if each.path == path]
    return find_restorable_entry(stored_entry, changes), is_fully_restorable(stored_entry, changes)


def require_idle(project: Project, session_id: str) -> tuple[Session, Conversation]:
    """Return a session of this work tree and its conversation. Raises OperationError unless the session is idle."""
    session = project.store.get_session(session_id)
    if session.root != str(project.snapshots.root):
        problem = f"Session {session.id} belongs to {session.directory}, outside {project.snapshots.root}."
        raise OperationError("BadRequest", f"{problem} Nothing was changed.")
    if project.runs.is_running(session.id):
        raise OperationError("SessionBusyError", f"Session {session.id} is busy. Abort its turn first.")
    project.store.leases.check_free(session.id)
    return session, project.store.read_conversation(session.id)


def hold_session(
    project: Project, args: RevertSession | UnrevertSession | UndoFiles
) -> AbstractAsyncContextManager[None]:
    """Lock the session against turns while files change. Raises OperationError (SessionBusyError)."""
    if args.dry_run:
        return nullcontext()
    return project.runs.lock_session(args.session_id, is_conversation_undone=not isinstance(args, UndoFiles))


def _make_answer(session: Session, outcome: RestoreResult, moves: Sequence[Restoration] = ()) -> RevertedSession:
    return RevertedSession(**msgspec.structs.asdict(session), outcome=describe_outcome(outcome, moves))


def describe_outcome(outcome: RestoreResult, moves: Sequence[Restoration]) -> FilesOutcome:
    """Return an outcome in the form of the API."""
    restored = set(outcome.restored)
    return FilesOutcome(
        restored=list(outcome.restored),
        unchanged=list(outcome.unchanged),
        conflicts=[FileConflict(path=each.path, reason=each.reason) for each in outcome.conflicts],
        done=_describe_moves([move for move in moves if move.path in restored]),
    )


def _describe_moves(moves: Sequence[Restoration]) -> list[FileDone]:
    """Describe restored files for users; a deleted and a created file with the same content are one moved file."""
    deletions = {move.expected: move.path for move in moves if move.desired is None and move.expected is not None}
    file_changes: list[FileDone] = []
    for move in moves:
        match move:
            case Restoration(expected=None, desired=TreeEntry() as item):
                source = deletions.pop(item, None)
                file_changes.append(FileDone(path=move.path, what="moved" if source else "created", source=source))
            case Restoration(expected=TreeEntry(blob=old), desired=TreeEntry(blob=new)):
                file_changes.append(FileDone(path=move.path, what="content" if old != new else "mode"))
            case _:
                pass
    file_changes += (FileDone(path=path, what="deleted") for path in _find_deleted(moves, file_changes))
    return sorted(file_changes, key=lambda each: each.path)


def _find_deleted(moves: Sequence[Restoration], file_changes: Sequence[FileDone]) -> list[str]:
    """Return the files that were deleted and not moved."""
    moved = {each.source for each in file_changes}
    return [move.path for move in moves if move.desired is None and move.path not in moved]
