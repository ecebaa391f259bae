"""Converts a session's events to the updates that an editor shows, each text and call change once."""

from collections.abc import Callable

from codeloop.acp.questions import ConnectedEditor
from codeloop.acp.terminals import CommandTerminal
from codeloop.acp.tool_calls import describe_call, find_terminal
from codeloop.schema.errors import MessageAbortedError, get_error_message
from codeloop.schema.live_events import Delta
from codeloop.schema.message import AssistantMessage, Message, Todo, UserMessage
from codeloop.schema.part import Part, ReasoningPart, TextPart, ToolPart, ToolStatePending
from codeloop.schema.wire import JSON

SendUpdate = Callable[[JSON], None]
"""Sends an update, as version 1 has it."""


class ShownConversation:
    """Knows what the editor shows already. `shows_compaction`: it shows where a summary took the place of messages."""

    def __init__(self, update: SendUpdate, directory: str, link: ConnectedEditor, *, shows_compaction: bool) -> None:
        self.own_prompts: set[str] = set()
        """Ids of the messages that the editor sent itself, which it shows already."""
        self._update = update
        self._directory = directory
        self._link = link
        self._shows_compaction = shows_compaction
        self._users: set[str] = set()
        """Ids of the messages that the user wrote."""
        self._summaries: dict[str, bool] = {}
        """By the ids of messages that are summaries: whether the editor knows how that ended."""
        self._sent_lengths: dict[str, int] = {}
        """How much of a part's text was sent, in characters."""
        self._thoughts: set[str] = set()
        self._calls: dict[str, JSON] = {}
        self._terminals: dict[str, CommandTerminal] = {}
        self._call_ids: dict[tuple[str, str], str] = {}
        """The part's id by message and call."""

    def take_message(self, message: Message) -> None:
        """Learn who wrote a message, and of a summary that it has begun."""
        if isinstance(message, UserMessage):
            self._users.add(message.id)
        elif message.summary and self._shows_compaction and message.id not in self._summaries:
            self._summaries[message.id] = False
            self._send("compaction_update", compactionId=message.id, status="in_progress")

    def end_message(self, message: Message) -> None:
        """Send how a summary ended, once it has."""
        if not isinstance(message, AssistantMessage) or message.time.completed is None:
            return
        if self._summaries.get(message.id) is not False:
            return
        self._summaries[message.id] = True
        error = message.error
        status = "completed" if error is None else "cancelled" if isinstance(error, MessageAbortedError) else "failed"
        more = {"error": get_error_message(error)} if error is not None and status == "failed" else {}
        self._send("compaction_update", compactionId=message.id, status=status, **more)

    def take_part(self, part: Part) -> None:
        """Send what is new of a part."""
        match part:
            case TextPart() | ReasoningPart():
                is_hidden = isinstance(part, TextPart) and (part.synthetic or part.ignored)
                if is_hidden or part.message_id in self.own_prompts:
                    return
                if isinstance(part, ReasoningPart):
                    self._thoughts.add(part.id)
                sent_length = self._sent_lengths.setdefault(part.id, 0)
                self._send_text(part.id, part.message_id, part.text[sent_length:])
            case ToolPart():
                self._call_ids[part.message_id, part.call_id] = part.id
                self._send_call(part)
            case _:
                pass

    def take_delta(self, delta: Delta) -> None:
        """Send more of a text that is being written."""
        if delta.part_id in self._sent_lengths:
            self._send_text(delta.part_id, delta.message_id, delta.delta)

    def take_todos(self, todos: list[Todo]) -> None:
        """Send the plan."""
        rows = [{"content": todo.content, "priority": todo.priority, "status": todo.status} for todo in todos]
        self._send("plan", entries=rows)

    def find_call(self, message_id: str, call_id: str) -> str | None:
        """Return under which id the editor knows a call; None: it does not."""
        return self._call_ids.get((message_id, call_id))

    def note_permission_request(self, call: JSON) -> None:
        """Note what a permission request says of a call, which takes the place of what the editor showed of it."""
        call_id = str(call.get("toolCallId") or "")
        if call_id in self._calls:
            self._calls[call_id] = {**self._calls[call_id], **call}

    def _send_text(self, part_id: str, message_id: str, text: str) -> None:
        if not text:
            return
        self._sent_lengths[part_id] += len(text)
        content: JSON = {"type": "text", "text": text}
        if message_id in self._summaries:
            if not self._summaries[message_id]:
                self._send("compaction_summary_chunk", compactionId=message_id, content=content)
        elif message_id in self._users:
            self._send("user_message_chunk", content=content, messageId=message_id)
        else:
            kind = "agent_thought_chunk" if part_id in self._thoughts else "agent_message_chunk"
            self._send(kind, content=content, messageId=part_id)

    def _send_call(self, part: ToolPart) -> None:
        """Send a call that is new, or what has changed of it, and its output where that is a terminal's."""
        is_new = part.id not in self._calls
        if is_new and self._link.version.shows_terminals and part.tool == "bash":
            if isinstance(part.state, ToolStatePending) and not part.state.input:
                return  # whether it has a terminal is said once, with the command
            if not part.state.input.get("run_in_background"):
                self._terminals[part.id] = CommandTerminal(self._link.version, part.id, self._directory)
        terminal = self._terminals.get(part.id)
        own = find_terminal(part, self._link.terminals)
        shown_terminal = own or (part.id if terminal is not None else None)
        now = describe_call(part, self._directory, self._link.version.diff_content, terminal=shown_terminal)
        before, self._calls[part.id] = self._calls.get(part.id), now
        if before is None:
            updates, fields = terminal.begin(part) if terminal is not None else ([], {})
            for update in updates:
                self._update(update)
            self._send("tool_call", **now, **fields)
        elif changes := {key: value for key, value in now.items() if before.get(key) != value}:
            self._send("tool_call_update", toolCallId=part.id, **changes)
        for update in terminal.advance(part) if terminal is not None and own is None else ():
            self._update(update)

    def _send(self, name: str, /, **fields: object) -> None:
        self._update({"sessionUpdate": name, **fields})
