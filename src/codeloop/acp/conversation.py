"""Converts a session's events to the updates that an editor shows, each text and call change once."""

from collections.abc import Callable

from codeloop.acp.tool_calls import describe_call
from codeloop.schema.live_events import Delta
from codeloop.schema.message import Message, Todo, UserMessage
from codeloop.schema.part import Part, ReasoningPart, TextPart, ToolPart
from codeloop.schema.wire import JSON


class ShownConversation:
    """Knows what the editor shows already. `update` sends an update: its name, then its fields by name."""

    def __init__(self, update: Callable[..., None], directory: str) -> None:
        self.own_prompts: set[str] = set()
        """Ids of the messages that the editor sent itself, which it shows already."""
        self._update = update
        self._directory = directory
        self._users: set[str] = set()
        """Ids of the messages that the user wrote."""
        self._sent: dict[str, int] = {}
        """How much of a part's text was sent, in characters."""
        self._thoughts: set[str] = set()
        self._calls: dict[str, JSON] = {}
        self._call_ids: dict[tuple[str, str], str] = {}
        """The part's id by message and call."""

    def take_message(self, message: Message) -> None:
        """Learn who wrote a message."""
        if isinstance(message, UserMessage):
            self._users.add(message.id)

    def take_part(self, part: Part) -> None:
        """Send what is new of a part."""
        match part:
            case TextPart() | ReasoningPart():
                is_hidden = isinstance(part, TextPart) and (part.synthetic or part.ignored)
                if is_hidden or part.message_id in self.own_prompts:
                    return
                if isinstance(part, ReasoningPart):
                    self._thoughts.add(part.id)
                sent = self._sent.setdefault(part.id, 0)
                self._send_text(part.id, part.message_id, part.text[sent:])
            case ToolPart():
                self._call_ids[part.message_id, part.call_id] = part.id
                self._send_call(part)
            case _:
                pass

    def take_delta(self, delta: Delta) -> None:
        """Send more of a text that is being written."""
        if delta.part_id in self._sent:
            self._send_text(delta.part_id, delta.message_id, delta.delta)

    def take_todos(self, todos: list[Todo]) -> None:
        """Send the plan; the protocol knows no entry that was given up."""
        entries = [
            {"content": todo.content, "priority": todo.priority, "status": todo.status}
            for todo in todos
            if todo.status != "cancelled"
        ]
        self._update("plan", entries=entries)

    def find_call(self, message_id: str, call_id: str) -> str | None:
        """Return under which id the editor knows a call; None: it does not."""
        return self._call_ids.get((message_id, call_id))

    def _send_text(self, part_id: str, message_id: str, text: str) -> None:
        if not text:
            return
        self._sent[part_id] += len(text)
        answer = "agent_thought" if part_id in self._thoughts else "agent_message"
        kind = "user_message" if message_id in self._users else answer
        self._update(f"{kind}_chunk", content={"type": "text", "text": text}, messageId=message_id)

    def _send_call(self, part: ToolPart) -> None:
        """Send a call that is new, or what has changed of it."""
        now, before = describe_call(part, self._directory), self._calls.get(part.id)
        self._calls[part.id] = now
        if before is None:
            self._update("tool_call", **now)
        elif changed := {key: value for key, value in now.items() if before.get(key) != value}:
            self._update("tool_call_update", toolCallId=part.id, **changed)
