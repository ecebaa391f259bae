"""A model that plays scripted answers: for demos, tests, benchmarks and documentation."""

from collections.abc import AsyncGenerator, Iterator, Sequence
from typing import NamedTuple

import msgspec

from codeloop.model.chat import (
    CallDelta,
    CallReady,
    CallStarted,
    Finished,
    ModelEvent,
    ModelInfo,
    ModelRequest,
    ReasoningDelta,
    RetryScheduled,
    TextDelta,
    TokenLimits,
)
from codeloop.model.testing.script import (
    NO_PATHS,
    CallBlock,
    ProjectPaths,
    ReasoningBlock,
    RequestKind,
    RetryBlock,
    ScriptedAnswer,
    ScriptedCall,
    TextBlock,
    classify_request,
    fill_paths,
)
from codeloop.schema.errors import MessageError, UnknownData, UnknownError

SCRIPT_INFO = ModelInfo(
    provider_id="scripted",
    id="script",
    name="Script",
    limits=TokenLimits(context=200_000, output=32_000),
    attachment=True,
)
_YIELD_INTERVAL = 50
"""Pieces without pauses, after which other tasks get a chance to run."""


class ScriptedModel:
    """Replies with `answers` in order: requests with tools get those of kind `main`,
    all others those of kind `side`.

    When there is no answer left, a request ends with an error that says so.
    """

    def __init__(
        self,
        answers: Sequence[ScriptedAnswer],
        info: ModelInfo = SCRIPT_INFO,
        paths: ProjectPaths = NO_PATHS,
        name: str = "The script",
    ) -> None:
        self._info = info
        self._paths = paths
        self._name = name
        self._remaining: dict[RequestKind, list[ScriptedAnswer]] = {
            "main": [answer for answer in answers if answer.kind == "main"],
            "side": [answer for answer in answers if answer.kind == "side"],
        }
        self._answer_count = 0

    @property
    def info(self) -> ModelInfo:
        """The model's metadata."""
        return self._info

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent]:
        """Yield the next answer of the request's kind."""
        kind = classify_request(request)
        scripted_answers = self._remaining[kind]
        if not scripted_answers:
            yield Finished(
                "error",
                error=make_script_error(
                    f"{self._name} has no further answer for a {kind} request."
                ),
            )
            return
        self._answer_count += 1
        async for event in play_answer(
            fill_paths(scripted_answers.pop(0), self._paths), self._answer_count
        ):
            yield event


async def play_answer(
    answer: ScriptedAnswer, number: int, speed: float = 1.0
) -> AsyncGenerator[ModelEvent]:
    """Yield an answer's events up to `Finished`; its pauses are multiplied by `speed`."""
    import asyncio

    for count, (wait, event) in enumerate(play_pieces(answer, number)):
        # Even `sleep(0)` at every piece would make benchmarks measure the event loop.
        if wait * speed or not count % _YIELD_INTERVAL:
            await asyncio.sleep(wait * speed)
        yield event
    yield Finished(answer.infer_finish_reason(), answer.to_tokens(), answer.error)


class TimedEvent(NamedTuple):
    """An event, and the seconds to wait before it."""

    wait: float
    event: ModelEvent


def play_pieces(answer: ScriptedAnswer, number: int) -> Iterator[TimedEvent]:
    """Yield an answer's events before `Finished`, with the pauses before them.
    `number` makes call ids distinct.
    """
    for index, block in enumerate(answer.list_blocks()):
        match block:
            case TextBlock():
                for wait, piece in _split_text(block.text, block.deltas, block.ms):
                    yield TimedEvent(wait, TextDelta(piece, index))
            case ReasoningBlock():
                for wait, piece in _split_text(block.text, block.deltas, block.ms):
                    yield TimedEvent(wait, ReasoningDelta(piece, index))
                if block.metadata:
                    yield TimedEvent(0, ReasoningDelta("", index, block.metadata))
            case CallBlock(call=call, deltas=deltas, ms=ms):
                yield from _play_call(call, deltas, ms, call.id or f"call_{number}_{index}")
            case RetryBlock(attempt=attempt, message=message, ms=ms):
                yield TimedEvent(ms / 1000, RetryScheduled(attempt, message, 0))


def _play_call(call: ScriptedCall, deltas: int, ms: int, call_id: str) -> Iterator[TimedEvent]:
    # Text is sent as it is: scripts can make a model send broken JSON.
    raw = (
        call.arguments
        if isinstance(call.arguments, str)
        else msgspec.json.encode(call.arguments).decode()
    )
    yield TimedEvent(0, CallStarted(call_id, call.name))
    for wait, piece in _split_text(raw, deltas, ms):
        yield TimedEvent(wait, CallDelta(call_id, piece))
    if call.complete:
        yield TimedEvent(0, CallReady(call_id, call.name, raw))


def _split_text(text: str, count: int, ms: int) -> Iterator[tuple[float, str]]:
    """Split a text into `count` pieces of about one length, none empty,
    each with its share of `ms` in seconds.
    """
    # More pieces than characters would leave some empty.
    count = max(1, min(count, len(text)))
    for index in range(count if text else 0):
        piece = text[len(text) * index // count : len(text) * (index + 1) // count]
        yield ms / count / 1000, piece


def make_script_error(message: str) -> MessageError:
    """Return the error that ends a stream when the script does not fit the requests."""
    return UnknownError(data=UnknownData(message=message))
