"""Handler of a session's file changes."""

from collections.abc import Sequence

from codeloop.agent.turn_diffs import compare_turn, find_undo_start, list_positioned_entries
from codeloop.app.handlers import handles
from codeloop.app.handlers.session.revert import diff_undo
from codeloop.app.project import Project
from codeloop.schema import operation
from codeloop.schema.api.session_requests import SessionDiffQuery
from codeloop.schema.errors import OperationError
from codeloop.schema.message import AssistantMessage, SnapshotFileDiff
from codeloop.store.conversation import Entry
from codeloop.workspace.snapshot.file_jobs import JobFailure


@handles(operation.SESSION_DIFF)
async def diff(project: Project, args: SessionDiffQuery) -> list[SnapshotFileDiff]:
    """Return the file changes of one turn, of all turns (`whole`), or those that are undone.

    `message_id`: the turn's prompt, or one of its answers. Changes of subagents are part of a turn.
    Raises OperationError: no such session or message, or contents that are not stored any more.
    """
    view = project.store.read_conversation(args.session_id)
    if args.whole:
        point = view.session.revert
        end = find_undo_start(view, point.message_id, point.part_id) if point is not None else None
        return await _diff_turn(
            project, [e for at, e in list_positioned_entries(project.store, view) if end is None or at < end]
        )
    if args.message_id is None:
        return list(await diff_undo(project, view))
    entry = view.find_entry(args.message_id)
    if entry is None:
        raise OperationError("NotFoundError", f"Message not found: {args.message_id}")
    info = entry.info
    prompt = info.parent_id if isinstance(info, AssistantMessage) else info.id
    answers = {
        at
        for at, e in enumerate(view.entries)
        if e.info.id == prompt or (isinstance(e.info, AssistantMessage) and e.info.parent_id == prompt)
    }
    return await _diff_turn(
        project, [entry for at, entry in list_positioned_entries(project.store, view) if at in answers]
    )


async def _diff_turn(project: Project, entries: Sequence[Entry]) -> list[SnapshotFileDiff]:
    diffs = await compare_turn(project.snapshots, entries)
    if isinstance(diffs, JobFailure):
        raise OperationError("UnknownError", f"What was changed can't be told: {diffs.reason}.")
    return list(diffs)
