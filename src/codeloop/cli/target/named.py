"""Sessions as a person names them, and copies of them."""

from contextlib import suppress

from codeloop.cli.exit_codes import UsageProblem
from codeloop.client.client import Client
from codeloop.kit.suggest import MOST, meant, near
from codeloop.kit.terminal_text import one_line
from codeloop.schema.api.session_inputs import MessageWithParts
from codeloop.schema.api.session_requests import ForkSession, ListAllSessions, ListMessages, ListSessions, SessionId
from codeloop.schema.errors import OperationError
from codeloop.schema.ids import is_id
from codeloop.schema.message import Session, UserMessage
from codeloop.schema.operation import (
    PATH_GET,
    SESSION_EVERYTHING,
    SESSION_FORK,
    SESSION_GET,
    SESSION_LIST,
    SESSION_MESSAGES,
    NoArguments,
)
from codeloop.schema.part import CompactionPart, TextPart

EVERY = 100_000
ID_EDITS = 2
"""More, and ids of the same day are near each other by chance."""


async def find(client: Client, wanted: str | None) -> Session:
    """Return the session that an id, the start or end of one, or a slug names; without a name, the directory's latest.

    Raises UsageProblem when there is none, or more than one.
    """
    if wanted is None:
        place = await client.call(PATH_GET, NoArguments())
        return await latest(client, place.directory)
    if is_id(wanted, "ses"):
        with suppress(OperationError):
            return await client.call(SESSION_GET, SessionId(session_id=wanted))
    sessions = await client.call(SESSION_LIST, ListSessions(scope="project", limit=EVERY))
    found = _meant(sessions, wanted)
    if not found:
        what = f"There is no session {wanted} in this project."
        elsewhere = _meant(await client.call(SESSION_EVERYTHING, ListAllSessions(limit=EVERY)), wanted)
        if elsewhere:
            raise UsageProblem(f"{what} {elsewhere[0].id} belongs to {elsewhere[0].directory}: go there.")
        raise UsageProblem(f"{what}{_suggested(sessions, wanted)} `codeloop session list` shows what there is.")
    if len(found) > 1:
        names = ", ".join(session.id for session in found[:3])
        raise UsageProblem(f"{wanted} may mean {len(found)} sessions: {names}. Give more of the id.")
    return found[0]


async def find_here(client: Client, wanted: str | None) -> Session:
    """As `find`, for what changes files. Raises UsageProblem also when the session belongs to another directory."""
    found = await find(client, wanted)
    place = await client.call(PATH_GET, NoArguments())
    if found.directory != place.directory:
        raise UsageProblem(
            f"Session {found.id} belongs to {found.directory}, not to {place.directory}. Nothing was changed: go there."
        )
    return found


async def latest(client: Client, directory: str) -> Session:
    """Return the newest session of a directory; one that is archived does not count.

    Raises UsageProblem when there is none; it names the one that may be meant elsewhere.
    """
    sessions = await client.call(SESSION_LIST, ListSessions(scope="project", roots=True, limit=EVERY))
    kept = [session for session in sessions if not session.time.archived]
    found = next((session for session in kept if session.directory == directory), None)
    if found is not None:
        return found
    what = f"There is no session in this directory, {directory}."
    if any(session.directory == directory for session in sessions):
        raise UsageProblem(f"{what} Those that are archived: `codeloop session list --archived`.")
    if not kept:
        raise UsageProblem(f"{what} `codeloop run MESSAGE` starts one.")
    title = one_line(kept[0].title, 50)
    raise UsageProblem(f"{what} The latest one, {kept[0].id}, “{title}”, belongs to {kept[0].directory}.")


async def fork(client: Client, session: Session, at: str | None) -> Session:
    """Copy a session up to a message, named as `message_at` does. Raises UsageProblem when there is no such message."""
    if at is None:
        return await client.call(SESSION_FORK, ForkSession(session_id=session.id))
    found = await message_at(client, session, at)
    return await client.call(SESSION_FORK, ForkSession(session_id=session.id, message_id=found.info.id))


async def message_at(client: Client, session: Session, at: str) -> MessageWithParts:
    """Return a message of a session: by its id (or the end of it), or by the number of a prompt, from 1 on.

    Raises UsageProblem when there is none.
    """
    messages = await client.call(SESSION_MESSAGES, ListMessages(session_id=session.id))
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
    """Return whether a session is the root one or one of its subagents'."""
    while session_id != root_id:
        session = await client.call(SESSION_GET, SessionId(session_id=session_id))
        if session.parent_id is None:
            return False
        session_id = session.parent_id
    return True


def _meant(sessions: list[Session], wanted: str) -> list[Session]:
    """Return the sessions that a name means: an id or a slug, else the start or end of an id."""
    exact = [each for each in sessions if wanted in {each.id, each.slug}]
    if exact or len(wanted) < 4:
        return exact
    return [each for each in sessions if each.id.startswith(wanted) or each.id.endswith(wanted)]


def _suggested(sessions: list[Session], wanted: str) -> str:
    """Return a question for the sessions whose id, slug or title is near in spelling; titles name no session."""
    by_id = {each.id: each for each in sessions}
    by_name = {name.lower(): each for each in reversed(sessions) for name in (each.title, each.slug)}
    close = [by_id[name] for name in near(wanted, by_id, most_edits=ID_EDITS)]
    close += [by_name[name] for name in near(wanted, by_name)]
    return meant(list(dict.fromkeys(each.id for each in close))[:MOST])


def _is_prompt(message: MessageWithParts) -> bool:
    """Return whether a person said this: not what asks for a summary, and not what the program added."""
    said = (part for part in message.parts if not (isinstance(part, TextPart) and part.synthetic))
    return isinstance(message.info, UserMessage) and any(not isinstance(part, CompactionPart) for part in said)
