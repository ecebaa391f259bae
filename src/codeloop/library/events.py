"""What a turn tells while it goes on, and the answer that it ends with."""

from collections.abc import Mapping
from typing import Generic, Literal, TypeVar

from msgspec import Struct

from codeloop.schema.message import NO_TOKENS, Tokens

T = TypeVar("T")
NOTHING: Mapping[str, object] = {}


class ToolUse(Struct, frozen=True, kw_only=True):
    """A call that the model made, as far as it has come."""

    id: str
    """The model's own id of the call."""
    tool: str
    """The tool's name, such as `bash` or the name of your function."""
    state: Literal["running", "completed", "failed"]
    title: str = ""
    """What it does, in a few words."""
    arguments: Mapping[str, object] = NOTHING
    """What the model gave."""
    output: str = ""
    """What the model reads: the result, or the error of a call that failed."""
    metadata: Mapping[str, object] = NOTHING
    """What the tool says for people and programs: a diff, an exit code."""


class TextAdded(Struct, frozen=True):
    """More of the answer's text."""

    text: str


class ThinkingAdded(Struct, frozen=True):
    """More of what the model thinks, where its service tells."""

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
    """One request to the model and its calls are done."""

    number: int
    """1 for the first of the turn."""
    cost: float
    """Of this step, in dollars."""
    tokens: Tokens


class FilesChanged(Struct, frozen=True):
    """A step changed files."""

    files: tuple[str, ...]
    """Absolute paths."""


class RetryWaiting(Struct, frozen=True):
    """The model's service refused for now; the request is sent again."""

    message: str
    attempt: int
    at: int
    """When, in milliseconds since the epoch."""


class Notice(Struct, frozen=True):
    """Something that a user should know and that is no part of the conversation."""

    message: str
    level: Literal["info", "success", "warning", "error"] = "info"


class Answer(Struct, Generic[T], frozen=True, kw_only=True):
    """What a turn came to."""

    text: str
    """What the model said last."""
    result: T
    """The value that was asked for with `result=`; None without it."""
    session_id: str
    """The session, for `project.session(id)`."""
    message_id: str
    """The id of the last answer."""
    reason: str = "done"
    """Why the turn ended: `done`, or in the answer of an error `limit`, `timeout`, `rejected`, `aborted`, `error`."""
    steps: int = 0
    """Requests to the model."""
    cost: float = 0.0
    """Dollars, subagents included."""
    tokens: Tokens = NO_TOKENS
    """All tokens of the turn, subagents included."""
    files: tuple[str, ...] = ()
    """The files that it changed: absolute paths."""
    tools: tuple[ToolUse, ...] = ()
    """The calls that it made, in order."""
    duration: float = 0.0
    """Seconds."""

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
"""Everything that `stream` yields: `match` on the class."""
