"""A model of a local server, which is queried for the real context length."""

from collections.abc import AsyncGenerator
from contextlib import aclosing

import msgspec

from codeloop.model.chat import CallStarted, ChatModel, Finished, ImagePiece, ModelEvent, ModelInfo, ModelRequest
from codeloop.model.local.context import LocalContext, Reader
from codeloop.schema.errors import APIError, APIErrorData, ContextOverflowError, MessageError, OverflowData
from codeloop.schema.wire import replace

BYTES_PER_TOKEN = 4
LEAST_ANSWER = 1_024
"""Tokens that an answer needs beside the request."""
FULL = 8
"""Tokens that a server may leave unused of a context that it calls full."""


class LocalModel:
    """Passes fitting requests on, and refuses those that the server would silently truncate.

    `info` has the true length once it is known. The server is asked again until it says one: a model that is loaded by
    the first request has none before.
    """

    def __init__(self, model: ChatModel, reader: Reader, url: str) -> None:
        self._model = model
        self._read = reader
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
        has_calls = False
        async with aclosing(self._model.stream(request)) as events:
            async for event in events:
                has_calls = has_calls or isinstance(event, CallStarted)
                yield self._explain(event, has_calls) if isinstance(event, Finished) else event

    def _take_context(self) -> None:
        loaded, limit = self._context.loaded, self._info.limits.context
        if loaded and (not limit or loaded < limit):
            self._info = replace(self._info, limits=replace(self._info.limits, context=loaded))

    def _explain(self, end: Finished, has_calls: bool) -> Finished:
        """Return the end of an answer, with how to give the model more context where it had too little.

        An estimate lets a request pass that the server finds too long, or that leaves no room for an answer. A cut tool
        call is left to the loop, which lets the model write a shorter one.
        """
        loaded, remedy = self._context.loaded, self._context.remedy
        if isinstance(end.error, ContextOverflowError):
            message = f"{end.error.data.message} {remedy}".rstrip()
            return replace(end, error=ContextOverflowError(data=replace(end.error.data, message=message)))
        if end.reason != "length" or has_calls or not loaded or end.tokens.all < loaded - FULL:
            return end
        message = (
            f"The request ({end.tokens.context:,} tokens) and the answer filled the context of {loaded:,} tokens that "
            f"{self._info.ref} is loaded with. Make room with /compact. {remedy}"
        )
        return replace(end, reason="error", error=_context_error(message))

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
            return _context_error(message)
        total = fixed + sum(estimate_tokens(_without_images(turn)) for turn in request.turns)
        if total <= room:
            return None
        message = (
            f"The conversation needs about {total:,} tokens; {self._info.ref} is loaded with {loaded:,}. "
            f"Compact it with /compact. {self._context.remedy}"
        )
        return ContextOverflowError(data=OverflowData(message=message))


def estimate_tokens(value: object) -> int:
    """Return about how many tokens a value is as JSON."""
    return len(msgspec.json.encode(value)) // BYTES_PER_TOKEN


def _context_error(message: str) -> APIError:
    return APIError(data=APIErrorData(message=message, is_retryable=False, metadata={"kind": "context"}))


def _without_images(turn: object) -> object:
    content: tuple[object, ...] = getattr(turn, "content", ())
    return tuple(piece for piece in content if not isinstance(piece, ImagePiece))
