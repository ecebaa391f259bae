"""Decides whether earlier thinking can be sent back to the service. Pure."""

import re

from codeloop.model.chat import AssistantTurn, ModelRequest, ReasoningPiece, ToolTurn, Turn
from codeloop.schema.errors import APIError, MessageError
from codeloop.schema.wire import replace

REFUSED = re.compile(
    r"thinking[`\w ]*blocks?.{0,120}cannot be modified|invalid [`'\"]?signature|signature.{0,60}(?:invalid|verif)"
    r"|expected [`'\"]?(?:thinking|redacted_thinking)|thinking.{0,80}must (?:match|remain|be passed back)",
    re.IGNORECASE | re.DOTALL,
)
"""The service's error for a thinking block that differs from what it sent."""


def is_refused(error: MessageError | None) -> bool:
    """Return whether the service refused a request for the thinking in it."""
    if not isinstance(error, APIError) or error.data.status_code != 400:
        return False
    return bool(REFUSED.search((error.data.response_body or error.data.message)[:4_000]))


def has_thinking(request: ModelRequest) -> bool:
    """Return whether a request holds thinking of earlier answers."""
    return any(isinstance(turn, AssistantTurn) and _thoughts(turn) for turn in request.turns)


def without_thinking(request: ModelRequest, count: int) -> ModelRequest:
    """Return a request without the thinking of its first `count` turns; the request itself when there is none."""
    if not count:
        return request
    turns = (*map(_strip, request.turns[:count]), *request.turns[count:])
    return request if turns == request.turns else replace(request, turns=turns)


def can_think(request: ModelRequest, ref: str) -> bool:
    """Return whether the service takes a thinking budget: not while a call is answered that was made without thinking.

    That is so for calls of another model, and for those whose thinking was left out.
    """
    if not request.turns or not isinstance(request.turns[-1], ToolTurn):
        return True
    last = next((turn for turn in reversed(request.turns) if isinstance(turn, AssistantTurn)), None)
    return last is None or (last.origin == ref and any(piece.metadata for piece in _thoughts(last)))


def _thoughts(turn: AssistantTurn) -> list[ReasoningPiece]:
    return [piece for piece in turn.content if isinstance(piece, ReasoningPiece)]


def _strip(turn: Turn) -> Turn:
    if not isinstance(turn, AssistantTurn) or not _thoughts(turn):
        return turn
    return AssistantTurn(tuple(piece for piece in turn.content if not isinstance(piece, ReasoningPiece)), turn.origin)
