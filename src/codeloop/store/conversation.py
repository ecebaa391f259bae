"""A session with its messages and parts, and a view of it that events keep up to date. Used by turns and clients."""

from bisect import bisect_left
from collections.abc import Sequence
from typing import Any

from msgspec import Struct
from msgspec import field as struct_field

from codeloop.schema.event import (
    Event,
    MessageRemoved,
    MessageUpdated,
    PartRemoved,
    PartUpdated,
    SessionCreated,
    SessionUpdated,
)
from codeloop.schema.ids import new_id, now_ms
from codeloop.schema.limits import KEPT_PROMPT, KEPT_PROMPTS
from codeloop.schema.message import AssistantMessage, Message, Session, UserMessage, UserTime
from codeloop.schema.part import CompactionPart, Part, TextPart
from codeloop.schema.wire import replace


class Entry(Struct, frozen=True):
    """A message and its parts in order. Until it changes, it is the same object."""

    info: Message
    parts: tuple[Part, ...] = ()


class Conversation(Struct, frozen=True):
    """A session and its entries, oldest first."""

    session: Session
    entries: tuple[Entry, ...]

    def find_entry(self, message_id: str) -> Entry | None:
        """Return a message with its parts; None: there is no such message. The newest are found fastest."""
        return next((entry for entry in reversed(self.entries) if entry.info.id == message_id), None)

    def find_parts(self, message_id: str) -> tuple[Part, ...]:
        """Return the parts of a message; empty: there is no such message."""
        entry = self.find_entry(message_id)
        return entry.parts if entry is not None else ()

    def find_agent(self, message_id: str) -> str:
        """Return the name of a message's agent; "": there is no such message."""
        entry = self.find_entry(message_id)
        return entry.info.agent if entry is not None else ""


class ConversationView(Struct):
    """A conversation kept up to date by the events that are applied to it."""

    session: Session
    entries: list[Entry] = struct_field(default_factory=list[Entry])
    snapshot: Conversation | None = None
    """The last result of `take_snapshot`; None after a change."""
    ids: set[str] = struct_field(default_factory=set[str])
    """Ids of the messages, so that a new message is recognised without a search."""
    is_trimmed: bool = False
    """Whether entries were dropped, since no request shows them any more."""

    def __post_init__(self) -> None:
        """Index and trim the initial entries."""
        self.ids = {entry.info.id for entry in self.entries}
        self._trim()

    def take_snapshot(self) -> Conversation:
        """Return the current state; the same object until the next change."""
        if self.snapshot is None:
            self.snapshot = Conversation(self.session, tuple(self.entries))
        return self.snapshot

    def apply(self, event: Event) -> None:
        """Apply one event of this session. Applying it again changes nothing."""
        self.snapshot = None
        match event:
            case SessionCreated(properties=p) | SessionUpdated(properties=p):
                self.session = p.info
            case MessageUpdated(properties=p):
                self._put_message(p.info)
                # Requests show a summary in place of older entries, which need no memory any more.
                if is_summary(p.info):
                    self._trim()
            case MessageRemoved(properties=p):
                self.entries = [entry for entry in self.entries if entry.info.id != p.message_id]
                self.ids.discard(p.message_id)
            case PartUpdated(properties=p):
                self._put_part(p.part)
            case PartRemoved(properties=p):
                index = self._find_index(p.message_id)
                if index is not None:
                    entry = self.entries[index]
                    parts = tuple(part for part in entry.parts if part.id != p.part_id)
                    self.entries[index] = Entry(entry.info, parts)
            case _:
                pass

    def _trim(self) -> None:
        entries = select_context_entries(self.entries)
        if len(entries) < len(self.entries):
            self.entries, self.is_trimmed = entries, True
            self.ids = {entry.info.id for entry in entries}

    def _find_index(self, message_id: str) -> int | None:
        if message_id not in self.ids:
            return None
        for index in range(len(self.entries) - 1, -1, -1):
            if self.entries[index].info.id == message_id:
                return index
        return None

    def _put_message(self, info: Message) -> None:
        index = self._find_index(info.id)
        if index is not None:
            self.entries[index] = Entry(info, self.entries[index].parts)
            return
        index = bisect_left(self.entries, make_sort_key(info), key=lambda entry: make_sort_key(entry.info))
        self.entries.insert(index, Entry(info))
        self.ids.add(info.id)

    def _put_part(self, part: Part) -> None:
        index = self._find_index(part.message_id)
        if index is None:
            return
        entry = self.entries[index]
        self.entries[index] = Entry(entry.info, put_part(entry.parts, part))


def is_summary(info: Message) -> bool:
    """Return whether a message is a completed summary of the conversation before it."""
    return isinstance(info, AssistantMessage) and bool(info.summary and info.time.completed and info.error is None)


def find_context_start(entries: Sequence[Entry]) -> int:
    """Return the index of the first entry that requests show in full: 0, or the first that the last compaction kept."""
    index = next((n for n in range(len(entries) - 1, 0, -1) if is_summary(entries[n].info)), None)
    if index is None:
        return 0
    compaction_part = next((part for part in entries[index - 1].parts if isinstance(part, CompactionPart)), None)
    tail_start_id = compaction_part.tail_start_id if compaction_part else None
    return next((n for n, entry in enumerate(entries) if entry.info.id == tail_start_id), index - 1)


def select_context_entries(entries: list[Entry]) -> list[Entry]:
    """Return the entries that requests still need: the last summary and all after it, and some of those before.

    Of those before, these are needed: recent prompts, pinned texts, and the steps of the current turn, the latter
    without their parts, since they are only counted against limits.
    """
    start = find_context_start(entries)
    if start == 0:
        return entries
    kept_entries: list[Entry] = []
    budget = KEPT_PROMPTS.value
    is_in_current_turn = not any(
        isinstance(entry.info, AssistantMessage) and is_final(entry.info) for entry in entries[start:]
    )
    for entry in reversed(entries[:start]):
        pins = list_pinned_texts(entry)
        if isinstance(entry.info, UserMessage):
            if budget >= 0 or pins:
                kept_entries.append(entry)
            length = sum(len(p.text.strip()) for p in entry.parts if isinstance(p, TextPart) and not p.synthetic)
            budget -= max(length, KEPT_PROMPT.value)
            continue
        is_in_current_turn = is_in_current_turn and not is_final(entry.info)
        if is_in_current_turn or pins:
            kept_entries.append(Entry(entry.info, pins))
    return [*reversed(kept_entries), *entries[start:]]


def list_pinned_texts(entry: Entry) -> tuple[TextPart, ...]:
    """Return the texts of a message that the user has pinned: a summary keeps them verbatim."""
    texts = (part for part in entry.parts if isinstance(part, TextPart))
    return tuple(part for part in texts if part.metadata and part.metadata.get("pinned") is True)


def is_final(info: AssistantMessage) -> bool:
    """Return whether an answer ended its turn."""
    is_over = info.error is not None or info.finish not in {"tool-calls", "cut"}
    return info.time.completed is not None and not info.summary and is_over


def make_next_prompt(view: Conversation, **changes: Any) -> UserMessage:
    """Return a prompt that the program generates: a copy of the last one, with `changes` to its fields."""
    last = next(entry.info for entry in reversed(view.entries) if isinstance(entry.info, UserMessage))
    time = UserTime(created=choose_creation_time(view, now_ms()))
    return replace(last, id=new_id("msg"), time=time, summary=None, **changes)


def choose_creation_time(view: Conversation, now: int) -> int:
    """Return the creation time of the next message (ms): `now`, or just after the last one if the clock went back."""
    return max(now, view.entries[-1].info.time.created + 1) if view.entries else now


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


def put_part(parts: tuple[Part, ...], part: Part) -> tuple[Part, ...]:
    """Return the parts with `part` in the place of the one with its id, or inserted in the order of ids."""
    for index in range(len(parts) - 1, -1, -1):
        if parts[index].id == part.id:
            return (*parts[:index], part, *parts[index + 1 :])
        if parts[index].id < part.id:
            return (*parts[: index + 1], part, *parts[index + 1 :])
    return (part, *parts)
