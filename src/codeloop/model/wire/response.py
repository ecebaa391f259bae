"""Shared reading of answers: state, ending, and JSON of uncertain types."""

from collections.abc import Mapping
from typing import Any, ClassVar, TypeGuard

from codeloop.model.chat import Finished, FinishReason, ModelEvent
from codeloop.model.wire.blocks import AnswerBlocks
from codeloop.schema.message import NO_TOKENS, Tokens
from codeloop.schema.wire import JSON


class ResponseReader:
    """Turns the events of one answer into ours; each protocol derives its own.

    `done`: nothing more is needed. `ended`: the service said why it stopped. `error`: what it said went wrong.
    """

    reasons: ClassVar[Mapping[str, FinishReason]] = {}
    """Services' finish reasons -> ours; others count as "stop"."""

    def __init__(self) -> None:
        self.done = False
        self.ended = False
        self.error: Any = None
        self.tokens: Tokens = NO_TOKENS
        self._blocks = AnswerBlocks()
        self._reason = ""

    def feed(self, payloads: list[bytes]) -> list[ModelEvent]:
        """Take the data of the next events; text that belongs together becomes one delta."""
        for payload in payloads:
            self._take(payload)
            if self.done:
                break
        return self._blocks.take_events()

    def read_whole(self, body: bytes) -> list[ModelEvent]:
        """Take an answer that did not stream: one JSON document."""
        raise NotImplementedError

    def finish(self) -> list[ModelEvent]:
        """Return the events that are still open, and Finished. Only after `ended`."""
        reason = self.reasons.get(self._reason, "stop")
        events = self._blocks.take_events() + self._blocks.calls.finish(
            complete=reason not in {"length", "content-filter"}
        )
        if reason in {"stop", "tool-calls"}:
            reason = "tool-calls" if self._blocks.calls.any_ready else "stop"
        return [*events, Finished(reason, self.tokens)]

    def _take(self, payload: bytes) -> None:
        raise NotImplementedError

    def _fail(self, error: JSON) -> None:
        if self.error is None:
            self.error = error
        self.done = True


def is_json_object(value: Any) -> TypeGuard[JSON]:
    """Return whether the value is a JSON object."""
    return isinstance(value, dict)


def is_json_list(value: Any) -> TypeGuard[list[Any]]:
    """Return whether the value is a JSON array."""
    return isinstance(value, list)


def items(value: Any) -> list[JSON]:
    """Return the objects of a list, or the one object that a service sent instead of a list."""
    if is_json_object(value):
        return [value]
    return [entry for entry in value if is_json_object(entry)] if is_json_list(value) else []


def count(source: Mapping[str, Any], *path: str) -> int:
    """Return the whole number at the path; 0 without one."""
    value: Any = source
    for name in path:
        value = value.get(name) if is_json_object(value) else None
    return int(value) if isinstance(value, (int, float)) and value > 0 else 0


def text(value: Any) -> str:
    """Return the value when it is text, else ""."""
    return value if isinstance(value, str) else ""


def tier_of(value: Any) -> str:
    """Return the tier of a request that costs other than the standard one; "": it does not."""
    return value if value in {"flex", "priority"} else ""
