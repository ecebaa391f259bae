"""A model that plays scripted answers: for demos, tests, benchmarks and documentation."""

from collections.abc import AsyncGenerator, Sequence

from codeloop.model.chat import Finished, Limits, ModelEvent, ModelInfo, ModelRequest
from codeloop.model.testing.script import NO_PATHS, Kind, ProjectPaths, ScriptedAnswer, play_pieces
from codeloop.schema.errors import MessageError, UnknownData, UnknownError

SCRIPT_INFO = ModelInfo(
    provider_id="scripted", id="script", name="Script", limits=Limits(context=200_000, output=32_000), attachment=True
)
_YIELD_EVERY = 50
"""Pieces without pauses, after which other tasks get a chance to run."""


class ScriptedModel:
    """Replies with `answers` in order: requests with tools get those of kind `main`, all others those of kind `side`.

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
        self._remaining: dict[Kind, list[ScriptedAnswer]] = {
            "main": [answer for answer in answers if answer.kind == "main"],
            "side": [answer for answer in answers if answer.kind == "side"],
        }
        self._answer_count = 0

    @property
    def info(self) -> ModelInfo:
        """What is known of the model."""
        return self._info

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent]:
        """Yield the next answer of the request's kind."""
        kind = kind_of(request)
        scripted_answers = self._remaining[kind]
        if not scripted_answers:
            yield Finished("error", error=failure(f"{self._name} has no further answer for a {kind} request."))
            return
        self._answer_count += 1
        async for event in play(scripted_answers.pop(0).fill_paths(self._paths), self._answer_count):
            yield event


def kind_of(request: ModelRequest) -> Kind:
    """Return `side` for a request outside the conversation (a title, a summary: without tools), else `main`."""
    return "main" if request.tools else "side"


async def play(answer: ScriptedAnswer, number: int, speed: float = 1.0) -> AsyncGenerator[ModelEvent]:
    """Yield an answer's events up to `Finished`; its pauses are multiplied by `speed`."""
    import asyncio

    for count, (wait, event) in enumerate(play_pieces(answer, number)):
        if wait * speed or not count % _YIELD_EVERY:
            await asyncio.sleep(wait * speed)
        yield event
    yield Finished(answer.reason(), answer.to_tokens(), answer.error)


def failure(message: str) -> MessageError:
    """Return the error that ends a stream when the script does not fit the requests."""
    return UnknownError(data=UnknownData(message=message))
