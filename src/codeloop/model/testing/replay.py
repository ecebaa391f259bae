"""Records a model's answers, and replays recordings: JSON Lines, one `ScriptedAnswer` a line.

A recording holds no key and no path of the project: the working directory and the root are replaced by words. Text and
arguments are kept whole, with the number of pieces they came in and the time that took.
"""

import hashlib
import os
from collections.abc import AsyncGenerator, Sequence
from pathlib import Path

import msgspec

from codeloop.model.chat import (
    AssistantModelMessage,
    CallPiece,
    ChatModel,
    Finished,
    ModelEvent,
    ModelInfo,
    ModelMessage,
    ModelRequest,
    ToolModelMessage,
    UserModelMessage,
)
from codeloop.model.testing.script import (
    NOWHERE,
    CallBlock,
    Kind,
    Places,
    RecordedRequest,
    ScriptedAnswer,
    read_answers,
    replace_paths,
)
from codeloop.model.testing.scripted import SCRIPTED, failure, kind_of, play
from codeloop.schema.errors import CodeloopError


class RecordingModel:
    """A model that passes on what `model` says and appends each answer to a file when it has ended.

    A stream that is closed before its end is recorded as far as it came, with the reason `cut`. When the file can't be
    written, recording ends and the answer goes on; `problem` says why.
    """

    def __init__(self, model: ChatModel, path: Path, places: Places = NOWHERE) -> None:
        self._model = model
        self._path = path
        self._places = places
        self._memory = _Memory()
        self.problem = ""

    @property
    def info(self) -> ModelInfo:
        """What is known of the model."""
        return self._model.info

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent]:
        """Ask the model and pass its events on."""
        from codeloop.model.testing.event_fold import EventFold

        recorded_request = self._memory.record(request, self._places)
        tape = EventFold()
        events = self._model.stream(request)
        try:
            async for event in events:
                tape.add(event)
                yield event
        finally:
            self._write(tape.answer(kind_of(request), recorded_request))
            await events.aclose()

    def _write(self, answer: ScriptedAnswer) -> None:
        if self.problem:
            return
        try:
            line = msgspec.json.encode(_without_places(answer, self._places)) + b"\n"
            descriptor = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
            with os.fdopen(descriptor, "wb") as file:
                file.write(line)
        except (OSError, UnicodeEncodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else error
            self.problem = f"The recording {self._path} is incomplete: {reason}."


class AnswerRecorder:
    """Writes down what models answer, all in one file. Raises CodeloopError when it can't be written."""

    def __init__(self, path: Path, places: Places = NOWHERE) -> None:
        self._path = path
        self._places = places
        self._models: list[RecordingModel] = []
        try:
            os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600))
        except OSError as error:
            raise CodeloopError(
                f"The recording {path} can't be written: {error.strerror}. Choose another file."
            ) from error

    def wrap(self, model: ChatModel) -> RecordingModel:
        """Return the model whose answers are written down."""
        self._models.append(recording := RecordingModel(model, self._path, self._places))
        return recording

    def problems(self) -> list[str]:
        """Return why the recording is not complete."""
        return [model.problem for model in self._models if model.problem][:1]


class ReplayModel:
    """Plays a recording over the present project. `speed` 1.0 is as quick as it was recorded, 0.0 without pauses.

    A stream ends with an error that says where, when the recording ends, when what is asked has another shape than
    what was asked then, or when an answer calls a tool that does not exist any more.
    Raises `ModelUnavailable` when the file can't be read or a line is wrong.
    """

    def __init__(self, path: Path, places: Places = NOWHERE, info: ModelInfo = SCRIPTED, speed: float = 0.0) -> None:
        self._path = path
        self._places = places
        self._info = info
        self._speed = speed
        self._memory = _Memory()
        answers = list(enumerate(read_answers(path), 1))
        self._remaining: dict[Kind, list[tuple[int, ScriptedAnswer]]] = {
            "main": [row for row in answers if row[1].kind == "main"],
            "side": [row for row in answers if row[1].kind == "side"],
        }
        self._played = 0
        self._is_other = False

    @property
    def info(self) -> ModelInfo:
        """What is known of the model that plays."""
        return self._info

    @property
    def left(self) -> int:
        """How many answers of the conversation have not been played."""
        return len(self._remaining["main"])

    def problems(self) -> list[str]:
        """Return the mismatches of what was played so far: another prompt, answers that are left."""
        problems: list[str] = []
        if self._is_other:
            problems.append(
                f"The recording {self._path} was made for another prompt: its answers are not about this one."
            )
        if self._played and self.left:
            answers = "1 answer" if self.left == 1 else f"{self.left} answers"
            problems.append(f"The recording {self._path} has {answers} more: this run asked for {self._played}.")
        return problems

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent]:
        """Play the next answer of the request's kind."""
        kind = kind_of(request)
        recorded_request = self._memory.record(request, self._places)
        row = _take_next(self._remaining[kind], kind, recorded_request)
        if row is None:
            yield Finished("error", error=failure(f"The recording {self._path} ends here: no further {kind} answer."))
            return
        number, answer = row
        wrong = _difference(answer, recorded_request)
        if wrong:
            where = f"The replay differs from {self._path} at answer {number}: {wrong}"
            yield Finished("error", error=failure(where))
            return
        if kind == "main":
            recorded = answer.request
            self._is_other |= not self._played and recorded is not None and recorded.digest != recorded_request.digest
            self._played += 1
        async for event in play(answer.fill_places(self._places), number, self._speed):
            yield event


class _Memory:
    """How many messages the last request of each kind had: a recording notes only what is new."""

    def __init__(self) -> None:
        self._messages: dict[Kind, int] = {}

    def record(self, request: ModelRequest, places: Places) -> RecordedRequest:
        kind = kind_of(request)
        before = self._messages.get(kind)
        self._messages[kind] = len(request.messages)
        new = (
            request.messages[before:]
            if before is not None and before <= len(request.messages)
            else request.messages[-1:]
        )
        return RecordedRequest(
            digest=_digest(_mask_paths(repr(new), places)),
            system=_digest(request.system),
            messages=tuple(_shape(message) for message in new),
            tools=tuple(tool.name for tool in request.tools),
        )


def _take_next(
    remaining: list[tuple[int, ScriptedAnswer]], kind: Kind, recorded_request: RecordedRequest
) -> tuple[int, ScriptedAnswer] | None:
    """Take the next answer; outside the conversation, the one with the same system prompt."""
    if not remaining:
        return None
    index = 0
    if kind == "side":
        same = (
            n
            for n, (_, row) in enumerate(remaining)
            if row.request is not None and row.request.system == recorded_request.system
        )
        index = next(same, 0)
    return remaining.pop(index)


def _difference(answer: ScriptedAnswer, recorded_request: RecordedRequest) -> str:
    """Say what of the present request does not go with the answer; empty when nothing."""
    called_tools = [block.call.name for block in answer.blocks() if isinstance(block, CallBlock)]
    tool_names = set(recorded_request.tools)
    recorded = answer.request
    missing = [name for name in called_tools if name not in tool_names and (recorded is None or name in recorded.tools)]
    if missing:
        return f"it calls the tool `{missing[0]}`, which does not exist here. Record it again."
    if recorded is None or answer.kind == "side" or recorded.messages == recorded_request.messages:
        return ""
    before, now = _describe(recorded.messages), _describe(recorded_request.messages)
    return f"it was given after {before}, and now comes after {now}."


def _describe(messages: Sequence[str]) -> str:
    return ", then ".join(messages) or "nothing new"


def _shape(message: ModelMessage) -> str:
    match message:
        case UserModelMessage():
            return "a prompt"
        case AssistantModelMessage(content=content):
            calls = [piece.name for piece in content if isinstance(piece, CallPiece)]
            return f"calls of {' and '.join(calls)}" if calls else "an answer"
        case ToolModelMessage(content=content):
            return f"{len(content)} results"


def _mask_paths(text: str, places: Places) -> str:
    """Return the text as it is in every directory."""
    for path, word in ((places.directory, "{directory}"), (places.root, "{root}")):
        text = text.replace(path, word) if len(path) > 1 else text
    return text


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _without_places(answer: ScriptedAnswer, places: Places) -> ScriptedAnswer:
    """Replace the project's paths by words that do not occur in the answer otherwise."""
    text = msgspec.json.encode(answer).decode()
    directory = _free_word("directory", text)
    root = _free_word("root", text)
    words = {places.root: root, places.directory: directory}
    plain = replace_paths(answer, {path: word for path, word in words.items() if len(path) > 1})
    return msgspec.structs.replace(plain, directory=directory, root=root)


def _free_word(name: str, text: str) -> str:
    word, number = f"{{{name}}}", 1
    while word in text:
        number += 1
        word = f"{{{name}-{number}}}"
    return word
