"""Taking the last turn of a session back, and forward again, and telling what became of the files."""

from collections.abc import Callable

import click

from codeloop.cli.exits import ERROR, UsageProblem
from codeloop.client.client import Client
from codeloop.kit.plain import inert, one_line
from codeloop.schema.message import Session, UserMessage
from codeloop.schema.operation import SESSION_MESSAGES, SESSION_REVERT, SESSION_UNREVERT
from codeloop.schema.part import TextPart
from codeloop.schema.prompts import MessageWithParts
from codeloop.schema.sessions import RevertedSession

SHOWN = 60
Say = Callable[[str], object]


def _warn(text: str) -> None:
    click.echo(text, err=True)


async def undo_last(
    client: Client, session: Session, *, dry_run: bool, say: Say = click.echo, warn: Say = _warn
) -> int:
    """Undo the last turn that is not undone yet; gives the exit code. Raises UsageProblem when there is none."""
    turns = await _turns(client, session)
    is_begun = session.revert is not None and session.revert.diff is None  # and was broken off: it is finished
    before = turns[: _position(turns, session) + is_begun]
    if not before:
        raise UsageProblem(f"There is nothing to undo in {session.id}.")
    last = before[-1]
    answer: RevertedSession = await client.call(
        SESSION_REVERT, session_id=session.id, message_id=last.info.id, dry_run=dry_run
    )
    return _tell(answer, "Would undo" if dry_run else "Undone", _prompt(last), "put back", (say, warn))


async def redo_last(
    client: Client, session: Session, *, dry_run: bool, say: Say = click.echo, warn: Say = _warn
) -> int:
    """Take the last undo back; gives the exit code. Raises UsageProblem when nothing is undone."""
    if session.revert is None:
        raise UsageProblem(f"Nothing is undone in {session.id}.")
    turns = await _turns(client, session)
    position = _position(turns, session)
    what = _prompt(turns[position]) if position < len(turns) else "the last step"
    if position + 1 < len(turns):
        later = turns[position + 1].info.id
        answer: RevertedSession = await client.call(
            SESSION_REVERT, session_id=session.id, message_id=later, dry_run=dry_run
        )
    else:
        answer = await client.call(SESSION_UNREVERT, session_id=session.id, dry_run=dry_run)
    return _tell(answer, "Would redo" if dry_run else "Redone", what, "restored", (say, warn))


async def _turns(client: Client, session: Session) -> list[MessageWithParts]:
    messages: list[MessageWithParts] = await client.call(SESSION_MESSAGES, session_id=session.id)
    return [message for message in messages if isinstance(message.info, UserMessage)]


def _position(turns: list[MessageWithParts], session: Session) -> int:
    """Give where a session stands among its turns: those from there on are undone."""
    point = session.revert.message_id if session.revert is not None else None
    return next((index for index, turn in enumerate(turns) if turn.info.id == point), len(turns))


def _prompt(turn: MessageWithParts) -> str:
    texts = (part.text for part in turn.parts if isinstance(part, TextPart) and not part.synthetic)
    return f"“{one_line(next(texts, ''), SHOWN)}”"


def _tell(answer: RevertedSession, done: str, what: str, verb: str, sayers: tuple[Say, Say]) -> int:
    """Tell what became of the files; gives 1 when some were left alone."""
    say, warn = sayers
    outcome = answer.outcome
    if outcome is None:
        return 0
    say(f"{done}: {what}")
    for path in outcome.restored:
        say(f"  {verb}  {inert(path)}")
    for conflict in outcome.conflicts:
        warn(f"  left alone  {inert(conflict.path)}: {inert(conflict.reason)}")
    if not outcome.restored and not outcome.conflicts:
        say("  no file had to change")
    return ERROR if outcome.conflicts else 0
