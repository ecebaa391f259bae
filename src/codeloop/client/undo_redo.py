"""Undoes and redoes turns of a session, and reports the outcome for each file, for every user interface."""

from collections.abc import Callable, Iterator, Sequence

from codeloop.client.client import Client
from codeloop.kit.text.terminal_text import escape_controls, one_line
from codeloop.schema.api.session_inputs import MessageWithParts
from codeloop.schema.api.session_requests import (
    FileConflict,
    FileDone,
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

MAX_PROMPT = 60
"""Characters of a quoted prompt."""
# By the kind of change that `FilesOutcome.done` names.
UNDO_WORDS = {
    "content": "restored",
    "mode": "restored (mode)",
    "created": "re-created",
    "deleted": "deleted",
    "moved": "moved back",
}
REDO_WORDS = {
    "content": "changed again",
    "mode": "changed again (mode)",
    "created": "created again",
    "deleted": "deleted again",
    "moved": "moved again",
}
ShowLine = Callable[[str], object]


def list_done_lines(done: Sequence[FileDone], words: dict[str, str], make_safe: Callable[[str], str]) -> Iterator[str]:
    """Yield a line for each file that is restored.

    `words`: UNDO_WORDS or REDO_WORDS. `make_safe` escapes a text for the screen.
    """
    for each in done:
        source = f"{make_safe(each.source)} -> " if each.source else ""
        yield f"{words[each.what]}  {source}{make_safe(each.path)}"


def list_conflict_lines(conflicts: Sequence[FileConflict], make_safe: Callable[[str], str]) -> Iterator[str]:
    """Yield a line for each file that is left as it is, with the reason."""
    for each in conflicts:
        yield f"skipped  {make_safe(each.path)}: {make_safe(each.reason)}"


async def undo_last(client: Client, session: Session, *, dry_run: bool, say: ShowLine, warn: ShowLine) -> int:
    """Undo the last turn that is not undone yet; return 1 if a file was left as it is, else 0.

    Raises UsageProblem if there is no such turn.
    """
    turns = await _list_turns(client, session)
    # An undo that was interrupted has stored no diff yet: it is completed, instead of undoing one more turn.
    is_begun = session.revert is not None and session.revert.diff is None
    undoable_turns = turns[: _find_first_undone(turns, session) + is_begun]
    if not undoable_turns:
        raise UsageProblem(f"There is nothing to undo in {session.id}.")
    last = undoable_turns[-1]
    answer = await client.call(
        SESSION_REVERT, RevertSession(session_id=session.id, message_id=last.info.id, dry_run=dry_run)
    )
    heading = f"{_conjugate('undo', dry_run=dry_run)}: {_quote_prompt(last)}"
    return _report_outcome(answer.outcome, heading, UNDO_WORDS, say, warn, dry_run=dry_run)


async def redo_last(client: Client, session: Session, *, dry_run: bool, say: ShowLine, warn: ShowLine) -> int:
    """Redo the last turn that was undone; return 1 if a file was left as it is, else 0.

    Raises UsageProblem if there is no such turn.
    """
    if session.revert is None:
        raise UsageProblem(f"There is nothing to redo in {session.id}.")
    turns = await _list_turns(client, session)
    position = _find_first_undone(turns, session)
    prompt = _quote_prompt(turns[position]) if position < len(turns) else "the last step"
    if position + 1 < len(turns):
        # A redo moves the point of the undo one turn forward; past the last turn nothing is undone any more.
        later = turns[position + 1].info.id
        answer = await client.call(
            SESSION_REVERT, RevertSession(session_id=session.id, message_id=later, dry_run=dry_run)
        )
    else:
        answer = await client.call(SESSION_UNREVERT, UnrevertSession(session_id=session.id, dry_run=dry_run))
    heading = f"{_conjugate('redo', dry_run=dry_run)}: {prompt}"
    return _report_outcome(answer.outcome, heading, REDO_WORDS, say, warn, dry_run=dry_run)


async def undo_files(
    client: Client, session: Session, files: Sequence[str], *, redo: bool, dry_run: bool, say: ShowLine, warn: ShowLine
) -> int:
    """Undo or redo the changes of the last turn to some files; return 1 if a file was left as it is, else 0."""
    request = UndoFiles(session_id=session.id, files=list(files), redo=redo, dry_run=dry_run)
    answer = await client.call(UNDO_FILES, request)
    turns = await _list_turns(client, session)
    prompt = next((_quote_prompt(turn) for turn in turns if turn.info.id == answer.message_id), None)
    verb = "redo" if redo else "undo"
    heading = f"There is nothing to {verb} in these files."
    if prompt is not None:
        heading = f"{_conjugate(verb, dry_run=dry_run)} in these files: {prompt}"
    # Without a turn nothing would be done, so there is no "would" in the lines either.
    words, is_conditional = REDO_WORDS if redo else UNDO_WORDS, dry_run and prompt is not None
    return _report_outcome(answer.outcome, heading, words, say, warn, dry_run=is_conditional)


def _conjugate(verb: str, *, dry_run: bool) -> str:
    return f"Would {verb}" if dry_run else {"undo": "Undone", "redo": "Redone"}[verb]


async def _list_turns(client: Client, session: Session) -> list[MessageWithParts]:
    """Return the turns of a session, each as the user message that it begins with."""
    messages = await client.call(SESSION_MESSAGES, ListMessages(session_id=session.id))
    return [message for message in messages if isinstance(message.info, UserMessage)]


def _find_first_undone(turns: list[MessageWithParts], session: Session) -> int:
    """Return the index of the first undone turn, or the number of turns if none is undone."""
    point = session.revert.message_id if session.revert is not None else None
    return next((index for index, turn in enumerate(turns) if turn.info.id == point), len(turns))


def _quote_prompt(turn: MessageWithParts) -> str:
    if any(isinstance(part, CompactionPart) for part in turn.parts):
        return "the compaction of the conversation"
    text = next((part.text for part in turn.parts if isinstance(part, TextPart) and not part.synthetic), "")
    return f"“{one_line(text, MAX_PROMPT)}”" if text else "the last step"


def _report_outcome(
    outcome: FilesOutcome | None,
    heading: str,
    words: dict[str, str],
    say: ShowLine,
    warn: ShowLine,
    *,
    dry_run: bool,
) -> int:
    """Show the outcome for each file; return 1 if some were skipped, else 0."""
    if outcome is None:
        return 0
    say(heading)
    would = "would be " if dry_run else ""
    for line in list_done_lines(outcome.done, words, escape_controls):
        say(f"  {would}{line}")
    for line in list_conflict_lines(outcome.conflicts, escape_controls):
        warn(f"  {would}{line}")
    if not outcome.done and not outcome.conflicts:
        say(f"  no file {'has' if dry_run else 'had'} to change")
    return 1 if outcome.conflicts else 0
