"""The parts of a message (text, reasoning, files, tool calls, steps),
as they are stored and sent.
"""

from typing import Any

import msgspec

from codeloop.schema.errors import APIError
from codeloop.schema.message import ModelRef, Tokens, UserTime
from codeloop.schema.wire import JSON, Wire

STRUCTURED_OUTPUT_TOOL = "StructuredOutput"
"""The name of the tool that receives an answer as data."""
SHELL_NOTES_SEPARATOR = "\n\n<shell_metadata>\n"
"""Comes between a command's output and the notes for the model;
those for users are `notes` of the metadata.
"""

# Keys in the metadata of parts.
TOLD_KEY = "told"
"""A note that the model got with this part: `true`, or the text of the note."""
REMINDER_KEY = "reminder"
"""Of a prompt's part: the reminder that the model gets because it ended its turn too early."""
MEMORY_KEY = "memory"
"""Of a prompt's part: the notes of the project that it holds, each with a hash of its text."""
NOTE_KEY = "note"
"""Of a call: the note on its arguments that the model got at the end of the output."""
MODEL_NOTES_KEY = "modelNotes"
"""Of a command: everything in its output that only the model is told, word for word;
"" for nothing.
"""
CHECK_KEY = "check"
"""Of a call: it is a check of a goal, which codeloop ran itself."""
LOOPED_KEY = "looped"
"""Of a call: why the turn ends with it, since it has given the same result again and again."""
LATER_OUTPUT_KEY = "laterOutput"
"""Of a command that has ended in the background: the end of all that it printed."""
RULE_KEY = "rule"
"""Of a call that a rule denied: its permission and pattern."""
ADVICE_KEY = "advice"
"""Of a failed call: what the model is told to do about it, which no user interface shows."""


class Span(Wire):
    """Milliseconds since the epoch; without `end` it is still going on."""

    start: int
    end: int | None = None


class FilePartSourceText(Wire):
    """The place of a mention in the text part: character offsets of `value`."""

    value: str
    start: int
    end: int


FOLDER_MIME = "application/x-directory"
"""The type of an attached folder, of which the names in it are sent."""


def locate_mention(name: str, text: str) -> FilePartSourceText:
    """Return the place of the mention of a name in a text;
    for a name that is mentioned twice, the first.
    """
    mention = next((each for each in (f'@"{name}"', f"@{name}") if each in text), f"@{name}")
    start = max(text.find(mention), 0)
    return FilePartSourceText(value=mention, start=start, end=start + len(mention))


class FileSource(Wire, tag_field="type", tag="file"):
    """A file that was mentioned."""

    path: str
    text: FilePartSourceText


class SymbolSource(Wire, tag_field="type", tag="symbol"):
    """A symbol that was mentioned."""

    path: str
    range: Any
    name: str
    kind: int
    text: FilePartSourceText


class ResourceSource(Wire, tag_field="type", tag="resource"):
    """An MCP resource that was mentioned."""

    client_name: str
    uri: str
    text: FilePartSourceText


FilePartSource = FileSource | SymbolSource | ResourceSource


class TextPart(Wire, tag_field="type", tag="text"):
    """Text of either side; `synthetic` text was made by the program and is hidden by clients."""

    id: str
    session_id: str
    message_id: str
    text: str
    synthetic: bool | None = None
    ignored: bool | None = None
    time: Span | None = None
    metadata: JSON | None = None


class ReasoningPart(Wire, tag_field="type", tag="reasoning"):
    """The model's thinking. `metadata` holds what its provider wants back unchanged (signature,
    redacted data).
    """

    id: str
    session_id: str
    message_id: str
    text: str
    time: Span
    metadata: JSON | None = None


class FilePart(Wire, tag_field="type", tag="file"):
    """An attachment; `url` is `data:...;base64,...` or `file:///abs/path`."""

    id: str
    session_id: str
    message_id: str
    mime: str
    url: str
    filename: str | None = None
    source: FilePartSource | None = None


class ToolTime(Wire):
    """Milliseconds since the epoch; `compacted`: since when the output is left out of requests."""

    start: int
    end: int
    compacted: int | None = None


class ToolStart(Wire):
    """Milliseconds since the epoch."""

    start: int


class ToolStatePending(Wire, tag_field="status", tag="pending"):
    """The call's arguments are still streaming in."""

    input: JSON
    raw: str


class ToolStateRunning(Wire, tag_field="status", tag="running"):
    """The call runs, or waits for a permission."""

    input: JSON
    time: ToolStart
    title: str | None = None
    metadata: JSON | None = None


def remove_model_notes(output: str, metadata: JSON) -> str:
    """Return a command's output without the notes for the model."""
    notes = metadata.get(MODEL_NOTES_KEY)
    if isinstance(notes, str):
        before, _, after = output.rpartition(notes) if notes else (output, "", "")
        return before + after
    # Older versions stored no key: only this separator marks their notes. Only commands have them,
    # so other tools' outputs are never cut there.
    is_old = "exit" in metadata or "interrupted" in metadata
    return output.rsplit(SHELL_NOTES_SEPARATOR, 1)[0] if is_old else output


class ToolStateCompleted(Wire, tag_field="status", tag="completed"):
    """The call is done. `output` is what the model reads, `metadata` what a client shows."""

    input: JSON
    output: str
    title: str
    metadata: JSON
    time: ToolTime
    attachments: list[FilePart] | None = None

    @property
    def for_user(self) -> str:
        """The output without what was added for the model alone."""
        text = self.output.removesuffix(f"\n\n{self.metadata.get(TOLD_KEY)}").removesuffix(
            f"\n\n{self.metadata.get(NOTE_KEY)}"
        )
        return remove_model_notes(text, self.metadata)


class ToolStateError(Wire, tag_field="status", tag="error"):
    """The call failed, was refused or was interrupted (`metadata.interrupted`);
    `error` is for users and models.
    """

    input: JSON
    error: str
    time: ToolTime
    metadata: JSON | None = None

    @property
    def for_model(self) -> str:
        """The error with the advice that is for the model alone."""
        advice = (self.metadata or {}).get(ADVICE_KEY)
        return f"{self.error} {advice}" if isinstance(advice, str) else self.error


ToolState = ToolStatePending | ToolStateRunning | ToolStateCompleted | ToolStateError


class ToolPart(Wire, tag_field="type", tag="tool"):
    """One tool call and its result; `call_id` is the model's own id of the call."""

    id: str
    session_id: str
    message_id: str
    call_id: str
    tool: str
    state: ToolState
    metadata: JSON | None = None


class StepStartPart(Wire, tag_field="type", tag="step-start"):
    """A request to the model begins; `snapshot`: the tree of the work tree, 40 hex digits."""

    id: str
    session_id: str
    message_id: str
    snapshot: str | None = None


class StepFinishPart(Wire, tag_field="type", tag="step-finish"):
    """A step is over; `cost` in dollars.

    `unrecorded`: the files (relative to the work tree) that it changed, but that undo can't
    restore, each with the reason; "" stands for all that its commands changed.
    """

    id: str
    session_id: str
    message_id: str
    reason: str
    cost: float
    tokens: Tokens
    snapshot: str | None = None
    unrecorded: dict[str, str] | None = None


class PatchPart(Wire, tag_field="type", tag="patch"):
    """The files (absolute paths) that a step changed; `hash` is the snapshot before it."""

    id: str
    session_id: str
    message_id: str
    hash: str
    files: list[str]


class AgentPart(Wire, tag_field="type", tag="agent"):
    """A mention of an agent."""

    id: str
    session_id: str
    message_id: str
    name: str
    source: FilePartSourceText | None = None


class SubtaskPart(Wire, tag_field="type", tag="subtask"):
    """Work handed to a subagent by the user or a command."""

    id: str
    session_id: str
    message_id: str
    prompt: str
    description: str
    agent: str
    model: ModelRef | None = None
    command: str | None = None


class CompactionPart(Wire, tag_field="type", tag="compaction"):
    """From here on the conversation continues from a summary."""

    id: str
    session_id: str
    message_id: str
    auto: bool
    overflow: bool | None = None
    # The contract spells it with underscores.
    tail_start_id: str | None = msgspec.field(default=None, name="tail_start_id")


class RetryPart(Wire, tag_field="type", tag="retry"):
    """A request was tried again."""

    id: str
    session_id: str
    message_id: str
    attempt: int
    error: APIError
    time: UserTime


class SnapshotPart(Wire, tag_field="type", tag="snapshot"):
    """A named state of the work tree."""

    id: str
    session_id: str
    message_id: str
    snapshot: str


Part = (
    TextPart
    | ReasoningPart
    | FilePart
    | ToolPart
    | StepStartPart
    | StepFinishPart
    | PatchPart
    | AgentPart
    | SubtaskPart
    | CompactionPart
    | RetryPart
    | SnapshotPart
)
