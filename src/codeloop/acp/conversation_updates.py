"""Converts the parts of a conversation to `session/update` notifications,
each new text and each changed field once.
"""

from collections.abc import Callable

from codeloop.acp.connected_editor import ConnectedEditor
from codeloop.acp.terminals.command_terminal import CommandTerminal
from codeloop.acp.tool_calls import describe_call, find_terminal
from codeloop.schema.errors import MessageAbortedError, get_error_message
from codeloop.schema.live_events import Delta
from codeloop.schema.message import AssistantMessage, Message, Todo, UserMessage
from codeloop.schema.part import Part, ReasoningPart, TextPart, ToolPart, ToolStatePending
from codeloop.schema.wire import JSON

SendUpdate = Callable[[JSON], None]
"""Sends an update, in the form of version 1."""


class ConversationUpdates:
    """Sends new and changed parts of a conversation, and keeps a record of what was sent.

    `shows_compaction`: the editor marks where a summary replaced messages.
    """

    def __init__(
        self,
        send_update: SendUpdate,
        directory: str,
        editor: ConnectedEditor,
        *,
        shows_compaction: bool,
    ) -> None:
        self.own_prompts: set[str] = set()
        """Ids of the prompts of this editor, which shows them by itself."""
        self._send_update = send_update
        self._directory = directory
        self._editor = editor
        self._shows_compaction = shows_compaction
        self._user_messages: set[str] = set()
        """Ids of the messages that the user wrote."""
        self._summaries: dict[str, bool] = {}
        """By the ids of messages that are summaries: whether their end was sent."""
        self._sent_lengths: dict[str, int] = {}
        """Characters of each part's text that were sent."""
        self._thought_parts: set[str] = set()
        """Ids of the parts that are thinking."""
        self._calls: dict[str, JSON] = {}
        """By the ids of calls' parts, the fields that were sent."""
        self._terminals: dict[str, CommandTerminal] = {}
        """By the ids of calls' parts, the terminals that codeloop fills with their output."""
        self._call_ids: dict[tuple[str, str], str] = {}
        """The id of a call's part, which is the call's id in the editor,
        by message id and call id.
        """

    def begin_message(self, message: Message) -> None:
        """Record the author of a message; send that a summary has begun."""
        if isinstance(message, UserMessage):
            self._user_messages.add(message.id)
        elif message.summary and self._shows_compaction and message.id not in self._summaries:
            self._summaries[message.id] = False
            self._send("compaction_update", compactionId=message.id, status="in_progress")

    def end_message(self, message: Message) -> None:
        """Send the end of a summary, once."""
        if not isinstance(message, AssistantMessage) or message.time.completed is None:
            return
        # A message is stored several times; its end is sent once.
        if self._summaries.get(message.id) is not False:
            return
        self._summaries[message.id] = True
        match message.error:
            case None:
                self._send("compaction_update", compactionId=message.id, status="completed")
            case MessageAbortedError():
                self._send("compaction_update", compactionId=message.id, status="cancelled")
            case error:
                text = get_error_message(error)
                self._send(
                    "compaction_update", compactionId=message.id, status="failed", error=text
                )

    def send_part(self, part: Part) -> None:
        """Send the new text of a part, or the new state of a call."""
        match part:
            case TextPart() | ReasoningPart():
                is_hidden = isinstance(part, TextPart) and (part.synthetic or part.ignored)
                if is_hidden or part.message_id in self.own_prompts:
                    return
                if isinstance(part, ReasoningPart):
                    self._thought_parts.add(part.id)
                sent_length = self._sent_lengths.setdefault(part.id, 0)
                self._send_text(part.id, part.message_id, part.text[sent_length:])
            case ToolPart():
                self._call_ids[part.message_id, part.call_id] = part.id
                self._send_call(part)
            case _:
                pass

    def send_delta(self, delta: Delta) -> None:
        """Send the next piece of a text that is being written."""
        # A piece of a part that was not sent, such as a hidden one, is dropped.
        if delta.part_id in self._sent_lengths:
            self._send_text(delta.part_id, delta.message_id, delta.delta)

    def send_todos(self, todos: list[Todo]) -> None:
        """Send the todo list, which is a plan in the protocol."""
        entries = [
            {"content": todo.content, "priority": todo.priority, "status": todo.status}
            for todo in todos
        ]
        self._send("plan", entries=entries)

    def find_call_id(self, message_id: str, call_id: str) -> str | None:
        """Return the id of a call in the editor; None: the call was not sent."""
        return self._call_ids.get((message_id, call_id))

    def note_permission_request(self, call: JSON) -> None:
        """Record the fields of a call in a permission request,
        which replace those in the editor.
        """
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
        elif message_id in self._user_messages:
            self._send("user_message_chunk", content=content, messageId=message_id)
        else:
            kind = (
                "agent_thought_chunk" if part_id in self._thought_parts else "agent_message_chunk"
            )
            self._send(kind, content=content, messageId=part_id)

    def _send_call(self, part: ToolPart) -> None:
        """Send a new call, or the changed fields of a known one;
        then the new output of its terminal.
        """
        version = self._editor.version
        if part.id not in self._calls and version.shows_terminals and part.tool == "bash":
            if isinstance(part.state, ToolStatePending) and not part.state.input:
                # The first update of a call names its terminal,
                # and only the arguments tell whether it has one.
                return
            # A command in the background answers at once; `bash_output` reads its output.
            if not part.state.input.get("run_in_background"):
                self._terminals[part.id] = CommandTerminal(version, part.id, self._directory)
        terminal = self._terminals.get(part.id)
        editor_terminal_id = find_terminal(part, self._editor.terminal_ids)
        terminal_id = editor_terminal_id or (part.id if terminal is not None else None)
        call = describe_call(
            part, self._directory, version.make_diff_content, terminal_id=terminal_id
        )
        sent_call, self._calls[part.id] = self._calls.get(part.id), call
        if sent_call is None:
            self._send_new_call(part, call, terminal)
        elif changes := {key: value for key, value in call.items() if sent_call.get(key) != value}:
            self._send("tool_call_update", toolCallId=part.id, **changes)
        # The editor's own terminal shows the output by itself.
        if terminal is not None and editor_terminal_id is None:
            for update in terminal.advance(part):
                self._send_update(update)

    def _send_new_call(self, part: ToolPart, call: JSON, terminal: CommandTerminal | None) -> None:
        if terminal is None:
            self._send("tool_call", **call)
            return
        updates, terminal_fields = terminal.begin(part)
        for update in updates:
            self._send_update(update)
        self._send("tool_call", **call, **terminal_fields)

    def _send(self, kind: str, /, **fields: object) -> None:
        """Send an update; `kind`: its `sessionUpdate`."""
        self._send_update({"sessionUpdate": kind, **fields})
