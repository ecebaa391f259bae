"""What a session changed in files."""

from collections.abc import Iterator, Sequence

from codeloop.agent.turn_diffs import turn_diffs
from codeloop.app.handlers.session.revert import start_of, undone
from codeloop.app.project import Project
from codeloop.schema.api.session_requests import SessionDiffQuery
from codeloop.schema.errors import OperationError
from codeloop.schema.message import AssistantMessage, SnapshotFileDiff
from codeloop.store.conversation import Entry
from codeloop.workspace.snapshot.file_jobs import Failed

SUBAGENTS = 1_000
"""Of one session, whose changes are looked at."""


async def diff(project: Project, args: SessionDiffQuery) -> list[SnapshotFileDiff]:
    """Return what the turn of a prompt changed (an answer stands for its prompt), or all turns; else what is undone.

    All turns are those of its subagents, too.

    Raises OperationError: no such session or message, contents that are not available.
    """
    view = project.store.conversation(args.session_id)
    if args.whole:
        point = view.session.revert
        end = start_of(view, point.message_id, point.part_id) if point is not None else None
        entries = [*view.entries[:end], *_of_subagents(project, args.session_id)]
        return await _changed(project, sorted(entries, key=lambda entry: entry.info.time.created))
    if args.message_id is None:
        return list(await undone(project, view))
    named = next((entry.info for entry in view.entries if entry.info.id == args.message_id), None)
    if named is None:
        raise OperationError("NotFoundError", f"Message not found: {args.message_id}")
    prompt = named.parent_id if isinstance(named, AssistantMessage) else named.id
    answers = [e for e in view.entries if isinstance(e.info, AssistantMessage) and e.info.parent_id == prompt]
    return await _changed(project, answers)


def _of_subagents(project: Project, session_id: str) -> Iterator[Entry]:
    """Yield the messages of a session's subagents, and of theirs."""
    waiting = [session_id]
    while waiting:
        for child in project.store.sessions(parent=waiting.pop(), limit=SUBAGENTS):
            view, waiting = project.store.conversation(child.id), [*waiting, child.id]
            point = view.session.revert
            yield from view.entries[: start_of(view, point.message_id, point.part_id) if point is not None else None]


async def _changed(project: Project, entries: Sequence[Entry]) -> list[SnapshotFileDiff]:
    diffs = await turn_diffs(project.snapshots, entries)
    if isinstance(diffs, Failed):
        raise OperationError("UnknownError", f"What was changed can't be told: {diffs.reason}.")
    return list(diffs)
