"""Assembles the blocks of a streaming answer: text pieces and open calls."""

from typing import Any

from codeloop.model.chat import ModelEvent, ReasoningDelta, TextDelta
from codeloop.model.wire.tool_calls import OpenCall, ToolCallAssembler


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
