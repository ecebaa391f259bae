"""`MessageLog`: the loaded messages of one session.
It applies events to them, and notes which have changed.
"""

from bisect import insort

from msgspec import Struct

from codeloop.schema.api.session_inputs import MessageWithParts
from codeloop.schema.event import Event, MessageRemoved, MessageUpdated, PartRemoved, PartUpdated
from codeloop.schema.live_events import PartDelta
from codeloop.schema.message import AssistantMessage, Message, UserMessage
from codeloop.schema.part import Part, ReasoningPart, TextPart
from codeloop.schema.wire import replace

SortKey = tuple[int, str]
"""A message's time of creation (ms since the epoch), and its id."""


class LoggedMessage(Struct):
    """A message and its parts by id, in their order."""

    info: Message
    parts: dict[str, Part]


class MessageLog:
    """The messages by id, whose order `ids` has.

    `changed_ids`: the ids of messages that have changed since this set was last
    replaced by an empty one.
    """

    def __init__(self) -> None:
        self.messages: dict[str, LoggedMessage] = {}
        self.changed_ids: set[str] = set()
        self._order: list[SortKey] = []
        self._answer_ids: dict[str, list[str]] = {}
        """The ids of the answers to each prompt, by the prompt's id."""
        # Joining each delta as it comes would copy a long text too often.
        self._pending_deltas: dict[str, list[str]] = {}
        """The deltas that are not in their parts' texts yet, by part id;
        `apply_deltas` joins them once a frame.
        """

    @property
    def ids(self) -> list[str]:
        """The ids of the messages, oldest first."""
        return [message_id for _, message_id in self._order]

    @property
    def last_answer(self) -> AssistantMessage | None:
        """The newest message of the model."""
        infos = (self.messages[message_id].info for _, message_id in reversed(self._order))
        return next((info for info in infos if isinstance(info, AssistantMessage)), None)

    @property
    def context_used(self) -> int:
        """The tokens of the context: those of the newest answer that has a count,
        which shell commands have not.
        """
        infos = (self.messages[message_id].info for _, message_id in reversed(self._order))
        return next(
            (
                used
                for info in infos
                if isinstance(info, AssistantMessage) and (used := info.tokens.all)
            ),
            0,
        )

    def list_prompts(self) -> list[UserMessage]:
        """Return the user's messages, oldest first."""
        infos = (self.messages[message_id].info for _, message_id in self._order)
        return [info for info in infos if isinstance(info, UserMessage)]

    def list_answers(self, prompt_id: str) -> list[AssistantMessage]:
        """Return the answers to a prompt, in the order of arrival."""
        infos = (
            self.messages[message_id].info for message_id in self._answer_ids.get(prompt_id, ())
        )
        return [info for info in infos if isinstance(info, AssistantMessage)]

    def add(self, page: list[MessageWithParts]) -> None:
        """Add stored messages, replacing known ones."""
        for message in page:
            self._put(message.info)
            self.messages[message.info.id].parts = {part.id: part for part in message.parts}
            for part in message.parts:
                self._pending_deltas.pop(part.id, None)

    def replace_newest(self, newest: list[MessageWithParts], *, is_all: bool) -> bool:
        """Replace the newest messages by the stored ones;
        return whether older loaded messages adjoin them.

        Loaded messages that are missing among the stored ones are removed. If there is a gap
        between both, all older messages are removed, to be read again.
        `is_all`: `newest` are all messages of the session.
        """
        ids = {message.info.id for message in newest}
        is_joined = not is_all and bool(newest) and newest[0].info.id in self.messages
        for created_at, message_id in list(self._order):
            is_older = is_joined and (created_at, message_id) < (
                newest[0].info.time.created,
                newest[0].info.id,
            )
            if message_id not in ids and not is_older:
                self._remove(message_id)
        self.add(newest)
        return is_joined

    def apply_event(self, event: Event) -> None:
        """Apply an event of the session. Events of messages that are not loaded are ignored."""
        match event:
            case MessageUpdated(properties=p):
                self._put(p.info)
            case MessageRemoved(properties=p):
                self._remove(p.message_id)
            case PartUpdated(properties=p) if (
                message := self.messages.get(p.part.message_id)
            ) is not None:
                # The stored part contains the text of all earlier deltas.
                self._pending_deltas.pop(p.part.id, None)
                message.parts[p.part.id] = p.part
                self.changed_ids.add(p.part.message_id)
            case PartRemoved(properties=p) if (
                message := self.messages.get(p.message_id)
            ) is not None:
                self._pending_deltas.pop(p.part_id, None)
                message.parts.pop(p.part_id, None)
                self.changed_ids.add(p.message_id)
            case PartDelta(properties=p) if p.message_id in self.messages:
                self._pending_deltas.setdefault(p.part_id, []).append(p.delta)
                self.changed_ids.add(p.message_id)
            case _:
                pass

    def apply_deltas(self) -> None:
        """Apply the pending deltas to their parts, once a frame."""
        for message in (
            self.messages[message_id]
            for message_id in self.changed_ids
            if message_id in self.messages
        ):
            for part_id in self._pending_deltas.keys() & message.parts.keys():
                part, deltas = message.parts[part_id], self._pending_deltas.pop(part_id)
                if isinstance(part, TextPart | ReasoningPart):
                    message.parts[part_id] = replace(part, text=part.text + "".join(deltas))

    def _put(self, info: Message) -> None:
        self.changed_ids.add(info.id)
        if (message := self.messages.get(info.id)) is not None:
            message.info = info
            return
        self.messages[info.id] = LoggedMessage(info, {})
        insort(self._order, (info.time.created, info.id))
        if isinstance(info, AssistantMessage):
            self._answer_ids.setdefault(info.parent_id, []).append(info.id)

    def _remove(self, message_id: str) -> None:
        if (message := self.messages.pop(message_id, None)) is not None:
            self._order.remove((message.info.time.created, message_id))
            if isinstance(message.info, AssistantMessage):
                self._answer_ids[message.info.parent_id].remove(message_id)
            self.changed_ids.add(message_id)
