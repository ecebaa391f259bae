"""A session with its messages and parts, as it was read: what can be found out from them,
and how it goes on.
"""

from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from codeloop.schema.ids import new_id, now_ms
from codeloop.schema.message import AssistantMessage, Message, Session, UserMessage, UserTime
from codeloop.schema.part import CompactionPart, Part, TextPart
from codeloop.schema.turns import begins_turn
from codeloop.schema.wire import replace


class Entry(Struct, frozen=True):
    """A message and its parts in order. Until it changes, it is the same object."""

    info: Message
    parts: tuple[Part, ...] = ()


class Conversation(Struct, frozen=True):
    """A session and its entries, oldest first.

    `newest_prompt`: the index of the newest prompt, if it is known already;
    read it with `find_newest_prompt`.
    """

    session: Session
    entries: tuple[Entry, ...]
    newest_prompt: int | None = None

    def find_newest_prompt(self) -> int | None:
        """Return the index of the newest prompt; None: there is none."""
        return (
            find_newest_prompt(self.entries) if self.newest_prompt is None else self.newest_prompt
        )

    def find_entry(self, message_id: str) -> Entry | None:
        """Return a message with its parts; None: there is no such message.
        The newest are found fastest.
        """
        return next(
            (entry for entry in reversed(self.entries) if entry.info.id == message_id), None
        )

    def find_parts(self, message_id: str) -> tuple[Part, ...]:
        """Return the parts of a message; empty: there is no such message."""
        entry = self.find_entry(message_id)
        return entry.parts if entry is not None else ()

    def find_agent(self, message_id: str) -> str:
        """Return the name of a message's agent; "": there is no such message."""
        entry = self.find_entry(message_id)
        return entry.info.agent if entry is not None else ""


def find_newest_prompt(entries: Sequence[Entry]) -> int | None:
    """Return the index of the newest prompt; None: there is none."""
    return next(
        (n for n in range(len(entries) - 1, -1, -1) if isinstance(entries[n].info, UserMessage)),
        None,
    )


def is_summary(info: Message) -> bool:
    """Return whether a message is a completed summary of the conversation before it."""
    return isinstance(info, AssistantMessage) and bool(
        info.summary and info.time.completed and info.error is None
    )


def find_context_start(entries: Sequence[Entry]) -> int:
    """Return the index of the first entry that requests show in full.

    It is 0, or the first that the last compaction kept;
    if it kept none, the prompt that the summary answers.
    """
    index = next((n for n in range(len(entries) - 1, 0, -1) if is_summary(entries[n].info)), None)
    if index is None:
        return 0
    compaction_part = next(
        (part for part in entries[index - 1].parts if isinstance(part, CompactionPart)), None
    )
    tail_start_id = compaction_part.tail_start_id if compaction_part else None
    return next((n for n, entry in enumerate(entries) if entry.info.id == tail_start_id), index - 1)


def find_first_prompt(entries: Sequence[Entry]) -> int | None:
    """Return the index of the prompt of the user that began the newest turn; None: there is none.

    Prompts that came while it ran do not begin it.
    """
    first: int | None = None
    for index in range(len(entries) - 1, -1, -1):
        info = entries[index].info
        if isinstance(info, AssistantMessage):
            if first is not None and is_final(info):
                break
        elif begins_turn(info, entries[index].parts):
            first = index
    return first


def list_pinned_texts(entry: Entry) -> tuple[TextPart, ...]:
    """Return the texts of a message that the user has pinned: a summary keeps them verbatim."""
    texts = (part for part in entry.parts if isinstance(part, TextPart))
    return tuple(part for part in texts if part.metadata and part.metadata.get("pinned") is True)


def is_final(info: AssistantMessage) -> bool:
    """Return whether an answer ended its turn."""
    is_over = info.error is not None or info.finish not in {"tool-calls", "cut"}
    return info.time.completed is not None and not info.summary and is_over


def find_last_text(entries: Sequence[Entry]) -> str:
    """Return the agent's last text; empty when there is none yet."""
    for entry in reversed(entries):
        if isinstance(entry.info, AssistantMessage):
            for part in reversed(entry.parts):
                if isinstance(part, TextPart) and part.text.strip():
                    return part.text
    return ""


def make_sort_key(info: Message) -> tuple[int, str]:
    """Return the sort key of a message: its creation, then its id."""
    return (info.time.created, info.id)


def find_undo_start(conversation: Conversation, message_id: str, part_id: str | None) -> int | None:
    """Return the index of the first undone entry: a user message, or the step that holds the part;
    None: not found.
    """
    index = _find_index(conversation.entries, message_id)
    if index is None:
        return None
    info = conversation.entries[index].info
    if isinstance(info, UserMessage) or (
        part_id and _has_part(conversation.entries[index], part_id)
    ):
        return index
    return _find_index(conversation.entries, info.parent_id)


def find_turn_start(entries: Sequence[Entry], index: int) -> int:
    """Return the index of the user's prompt whose turn holds the entry at `index`;
    0 if no prompt is before it.
    """
    return next(
        (n for n in range(index, 0, -1) if begins_turn(entries[n].info, entries[n].parts)), 0
    )


def find_turn_end(entries: Sequence[Entry], index: int) -> int:
    """Return the index of the user's first prompt after the entry at `index`;
    their number if there is none.
    """
    later = range(index + 1, len(entries))
    return next((n for n in later if begins_turn(entries[n].info, entries[n].parts)), len(entries))


def _find_index(entries: Sequence[Entry], message_id: str) -> int | None:
    return next((index for index, entry in enumerate(entries) if entry.info.id == message_id), None)


def _has_part(entry: Entry, part_id: str) -> bool:
    return any(part.id == part_id for part in entry.parts)


def make_next_prompt(conversation: Conversation, **changes: Any) -> UserMessage:
    """Return a prompt that the program generates: a copy of the last one,
    with `changes` to its fields.
    """
    last = next(
        entry.info
        for entry in reversed(conversation.entries)
        if isinstance(entry.info, UserMessage)
    )
    time = UserTime(created=choose_creation_time(conversation, now_ms()))
    return replace(last, id=new_id("msg"), time=time, summary=None, **changes)


def choose_creation_time(conversation: Conversation, now: int) -> int:
    """Return the creation time of the next message (ms): `now`,
    or just after the last one if the clock went back.
    """
    return max(now, conversation.entries[-1].info.time.created + 1) if conversation.entries else now


def list_queued_prompts(conversation: Conversation) -> tuple[Entry, ...]:
    """Return the prompts after the last answered one, oldest first.
    No request has included them yet.

    A request holds everything that was stored when its answer began, so later prompts wait for the
    next step. Whether a running turn will include them is not known here.
    """
    entries = conversation.entries
    parent = next(
        (e.info.parent_id for e in reversed(entries) if isinstance(e.info, AssistantMessage)), None
    )
    waiting: list[Entry] = []
    for entry in reversed(entries):
        if entry.info.id == parent:
            break
        if isinstance(entry.info, UserMessage):
            waiting.append(entry)
    return tuple(reversed(waiting))
