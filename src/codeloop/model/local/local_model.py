"""Wraps a model of a local server, to respect the context length that the server has really loaded it with."""

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
from codeloop.model.local.context_increase import ContextIncrease, find_context_increase
from codeloop.model.local.context_length import ADVISED_CONTEXT_TOKENS, ContextReader, LocalContext, find_context_reader
from codeloop.schema.config import ModelConfig
from codeloop.schema.errors import APIError, APIErrorData, ContextOverflowError, MessageError, OverflowData
from codeloop.schema.ids import now_ms
from codeloop.schema.wire import replace

# For English text and code; the estimate decides only near the limit.
BYTES_PER_TOKEN = 4
MIN_ANSWER_TOKENS = 1_024
"""The least room for an answer."""
MIN_CONVERSATION_TOKENS = 8_192
"""The least room for a conversation, on top of instructions and tools."""
FULL_MARGIN_TOKENS = 8
"""The most tokens that servers leave unused in a full context."""


class ContextWish(NamedTuple):
    """How to give a model more context (None: the server can't), and the tokens that the user configured (0: none)."""

    increase: ContextIncrease | None = None
    tokens: int = 0


NO_WISH = ContextWish()


class LocalModel:
    """Passes fitting requests on, and refuses those that the server would silently truncate.

    `info` has the real length once it is known. The server is asked again until it says one: a model that is loaded by
    the first request has none before. Where the server can, it gives the model more context, if that is too little.
    """

    def __init__(self, model: ChatModel, reader: ContextReader, url: str, wish: ContextWish = NO_WISH) -> None:
        self._wish = wish
        self._name = ""
        """The server's name of the model with more context; empty: the name did not change."""
        self._asking = asyncio.Lock()
        self._model = model
        self._read_context = reader
        self._url = url
        self._info = model.info
        self._context = LocalContext()

    @property
    def info(self) -> ModelInfo:
        """The model's metadata, with the real context length once it is known."""
        return self._info

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        """Yield the model's events until Finished."""
        fixed = estimate_tokens(request.system) + estimate_tokens(request.tools)
        total = fixed + sum(estimate_tokens(_without_images(message)) for message in request.messages)
        # Concurrent requests wait, so that the server is asked, and loads the model, once.
        async with self._asking:
            if not self._context.loaded_tokens:
                self._context = await self._read_context(self._url, self._info.api_id or self._info.id)
                self._adopt_context()
            if tokens := self._choose_context(fixed):
                loaded = self._context.loaded_tokens
                had = f"is loaded with a context of {loaded:,} tokens" if loaded else "is not loaded"
                yield RetryScheduled(0, f"{self._info.ref} {had}; it is now loaded with {tokens:,}.", now_ms())
                await self._increase_context(tokens)
        refusal = self._make_refusal(fixed, total)
        if refusal is not None:
            yield Finished("error", error=refusal)
            return
        request = self._adapt_request(request, total)
        has_calls = False
        async with aclosing(self._model.stream(request)) as events:
            async for event in events:
                has_calls = has_calls or isinstance(event, CallStarted)
                yield self._explain_end(event, has_calls) if isinstance(event, Finished) else event

    def _choose_context(self, fixed: int) -> int:
        """Return the tokens of context to load the model with; 0: as it is.

        `fixed`: tokens of instructions and tools. It is tried once; a model that can't take more stays as it is.
        """
        loaded, most, wish = self._context.loaded_tokens, self._context.max_tokens, self._wish
        if wish.increase is None or not (loaded or most):
            return 0
        enough = (
            max(ADVISED_CONTEXT_TOKENS, fixed + MIN_CONVERSATION_TOKENS)
            if fixed + MIN_CONVERSATION_TOKENS > loaded
            else 0
        )
        tokens = min(wish.tokens or enough, most or ADVISED_CONTEXT_TOKENS)
        return tokens if tokens > loaded else 0

    async def _increase_context(self, tokens: int) -> None:
        """Have the server load the model with more context, and adopt the context that it got."""
        if (increase := self._wish.increase) is None:
            return
        # Tried once: what failed would fail again, and take its time, at each request.
        self._wish = NO_WISH
        result = await increase(self._url, self._info.api_id or self._info.id, tokens)
        if result.loaded_tokens:
            self._name = result.model
            self._context = self._context._replace(loaded_tokens=result.loaded_tokens)
            self._info = self._model.info
            self._adopt_context()

    def _adapt_request(self, request: ModelRequest, total: int) -> ModelRequest:
        """Adapt the request to the loaded model: its name, and an answer that fits next to the request."""
        if self._name:
            request = replace(request, body={**request.body, "model": self._name})
        loaded, limit = self._context.loaded_tokens, self._info.answer_limit
        # A configured limit that fits no more would get the request refused, or its beginning cut.
        if loaded and limit and request.max_tokens is None:
            request = replace(request, max_tokens=max(min(limit, loaded - total), MIN_ANSWER_TOKENS))
        return request

    def _adopt_context(self) -> None:
        loaded, limit = self._context.loaded_tokens, self._info.limits.context
        if loaded and (not limit or loaded < limit):
            self._info = replace(self._info, limits=replace(self._info.limits, context=loaded))

    def _explain_end(self, end: Finished, has_calls: bool) -> Finished:
        """Add to the end of an answer how to give the model more context, if it had too little.

        An estimate lets a request pass that the server finds too long, or that leaves no room for an answer. A cut tool
        call is left to the agent's loop, which lets the model write a shorter one.
        """
        loaded, remedy = self._context.loaded_tokens, self._context.remedy
        if isinstance(end.error, ContextOverflowError):
            message = f"{end.error.data.message} {remedy}".rstrip()
            return replace(end, error=ContextOverflowError(data=replace(end.error.data, message=message)))
        if end.reason != "length" or has_calls or not loaded or end.tokens.all < loaded - FULL_MARGIN_TOKENS:
            return end
        message = (
            f"The request ({end.tokens.context:,} tokens) and the answer filled the context of {loaded:,} tokens that "
            f"{self._info.ref} is loaded with. Make room with /compact. {remedy}"
        )
        return replace(end, reason="error", error=_make_context_error(message))

    def _make_refusal(self, fixed: int, total: int) -> MessageError | None:
        """Return the error for a request of `total` tokens that does not fit; None: it fits.

        Compaction only helps when it is the conversation that is too long, so only then it is a ContextOverflowError.
        """
        loaded = self._context.loaded_tokens
        if not loaded:
            return None
        room = loaded - MIN_ANSWER_TOKENS
        if fixed > room:
            message = (
                f"{self._info.ref} is loaded with a context of {loaded:,} tokens; instructions and tools alone need "
                f"about {fixed:,}, and the server would cut them silently. {self._context.remedy}"
            )
            return _make_context_error(message)
        if total <= room:
            return None
        message = (
            f"The conversation needs about {total:,} tokens; {self._info.ref} is loaded with {loaded:,}. "
            f"Compact it with /compact. {self._context.remedy}"
        )
        return ContextOverflowError(data=OverflowData(message=message))


def wrap_local_model(model: ChatModel, url: str, row: ModelConfig | None) -> ChatModel:
    """Wrap a model of the server at a base URL of this machine; a server of an unknown kind is left as it is.

    `row`: the model's configuration, which may say how much context it shall get.
    """
    reader = find_context_reader(model.info.provider_id, url)
    if reader is None:
        return model
    tokens = (row.limit.context if row is not None and row.limit is not None else None) or 0
    return LocalModel(model, reader, url, ContextWish(find_context_increase(model.info.provider_id, url), tokens))


def estimate_tokens(value: object) -> int:
    """Return about how many tokens a value is as JSON."""
    return len(msgspec.json.encode(value)) // BYTES_PER_TOKEN


def _make_context_error(message: str) -> APIError:
    return APIError(data=APIErrorData(message=message, is_retryable=False, metadata={"kind": "context"}))


def _without_images(message: object) -> object:
    content: tuple[object, ...] = getattr(message, "content", ())
    return tuple(piece for piece in content if not isinstance(piece, ImagePiece))
