"""A conversation in memory that events keep up to date: the store keeps one
for each session in use.
"""

from bisect import bisect_left

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
from codeloop.schema.limits import KEPT_PROMPT, KEPT_PROMPTS
from codeloop.schema.message import AssistantMessage, Message, Session, UserMessage
from codeloop.schema.part import Part, TextPart, ToolPart
from codeloop.store.conversation import (
    Conversation,
    Entry,
    find_context_start,
    find_first_prompt,
    find_newest_prompt,
    is_final,
    is_summary,
    list_pinned_texts,
    make_sort_key,
)

# The newest calls that are kept of a turn's steps before its last summary.
_KEPT_CALLS = 100


class ConversationView(Struct):
    """A conversation kept up to date by the events that are applied to it.
    It keeps the entries that requests need.
    """

    session: Session
    entries: list[Entry] = struct_field(default_factory=list[Entry])
    snapshot: Conversation | None = None
    """The last result of `take_snapshot`; None after a change."""
    ids: set[str] = struct_field(default_factory=set[str])
    """Ids of the messages, so that a new message is recognised without a search."""
    is_trimmed: bool = False
    """Whether entries were dropped, since no request needs them any more."""
    newest_prompt: int | None = None
    """The index of the newest prompt, so that no step searches a long turn for it;
    None: it is to be searched.
    """

    def __post_init__(self) -> None:
        """Index and trim the initial entries."""
        self.ids = {entry.info.id for entry in self.entries}
        self._trim()

    def take_snapshot(self) -> Conversation:
        """Return the current state; the same object until the next change."""
        if self.snapshot is None:
            if self.newest_prompt is None:
                self.newest_prompt = find_newest_prompt(self.entries)
            self.snapshot = Conversation(self.session, tuple(self.entries), self.newest_prompt)
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
                self.newest_prompt = None
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
            self.entries, self.is_trimmed, self.newest_prompt = entries, True, None
            self.ids = {entry.info.id for entry in entries}

    def _find_index(self, message_id: str) -> int | None:
        if message_id not in self.ids:
            return None
        # From the end: nearly all events are about the newest messages.
        for index in range(len(self.entries) - 1, -1, -1):
            if self.entries[index].info.id == message_id:
                return index
        return None

    def _put_message(self, info: Message) -> None:
        index = self._find_index(info.id)
        if index is not None:
            self.entries[index] = Entry(info, self.entries[index].parts)
            return
        index = bisect_left(
            self.entries, make_sort_key(info), key=lambda entry: make_sort_key(entry.info)
        )
        if index < len(self.entries):
            self.newest_prompt = None
        elif isinstance(info, UserMessage):
            self.newest_prompt = index
        self.entries.insert(index, Entry(info))
        self.ids.add(info.id)

    def _put_part(self, part: Part) -> None:
        index = self._find_index(part.message_id)
        if index is None:
            return
        entry = self.entries[index]
        self.entries[index] = Entry(entry.info, put_part(entry.parts, part))


def select_context_entries(entries: list[Entry]) -> list[Entry]:
    """Return the entries that requests still need: those from `find_context_start` on,
    and some of those before.

    Of those before, these are needed: recent prompts, the one that began the current turn, pinned
    texts, and the steps of that turn, the latter with their newest calls only: they are counted,
    and compared with later ones.
    """
    start = find_context_start(entries)
    if start == 0:
        return entries
    kept_entries: list[Entry] = []
    budget, calls = KEPT_PROMPTS.value, _KEPT_CALLS
    is_in_current_turn = not any(
        isinstance(entry.info, AssistantMessage) and is_final(entry.info)
        for entry in entries[start:]
    )
    first = find_first_prompt(entries[:start])
    for index in range(start - 1, -1, -1):
        entry = entries[index]
        pins = list_pinned_texts(entry)
        if isinstance(entry.info, UserMessage):
            if budget >= 0 or pins or index == first:
                kept_entries.append(entry)
            length = sum(
                len(p.text.strip())
                for p in entry.parts
                if isinstance(p, TextPart) and not p.synthetic
            )
            budget -= max(length, KEPT_PROMPT.value) if length else 0
            continue
        is_in_current_turn = is_in_current_turn and not is_final(entry.info)
        if is_in_current_turn or pins:
            parts = tuple(
                part for part in entry.parts if is_in_current_turn and isinstance(part, ToolPart)
            )[-calls:]
            calls = max(calls - len(parts), 0)
            kept_entries.append(Entry(entry.info, (*pins, *parts) if calls else pins))
    return [*reversed(kept_entries), *entries[start:]]


def put_part(parts: tuple[Part, ...], part: Part) -> tuple[Part, ...]:
    """Return the parts with `part` in the place of the one with its id,
    or inserted in the order of ids.
    """
    for index in range(len(parts) - 1, -1, -1):
        if parts[index].id == part.id:
            return (*parts[:index], part, *parts[index + 1 :])
        if parts[index].id < part.id:
            return (*parts[: index + 1], part, *parts[index + 1 :])
    return (part, *parts)
