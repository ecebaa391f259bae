"""Models that play scripted answers: those of a recording that `answer_recorder.py` has made
(`--replay`), with a report where a run differs from it; or those of demos, tests and benchmarks.
"""

import hashlib
from collections.abc import AsyncGenerator, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from codeloop.model.chat import (
    AssistantModelMessage,
    CallDelta,
    CallPiece,
    CallReady,
    CallStarted,
    Finished,
    ModelEvent,
    ModelInfo,
    ModelMessage,
    ModelRequest,
    ReasoningDelta,
    RetryScheduled,
    TextDelta,
    TokenLimits,
    ToolModelMessage,
    UserModelMessage,
)
from codeloop.model.testing.script import (
    NO_PATHS,
    CallBlock,
    ProjectPaths,
    ReasoningBlock,
    RecordedRequest,
    RequestKind,
    RetryBlock,
    ScriptedAnswer,
    ScriptedCall,
    TextBlock,
    classify_request,
    fill_paths,
    read_answers,
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


class _NumberedAnswer(NamedTuple):
    number: int
    """Its place in the recording, from 1."""
    answer: ScriptedAnswer


class ReplayModel:
    """Plays a recording in the present project. `speed` 1.0: with the recorded pauses;
    0.0: without pauses.

    A stream ends with an error that names the position if the recording has no more answers, if the
    request differs in shape from the recorded one, or if an answer calls a tool that
    does not exist any more.
    Raises `ModelUnavailable` when the file can't be read or a line is wrong.
    """

    def __init__(
        self,
        path: Path,
        paths: ProjectPaths = NO_PATHS,
        info: ModelInfo = SCRIPT_INFO,
        speed: float = 0.0,
    ) -> None:
        self._path = path
        self._paths = paths
        self._info = info
        self._speed = speed
        self._digester = RequestDigester()
        self._remaining: dict[RequestKind, list[_NumberedAnswer]] = {"main": [], "side": []}
        for number, answer in enumerate(read_answers(path), 1):
            self._remaining[answer.kind].append(_NumberedAnswer(number, answer))
        self._answer_count = 0
        self._has_other_prompt = False

    @property
    def info(self) -> ModelInfo:
        """The metadata of the model that it plays."""
        return self._info

    @property
    def remaining_count(self) -> int:
        """The number of answers of the conversation that have not been played."""
        return len(self._remaining["main"])

    def list_problems(self) -> list[str]:
        """Return how the replay so far differs from the recording: another prompt,
        or answers that were not used.
        """
        problems: list[str] = []
        if self._has_other_prompt:
            problems.append(
                f"The recording {self._path} was made for another prompt: its answers are not about this one."
            )
        if self._answer_count and self.remaining_count:
            answers = "1 answer" if self.remaining_count == 1 else f"{self.remaining_count} answers"
            problems.append(
                f"The recording {self._path} has {answers} more: this run asked for {self._answer_count}."
            )
        return problems

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent]:
        """Play the next answer of the request's kind."""
        kind = classify_request(request)
        present = self._digester.digest_request(request, self._paths)
        next_answer = _take_next(self._remaining[kind], kind, present)
        if next_answer is None:
            yield Finished(
                "error",
                error=make_script_error(
                    f"The recording {self._path} ends here: no further {kind} answer."
                ),
            )
            return
        number, answer = next_answer
        difference = _describe_difference(answer, present)
        if difference:
            message = f"The replay differs from {self._path} at answer {number}: {difference}"
            yield Finished("error", error=make_script_error(message))
            return
        if kind == "main":
            original = answer.request
            self._has_other_prompt |= (
                not self._answer_count
                and original is not None
                and original.digest != present.digest
            )
            self._answer_count += 1
        async for event in play_answer(fill_paths(answer, self._paths), number, self._speed):
            yield event


def _take_next(
    remaining: list[_NumberedAnswer], kind: RequestKind, present: RecordedRequest
) -> _NumberedAnswer | None:
    """Take the next answer; of side requests, whose order may differ,
    the one with the same system prompt.
    """
    if not remaining:
        return None
    index = 0
    if kind == "side":
        same_prompt = (
            index
            for index, (_, answer) in enumerate(remaining)
            if answer.request is not None and answer.request.system == present.system
        )
        index = next(same_prompt, 0)
    return remaining.pop(index)


def _describe_difference(answer: ScriptedAnswer, present: RecordedRequest) -> str:
    """Describe how the present request differs from the one that was answered;
    empty: it does not.
    """
    called_tools = [
        block.call.name for block in answer.list_blocks() if isinstance(block, CallBlock)
    ]
    tool_names = set(present.tools)
    original = answer.request
    # A tool that did not exist when it was recorded either was a mistake of the model,
    # which is played as it was.
    missing = [
        name
        for name in called_tools
        if name not in tool_names and (original is None or name in original.tools)
    ]
    if missing:
        return f"it calls the tool `{missing[0]}`, which does not exist here. Record it again."
    if original is None or answer.kind == "side" or original.messages == present.messages:
        return ""
    before, now = _join_shapes(original.messages), _join_shapes(present.messages)
    return f"it was given after {before}, and now comes after {now}."


def _join_shapes(messages: Sequence[str]) -> str:
    return ", then ".join(messages) or "nothing new"


class RequestDigester:
    """Digests requests for a recording, which stores only what is new since the last
    request of the same kind.
    """

    def __init__(self) -> None:
        self._message_counts: dict[RequestKind, int] = {}

    def digest_request(self, request: ModelRequest, paths: ProjectPaths) -> RecordedRequest:
        """Return the record of a request: digests,
        and the shape of the messages that are new in it.
        """
        kind = classify_request(request)
        count_before = self._message_counts.get(kind)
        self._message_counts[kind] = len(request.messages)
        if count_before is not None and count_before <= len(request.messages):
            new = request.messages[count_before:]
        else:
            # The first request, or one after a compaction.
            new = request.messages[-1:]
        return RecordedRequest(
            # The `repr` has names of `chat.py`: if one is changed,
            # the prompts of older recordings count as others.
            digest=_digest(_mask_paths(repr(new), paths)),
            system=_digest(request.system),
            messages=tuple(_describe_message(message) for message in new),
            tools=tuple(tool.name for tool in request.tools),
        )


def _describe_message(message: ModelMessage) -> str:
    match message:
        case UserModelMessage():
            return "a prompt"
        case AssistantModelMessage(content=content):
            calls = [piece.name for piece in content if isinstance(piece, CallPiece)]
            return f"calls of {' and '.join(calls)}" if calls else "an answer"
        case ToolModelMessage(content=content):
            return f"{len(content)} results"


def _mask_paths(text: str, paths: ProjectPaths) -> str:
    """Replace the project's paths by placeholders,
    so that the text is the same in every directory.
    """
    for path, word in ((paths.directory, "{directory}"), (paths.root, "{root}")):
        text = text.replace(path, word) if len(path) > 1 else text
    return text


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]
