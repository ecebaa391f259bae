"""Forks sessions: copies messages under new ids into a new session."""

import re
from collections.abc import Callable, Sequence
from itertools import takewhile

from codeloop import __version__
from codeloop.agent.moves import is_open
from codeloop.agent.subagent.ceilings import with_ceilings
from codeloop.app.handlers import handles
from codeloop.app.project import Project
from codeloop.kit.slugs import slug
from codeloop.schema import operation
from codeloop.schema.api.session_requests import ForkSession
from codeloop.schema.errors import OperationError
from codeloop.schema.event import StoredEvent, message_updated, part_updated, session_created
from codeloop.schema.ids import new_id, now_ms
from codeloop.schema.message import FORK, NO_TOKENS, AssistantMessage, Message, Session, SessionTime, Tokens
from codeloop.schema.part import CompactionPart, Part, ToolPart, ToolStateCompleted
from codeloop.schema.permission import PROFILE
from codeloop.schema.wire import JSON, replace
from codeloop.store.conversation import Entry

_NUMBERED_TITLE = re.compile(r"(.*) \(fork #(\d+)\)", re.DOTALL)


@handles(operation.SESSION_FORK)
async def fork(project: Project, args: ForkSession) -> Session:
    """Copy a session, up to a message that is left out: new ids, original times, no parent, one transaction.

    It may do no more than the session that it is a copy of, also when that is a subagent's.
    The copy belongs to the directory of `project`, which is where it goes on. What is undone, and what a turn is still
    working on, is not copied. Raises OperationError (NotFoundError).
    """
    view = project.store.conversation(args.session_id)
    session = view.session
    ends = {args.message_id, session.revert.message_id if session.revert else None} - {None}
    if args.message_id is not None and all(entry.info.id != args.message_id for entry in view.entries):
        raise OperationError("NotFoundError", f"Message not found: {args.message_id}")
    entries = tuple(takewhile(lambda entry: entry.info.id not in ends and not is_open(entry), view.entries))
    cost, tokens = sums(entries)
    now = choose_copy_time(entries)
    place = project.settings.project_root
    copied_session = replace(
        session,
        id=new_id("ses"),
        slug=slug(),
        directory=str(place.directory),
        path=place.path,
        title=_make_title(project, session.title),
        version=__version__,
        parent_id=None,
        metadata={**(_metadata(project, session) or {}), FORK: _origin(args)},
        cost=cost,
        tokens=tokens,
        summary=None,
        share=None,
        revert=None,
        time=SessionTime(created=now, updated=now),
    )
    project.store.append(*make_events(copied_session, give_new_ids(entries, copied_session.id)))
    facts = project.store.facts.of(session.id) if copied_session.directory == session.directory else None
    if facts is not None:  # the copy's requests begin with the same bytes
        project.store.facts.keep(copied_session.id, facts)
    return copied_session


def _metadata(project: Project, session: Session) -> JSON | None:
    """Return the metadata of a copy: with what the sessions above forbid, since it has none above itself."""
    engine = project.engine
    data = with_ceilings(session.metadata, engine.ceilings(session.id))
    return data if session.parent_id is None else {**(data or {}), PROFILE: engine.profile(session.id)}


def _origin(args: ForkSession) -> JSON:
    """Return where a copy begins, as its metadata has it."""
    return {"sessionID": args.session_id, **({"messageID": args.message_id} if args.message_id else {})}


def _make_title(project: Project, title: str) -> str:
    """Return the next free title of a copy: `name (fork #1)`, also for the copy of a copy."""
    match = _NUMBERED_TITLE.fullmatch(title)
    start = f"{match[1] if match else title} (fork #"
    matches = (_NUMBERED_TITLE.fullmatch(each) for each in project.store.queries.titles(start))
    used = [int(each[2]) for each in matches if each]
    return f"{start}{max(used, default=0) + 1})"


def choose_copy_time(entries: Sequence[Entry]) -> int:
    """Return when a copy is made (ms since the epoch): later than all that it holds, so sums know what is copied."""
    return max(now_ms(), *(entry.info.time.created + 1 for entry in entries), 0)


def sums(entries: Sequence[Entry]) -> tuple[float, Tokens]:
    """Return dollars and tokens of the answers."""
    cost, tokens = 0.0, NO_TOKENS
    for entry in entries:
        if isinstance(entry.info, AssistantMessage):
            cost, tokens = cost + entry.info.cost, tokens.plus(entry.info.all_tokens)
    return cost, tokens


def make_events(session: Session, entries: Sequence[Entry]) -> list[StoredEvent]:
    """Return the events that make a session with its messages."""
    events: list[StoredEvent] = [session_created(session)]
    for entry in entries:
        events.append(message_updated(entry.info))
        events += (part_updated(part) for part in entry.parts)
    return events


def give_new_ids(entries: Sequence[Entry], session_id: str) -> list[Entry]:
    """Return the entries with new ids, in the same order; what they say of each other holds among the new ones."""
    ids = {entry.info.id: new_id("msg") for entry in entries}
    return [replace_ids(entry, session_id, lambda old: ids.get(old, old), lambda _: new_id("prt")) for entry in entries]


def replace_ids(
    entry: Entry, session_id: str, message_id: Callable[[str], str], part_id: Callable[[str], str]
) -> Entry:
    """Return an entry as one of a session, its ids put through the two functions."""
    own = message_id(entry.info.id)
    info: Message = replace(entry.info, id=own, session_id=session_id)
    if isinstance(info, AssistantMessage):
        info = replace(info, parent_id=message_id(info.parent_id))
    return Entry(info, tuple(_replace_part_ids(part, session_id, own, message_id, part_id) for part in entry.parts))


def _replace_part_ids(
    part: Part, session_id: str, own: str, message_id: Callable[[str], str], part_id: Callable[[str], str]
) -> Part:
    part = replace(part, id=part_id(part.id), session_id=session_id, message_id=own)
    match part:
        case CompactionPart(tail_start_id=str(tail)):
            return replace(part, tail_start_id=message_id(tail))
        case ToolPart(state=ToolStateCompleted(attachments=list(files)) as state):
            files = [replace(file, session_id=session_id, message_id=own) for file in files]
            return replace(part, state=replace(state, attachments=files))
        case _:
            return part
