"""Folds the events of one stream into a `ScriptedAnswer`, which a recording stores."""

import time

import msgspec

from codeloop.model.chat import (
    CallDelta,
    CallReady,
    CallStarted,
    Finished,
    ModelEvent,
    ReasoningDelta,
    RetryScheduled,
    TextDelta,
    UsageUpdate,
)
from codeloop.model.testing.script import (
    Block,
    CallBlock,
    Count,
    Kind,
    ReasoningBlock,
    RecordedRequest,
    RetryBlock,
    ScriptedAnswer,
    ScriptedCall,
    TextBlock,
)
from codeloop.schema.message import Tokens
from codeloop.schema.wire import JSON


class EventFold:
    """The events of one stream; time runs from its creation."""

    def __init__(self) -> None:
        self._blocks: list[Block] = []
        self._open: dict[str, int] = {}
        self._block = -1
        self._last = time.monotonic()
        self._end = Finished("cut")

    def add(self, event: ModelEvent) -> None:
        """Take the next event."""
        ms = self._measure_gap()
        match event:
            case TextDelta(text=text, block=block):
                self._extend(TextBlock(text, ms=ms), block)
            case ReasoningDelta(text=text, block=block, metadata=metadata):
                self._extend(ReasoningBlock(text, metadata, ms=ms), block)
            case CallStarted(id=call_id, name=name):
                self._open[call_id] = len(self._blocks)
                self._append(CallBlock(ScriptedCall(name, "", call_id, complete=False), deltas=0, ms=ms))
            case CallDelta(id=call_id, text=text):
                self._grow(call_id, text, ms)
            case CallReady():
                self._close(event, ms)
            case RetryScheduled(attempt=attempt, message=message):
                self._append(RetryBlock(attempt, message, ms))
            case UsageUpdate(tokens=tokens):
                self._end = Finished("cut", tokens)
            case Finished():
                self._end = event

    def answer(self, kind: Kind, recorded_request: RecordedRequest) -> ScriptedAnswer:
        """Return the collected answer to a request; without a `Finished` it was `cut`."""
        end = self._end
        return ScriptedAnswer(
            kind=kind,
            content=tuple(self._blocks),
            finish=end.reason,
            tokens=_count(end.tokens),
            error=end.error,
            request=recorded_request,
        )

    def _measure_gap(self) -> int:
        now = time.monotonic()
        ms = int((now - self._last) * 1000)
        self._last += ms / 1000
        return ms

    def _append(self, block: Block) -> None:
        self._block = -1
        self._blocks.append(block)

    def _extend(self, piece: TextBlock | ReasoningBlock, number: int) -> None:
        last = self._blocks[-1] if self._blocks and self._block == number else None
        match last, piece:
            case (TextBlock(), TextBlock()) | (ReasoningBlock(), ReasoningBlock()):
                more: dict[str, object] = {
                    "text": last.text + piece.text, "deltas": last.deltas + 1, "ms": last.ms + piece.ms
                }  # fmt: skip
                if isinstance(last, ReasoningBlock) and isinstance(piece, ReasoningBlock):
                    more["metadata"] = {**last.metadata, **piece.metadata}
                self._blocks[-1] = msgspec.structs.replace(last, **more)
            case _:
                self._append(piece)
                self._block = number

    def _grow(self, call_id: str, text: str, ms: int) -> None:
        index = self._open.get(call_id)
        block = self._blocks[index] if index is not None else None
        if index is None or not isinstance(block, CallBlock):
            return
        call = msgspec.structs.replace(block.call, arguments=f"{block.call.arguments}{text}")
        self._blocks[index] = msgspec.structs.replace(block, call=call, deltas=block.deltas + 1, ms=block.ms + ms)

    def _close(self, event: CallReady, ms: int) -> None:
        call = ScriptedCall(event.name, _object(event.arguments), event.id)
        index = self._open.pop(event.id, None)
        if index is None:
            self._append(CallBlock(call, ms=ms))
            return
        block = self._blocks[index]
        self._blocks[index] = CallBlock(
            call, max(1, block.deltas if isinstance(block, CallBlock) else 1), block.ms + ms
        )


def _object(arguments: str) -> JSON | str:
    """Parse arguments if they are a JSON object that survives encoding; else return the text."""
    try:
        value = msgspec.json.decode(arguments, type=JSON)
    except (msgspec.DecodeError, UnicodeError):
        return arguments
    return value if msgspec.json.decode(msgspec.json.encode(value)) == value else arguments


def _count(tokens: Tokens) -> Count:
    return Count(
        input=tokens.input,
        output=tokens.output,
        reasoning=tokens.reasoning,
        cache_read=tokens.cache.read,
        cache_write=tokens.cache.write,
    )
