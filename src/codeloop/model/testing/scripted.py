"""A model that plays scripted answers: for demos, tests, benchmarks and documentation."""

from collections.abc import AsyncGenerator, Sequence

from codeloop.model.chat import Finished, Limits, ModelEvent, ModelInfo, ModelRequest
from codeloop.model.testing.script import NOWHERE, Kind, Places, ScriptedAnswer, pieces
from codeloop.schema.errors import MessageError, UnknownData, UnknownError

SCRIPTED = ModelInfo(
    provider_id="scripted", id="script", name="Script", limits=Limits(context=200_000, output=32_000), attachment=True
)
_BREATH = 50
"""Pieces without a pause between two chances for other tasks to run."""


class ScriptedModel:
    """Replies with `answers` in order: requests with tools get those of kind `main`, all others those of kind `side`.

    A request too many ends with an error that says so.
    """

    def __init__(
        self,
        answers: Sequence[ScriptedAnswer],
        info: ModelInfo = SCRIPTED,
        places: Places = NOWHERE,
        name: str = "The script",
    ) -> None:
        self._info = info
        self._places = places
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
        async for event in play(scripted_answers.pop(0).fill_places(self._places), self._answer_count):
            yield event


def kind_of(request: ModelRequest) -> Kind:
    """Return `side` for a request outside the conversation (a title, a summary: without tools), else `main`."""
    return "main" if request.tools else "side"


async def play(answer: ScriptedAnswer, number: int, speed: float = 1.0) -> AsyncGenerator[ModelEvent]:
    """Yield an answer's events up to `Finished`, waiting `speed` times as long as it says."""
    import asyncio

    for count, (wait, event) in enumerate(pieces(answer, number)):
        if wait * speed or not count % _BREATH:
            await asyncio.sleep(wait * speed)
        yield event
    yield Finished(answer.reason(), answer.to_tokens(), answer.error)


def failure(message: str) -> MessageError:
    """Return the error that a stream ends with when the fault is the script's."""
    return UnknownError(data=UnknownData(message=message))
