"""Undo and redo of a session's last turn, with a report on the files."""

from collections.abc import Callable, Sequence

from codeloop.client.client import Client
from codeloop.kit.terminal_text import escape_controls, one_line
from codeloop.schema.api.session_inputs import MessageWithParts
from codeloop.schema.api.session_requests import (
    FilesOutcome,
    ListMessages,
    RevertSession,
    UndoFiles,
    UnrevertSession,
)
from codeloop.schema.errors import UsageProblem
from codeloop.schema.message import Session, UserMessage
from codeloop.schema.operation import SESSION_MESSAGES, SESSION_REVERT, SESSION_UNREVERT, UNDO_FILES
from codeloop.schema.part import CompactionPart, TextPart

PROMPT_WIDTH = 60
UNDONE = {
    "content": "restored",
    "mode": "restored (mode)",
    "created": "re-created",
    "deleted": "deleted",
    "moved": "moved back",
}
REDONE = {
    "content": "changed again",
    "mode": "changed again (mode)",
    "created": "created again",
    "deleted": "deleted again",
    "moved": "moved again",
}
Say = Callable[[str], object]


async def undo_last(client: Client, session: Session, *, dry_run: bool, say: Say, warn: Say) -> int:
    """Undo the last turn that is not undone yet; return 1 if a file was left as it is, else 0.

    Raises UsageProblem if there is no such turn.
    """
    turns = await _turns(client, session)
    is_begun = session.revert is not None and session.revert.diff is None  # and was interrupted: it is completed
    before = turns[: _position(turns, session) + is_begun]
    if not before:
        raise UsageProblem(f"There is nothing to undo in {session.id}.")
    last = before[-1]
    answer = await client.call(
        SESSION_REVERT, RevertSession(session_id=session.id, message_id=last.info.id, dry_run=dry_run)
    )
    return _report(answer.outcome, f"{_conjugate('undo', dry_run=dry_run)}: {_prompt(last)}", UNDONE, say, warn)


async def redo_last(client: Client, session: Session, *, dry_run: bool, say: Say, warn: Say) -> int:
    """Redo the last turn that was undone; return 1 if a file was left as it is, else 0.

    Raises UsageProblem if there is no such turn.
    """
    if session.revert is None:
        raise UsageProblem(f"There is nothing to redo in {session.id}.")
    turns = await _turns(client, session)
    position = _position(turns, session)
    what = _prompt(turns[position]) if position < len(turns) else "the last step"
    if position + 1 < len(turns):
        later = turns[position + 1].info.id
        answer = await client.call(
            SESSION_REVERT, RevertSession(session_id=session.id, message_id=later, dry_run=dry_run)
        )
    else:
        answer = await client.call(SESSION_UNREVERT, UnrevertSession(session_id=session.id, dry_run=dry_run))
    return _report(answer.outcome, f"{_conjugate('redo', dry_run=dry_run)}: {what}", REDONE, say, warn)


async def undo_files(
    client: Client, session: Session, files: Sequence[str], *, redo: bool, dry_run: bool, say: Say, warn: Say
) -> int:
    """Undo, or redo, what the last turn did to some files; return 1 if a file was left as it is, else 0."""
    undo_files = UndoFiles(session_id=session.id, files=list(files), redo=redo, dry_run=dry_run)
    answer = await client.call(UNDO_FILES, undo_files)
    turns = await _turns(client, session)
    prompt = next((_prompt(turn) for turn in turns if turn.info.id == answer.message_id), None)
    verb = "redo" if redo else "undo"
    heading = f"There is nothing to {verb} in these files."
    if prompt is not None:
        heading = f"{_conjugate(verb, dry_run=dry_run)} in these files: {prompt}"
    return _report(answer.outcome, heading, REDONE if redo else UNDONE, say, warn)


def _conjugate(verb: str, *, dry_run: bool) -> str:
    return f"Would {verb}" if dry_run else {"undo": "Undone", "redo": "Redone"}[verb]


async def _turns(client: Client, session: Session) -> list[MessageWithParts]:
    messages = await client.call(SESSION_MESSAGES, ListMessages(session_id=session.id))
    return [message for message in messages if isinstance(message.info, UserMessage)]


def _position(turns: list[MessageWithParts], session: Session) -> int:
    """Return the index of the first turn that is undone."""
    point = session.revert.message_id if session.revert is not None else None
    return next((index for index, turn in enumerate(turns) if turn.info.id == point), len(turns))


def _prompt(turn: MessageWithParts) -> str:
    if any(isinstance(part, CompactionPart) for part in turn.parts):
        return "the compaction of the conversation"
    text = next((part.text for part in turn.parts if isinstance(part, TextPart) and not part.synthetic), "")
    return f"“{one_line(text, PROMPT_WIDTH)}”" if text else "the last step"


def _report(outcome: FilesOutcome | None, heading: str, words: dict[str, str], say: Say, warn: Say) -> int:
    """Show what happened to the files; return 1 if some were skipped."""
    if outcome is None:
        return 0
    say(heading)
    would = "would be " if heading.startswith("Would") else ""
    for each in outcome.done:
        source = f"{escape_controls(each.source)} -> " if each.source else ""
        say(f"  {would}{words[each.what]}  {source}{escape_controls(each.path)}")
    for conflict in outcome.conflicts:
        warn(f"  {would}skipped  {escape_controls(conflict.path)}: {escape_controls(conflict.reason)}")
    if not outcome.done and not outcome.conflicts:
        say(f"  no file {'has' if would else 'had'} to change")
    return 1 if outcome.conflicts else 0
