"""Prompts that wait: stored while a turn runs, and not yet part of any request. Derived, never kept. Pure."""

from codeloop.schema.message import AssistantMessage, UserMessage
from codeloop.store.conversation import Conversation, Entry


def queued(view: Conversation) -> tuple[Entry, ...]:
    """Return the prompts that no answer has taken up, oldest first: those behind the one that the last answer is for.

    A request holds all that was stored when its answer began, so what came later waits for the next step. This says
    nothing of whether a turn runs that will take them up.
    """
    entries = view.entries
    parent = next((e.info.parent_id for e in reversed(entries) if isinstance(e.info, AssistantMessage)), None)
    waiting: list[Entry] = []
    for entry in reversed(entries):
        if entry.info.id == parent:
            break
        if isinstance(entry.info, UserMessage):
            waiting.append(entry)
    return tuple(reversed(waiting))
