"""A model that plays scripted answers: for demos, tests, benchmarks and documentation."""

from collections.abc import AsyncGenerator, Sequence

from codeloop.model.chat import Finished, ModelEvent, ModelInfo, ModelRequest, TokenLimits
from codeloop.model.testing.script import NO_PATHS, ProjectPaths, RequestKind, ScriptedAnswer, play_pieces
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
            yield Finished("error", error=make_failure(f"{self._name} has no further answer for a {kind} request."))
            return
        self._answer_count += 1
        async for event in play_answer(scripted_answers.pop(0).fill_paths(self._paths), self._answer_count):
            yield event


def classify_request(request: ModelRequest) -> RequestKind:
    """Return `side` for a request outside the conversation (a title, a summary: without tools), else `main`."""
    return "main" if request.tools else "side"


async def play_answer(answer: ScriptedAnswer, number: int, speed: float = 1.0) -> AsyncGenerator[ModelEvent]:
    """Yield an answer's events up to `Finished`; its pauses are multiplied by `speed`."""
    import asyncio

    for count, (wait, event) in enumerate(play_pieces(answer, number)):
        # Even `sleep(0)` at every piece would make benchmarks measure the event loop.
        if wait * speed or not count % _YIELD_INTERVAL:
            await asyncio.sleep(wait * speed)
        yield event
    yield Finished(answer.infer_finish_reason(), answer.to_tokens(), answer.error)


def make_failure(message: str) -> MessageError:
    """Return the error that ends a stream when the script does not fit the requests."""
    return UnknownError(data=UnknownData(message=message))
