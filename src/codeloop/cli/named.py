"""Sessions as a person names them, and copies of them."""

from contextlib import suppress
from typing import Any

from codeloop.cli.exits import UsageProblem
from codeloop.client.client import Client
from codeloop.schema.errors import OperationError
from codeloop.schema.ids import is_id
from codeloop.schema.message import Session, UserMessage
from codeloop.schema.operation import SESSION_FORK, SESSION_GET, SESSION_LIST, SESSION_MESSAGES
from codeloop.schema.part import CompactionPart, TextPart
from codeloop.schema.prompts import MessageWithParts


async def find(client: Client, wanted: str | None) -> Session:
    """Give the session that an id, the start or end of one, or a slug names; without a name, the latest.

    Raises UsageProblem when there is none, or more than one.
    """
    if wanted is not None and is_id(wanted, "ses"):
        with suppress(OperationError):
            return await client.call(SESSION_GET, session_id=wanted)
    sessions: list[Session] = await client.call(SESSION_LIST, roots=wanted is None, limit=100_000)
    found = [session for session in sessions if wanted is None or _is_meant(session, wanted)]
    if not found:
        what = "There is no session yet." if wanted is None else f"There is no session {wanted}."
        raise UsageProblem(f"{what} `codeloop session list` shows what there is.")
    if wanted is not None and len(found) > 1:
        names = ", ".join(session.id for session in found[:3])
        raise UsageProblem(f"{wanted} may mean {len(found)} sessions: {names}. Give more of the id.")
    return found[0]


async def fork(client: Client, session: Session, at: str | None) -> Session:
    """Copy a session up to a message, named as `message_at` does. Raises UsageProblem when there is no such message."""
    if at is None:
        return await client.call(SESSION_FORK, session_id=session.id)
    found = await message_at(client, session, at)
    return await client.call(SESSION_FORK, session_id=session.id, message_id=found.info.id)


async def message_at(client: Client, session: Session, at: str) -> MessageWithParts:
    """Give a message of a session: by its id (or the end of it), or by the number of a prompt, from 1 on.

    Raises UsageProblem when there is none.
    """
    messages: list[MessageWithParts] = await client.call(SESSION_MESSAGES, session_id=session.id)
    if at.isdecimal() and len(at) < 8:
        prompts = [message for message in messages if _is_prompt(message)]
        found = prompts[int(at) - 1 : int(at)] if int(at) else []
        there = f"It has {len(prompts)} prompts."
    else:
        found = [m for m in messages if m.info.id == at or (len(at) >= 4 and m.info.id.endswith(at))]
        there = f"`codeloop export {session.id}` names them."
    if len(found) != 1:
        raise UsageProblem(f"There is no message {at} in {session.id}. {there}")
    return found[0]


async def belongs(client: Client, session_id: str, root_id: str) -> bool:
    """Tell whether a session is the root one or one of its subagents'."""
    while session_id != root_id:
        session: Session = await client.call(SESSION_GET, session_id=session_id)
        if session.parent_id is None:
            return False
        session_id = session.parent_id
    return True


def _is_prompt(message: MessageWithParts) -> bool:
    """Tell whether a person said this: not what asks for a summary, and not what the program added."""
    said = (part for part in message.parts if not (isinstance(part, TextPart) and part.synthetic))
    return isinstance(message.info, UserMessage) and any(not isinstance(part, CompactionPart) for part in said)


def _is_meant(session: Session, wanted: str) -> bool:
    names: list[Any] = [session.id, session.slug]
    return wanted in names or (len(wanted) >= 4 and (session.id.startswith(wanted) or session.id.endswith(wanted)))
