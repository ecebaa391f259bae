"""A model of a local server, which is queried for the real context length."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import NamedTuple

import msgspec

from codeloop.model.chat import (
    CallStarted,
    ChatModel,
    Finished,
    ImagePiece,
    ModelEvent,
    ModelInfo,
    ModelRequest,
    RetryScheduled,
)
from codeloop.model.local.context import ENOUGH, LocalContext, Reader
from codeloop.model.local.raising import Raise
from codeloop.schema.errors import APIError, APIErrorData, ContextOverflowError, MessageError, OverflowData
from codeloop.schema.ids import now_ms
from codeloop.schema.wire import replace

BYTES_PER_TOKEN = 4
LEAST_ANSWER = 1_024
"""Tokens that an answer needs beside the request."""
ROOM = 8_192
"""Tokens that a conversation needs beside instructions and tools, to be of use."""
FULL = 8
"""Tokens that a server may leave unused of a context that it calls full."""


class ContextWish(NamedTuple):
    """How a server gives a model more context, None if it does not, and the tokens that the user wants; 0: enough."""

    raise_context: Raise | None = None
    wanted: int = 0


AS_LOADED = ContextWish()


class LocalModel:
    """Passes fitting requests on, and refuses those that the server would silently truncate.

    `info` has the true length once it is known. The server is asked again until it says one: a model that is loaded by
    the first request has none before. Where the server can, it gives the model more context, if that is too little.
    """

    def __init__(self, model: ChatModel, reader: Reader, url: str, wish: ContextWish = AS_LOADED) -> None:
        self._wish = wish
        self._name = ""
        """What the server calls the model with more context; empty: as ever."""
        self._asking = asyncio.Lock()
        self._model = model
        self._read_context = reader
        self._url = url
        self._info = model.info
        self._context = LocalContext()

    @property
    def info(self) -> ModelInfo:
        """What is known of the model."""
        return self._info

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        """Yield the model's events until Finished."""
        fixed = estimate_tokens(request.system) + estimate_tokens(request.tools)
        whole = fixed + sum(estimate_tokens(_without_images(message)) for message in request.messages)
        async with self._asking:  # the server is asked, and loads the model, once
            if not self._context.loaded:
                self._context = await self._read_context(self._url, self._info.api_id or self._info.id)
                self._take_context()
            if wanted := self._find_wanted(fixed):
                loaded = self._context.loaded
                had = f"is loaded with a context of {loaded:,} tokens" if loaded else "is not loaded"
                yield RetryScheduled(0, f"{self._info.ref} {had}; it is now loaded with {wanted:,}.", now_ms())
                await self._raise(wanted)
        refusal = self._refuse(fixed, whole)
        if refusal is not None:
            yield Finished("error", error=refusal)
            return
        request = self._adapt(request, whole)
        has_calls = False
        async with aclosing(self._model.stream(request)) as events:
            async for event in events:
                has_calls = has_calls or isinstance(event, CallStarted)
                yield self._explain(event, has_calls) if isinstance(event, Finished) else event

    def _find_wanted(self, fixed: int) -> int:
        """Return the tokens of context to load the model with; 0: as it is.

        `fixed`: tokens of instructions and tools. It is tried once; a model that can't take more stays as it is.
        """
        loaded, most, wish = self._context.loaded, self._context.most, self._wish
        if wish.raise_context is None or not (loaded or most):
            return 0
        enough = max(ENOUGH, fixed + ROOM) if fixed + ROOM > loaded else 0
        wanted = min(wish.wanted or enough, most or ENOUGH)
        return wanted if wanted > loaded else 0

    async def _raise(self, wanted: int) -> None:
        """Have the server load the model with more context, and take over what came of it."""
        if (raise_context := self._wish.raise_context) is None:
            return
        self._wish = AS_LOADED
        raised = await raise_context(self._url, self._info.api_id or self._info.id, wanted)
        if raised.loaded:
            self._name = raised.model
            self._context = self._context._replace(loaded=raised.loaded)
            self._info = self._model.info
            self._take_context()

    def _adapt(self, request: ModelRequest, whole: int) -> ModelRequest:
        """Return the request for the model as it is loaded: its name, and room for the request beside the answer."""
        if self._name:
            request = replace(request, body={**request.body, "model": self._name})
        loaded, limit = self._context.loaded, self._info.answer_limit
        if loaded and limit and request.max_tokens is None:
            request = replace(request, max_tokens=max(min(limit, loaded - whole), LEAST_ANSWER))
        return request

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

    def _refuse(self, fixed: int, total: int) -> MessageError | None:
        """Return why a request of `total` tokens does not fit; compaction helps against a long conversation only."""
        loaded = self._context.loaded
        if not loaded:
            return None
        room = loaded - LEAST_ANSWER
        if fixed > room:
            message = (
                f"{self._info.ref} is loaded with a context of {loaded:,} tokens; instructions and tools alone need "
                f"about {fixed:,}, and the server would cut them silently. {self._context.remedy}"
            )
            return _context_error(message)
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


def _without_images(message: object) -> object:
    content: tuple[object, ...] = getattr(message, "content", ())
    return tuple(piece for piece in content if not isinstance(piece, ImagePiece))
