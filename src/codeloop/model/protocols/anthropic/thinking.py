"""Decides whether earlier thinking can be sent back to Anthropic's service,
and removes it from requests. Pure.

Thinking blocks are signed: the service refuses those that another model made, or that were changed.
"""

from codeloop.kit.text.patterns import compile_once
from codeloop.model.chat import (
    AssistantModelMessage,
    ModelMessage,
    ModelRequest,
    ReasoningPiece,
    ToolModelMessage,
)
from codeloop.schema.errors import APIError, MessageError
from codeloop.schema.wire import replace

REFUSAL_PATTERN = (
    r"(?is)thinking[`\w ]*blocks?.{0,120}cannot be modified|invalid [`'\"]?signature|signature.{0,60}(?:invalid|verif)"
    r"|expected [`'\"]?(?:thinking|redacted_thinking)|thinking.{0,80}must (?:match|remain|be passed back)"
)
"""Matches the error messages for thinking blocks that are modified, missing or wrongly signed."""


def is_thinking_refused(error: MessageError | None) -> bool:
    """Return whether the service refused a request for the thinking in it."""
    if not isinstance(error, APIError) or error.data.status_code != 400:
        return False
    # There is no code for it: only the message tells it from other invalid requests.
    return bool(
        compile_once(REFUSAL_PATTERN).search(
            (error.data.response_body or error.data.message)[:4_000]
        )
    )


def has_thinking(request: ModelRequest) -> bool:
    """Return whether a request holds thinking of earlier answers."""
    return any(
        isinstance(message, AssistantModelMessage) and _list_thoughts(message)
        for message in request.messages
    )


def remove_thinking(request: ModelRequest, count: int) -> ModelRequest:
    """Return a request without the thinking of its first `count` messages;
    the request itself when there is none.
    """
    if not count:
        return request
    messages = (*map(_strip_thinking, request.messages[:count]), *request.messages[count:])
    return request if messages == request.messages else replace(request, messages=messages)


def can_have_budget(request: ModelRequest, ref: str) -> bool:
    """Return whether a request may have a thinking budget.

    A request that ends with tool results may have one only if the answer that made the calls has
    thinking blocks of this model (`ref`): the service rejects it otherwise. Answers of other
    models, and answers whose thinking was dropped, have none.
    """
    if not request.messages or not isinstance(request.messages[-1], ToolModelMessage):
        return True
    last = next(
        (
            message
            for message in reversed(request.messages)
            if isinstance(message, AssistantModelMessage)
        ),
        None,
    )
    return last is None or (
        last.origin == ref and any(piece.metadata for piece in _list_thoughts(last))
    )


def _list_thoughts(message: AssistantModelMessage) -> list[ReasoningPiece]:
    return [piece for piece in message.content if isinstance(piece, ReasoningPiece)]


def _strip_thinking(message: ModelMessage) -> ModelMessage:
    if not isinstance(message, AssistantModelMessage) or not _list_thoughts(message):
        return message
    return AssistantModelMessage(
        tuple(piece for piece in message.content if not isinstance(piece, ReasoningPiece)),
        message.origin,
    )
