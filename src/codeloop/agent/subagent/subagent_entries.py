"""The messages of the subagents of a session: of all that its calls, and theirs, have started."""

from bisect import bisect_right
from collections.abc import Iterator

from codeloop.store.conversation import Conversation, Entry, find_undo_start
from codeloop.store.store import Store

MAX_SUBAGENTS = 1_000
"""The most subagents that are included for each session that started some."""


def list_positioned_entries(store: Store, conversation: Conversation) -> list[tuple[int, Entry]]:
    """Return the messages of a session and its subagents, each with the index of its message in the session.

    A subagent's message gets the index of the message that was the session's latest when it began. Oldest first, undone
    ones included.
    """
    creation_times = [entry.info.time.created for entry in conversation.entries]
    subagent_entries = sorted(
        list_subagent_entries(store, conversation.session.id), key=lambda entry: entry.info.time.created
    )
    positioned_entries = [
        (max(bisect_right(creation_times, entry.info.time.created) - 1, 0), entry) for entry in subagent_entries
    ]
    # The sort is stable, so a message of the session comes before those of its subagents.
    return sorted((*enumerate(conversation.entries), *positioned_entries), key=lambda positioned: positioned[0])


def list_subagent_entries(store: Store, session_id: str) -> Iterator[Entry]:
    """Yield the messages of all subagents below a session, without undone ones."""
    waiting = [session_id]
    while waiting:
        for child in store.list_sessions(parent=waiting.pop(), limit=MAX_SUBAGENTS):
            waiting.append(child.id)
            conversation = store.read_conversation(child.id)
            point = conversation.session.revert
            end = find_undo_start(conversation, point.message_id, point.part_id) if point is not None else None
            yield from conversation.entries[:end]
