"""Records the answers of models (`--record`) as JSON Lines, one `ScriptedAnswer` a line;
`replay.py` plays them.

A recording contains no key and no path of the project: the working directory and root become
placeholders. Text and arguments are stored complete, with the number of pieces that they
came in and the time that took.
"""

import os
import time
from collections.abc import AsyncGenerator
from pathlib import Path

import msgspec

from codeloop.model.chat import (
    CallDelta,
    CallReady,
    CallStarted,
    ChatModel,
    Finished,
    ModelEvent,
    ModelInfo,
    ModelRequest,
    ReasoningDelta,
    RetryScheduled,
    TextDelta,
    UsageUpdate,
)
from codeloop.model.testing.replay import RequestDigester
from codeloop.model.testing.script import (
    NO_PATHS,
    CallBlock,
    ProjectPaths,
    ReasoningBlock,
    RecordedRequest,
    RequestKind,
    RetryBlock,
    ScriptedAnswer,
    ScriptedBlock,
    ScriptedCall,
    TextBlock,
    TokenCount,
    classify_request,
    mask_paths,
)
from codeloop.schema.errors import CodeloopError
from codeloop.schema.message import Tokens
from codeloop.schema.wire import JSON


class RecordingModel:
    """Passes on the events of `model`, and appends each answer to a file when it has ended.

    A stream that is closed before its end is recorded as far as it came, with the reason `cut`.
    When the file can't be written, recording ends and the answer goes on; `problem` says why.
    """

    def __init__(self, model: ChatModel, path: Path, paths: ProjectPaths = NO_PATHS) -> None:
        self._model = model
        self._path = path
        self._paths = paths
        self._digester = RequestDigester()
        self.problem = ""

    @property
    def info(self) -> ModelInfo:
        """The recorded model's metadata."""
        return self._model.info

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent]:
        """Yield the model's events, and record them."""
        recorded_request = self._digester.digest_request(request, self._paths)
        builder = AnswerBuilder()
        events = self._model.stream(request)
        try:
            async for event in events:
                builder.add_event(event)
                yield event
        finally:
            self._write_answer(builder.build_answer(classify_request(request), recorded_request))
            await events.aclose()

    def _write_answer(self, answer: ScriptedAnswer) -> None:
        if self.problem:
            return
        try:
            line = msgspec.json.encode(mask_paths(answer, self._paths)) + b"\n"
            # Only for the user: a recording holds the conversation.
            descriptor = os.open(
                self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600
            )
            with os.fdopen(descriptor, "wb") as file:
                file.write(line)
        except (OSError, UnicodeEncodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else error
            self.problem = f"The recording {self._path} is incomplete: {reason}."


class AnswerRecorder:
    """Records the answers of several models in one file.
    Making one raises CodeloopError if it can't be written.
    """

    def __init__(self, path: Path, paths: ProjectPaths = NO_PATHS) -> None:
        self._path = path
        self._paths = paths
        self._models: list[RecordingModel] = []
        try:
            os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600))
        except OSError as error:
            raise CodeloopError(
                f"The recording {path} can't be written: {error.strerror}. Choose another file."
            ) from error

    def wrap(self, model: ChatModel) -> RecordingModel:
        """Return a model that passes on the events of `model` and records its answers."""
        recording_model = RecordingModel(model, self._path, self._paths)
        self._models.append(recording_model)
        return recording_model

    def list_problems(self) -> list[str]:
        """Return why the recording is incomplete: at most one reason,
        since all models write to the same file.
        """
        return [model.problem for model in self._models if model.problem][:1]


class AnswerBuilder:
    """Builds a `ScriptedAnswer` from the events of one stream;
    time is measured from its creation.
    """

    def __init__(self) -> None:
        self._blocks: list[ScriptedBlock] = []
        self._open_calls: dict[str, int] = {}
        self._block_number = -1
        self._last_time = time.monotonic()
        self._end = Finished("cut")

    def add_event(self, event: ModelEvent) -> None:
        """Add the next event."""
        ms = self._measure_gap()
        match event:
            case TextDelta(text=text, block=block):
                self._extend_block(TextBlock(text, ms=ms), block)
            case ReasoningDelta(text=text, block=block, metadata=metadata):
                self._extend_block(ReasoningBlock(text, metadata, ms=ms), block)
            case CallStarted(id=call_id, name=name):
                self._open_calls[call_id] = len(self._blocks)
                self._append_block(
                    CallBlock(ScriptedCall(name, "", call_id, complete=False), deltas=0, ms=ms)
                )
            case CallDelta(id=call_id, text=text):
                self._extend_call(call_id, text, ms)
            case CallReady():
                self._close_call(event, ms)
            case RetryScheduled(attempt=attempt, message=message):
                self._append_block(RetryBlock(attempt, message, ms))
            case UsageUpdate(tokens=tokens):
                self._end = Finished("cut", tokens)
            case Finished():
                self._end = event

    def build_answer(self, kind: RequestKind, recorded_request: RecordedRequest) -> ScriptedAnswer:
        """Return the collected answer to a request; without a `Finished` it was `cut`."""
        end = self._end
        return ScriptedAnswer(
            kind=kind,
            content=tuple(self._blocks),
            finish=end.reason,
            tokens=_count_tokens(end.tokens),
            error=end.error,
            request=recorded_request,
        )

    def _measure_gap(self) -> int:
        now = time.monotonic()
        ms = int((now - self._last_time) * 1000)
        # Not `now`: the rest of the millisecond counts with the next gap,
        # or many short gaps would be lost.
        self._last_time += ms / 1000
        return ms

    def _append_block(self, block: ScriptedBlock) -> None:
        self._block_number = -1
        self._blocks.append(block)

    def _extend_block(self, piece: TextBlock | ReasoningBlock, number: int) -> None:
        last = self._blocks[-1] if self._blocks and self._block_number == number else None
        match last, piece:
            case (TextBlock(), TextBlock()) | (ReasoningBlock(), ReasoningBlock()):
                longer = msgspec.structs.replace(
                    last, text=last.text + piece.text, deltas=last.deltas + 1, ms=last.ms + piece.ms
                )
                if isinstance(longer, ReasoningBlock) and isinstance(piece, ReasoningBlock):
                    longer = msgspec.structs.replace(
                        longer, metadata={**longer.metadata, **piece.metadata}
                    )
                self._blocks[-1] = longer
            case _:
                self._append_block(piece)
                self._block_number = number

    def _extend_call(self, call_id: str, text: str, ms: int) -> None:
        index = self._open_calls.get(call_id)
        block = self._blocks[index] if index is not None else None
        if index is None or not isinstance(block, CallBlock):
            return
        call = msgspec.structs.replace(block.call, arguments=f"{block.call.arguments}{text}")
        self._blocks[index] = msgspec.structs.replace(
            block, call=call, deltas=block.deltas + 1, ms=block.ms + ms
        )

    def _close_call(self, event: CallReady, ms: int) -> None:
        call = ScriptedCall(event.name, _parse_arguments(event.arguments), event.id)
        index = self._open_calls.pop(event.id, None)
        if index is None:
            self._append_block(CallBlock(call, ms=ms))
            return
        block = self._blocks[index]
        deltas = block.deltas if isinstance(block, CallBlock) else 1
        # A call without arguments comes without any piece of them.
        self._blocks[index] = CallBlock(call, max(1, deltas), block.ms + ms)


def _parse_arguments(arguments: str) -> JSON | str:
    """Parse arguments if they are a JSON object that survives encoding; else return the text."""
    try:
        value = msgspec.json.decode(arguments, type=JSON)
    except (msgspec.DecodeError, UnicodeError):
        return arguments
    # Large numbers change when they are encoded again: then the text is kept.
    return value if msgspec.json.decode(msgspec.json.encode(value)) == value else arguments


def _count_tokens(tokens: Tokens) -> TokenCount:
    return TokenCount(
        input=tokens.input,
        output=tokens.output,
        reasoning=tokens.reasoning,
        cache_read=tokens.cache.read,
        cache_write=tokens.cache.write,
    )
