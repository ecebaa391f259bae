"""Handler that returns the file changes of a session, as diffs."""

from collections.abc import Sequence

from codeloop.agent.answer.cut_off_steps import close_cut_off_steps
from codeloop.agent.answer.turn_diffs import compare_turn
from codeloop.app.handlers.changes.revert import diff_undo
from codeloop.app.project import Project
from codeloop.schema.api.session_undo import SessionDiffQuery
from codeloop.schema.errors import OperationError
from codeloop.schema.message import SnapshotFileDiff
from codeloop.store.conversation import Entry, find_turn_end, find_turn_start, find_undo_start
from codeloop.store.subagents import list_positioned_entries
from codeloop.workspace.snapshot.file_jobs import JobFailure


async def diff_session(project: Project, args: SessionDiffQuery) -> list[SnapshotFileDiff]:
    """Return the file changes of one turn, of all turns (`whole`), or of the present undo.

    `message_id`: the turn's prompt, or one of its answers. Changes of subagents are part of a turn.
    Raises OperationError: no such session or message, or contents that are not stored any more.
    """
    await close_cut_off_steps(project.store, project.snapshots)
    conversation = project.store.read_conversation(args.session_id)
    # A position is the index of the message that the changes, perhaps of a subagent, belong to.
    if args.whole:
        point = conversation.session.revert
        end = (
            find_undo_start(conversation, point.message_id, point.part_id)
            if point is not None
            else None
        )
        entries = list_positioned_entries(project.store, conversation)
        return await _diff_entries(
            project, [each for index, each in entries if end is None or index < end]
        )
    if args.message_id is None:
        return list(await diff_undo(project, conversation))
    entry = conversation.find_entry(args.message_id)
    if entry is None:
        raise OperationError("NotFoundError", f"Message not found: {args.message_id}")
    place = next(index for index, each in enumerate(conversation.entries) if each is entry)
    turn = range(
        find_turn_start(conversation.entries, place), find_turn_end(conversation.entries, place)
    )
    entries = list_positioned_entries(project.store, conversation)
    return await _diff_entries(project, [each for index, each in entries if index in turn])


async def _diff_entries(project: Project, entries: Sequence[Entry]) -> list[SnapshotFileDiff]:
    diffs = await compare_turn(project.snapshots, entries)
    if isinstance(diffs, JobFailure):
        raise OperationError("UnknownError", f"What was changed can't be told: {diffs.reason}.")
    return list(diffs)
