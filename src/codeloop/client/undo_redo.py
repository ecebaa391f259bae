"""Undoes and redoes turns of a session, and reports the outcome for each file,
for every user interface.
"""

from collections.abc import Callable, Iterator, Sequence

from msgspec import Struct

from codeloop.client.client import Client
from codeloop.kit.text.terminal_text import escape_controls, one_line
from codeloop.schema.api.session_inputs import MessageWithParts
from codeloop.schema.api.session_messages import SESSION_MESSAGES, ListMessages
from codeloop.schema.api.session_undo import (
    SESSION_REVERT,
    SESSION_UNREVERT,
    UNDO_FILES,
    FileConflict,
    FileDone,
    FilesOutcome,
    RevertSession,
    UndoFiles,
    UnrevertSession,
)
from codeloop.schema.errors import UsageProblem
from codeloop.schema.message import Session
from codeloop.schema.part import TextPart
from codeloop.schema.turns import begins_turn

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


def list_done_lines(
    done: Sequence[FileDone], words: dict[str, str], make_safe: Callable[[str], str]
) -> Iterator[str]:
    """Yield a line for each file that is restored.

    `words`: UNDO_WORDS or REDO_WORDS. `make_safe` escapes a text for the screen.
    """
    for each in done:
        source = f"{make_safe(each.source)} -> " if each.source else ""
        yield f"{words[each.what]}  {source}{make_safe(each.path)}"


def list_conflict_lines(
    conflicts: Sequence[FileConflict], make_safe: Callable[[str], str]
) -> Iterator[str]:
    """Yield a line for each file that is left as it is, with the reason."""
    for each in conflicts:
        yield f"skipped  {make_safe(each.path)}: {make_safe(each.reason)}"


async def undo_last(
    client: Client, session: Session, *, dry_run: bool, say: ShowLine, warn: ShowLine
) -> int:
    """Undo the last turn that is not undone yet; return 1 if a file was left as it is, else 0.

    Raises UsageProblem if there is no such turn.
    """
    turns = await _list_turns(client, session)
    # An undo that was interrupted has stored no diff yet: it is completed,
    # instead of undoing one more turn.
    is_begun = session.revert is not None and session.revert.diff is None
    undoable_turns = [turn for turn in turns if not turn.is_undone]
    last = turns[len(undoable_turns)] if is_begun and len(undoable_turns) < len(turns) else None
    if last is None:
        if not undoable_turns:
            raise UsageProblem(f"There is nothing to undo in {session.id}.")
        last = undoable_turns[-1]
    answer = await client.call(
        SESSION_REVERT,
        RevertSession(session_id=session.id, message_id=last.prompt_id, dry_run=dry_run),
    )
    heading = f"{_conjugate('undo', answer.outcome, dry_run=dry_run)}: {last.quoted_prompt}"
    return _report_outcome(answer.outcome, heading, UNDO_WORDS, say, warn, dry_run=dry_run)


async def redo_last(
    client: Client, session: Session, *, dry_run: bool, say: ShowLine, warn: ShowLine
) -> int:
    """Redo the last turn that was undone; return 1 if a file was left as it is, else 0.

    Raises UsageProblem if there is no such turn.
    """
    if session.revert is None:
        raise UsageProblem(f"There is nothing to redo in {session.id}.")
    turns = await _list_turns(client, session)
    undone_turns = [turn for turn in turns if turn.is_undone]
    prompt = undone_turns[0].quoted_prompt if undone_turns else "the last step"
    if len(undone_turns) > 1:
        # A redo moves the point of the undo one turn forward;
        # past the last turn nothing is undone any more.
        later = undone_turns[1].prompt_id
        answer = await client.call(
            SESSION_REVERT, RevertSession(session_id=session.id, message_id=later, dry_run=dry_run)
        )
    else:
        answer = await client.call(
            SESSION_UNREVERT, UnrevertSession(session_id=session.id, dry_run=dry_run)
        )
    heading = f"{_conjugate('redo', answer.outcome, dry_run=dry_run)}: {prompt}"
    return _report_outcome(answer.outcome, heading, REDO_WORDS, say, warn, dry_run=dry_run)


async def undo_files(
    client: Client,
    session: Session,
    files: Sequence[str],
    *,
    redo: bool,
    dry_run: bool,
    say: ShowLine,
    warn: ShowLine,
) -> int:
    """Undo or redo the changes of the last turn to some files;
    return 1 if a file was left as it is, else 0.
    """
    request = UndoFiles(session_id=session.id, files=list(files), redo=redo, dry_run=dry_run)
    answer = await client.call(UNDO_FILES, request)
    turns = await _list_turns(client, session)
    prompt = next(
        (turn.quoted_prompt for turn in turns if turn.prompt_id == answer.message_id), None
    )
    verb = "redo" if redo else "undo"
    heading = f"There is nothing to {verb} in these files."
    if prompt is not None:
        heading = f"{_conjugate(verb, answer.outcome, dry_run=dry_run)} in these files: {prompt}"
    # Without a turn nothing would be done, so there is no "would" in the lines either.
    words, is_conditional = REDO_WORDS if redo else UNDO_WORDS, dry_run and prompt is not None
    return _report_outcome(answer.outcome, heading, words, say, warn, dry_run=is_conditional)


def _conjugate(verb: str, outcome: FilesOutcome | None, *, dry_run: bool) -> str:
    """Return the word for what was done: where a file was left as it is, it is done in part."""
    if dry_run:
        return f"Would {verb}"
    done = {"undo": "Undone", "redo": "Redone"}[verb]
    return f"{done} in part" if outcome is not None and outcome.conflicts else done


class _Turn(Struct, frozen=True):
    """A turn of the user: the id of its prompt, the prompt as it is shown,
    and whether the turn is undone.
    """

    prompt_id: str
    quoted_prompt: str
    is_undone: bool


async def _list_turns(client: Client, session: Session) -> list[_Turn]:
    """Return the turns of a session: each begins with a prompt of the user,
    and holds all up to the next one.
    """
    messages = await client.call(SESSION_MESSAGES, ListMessages(session_id=session.id))
    point = session.revert.message_id if session.revert is not None else None
    first_undone = next(
        (index for index, each in enumerate(messages) if each.info.id == point), len(messages)
    )
    return [
        _Turn(message.info.id, _quote_prompt(message), index >= first_undone)
        for index, message in enumerate(messages)
        if begins_turn(message.info, message.parts)
    ]


def _quote_prompt(turn: MessageWithParts) -> str:
    text = next(
        (part.text for part in turn.parts if isinstance(part, TextPart) and not part.synthetic), ""
    )
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
