"""Handlers of undo and redo: move a session and its files back to a message, and forward again.

`undo_files.py` undoes single files without the conversation, with the same steps.
"""

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager, nullcontext

import msgspec

from codeloop.agent.answer.cut_off_steps import close_cut_off_steps
from codeloop.app.handlers.changes.outcome import add_conflicts, describe_outcome
from codeloop.app.handlers.changes.undo_plan import plan_undo
from codeloop.app.project import Project
from codeloop.schema.api.session_undo import (
    RevertedSession,
    RevertSession,
    UndoFiles,
    UnrevertSession,
)
from codeloop.schema.errors import OperationError
from codeloop.schema.ids import now_ms
from codeloop.schema.live_events import make_session_diff
from codeloop.schema.message import Revert, Session, SnapshotFileDiff, UserMessage
from codeloop.schema.wire import replace
from codeloop.store.conversation import (
    Conversation,
    find_turn_end,
    find_turn_start,
    find_undo_start,
)
from codeloop.store.subagents import list_positioned_entries
from codeloop.workspace.snapshot.file_jobs import JobFailure
from codeloop.workspace.snapshot.restore import Restoration, RestoreResult, restore_entries
from codeloop.workspace.snapshot.snapshots import Snapshots


async def revert_session(project: Project, args: RevertSession) -> RevertedSession:
    """Undo everything from a message on; for an unknown message nothing is changed.

    Only files that still have the agent's content are restored;
    the others are named in `outcome.conflicts`.
    Raises OperationError: NotFoundError, SessionBusyError, BadRequest for a session of another work
    tree, UnknownError if the undo failed on the way.
    """
    session, conversation = await read_idle_session(project, args.session_id)
    start = find_undo_start(conversation, args.message_id, args.part_id)
    if start is None:
        return _make_answer(session, RestoreResult())
    if isinstance(conversation.entries[start].info, UserMessage):
        start = _find_turn_point(conversation, start)
    async with lock_unless_dry_run(project, args):
        return await _move_to_point(project, conversation, start, args)


def _find_turn_point(conversation: Conversation, start: int) -> int | None:
    """Return the index of the prompt of the user to move to for the user message at `start`;
    None: to the end.

    The program's own messages, such as reminders, belong to the turn of the prompt before them. A
    client that goes forward from message to message means the end of that turn.
    """
    turn_start = find_turn_start(conversation.entries, start)
    point = conversation.session.revert
    present = (
        find_undo_start(conversation, point.message_id, point.part_id)
        if point is not None
        else None
    )
    if present is None or start <= present or turn_start > present:
        return turn_start
    end = find_turn_end(conversation.entries, start)
    return end if end < len(conversation.entries) else None


async def unrevert_session(project: Project, args: UnrevertSession) -> RevertedSession:
    """Redo the undone changes. Files that were changed since the undo stay as they are."""
    session, conversation = await read_idle_session(project, args.session_id)
    if session.revert is None:
        return _make_answer(session, RestoreResult())
    async with lock_unless_dry_run(project, args):
        return await _move_to_point(project, conversation, None, args)


async def diff_undo(project: Project, conversation: Conversation) -> tuple[SnapshotFileDiff, ...]:
    """Return the changes that are undone, as diffs; empty when nothing is undone."""
    point = conversation.session.revert
    start = (
        find_undo_start(conversation, point.message_id, point.part_id)
        if point is not None
        else None
    )
    if start is None:
        return ()
    snapshots = project.snapshots
    positions = list_positioned_entries(project.store, conversation)
    plan = await snapshots.jobs.run_job(
        lambda: plan_undo(snapshots, conversation, positions, start)
    )
    return () if isinstance(plan, JobFailure) else plan.diffs


async def _move_to_point(
    project: Project,
    conversation: Conversation,
    target_index: int | None,
    args: RevertSession | UnrevertSession,
) -> RevertedSession:
    """Move the session and its files to the message at `target_index`;
    None: to the end of the conversation.

    The tree to restore files from is stored before the first file is changed. So if the process is
    killed on the way, each file is either old or new, and the same call finishes the work.
    """
    session, snapshots = conversation.session, project.snapshots
    positions = list_positioned_entries(project.store, conversation)
    plan = await snapshots.jobs.run_job(
        lambda: plan_undo(snapshots, conversation, positions, target_index)
    )
    if isinstance(plan, JobFailure):
        raise OperationError("UnknownError", f"Nothing was undone: {plan.reason}.")
    point: Revert | None = None
    if target_index is not None:
        text = "".join(diff.patch or "" for diff in plan.diffs)
        part_id = args.part_id if isinstance(args, RevertSession) else None
        message_id = conversation.entries[target_index].info.id
        point = Revert(message_id=message_id, part_id=part_id, snapshot=plan.snapshot, diff=text)
    if not args.dry_run:
        # The point of a first undo has no diff until its files are restored; that of a further one
        # keeps the earlier diff until then.
        begun = replace(point, diff=None) if point is not None else None
        if session.revert is not None:
            begun = replace(session.revert, snapshot=plan.snapshot)
        _store_point(project, session.id, begun)
    outcome = await restore_files(snapshots, plan.restorations, dry_run=args.dry_run)
    if not args.dry_run:
        session = _store_point(project, session.id, point)
        diffs = list(plan.diffs) if target_index is not None else []
        project.store.publish_live(make_session_diff(session.id, diffs))
    return _make_answer(session, add_conflicts(outcome, plan.conflicts), plan.restorations)


async def restore_files(
    snapshots: Snapshots, restorations: tuple[Restoration, ...], *, dry_run: bool
) -> RestoreResult:
    """Restore files; with `dry_run` only return what would happen.

    Raises OperationError if not all are restored; the same call then restores the rest.
    """
    outcome = await snapshots.jobs.run_job(
        lambda: restore_entries(
            snapshots.objects,
            snapshots.root,
            restorations,
            snapshots.records_folder,
            dry_run=dry_run,
        )
    )
    if not dry_run:
        # Even if it failed, some files may have been written.
        snapshots.mark_changed()
    if isinstance(outcome, JobFailure):
        raise OperationError(
            "UnknownError", f"The files are not all put back: {outcome.reason}. Do the same again."
        )
    return outcome


def _store_point(project: Project, session_id: str, point: Revert | None) -> Session:
    """Store the point of a session's undo, unless it is stored already;
    other fields keep their newest values.
    """

    def set_revert(session: Session) -> Session:
        if session.revert == point:
            return session
        return replace(session, revert=point, time=replace(session.time, updated=now_ms()))

    return project.store.update_session(session_id, set_revert)


async def read_idle_session(project: Project, session_id: str) -> tuple[Session, Conversation]:
    """Return a session of this work tree and its conversation.

    Raises OperationError: the session belongs to another work tree (BadRequest), or is not idle.
    """
    session = project.store.get_session(session_id)
    root = project.settings.project_root.root_name
    if session.root != root:
        problem = f"Session {session.id} belongs to {session.directory}, outside {root}. Nothing was changed."
        raise OperationError("BadRequest", problem)
    if project.runs.is_running(session.id):
        raise OperationError(
            "SessionBusyError", f"Session {session.id} is busy. Abort its turn first."
        )
    project.store.leases.check_free(session.id)
    await close_cut_off_steps(project.store, project.snapshots)
    return session, project.store.read_conversation(session.id)


def lock_unless_dry_run(
    project: Project, args: RevertSession | UnrevertSession | UndoFiles
) -> AbstractAsyncContextManager[None]:
    """Keep turns from the session while files change. Raises OperationError (SessionBusyError)."""
    if args.dry_run:
        return nullcontext()
    return project.runs.lock_session(
        args.session_id, is_conversation_undone=not isinstance(args, UndoFiles)
    )


def _make_answer(
    session: Session, outcome: RestoreResult, restorations: Sequence[Restoration] = ()
) -> RevertedSession:
    return RevertedSession(
        **msgspec.structs.asdict(session), outcome=describe_outcome(outcome, restorations)
    )
