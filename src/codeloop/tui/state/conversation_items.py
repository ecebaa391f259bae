"""The items that the screen shows of a conversation.
A changed item is a new object with the same key.
"""

from typing import Literal

from msgspec import Struct

from codeloop.schema.message import AssistantMessage, UserMessage
from codeloop.schema.part import Part, ReasoningPart, TextPart, ToolPart

NoticeKind = Literal["info", "success", "warning", "error"]


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
    """A text of an answer; `key` is the part's id. `is_live`: the model is still writing it."""

    key: str
    part: TextPart
    is_live: bool = False


class ReasoningItem(Struct, frozen=True):
    """The model's thinking; `key` is the part's id. `is_live`: the model is still thinking;
    `is_open`: all is shown.
    """

    key: str
    part: ReasoningPart
    is_live: bool = False
    is_open: bool = False


class SubagentSummary(Struct, frozen=True):
    """A subagent's session as shown in the call that started it.
    `calls`: its latest ones, oldest first.

    `state`: as the session's metadata have it, such as `running`; `steps`: its completed answers.
    """

    session_id: str
    title: str
    agent: str = ""
    state: str = ""
    calls: tuple[ToolPart, ...] = ()
    steps: int = 0


class ToolItem(Struct, frozen=True):
    """A tool call; `key` is the part's id. `child`: the subagent that it started.
    `is_open`: all its output is shown.

    `is_asking`: it waits for the user's answer; `resumed_at`: when the user answered, in ms since
    the epoch. `is_own`: the user ran it. `is_outdated`: a later call shows what this one did,
    such as the list of tasks.
    """

    key: str
    part: ToolPart
    child: SubagentSummary | None = None
    is_open: bool = False
    is_asking: bool = False
    resumed_at: int = 0
    is_own: bool = False
    is_outdated: bool = False


class FoldItem(Struct, frozen=True):
    """The line above calls in a row that only read or search;
    the calls themselves are shown if it `is_open`.
    """

    key: str
    calls: tuple[ToolPart, ...]
    is_open: bool = False


class SummaryItem(Struct, frozen=True):
    """The point at which the conversation was compacted;
    `text`: the summary, which is shown if `is_open`.
    """

    key: str
    text: str
    is_live: bool = False
    is_open: bool = False


class EndItem(Struct, frozen=True):
    """The end of a turn: its last answer, and what the turn has used.

    `steps`: requests to the model; `tokens_in` (of which `cached_tokens` came from the cache) and
    `tokens_out`: their sums; `cost` in dollars; `ms`: how long the turn took. `is_estimated`: the
    service did not count all tokens.
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
    """A notice of the program, which is not part of the conversation."""

    key: str
    text: str
    kind: NoticeKind = "info"


Item = (
    PromptItem | TextItem | ReasoningItem | ToolItem | FoldItem | SummaryItem | EndItem | NoticeItem
)
