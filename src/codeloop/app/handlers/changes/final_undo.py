"""Makes an undo final: with a new prompt after it, nothing can be redone,
and the undone messages are deleted.
"""

from codeloop.agent.answer.turn_diffs import add_diffs, list_diffs, list_files
from codeloop.schema.event import MessageGone, MessageRemoved, StoredEvent, make_session_updated
from codeloop.schema.ids import now_ms
from codeloop.schema.message import NO_TOKENS, AssistantMessage, Revert, Session
from codeloop.schema.wire import replace
from codeloop.store.conversation import Conversation, find_undo_start
from codeloop.store.store import Store
from codeloop.store.subagents import list_positioned_entries


def make_discard_events(store: Store, session_id: str) -> list[StoredEvent]:
    """Return the events that make an undo final when a new prompt is stored: the
    undone messages are deleted.

    Their usage leaves the session's sums. Sessions of subagents get an undo of their own,
    so their work stays undone.
    """
    session = store.get_session(session_id)
    point = session.revert
    if point is None:
        return []
    conversation = store.read_conversation(session_id)
    start = find_undo_start(conversation, point.message_id, point.part_id)
    entries = conversation.entries[start:] if start is not None else ()
    kept_files = list_files(entry.info for entry in conversation.entries[:start])
    cost, tokens = session.cost or 0.0, session.tokens or NO_TOKENS
    for entry in entries:
        if isinstance(entry.info, AssistantMessage):
            cost, tokens = max(cost - entry.info.cost, 0.0), tokens.plus(entry.info.all_tokens, -1)
    if session.summary is not None:
        session = add_diffs(
            session, [diff for entry in entries for diff in list_diffs(entry.info)], kept_files, -1
        )
    info = replace(
        session, revert=None, cost=cost, tokens=tokens, time=replace(session.time, updated=now_ms())
    )
    removed = (MessageGone(session_id=session.id, message_id=entry.info.id) for entry in entries)
    return [
        *(MessageRemoved(properties=each) for each in removed),
        make_session_updated(info),
        *(
            make_session_updated(each)
            for each in _undo_subagents(store, conversation, start, point)
        ),
    ]


def _undo_subagents(
    store: Store, conversation: Conversation, start: int | None, point: Revert
) -> list[Session]:
    """Return the sessions of the subagents that worked since the undo's message,
    each with an undo of its own.
    """
    sessions: dict[str, Session] = {}
    for index, entry in list_positioned_entries(store, conversation):
        child = entry.info.session_id
        if (
            start is not None
            and index >= start
            and child != conversation.session.id
            and child not in sessions
        ):
            revert = Revert(message_id=entry.info.id, snapshot=point.snapshot, diff="")
            sessions[child] = replace(store.get_session(child), revert=revert)
    return list(sessions.values())
