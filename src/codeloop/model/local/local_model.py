"""Wraps a model of a local server, to respect the context length that the server
has actually loaded it with.
"""

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
from codeloop.model.local.context_length import (
    ADVISED_CONTEXT_TOKENS,
    ContextIncrease,
    ContextReader,
    LocalContext,
    find_context_increase,
    find_context_reader,
)
from codeloop.schema.errors import (
    APIError,
    APIErrorData,
    ContextOverflowError,
    MessageError,
    OverflowData,
)
from codeloop.schema.ids import now_ms
from codeloop.schema.provider_config import ModelConfig
from codeloop.schema.wire import replace

# For English text and code; the estimate decides only near the limit.
BYTES_PER_TOKEN = 4
MIN_ANSWER_TOKENS = 1_024
"""The least room for an answer."""
MIN_CONVERSATION_TOKENS = 8_192
"""The least room for a conversation, on top of instructions and tools."""
FULL_MARGIN_TOKENS = 8
"""The most tokens that servers leave unused in a full context."""


class ContextAdjustment(NamedTuple):
    """How a model is given more context (None: the server can't),
    and the tokens that the user configured (0: none).
    """

    increase: ContextIncrease | None = None
    configured_tokens: int = 0


NO_ADJUSTMENT = ContextAdjustment()


class LocalModel:
    """Passes fitting requests on, and refuses those that the server would silently truncate.

    `info` has the real length once it is known. The server is asked again until it says one: a
    model that is loaded by the first request has none before. Where the server can, it gives the
    model more context, if that is too little.
    """

    def __init__(
        self,
        model: ChatModel,
        reader: ContextReader,
        url: str,
        adjustment: ContextAdjustment = NO_ADJUSTMENT,
    ) -> None:
        self._adjustment = adjustment
        self._name = ""
        """The server's name of the model once it has more context;
        empty: the name did not change.
        """
        self._context_lock = asyncio.Lock()
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
        fixed_tokens = _estimate_tokens(request.system) + _estimate_tokens(request.tools)
        total_tokens = fixed_tokens + sum(
            _estimate_tokens(_drop_attachments(message)) for message in request.messages
        )
        # Concurrent requests wait, so that the server is asked, and loads the model, once.
        async with self._context_lock:
            if not self._context.loaded_tokens:
                self._context = await self._read_context(
                    self._url, self._info.api_id or self._info.id
                )
                self._adopt_context()
            if tokens := self._choose_context(fixed_tokens):
                loaded = self._context.loaded_tokens
                state = (
                    f"is loaded with a context of {loaded:,} tokens" if loaded else "is not loaded"
                )
                message = f"{self._info.ref} {state}; it is now being loaded with {tokens:,}."
                yield RetryScheduled(attempt=0, message=message, at=now_ms())
                await self._increase_context(tokens)
        refusal = self._make_refusal(fixed_tokens, total_tokens)
        if refusal is not None:
            yield Finished("error", error=refusal)
            return
        request = self._adapt_request(request, total_tokens)
        has_calls = False
        async with aclosing(self._model.stream(request)) as events:
            async for event in events:
                has_calls = has_calls or isinstance(event, CallStarted)
                yield (
                    self._explain_end(event, has_calls=has_calls)
                    if isinstance(event, Finished)
                    else event
                )

    def _choose_context(self, fixed_tokens: int) -> int:
        """Return the tokens of context to load the model with; 0: it stays as it is.

        `fixed_tokens`: those of instructions and tools.
        """
        loaded_tokens, max_tokens = self._context.loaded_tokens, self._context.max_tokens
        if self._adjustment.increase is None or not (loaded_tokens or max_tokens):
            return 0
        wanted_tokens = self._adjustment.configured_tokens
        if not wanted_tokens and fixed_tokens + MIN_CONVERSATION_TOKENS > loaded_tokens:
            wanted_tokens = max(ADVISED_CONTEXT_TOKENS, fixed_tokens + MIN_CONVERSATION_TOKENS)
        tokens = min(wanted_tokens, max_tokens or ADVISED_CONTEXT_TOKENS)
        return tokens if tokens > loaded_tokens else 0

    async def _increase_context(self, tokens: int) -> None:
        """Have the server load the model with more context, and adopt the context that it got."""
        if (increase := self._adjustment.increase) is None:
            return
        # Tried once: what failed would fail again, and take its time, at each request.
        self._adjustment = NO_ADJUSTMENT
        result = await increase(self._url, self._info.api_id or self._info.id, tokens)
        if result.loaded_tokens:
            self._name = result.model
            self._context = self._context._replace(loaded_tokens=result.loaded_tokens)
            self._info = self._model.info
            self._adopt_context()

    def _adapt_request(self, request: ModelRequest, total_tokens: int) -> ModelRequest:
        """Adapt the request to the loaded model: its name,
        and an answer that fits next to the request.
        """
        if self._name:
            request = replace(request, body={**request.body, "model": self._name})
        loaded, limit = self._context.loaded_tokens, self._info.answer_limit
        # A configured limit that fits no more would get the request refused, or its beginning cut.
        if loaded and limit and request.max_tokens is None:
            request = replace(
                request, max_tokens=max(min(limit, loaded - total_tokens), MIN_ANSWER_TOKENS)
            )
        return request

    def _adopt_context(self) -> None:
        loaded, limit = self._context.loaded_tokens, self._info.limits.context
        if loaded and (not limit or loaded < limit):
            self._info = replace(self._info, limits=replace(self._info.limits, context=loaded))

    def _explain_end(self, end: Finished, *, has_calls: bool) -> Finished:
        """Add advice on giving the model more context to the end of an answer for
        which it had too little.

        An estimate may let a request pass that the server finds too long, or that leaves no room
        for an answer. A cut tool call is left to the agent's loop,
        which lets the model write a shorter one.
        """
        loaded, remedy = self._context.loaded_tokens, self._context.remedy
        if isinstance(end.error, ContextOverflowError):
            message = f"{end.error.data.message} {remedy}".rstrip()
            return replace(
                end, error=ContextOverflowError(data=replace(end.error.data, message=message))
            )
        if (
            end.reason != "length"
            or has_calls
            or not loaded
            or end.tokens.all < loaded - FULL_MARGIN_TOKENS
        ):
            return end
        message = (
            f"The request ({end.tokens.context:,} tokens) and the answer filled the context of {loaded:,} tokens that "
            f"{self._info.ref} is loaded with. Make room with /compact. {remedy}"
        )
        return replace(end, reason="error", error=_make_context_error(message))

    def _make_refusal(self, fixed_tokens: int, total_tokens: int) -> MessageError | None:
        """Return the error for a request of `total_tokens` that does not fit; None: it fits.

        It is a ContextOverflowError, which leads to a compaction,
        only if the conversation is what is too long.
        """
        loaded = self._context.loaded_tokens
        if not loaded:
            return None
        room = loaded - MIN_ANSWER_TOKENS
        if fixed_tokens > room:
            message = (
                f"{self._info.ref} is loaded with a context of {loaded:,} tokens; instructions and tools alone need "
                f"about {fixed_tokens:,}, and the server would cut them silently. {self._context.remedy}"
            )
            return _make_context_error(message)
        if total_tokens <= room:
            return None
        message = (
            f"The conversation needs about {total_tokens:,} tokens; {self._info.ref} is loaded with {loaded:,}. "
            f"Compact it with /compact. {self._context.remedy}"
        )
        return ContextOverflowError(data=OverflowData(message=message))


def wrap_local_model(model: ChatModel, url: str, row: ModelConfig | None) -> ChatModel:
    """Wrap a model of the server at a base URL of this machine;
    a server of an unknown kind is left as it is.

    `row`: the model's configuration, which may say how much context it should get.
    """
    reader = find_context_reader(model.info.provider_id, url)
    if reader is None:
        return model
    limit = row.limit if row is not None else None
    adjustment = ContextAdjustment(
        increase=find_context_increase(model.info.provider_id, url),
        configured_tokens=(limit.context or 0) if limit is not None else 0,
    )
    return LocalModel(model, reader, url, adjustment)


def _estimate_tokens(value: object) -> int:
    """Return about how many tokens a value takes as JSON."""
    return len(msgspec.json.encode(value)) // BYTES_PER_TOKEN


def _make_context_error(message: str) -> APIError:
    return APIError(
        data=APIErrorData(message=message, is_retryable=False, metadata={"kind": "context"})
    )


def _drop_attachments(message: object) -> object:
    """Return a message's content without images and PDFs: their length in bytes says
    nothing about their tokens.
    """
    content: tuple[object, ...] = getattr(message, "content", ())
    return tuple(piece for piece in content if not isinstance(piece, ImagePiece))
