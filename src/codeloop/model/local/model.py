"""A model of a local server, which is queried for the real context length."""

from collections.abc import AsyncGenerator
from contextlib import aclosing

import msgspec

from codeloop.model.chat import ChatModel, Finished, ImagePiece, ModelEvent, ModelInfo, ModelRequest
from codeloop.model.local.context import LocalContext, Reader
from codeloop.schema.errors import APIError, APIErrorData, ContextOverflowError, MessageError, OverflowData
from codeloop.schema.wire import replace

BYTES_PER_TOKEN = 4
LEAST_ANSWER = 1_024
"""Tokens that an answer needs beside the request."""


class LocalModel:
    """Passes fitting requests on, and refuses those that the server would silently truncate.

    `info` has the true length once it is known. The server is asked again until it says one: a model that is loaded by
    the first request has none before.
    """

    def __init__(self, model: ChatModel, read: Reader, url: str) -> None:
        self._model = model
        self._read = read
        self._url = url
        self._info = model.info
        self._context = LocalContext()

    @property
    def info(self) -> ModelInfo:
        """What is known of the model."""
        return self._info

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        """Yield the model's events until Finished."""
        if not self._context.loaded:
            self._context = await self._read(self._url, self._info.api_id or self._info.id)
            self._take_context()
        refusal = self._refuse(request)
        if refusal is not None:
            yield Finished("error", error=refusal)
            return
        async with aclosing(self._model.stream(request)) as events:
            async for event in events:
                yield event

    def _take_context(self) -> None:
        loaded, known = self._context.loaded, self._info.limits.context
        if loaded and (not known or loaded < known):
            self._info = replace(self._info, limits=replace(self._info.limits, context=loaded))

    def _refuse(self, request: ModelRequest) -> MessageError | None:
        """Return why a request does not fit; compaction helps against a long conversation only."""
        loaded = self._context.loaded
        if not loaded:
            return None
        room = loaded - LEAST_ANSWER
        fixed = estimate_tokens(request.system) + estimate_tokens(request.tools)
        if fixed > room:
            message = (
                f"{self._info.ref} is loaded with a context of {loaded:,} tokens; instructions and tools alone need "
                f"about {fixed:,}, and the server would cut them silently. {self._context.remedy}"
            )
            return APIError(data=APIErrorData(message=message, is_retryable=False, metadata={"kind": "context"}))
        whole = fixed + sum(estimate_tokens(_without_images(turn)) for turn in request.turns)
        if whole <= room:
            return None
        message = (
            f"The conversation needs about {whole:,} tokens; {self._info.ref} is loaded with {loaded:,}. "
            f"Compact it with /compact. {self._context.remedy}"
        )
        return ContextOverflowError(data=OverflowData(message=message))


def estimate_tokens(value: object) -> int:
    """Return about how many tokens a value is as JSON."""
    return len(msgspec.json.encode(value)) // BYTES_PER_TOKEN


def _without_images(turn: object) -> object:
    content: tuple[object, ...] = getattr(turn, "content", ())
    return tuple(piece for piece in content if not isinstance(piece, ImagePiece))
