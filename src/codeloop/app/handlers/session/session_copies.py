"""Copies of sessions, as forks and imports make them: their ids, their time, their sums,
and the events to store.
"""

from collections.abc import Callable, Sequence

from codeloop.schema.event import (
    StoredEvent,
    make_message_updated,
    make_part_updated,
    make_session_created,
)
from codeloop.schema.ids import new_id, now_ms
from codeloop.schema.message import NO_TOKENS, AssistantMessage, Message, Session, Tokens
from codeloop.schema.part import CompactionPart, Part, ToolPart, ToolStateCompleted
from codeloop.schema.wire import replace
from codeloop.store.conversation import Entry


def choose_copy_time(entries: Sequence[Entry]) -> int:
    """Return the creation time of a copy (ms since the epoch),
    which is later than the times of all its messages.

    Reports of usage recognise copied messages by this, and don't count them twice.
    """
    return max(now_ms(), *(entry.info.time.created + 1 for entry in entries), 0)


def sum_usage(entries: Sequence[Entry]) -> tuple[float, Tokens]:
    """Return the dollars and tokens of all answers."""
    cost, tokens = 0.0, NO_TOKENS
    for entry in entries:
        if isinstance(entry.info, AssistantMessage):
            cost, tokens = cost + entry.info.cost, tokens.plus(entry.info.all_tokens)
    return cost, tokens


def make_events(session: Session, entries: Sequence[Entry]) -> list[StoredEvent]:
    """Return the events that make a session with its messages."""
    events: list[StoredEvent] = [make_session_created(session)]
    for entry in entries:
        events.append(make_message_updated(entry.info))
        events += (make_part_updated(part) for part in entry.parts)
    return events


def give_new_ids(entries: Sequence[Entry], session_id: str) -> list[Entry]:
    """Return the entries with new ids, in the same order;
    references between messages are replaced as well.
    """
    ids = {entry.info.id: new_id("msg") for entry in entries}
    return [
        replace_ids(entry, session_id, lambda old: ids.get(old, old), lambda _: new_id("prt"))
        for entry in entries
    ]


def replace_ids(
    entry: Entry,
    session_id: str,
    map_message_id: Callable[[str], str],
    map_part_id: Callable[[str], str],
) -> Entry:
    """Return an entry for a session, with the ids of message and parts replaced by
    the results of two functions.
    """
    new_message_id = map_message_id(entry.info.id)
    info: Message = replace(entry.info, id=new_message_id, session_id=session_id)
    if isinstance(info, AssistantMessage):
        info = replace(info, parent_id=map_message_id(info.parent_id))
    parts = (
        _replace_part_ids(part, session_id, new_message_id, map_message_id, map_part_id)
        for part in entry.parts
    )
    return Entry(info, tuple(parts))


def _replace_part_ids(
    part: Part,
    session_id: str,
    message_id: str,
    map_message_id: Callable[[str], str],
    map_part_id: Callable[[str], str],
) -> Part:
    part = replace(part, id=map_part_id(part.id), session_id=session_id, message_id=message_id)
    match part:
        case CompactionPart(tail_start_id=str(tail)):
            return replace(part, tail_start_id=map_message_id(tail))
        case ToolPart(state=ToolStateCompleted(attachments=list(files)) as state):
            files = [replace(file, session_id=session_id, message_id=message_id) for file in files]
            return replace(part, state=replace(state, attachments=files))
        case _:
            return part
