"""The events of a running turn, and the answer that it ends with."""

from collections.abc import Mapping
from typing import Generic, Literal, TypeVar

from msgspec import Struct

from codeloop.schema.message import NO_TOKENS, Tokens

T = TypeVar("T")
EMPTY_MAPPING: Mapping[str, object] = {}


class ToolUse(Struct, frozen=True, kw_only=True):
    """A tool call of the model, in its present state."""

    id: str
    """The model's own id of the call."""
    tool: str
    """The tool's name, such as `bash` or the name of your function."""
    state: Literal["running", "completed", "failed"]
    title: str = ""
    """What the call does, in a few words."""
    arguments: Mapping[str, object] = EMPTY_MAPPING
    """The arguments that the model gave."""
    output: str = ""
    """The text that the model reads: the result, or the error of a call that failed."""
    metadata: Mapping[str, object] = EMPTY_MAPPING
    """Data of the tool for users and programs, such as a diff or an exit code."""


class TextAdded(Struct, frozen=True):
    """More of the answer's text."""

    text: str


class ThinkingAdded(Struct, frozen=True):
    """More of the model's thinking, if its service sends that."""

    text: str


class ToolStarted(Struct, frozen=True):
    """A call begins; it may still wait for a permission."""

    use: ToolUse


class ToolReported(Struct, frozen=True):
    """A call shows its progress."""

    use: ToolUse


class ToolEnded(Struct, frozen=True):
    """A call has its result."""

    use: ToolUse


class StepEnded(Struct, frozen=True):
    """A step has ended: one request to the model, and the calls that it made."""

    number: int
    """The number of the step; the first of a turn is 1."""
    cost: float
    """The cost of the step, in dollars."""
    tokens: Tokens


class FilesChanged(Struct, frozen=True):
    """A step changed files."""

    files: tuple[str, ...]
    """Absolute paths."""


class RetryWaiting(Struct, frozen=True):
    """The model's service refused a request for now; the request will be sent again."""

    message: str
    attempt: int
    at: int
    """When it will be sent again, in milliseconds since the epoch."""


class Notice(Struct, frozen=True):
    """A notice for the user that is not part of the conversation."""

    message: str
    level: Literal["info", "success", "warning", "error"] = "info"


class Answer(Struct, Generic[T], frozen=True, kw_only=True):
    """The outcome of a turn."""

    text: str
    """The text of the model's last message."""
    result: T
    """The value of the type requested with `result=`; None if no type was requested."""
    session_id: str
    """The session, for `project.session(id)`."""
    message_id: str
    """The id of the last answer."""
    reason: str = "done"
    """Why the turn ended: `done`; in the answer of an error for example `limit`, `timeout`,
    `aborted`, `error`.
    """
    steps: int = 0
    """The number of requests to the model."""
    cost: float = 0.0
    """The cost in dollars, subagents included."""
    tokens: Tokens = NO_TOKENS
    """All tokens of the turn, subagents included."""
    files: tuple[str, ...] = ()
    """The absolute paths of the files that the turn changed."""
    tools: tuple[ToolUse, ...] = ()
    """The tool calls of the turn, in order."""
    duration: float = 0.0
    """The duration of the turn, in seconds."""

    def __str__(self) -> str:
        """Return the text."""
        return self.text


class TurnDone(Struct, frozen=True):
    """The turn is over: the last event of a stream."""

    answer: Answer[None]


SessionEvent = (
    TextAdded
    | ThinkingAdded
    | ToolStarted
    | ToolReported
    | ToolEnded
    | StepEnded
    | FilesChanged
    | RetryWaiting
    | Notice
    | TurnDone
)
"""An event that `stream` yields; use `match` on its class."""
