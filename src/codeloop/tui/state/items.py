"""The items of a conversation on the screen. A changed item is a new object with the same key."""

from typing import Literal

from msgspec import Struct

from codeloop.schema.message import AssistantMessage, UserMessage
from codeloop.schema.part import Part, ReasoningPart, TextPart, ToolPart

NoticeLook = Literal["info", "success", "warning", "error"]


class PromptItem(Struct, frozen=True):
    """A prompt that the user sent, or the program on their behalf; `key` is the message's id.

    `is_undone`: it was undone and can be redone. `is_open`: all of it is shown, however long it is.
    """

    key: str
    message: UserMessage
    parts: tuple[Part, ...]
    is_undone: bool = False
    is_open: bool = False


class TextItem(Struct, frozen=True):
    """Text of an answer; `key` is the part's id. `is_live`: it still grows."""

    key: str
    part: TextPart
    is_live: bool = False


class ReasoningItem(Struct, frozen=True):
    """The model's thinking; `is_open`: all of it is shown."""

    key: str
    part: ReasoningPart
    is_live: bool = False
    is_open: bool = False


class Child(Struct, frozen=True):
    """A subagent's session as shown in its call: its state, and its latest calls, oldest first."""

    session_id: str
    title: str
    agent: str = ""
    state: str = ""
    calls: tuple[ToolPart, ...] = ()
    steps: int = 0


class ToolItem(Struct, frozen=True):
    """A tool call; `key` is the part's id. `is_open`: all of its output is shown. `is_asking`: the user is asked.

    `resumed_at`: when the user answered, in ms since the epoch.
    """

    key: str
    part: ToolPart
    child: Child | None = None
    is_open: bool = False
    is_asking: bool = False
    resumed_at: int = 0


class SummaryItem(Struct, frozen=True):
    """Where the conversation was compacted; `text`: the summary, which is shown when `is_open`."""

    key: str
    text: str
    is_live: bool = False
    is_open: bool = False


class EndItem(Struct, frozen=True):
    """The end of a turn: its last answer, and what the turn has used.

    `steps`: requests to the model; `tokens_in` (of which `cached_tokens` came from the cache) and `tokens_out`: their
    sums; `cost` in dollars; `ms`: how long the turn took.
    """

    key: str
    message: AssistantMessage
    steps: int
    tokens_in: int
    cached_tokens: int
    tokens_out: int
    cost: float
    ms: int
    is_estimated: bool = False


class NoticeItem(Struct, frozen=True):
    """A notice of the program."""

    key: str
    text: str
    look: NoticeLook = "info"


Item = PromptItem | TextItem | ReasoningItem | ToolItem | SummaryItem | EndItem | NoticeItem
