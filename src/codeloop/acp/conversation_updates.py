"""Converts the parts of a conversation to `session/update` notifications, each new text and each changed field once."""

import re
from collections.abc import Callable

from codeloop.acp.question_forwarder import ConnectedEditor
from codeloop.acp.tool_calls import describe_call, find_terminal
from codeloop.acp.versions.version import ProtocolVersion
from codeloop.kit.terminal_text import escape_controls
from codeloop.schema.errors import MessageAbortedError, get_error_message
from codeloop.schema.live_events import Delta
from codeloop.schema.message import AssistantMessage, Message, Todo, UserMessage
from codeloop.schema.part import (
    Part,
    ReasoningPart,
    TextPart,
    ToolPart,
    ToolStateCompleted,
    ToolStateError,
    ToolStatePending,
    ToolStateRunning,
)
from codeloop.schema.wire import JSON

SendUpdate = Callable[[JSON], None]
"""Sends an update, in the form of version 1."""


class ConversationUpdates:
    """Sends new and changed parts of a conversation, and keeps a record of what was sent.

    `shows_compaction`: the editor marks where a summary replaced messages.
    """

    def __init__(
        self, send_update: SendUpdate, directory: str, editor: ConnectedEditor, *, shows_compaction: bool
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
        self._calls: dict[str, JSON] = {}
        self._terminals: dict[str, CommandTerminal] = {}
        self._call_ids: dict[tuple[str, str], str] = {}
        """The id of a call's part, which is the call's id in the editor, by message id and call id."""

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
        error = message.error
        status = "completed" if error is None else "cancelled" if isinstance(error, MessageAbortedError) else "failed"
        error_fields = {"error": get_error_message(error)} if error is not None and status == "failed" else {}
        self._send("compaction_update", compactionId=message.id, status=status, **error_fields)

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
        rows = [{"content": todo.content, "priority": todo.priority, "status": todo.status} for todo in todos]
        self._send("plan", entries=rows)

    def find_call_id(self, message_id: str, call_id: str) -> str | None:
        """Return the id of a call in the editor; None: the call was not sent."""
        return self._call_ids.get((message_id, call_id))

    def note_permission_request(self, call: JSON) -> None:
        """Record the fields of a call in a permission request, which replace those in the editor."""
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
            kind = "agent_thought_chunk" if part_id in self._thought_parts else "agent_message_chunk"
            self._send(kind, content=content, messageId=part_id)

    def _send_call(self, part: ToolPart) -> None:
        """Send a new call, or the changed fields of a known one; then the new output of its terminal."""
        is_new = part.id not in self._calls
        if is_new and self._editor.version.shows_terminals and part.tool == "bash":
            if isinstance(part.state, ToolStatePending) and not part.state.input:
                # The first update of a call names its terminal, and only the arguments tell whether it has one.
                return
            # A command in the background answers at once; `bash_output` reads its output.
            if not part.state.input.get("run_in_background"):
                self._terminals[part.id] = CommandTerminal(self._editor.version, part.id, self._directory)
        terminal = self._terminals.get(part.id)
        editor_terminal = find_terminal(part, self._editor.terminals)
        shown_terminal = editor_terminal or (part.id if terminal is not None else None)
        call = describe_call(part, self._directory, self._editor.version.diff_content, terminal_id=shown_terminal)
        sent_call, self._calls[part.id] = self._calls.get(part.id), call
        if sent_call is None:
            updates, fields = terminal.begin(part) if terminal is not None else ([], {})
            for update in updates:
                self._send_update(update)
            self._send("tool_call", **call, **fields)
        elif changes := {key: value for key, value in call.items() if sent_call.get(key) != value}:
            self._send("tool_call_update", toolCallId=part.id, **changes)
        for update in terminal.advance(part) if terminal is not None and editor_terminal is None else ():
            self._send_update(update)

    def _send(self, name: str, /, **fields: object) -> None:
        self._send_update({"sessionUpdate": name, **fields})


_COLOUR_SEQUENCE = re.compile(r"(\x1b\[[0-9;:]*m)")
_OTHER_SEQUENCE = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-ln-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\^_])")
# At the end of the output: the rest may come with the next update.
_PARTIAL_SEQUENCE = re.compile(r"\x1b(?:\[[0-?]*[ -/]*|\][^\x07\x1b]*)?$")
_TRUNCATION_MARK = "...\n\n"
"""Begins the latest output of a command whose earlier output was cut off."""
_MIN_OVERLAP = 200
"""Characters that are compared to find where the new output overlaps the output that was sent."""


class CommandTerminal:
    """The output of one command, for an editor that shows it as a terminal."""

    def __init__(self, version: ProtocolVersion, terminal_id: str, directory: str) -> None:
        self._version = version
        self._id = terminal_id
        self._directory = directory
        self._sent_output = ""
        self._has_ended = False

    def begin(self, part: ToolPart) -> tuple[list[JSON], JSON]:
        """Return the updates to send before the call, and fields of the call itself."""
        return self._version.begin_terminal(self._id, str(part.state.input.get("command") or ""), self._directory)

    def advance(self, part: ToolPart) -> list[JSON]:
        """Return the updates with the output since the last call, and with the end of the command."""
        state, updates = part.state, list[JSON]()
        if self._has_ended or not isinstance(state, ToolStateRunning | ToolStateCompleted | ToolStateError):
            return []
        metadata = state.metadata or {}
        text, is_whole = self._find_new_text(strip_sequences(str(metadata.get("output") or "")))
        if text:
            updates.append(self._version.extend_terminal(self._id, text.replace("\n", "\r\n"), is_whole=is_whole))
        if not isinstance(state, ToolStateRunning):
            self._has_ended = True
            updates.append(self._version.end_terminal(self._id, metadata.get("exit"), metadata.get("signal")))
        return updates

    def _find_new_text(self, output: str) -> tuple[str, bool]:
        """Return the output that was not sent yet, and whether it replaces all earlier output."""
        sent, self._sent_output = self._sent_output, output
        if output.startswith(sent):
            return output[len(sent) :], False
        # Of a long output the call has only the end, so it no longer begins with what was sent: find the overlap.
        output = output.removeprefix(_TRUNCATION_MARK)
        overlap_start = sent.rfind(output[:_MIN_OVERLAP])
        if overlap_start >= 0 and output.startswith(sent[overlap_start:]):
            return output[len(sent) - overlap_start :], False
        return output, True


def strip_sequences(text: str) -> str:
    """Remove the sequences that control a terminal. Colours, tabs and carriage returns stay."""
    # A command must not move the cursor, change the title or write to the clipboard in the user's editor.
    plain = _OTHER_SEQUENCE.sub("", _PARTIAL_SEQUENCE.sub("", text).replace("\r\n", "\n"))
    pieces = _COLOUR_SEQUENCE.split(plain)
    return "".join(
        each if _COLOUR_SEQUENCE.fullmatch(each) else "\r".join(map(escape_controls, each.split("\r")))
        for each in pieces
    )
