"""Shared reading of answers: state, ending, and JSON of uncertain types."""

from collections.abc import Mapping
from typing import Any, ClassVar, TypeGuard

from codeloop.model.chat import Finished, FinishReason, ModelEvent, ReasoningDelta, TextDelta
from codeloop.model.wire.tool_calls import OpenCall, ToolCallAssembler
from codeloop.schema.message import NO_TOKENS, Tokens
from codeloop.schema.wire import JSON


class AnswerBlocks:
    """What a reader has begun: `kind` and `number` of the block whose text waits in `pieces`, and our `events`.

    Pieces of one block become one delta; `number` tells the blocks of an answer apart, -1 before the first.
    """

    def __init__(self) -> None:
        self.events: list[ModelEvent] = []
        self.calls = ToolCallAssembler()
        self.pieces: list[str] = []
        self.kind = ""
        self.number: int = -1
        self._open: dict[int, OpenCall] = {}

    def say(self, kind: str, number: int, words: str) -> None:
        """Add words to a block of text (`text`) or thinking (`reasoning`)."""
        if kind != self.kind or number != self.number:
            self.flush()
            self.kind, self.number = kind, number
        if words:
            self.pieces.append(words)

    def sign(self, number: int, metadata: dict[str, Any]) -> None:
        """Add what the service wants back with a block of thinking: its signature, or the thinking encrypted."""
        self.flush()
        self.events.append(ReasoningDelta("", number, metadata))

    def start_call(self, number: int, call_id: str, name: str) -> None:
        """Begin a call, whose arguments come in pieces."""
        self.flush()
        self._open[number], events = self.calls.open(call_id, name)
        self.events += events

    def add_arguments(self, number: int, words: str) -> None:
        """Add a piece to the arguments of a call that was begun; one of no such call is dropped."""
        if words and (call := self._open.get(number)) is not None:
            self.events += self.calls.add(call, words)

    def end(self, number: int) -> None:
        """End a block. One that the output limit cut ends alike: a call is ready if its arguments are whole."""
        self.flush()
        if (call := self._open.pop(number, None)) is not None:
            self.events += self.calls.complete(call)

    def flush(self) -> None:
        """Make a delta of the pieces that wait."""
        text = "".join(self.pieces)
        self.pieces.clear()
        if text:
            delta = TextDelta if self.kind == "text" else ReasoningDelta
            self.events.append(delta(text, self.number))

    def take_events(self) -> list[ModelEvent]:
        """Return the events that have come since the last time."""
        self.flush()
        events, self.events = self.events, []
        return events


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
    return value if value in ("flex", "priority") else ""
