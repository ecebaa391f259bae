"""Parts and items as sessions store them, in few words."""

from typing import Any

from codeloop.schema.errors import MessageError
from codeloop.schema.message import (
    AssistantMessage,
    AssistantTime,
    CacheTokens,
    MessagePath,
    ModelRef,
    Tokens,
    UserMessage,
    UserTime,
)
from codeloop.schema.part import (
    FilePart,
    Part,
    ReasoningPart,
    Span,
    TextPart,
    ToolPart,
    ToolStart,
    ToolState,
    ToolStateCompleted,
    ToolStateError,
    ToolStatePending,
    ToolStateRunning,
    ToolTime,
)
from codeloop.tui.state.conversation_items import (
    EndItem,
    PromptItem,
    ReasoningItem,
    TextItem,
    ToolItem,
)

SESSION, MESSAGE = "ses_1", "msg_1"
DIRECTORY = "/home/ada/project"
NOW = 1_700_000_000_000


def text(words: str, **given: Any) -> TextPart:
    return TextPart(id="prt_text", session_id=SESSION, message_id=MESSAGE, text=words, **given)


def answer(words: str, *, key: str = "prt_text", is_live: bool = False) -> TextItem:
    return TextItem(key=key, part=text(words), is_live=is_live)


def thought(words: str, *, seconds: float | None = 3.2, **given: Any) -> ReasoningItem:
    end = None if seconds is None else NOW + int(seconds * 1000)
    part = ReasoningPart(
        id="prt_think",
        session_id=SESSION,
        message_id=MESSAGE,
        text=words,
        time=Span(start=NOW, end=end),
    )
    return ReasoningItem(key="prt_think", part=part, is_live=seconds is None, **given)


def file(name: str, mime: str = "image/png", url: str = "data:image/png;base64,") -> FilePart:
    return FilePart(
        id="prt_file", session_id=SESSION, message_id=MESSAGE, mime=mime, url=url, filename=name
    )


def prompt(*parts: Part, **given: Any) -> PromptItem:
    message = UserMessage(
        id=MESSAGE,
        session_id=SESSION,
        time=UserTime(created=NOW),
        agent="build",
        model=ModelRef(provider_id="p", model_id="m"),
    )
    return PromptItem(key=MESSAGE, message=message, parts=parts, **given)


def end(
    *, error: MessageError | None = None, steps: int = 3, cost: float = 0.0421, **given: Any
) -> EndItem:
    message = AssistantMessage(
        id="msg_2",
        session_id=SESSION,
        parent_id=MESSAGE,
        model_id="claude-sonnet",
        provider_id="anthropic",
        mode="build",
        agent="build",
        path=MessagePath(cwd=DIRECTORY, root=DIRECTORY),
        cost=cost,
        tokens=Tokens(input=12, output=3, reasoning=0, cache=CacheTokens(read=0, write=0)),
        time=AssistantTime(created=NOW, completed=NOW + 34_000),
        error=error,
    )
    sums: dict[str, Any] = {
        "tokens_in": 48_200,
        "cached_tokens": 41_000,
        "tokens_out": 1_830,
        "ms": 34_000,
        **given,
    }
    return EndItem(key="msg_2", message=message, steps=steps, cost=cost, **sums)


def tool(name: str, state: ToolState, *, key: str = "prt_call", **given: Any) -> ToolItem:
    part = ToolPart(
        id=key, session_id=SESSION, message_id=MESSAGE, call_id="call_1", tool=name, state=state
    )
    return ToolItem(key=key, part=part, **given)


def pending(
    name: str, arguments: dict[str, Any] | None = None, raw: str = "", **given: Any
) -> ToolItem:
    return tool(name, ToolStatePending(input=arguments or {}, raw=raw), **given)


def running(
    name: str,
    arguments: dict[str, Any],
    metadata: dict[str, Any] | None = None,
    *,
    seconds: float = 4.2,
    **given: Any,
) -> ToolItem:
    """Return a call that has been running for so many seconds at `NOW`."""
    start = ToolStart(start=NOW - int(seconds * 1000))
    return tool(name, ToolStateRunning(input=arguments, time=start, metadata=metadata), **given)


def done(
    name: str,
    arguments: dict[str, Any],
    output: str = "",
    metadata: dict[str, Any] | None = None,
    *,
    title: str = "",
    ms: int = 40,
    **given: Any,
) -> ToolItem:
    state = ToolStateCompleted(
        input=arguments,
        output=output,
        title=title,
        metadata=metadata or {},
        time=ToolTime(start=NOW, end=NOW + ms),
        attachments=given.pop("attachments", None),
    )
    return tool(name, state, **given)


def failed(
    name: str,
    arguments: dict[str, Any],
    error: str,
    metadata: dict[str, Any] | None = None,
    **given: Any,
) -> ToolItem:
    time = ToolTime(start=NOW, end=NOW + 40)
    return tool(
        name, ToolStateError(input=arguments, error=error, metadata=metadata, time=time), **given
    )
