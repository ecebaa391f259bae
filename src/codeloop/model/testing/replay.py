"""Records a model's answers, and replays recordings: JSON Lines, one `ScriptedAnswer` a line.

A recording holds no key and no path of the project: the working directory and root become placeholders. Text and
arguments are stored complete, with the number of pieces that they came in and the time that took.
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
    NO_PATHS,
    CallBlock,
    Kind,
    ProjectPaths,
    RecordedRequest,
    ScriptedAnswer,
    read_answers,
    replace_paths,
)
from codeloop.model.testing.scripted_model import SCRIPT_INFO, failure, kind_of, play
from codeloop.schema.errors import CodeloopError


class RecordingModel:
    """A model that passes on what `model` says and appends each answer to a file when it has ended.

    A stream that is closed before its end is recorded as far as it came, with the reason `cut`. When the file can't be
    written, recording ends and the answer goes on; `problem` says why.
    """

    def __init__(self, model: ChatModel, path: Path, paths: ProjectPaths = NO_PATHS) -> None:
        self._model = model
        self._path = path
        self._paths = paths
        self._memory = _Memory()
        self.problem = ""

    @property
    def info(self) -> ModelInfo:
        """What is known of the model."""
        return self._model.info

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent]:
        """Ask the model and pass its events on."""
        from codeloop.model.testing.event_fold import EventFold

        present = self._memory.record(request, self._paths)
        fold = EventFold()
        events = self._model.stream(request)
        try:
            async for event in events:
                fold.add(event)
                yield event
        finally:
            self._write(fold.answer(kind_of(request), present))
            await events.aclose()

    def _write(self, answer: ScriptedAnswer) -> None:
        if self.problem:
            return
        try:
            line = msgspec.json.encode(_mask_answer(answer, self._paths)) + b"\n"
            # Only for the user: a recording holds the conversation.
            descriptor = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
            with os.fdopen(descriptor, "wb") as file:
                file.write(line)
        except (OSError, UnicodeEncodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else error
            self.problem = f"The recording {self._path} is incomplete: {reason}."


class AnswerRecorder:
    """Records the answers of several models in one file. Raises CodeloopError when it can't be written."""

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
        """Return a model that does the same, and whose answers are recorded."""
        self._models.append(recording := RecordingModel(model, self._path, self._paths))
        return recording

    def problems(self) -> list[str]:
        """Return why the recording is not complete."""
        return [model.problem for model in self._models if model.problem][:1]


class ReplayModel:
    """Plays a recording in the present project. `speed` 1.0: with the recorded pauses; 0.0: without pauses.

    A stream ends with an error that says where if the recording has no more answers, if the request differs in shape
    from the recorded one, or if an answer calls a tool that does not exist any more.
    Raises `ModelUnavailable` when the file can't be read or a line is wrong.
    """

    def __init__(
        self, path: Path, paths: ProjectPaths = NO_PATHS, info: ModelInfo = SCRIPT_INFO, speed: float = 0.0
    ) -> None:
        self._path = path
        self._paths = paths
        self._info = info
        self._speed = speed
        self._memory = _Memory()
        answers = list(enumerate(read_answers(path), 1))
        self._remaining: dict[Kind, list[tuple[int, ScriptedAnswer]]] = {
            "main": [row for row in answers if row[1].kind == "main"],
            "side": [row for row in answers if row[1].kind == "side"],
        }
        self._answer_count = 0
        self._has_other_prompt = False

    @property
    def info(self) -> ModelInfo:
        """What is known of the model that plays."""
        return self._info

    @property
    def remaining_count(self) -> int:
        """How many answers of the conversation have not been played."""
        return len(self._remaining["main"])

    def problems(self) -> list[str]:
        """Return how the replay so far differs from the recording: another prompt, or answers that were not used."""
        problems: list[str] = []
        if self._has_other_prompt:
            problems.append(
                f"The recording {self._path} was made for another prompt: its answers are not about this one."
            )
        if self._answer_count and self.remaining_count:
            answers = "1 answer" if self.remaining_count == 1 else f"{self.remaining_count} answers"
            problems.append(f"The recording {self._path} has {answers} more: this run asked for {self._answer_count}.")
        return problems

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent]:
        """Play the next answer of the request's kind."""
        kind = kind_of(request)
        present = self._memory.record(request, self._paths)
        row = _take_next(self._remaining[kind], kind, present)
        if row is None:
            yield Finished("error", error=failure(f"The recording {self._path} ends here: no further {kind} answer."))
            return
        number, answer = row
        wrong = _describe_difference(answer, present)
        if wrong:
            where = f"The replay differs from {self._path} at answer {number}: {wrong}"
            yield Finished("error", error=failure(where))
            return
        if kind == "main":
            original = answer.request
            self._has_other_prompt |= (
                not self._answer_count and original is not None and original.digest != present.digest
            )
            self._answer_count += 1
        async for event in play(answer.fill_paths(self._paths), number, self._speed):
            yield event


class _Memory:
    """The number of messages of the last request of each kind, since a recording notes only the new ones."""

    def __init__(self) -> None:
        self._messages: dict[Kind, int] = {}

    def record(self, request: ModelRequest, paths: ProjectPaths) -> RecordedRequest:
        kind = kind_of(request)
        before = self._messages.get(kind)
        self._messages[kind] = len(request.messages)
        new = (
            request.messages[before:]
            if before is not None and before <= len(request.messages)
            else request.messages[-1:]
        )
        return RecordedRequest(
            digest=_digest(_mask_paths(repr(new), paths)),
            system=_digest(request.system),
            messages=tuple(_shape(message) for message in new),
            tools=tuple(tool.name for tool in request.tools),
        )


def _take_next(
    remaining: list[tuple[int, ScriptedAnswer]], kind: Kind, present: RecordedRequest
) -> tuple[int, ScriptedAnswer] | None:
    """Take the next answer; of side requests, whose order may differ, the one with the same system prompt."""
    if not remaining:
        return None
    index = 0
    if kind == "side":
        same = (
            n
            for n, (_, row) in enumerate(remaining)
            if row.request is not None and row.request.system == present.system
        )
        index = next(same, 0)
    return remaining.pop(index)


def _describe_difference(answer: ScriptedAnswer, present: RecordedRequest) -> str:
    """Describe how the present request differs from the one that was answered; empty: it does not."""
    called_tools = [block.call.name for block in answer.blocks() if isinstance(block, CallBlock)]
    tool_names = set(present.tools)
    original = answer.request
    missing = [name for name in called_tools if name not in tool_names and (original is None or name in original.tools)]
    if missing:
        return f"it calls the tool `{missing[0]}`, which does not exist here. Record it again."
    if original is None or answer.kind == "side" or original.messages == present.messages:
        return ""
    before, now = _describe(original.messages), _describe(present.messages)
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


def _mask_paths(text: str, paths: ProjectPaths) -> str:
    """Replace the project's paths by placeholders, so that the text is the same in every directory."""
    for path, word in ((paths.directory, "{directory}"), (paths.root, "{root}")):
        text = text.replace(path, word) if len(path) > 1 else text
    return text


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _mask_answer(answer: ScriptedAnswer, paths: ProjectPaths) -> ScriptedAnswer:
    """Replace the project's paths by placeholders that do not occur in the answer otherwise."""
    text = msgspec.json.encode(answer).decode()
    directory = _free_word("directory", text)
    root = _free_word("root", text)
    words = {paths.root: root, paths.directory: directory}
    plain = replace_paths(answer, {path: word for path, word in words.items() if len(path) > 1})
    return msgspec.structs.replace(plain, directory=directory, root=root)


def _free_word(name: str, text: str) -> str:
    word, number = f"{{{name}}}", 1
    while word in text:
        number += 1
        word = f"{{{name}-{number}}}"
    return word
