"""The base of all protocols' readers of answers: the open blocks of an answer, and how it ended."""

from collections.abc import Mapping
from typing import Any, ClassVar

from codeloop.model.chat import Finished, FinishReason, ModelEvent, ReasoningDelta, TextDelta
from codeloop.model.wire.tool_calls import OpenCall, ToolCallAssembler
from codeloop.schema.message import NO_TOKENS, Tokens
from codeloop.schema.wire import DECODE_ERRORS, JSON

_STOPPED = "the service stopped the answer"
EARLY_ENDS: Mapping[str, JSON] = {
    "model_context_window_exceeded": {
        "code": "context_window_exceeded",
        "message": "the answer has filled the model's context window",
    },
    "insufficient_system_resource": {
        "code": 503,
        "message": f"{_STOPPED}: it has too few resources now",
    },
    "network_error": {"code": 503, "message": f"{_STOPPED}: its own network failed"},
    **{
        name: {"code": 503, "message": _STOPPED}
        for name in ("abort", "aborted", "cancelled", "canceled", "timeout")
    },
    "error": {"message": f"{_STOPPED} with an error and gave no reason"},
}
"""Finish reasons of several services that are failures in truth -> the error: half an
answer must not count as done.
"""


class AnswerBlocks:
    """The open blocks of an answer, and the events so far.

    `kind` and `number` are those of the block that `pieces` belong to. Pieces of one block become
    one delta. `kind` is `text`, `reasoning` (thinking) or `call`; `number` tells the blocks of an
    answer apart, and is -1 before the first.
    """

    def __init__(self) -> None:
        self.events: list[ModelEvent] = []
        self.calls = ToolCallAssembler()
        self.pieces: list[str] = []
        self.kind = ""
        self.number: int = -1
        self._open_calls: dict[int, OpenCall] = {}

    def add_text(self, kind: str, number: int, text: str) -> None:
        """Add text to a block of the kind `text` or `reasoning`;
        "" begins the block without any text.
        """
        # Pieces of one block are joined, so a delta ends where the block changes.
        if kind != self.kind or number != self.number:
            self.flush()
            self.kind, self.number = kind, number
        if text:
            self.pieces.append(text)

    def add_metadata(self, number: int, metadata: dict[str, Any]) -> None:
        """Add the signature or encrypted text of a block of thinking,
        which later requests send back.
        """
        self.flush()
        self.events.append(ReasoningDelta("", number, metadata))

    def start_call(self, number: int, call_id: str, name: str) -> None:
        """Begin a call whose arguments come in pieces;
        text that came before it is passed on first.
        """
        self.flush()
        self._open_calls[number], events = self.calls.open_call(call_id, name)
        self.events += events

    def add_arguments(self, number: int, text: str) -> None:
        """Add a piece to the arguments of an open call; without such a call it is dropped."""
        if text and (call := self._open_calls.get(number)) is not None:
            self.events += self.calls.add_arguments(call, text)

    def end_block(self, number: int) -> None:
        """End a block. A call is ready if its arguments are complete;
        the output limit may have cut them.
        """
        self.flush()
        if (call := self._open_calls.pop(number, None)) is not None:
            self.events += self.calls.complete_call(call)

    def flush(self) -> None:
        """Join the pieces so far to one delta (see decision 0002: neighbouring deltas
        of one chunk are joined).
        """
        text = "".join(self.pieces)
        self.pieces.clear()
        if text:
            delta = TextDelta if self.kind == "text" else ReasoningDelta
            self.events.append(delta(text, self.number))

    def take_events(self) -> list[ModelEvent]:
        """Return the events that have come since the last call."""
        self.flush()
        events, self.events = self.events, []
        return events


class ResponseReader:
    """Turns a service's events of one answer into ModelEvents; each protocol has a subclass.

    `is_done`: nothing more has to be read. `has_ended`: the service said why it stopped.
    `error`: the service's error.
    """

    finish_reasons: ClassVar[Mapping[str, FinishReason]] = {}
    """The service's finish reasons -> ours; others count as "stop"."""

    def __init__(self) -> None:
        self.is_done = False
        self.has_ended = False
        self.error: Any = None
        self.tokens: Tokens = NO_TOKENS
        self._blocks = AnswerBlocks()
        self._reason = ""

    def feed(self, payloads: list[bytes]) -> list[ModelEvent]:
        """Take the data of the next events; text that belongs together becomes one delta."""
        for payload in payloads:
            try:
                self._read_event(payload)
            except DECODE_ERRORS as error:
                # The marker that ends streams of chat completions is not an event;
                # some gateways send it with others.
                if payload != b"[DONE]":
                    self._set_error({"message": f"an event is not what the protocol says: {error}"})
            if self.is_done:
                break
        return self._blocks.take_events()

    def read_document(self, body: bytes) -> list[ModelEvent]:
        """Take an answer that was not streamed: one JSON document."""
        try:
            self._read_document(body)
        except DECODE_ERRORS as error:
            self._set_error({"message": f"the answer is not what the protocol says: {error}"})
        return self._blocks.take_events()

    def finish(self) -> list[ModelEvent]:
        """Return the remaining events and Finished. Only after `has_ended`."""
        reason = self.finish_reasons.get(self._reason, "stop")
        events = self._blocks.take_events() + self._blocks.calls.finish_calls(
            complete=reason not in {"length", "content-filter"}
        )
        # Services mix these two up: what counts is whether there is a call.
        if reason in {"stop", "tool-calls"}:
            reason = "tool-calls" if self._blocks.calls.has_ready_call else "stop"
        return [*events, Finished(reason, self.tokens)]

    def _read_event(self, payload: bytes) -> None:
        """Decode an event and read it. What msgspec raises is left to the caller,
        as in `_read_document`.
        """
        raise NotImplementedError

    def _read_document(self, body: bytes) -> None:
        raise NotImplementedError

    def _set_reason(self, reason: str) -> None:
        """Take the reason for which the answer ended, which may be an error."""
        self._reason = reason
        self.has_ended = True
        if reason in EARLY_ENDS:
            self._set_error({"error": EARLY_ENDS[reason]})

    def _set_error(self, error: JSON) -> None:
        # The first error is the cause; later ones follow from it.
        if self.error is None:
            self.error = error
        self.is_done = True


def read_tier(value: Any) -> str:
    """Return the service tier of a request if its price differs from the standard price,
    else "".
    """
    return value if value in ("flex", "priority") else ""
