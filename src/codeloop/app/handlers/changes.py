"""What a session changed in files."""

from codeloop.agent.changes import turn_diffs
from codeloop.app.handlers.revert import undone
from codeloop.app.project import Project
from codeloop.schema.errors import OperationError
from codeloop.schema.message import AssistantMessage, FileDiff
from codeloop.schema.sessions import AskSessionDiff
from codeloop.workspace.snapshot import Failed


async def diff(project: Project, args: AskSessionDiff) -> list[FileDiff]:
    """Give what the turn of a prompt changed (an answer stands for its prompt); without one, what is undone.

    Raises OperationError: no such session or message, contents that can't be had.
    """
    view = project.store.conversation(args.session_id)
    if args.message_id is None:
        return list(await undone(project, view))
    named = next((entry.info for entry in view.entries if entry.info.id == args.message_id), None)
    if named is None:
        raise OperationError("NotFoundError", f"Message not found: {args.message_id}")
    prompt = named.parent_id if isinstance(named, AssistantMessage) else named.id
    answers = [e for e in view.entries if isinstance(e.info, AssistantMessage) and e.info.parent_id == prompt]
    diffs = await turn_diffs(project.snapshots, answers)
    if isinstance(diffs, Failed):
        raise OperationError("UnknownError", f"What the turn changed can't be told: {diffs.reason}.")
    return list(diffs)
