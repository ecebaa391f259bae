"""A model wrapper that repeats failed requests: few times, with growing waits,
and never once a tool call may run.
"""

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from typing import TYPE_CHECKING

import msgspec

from codeloop.model.chat import (
    CallReady,
    ChatModel,
    Finished,
    ModelEvent,
    ModelInfo,
    ModelRequest,
    RetryScheduled,
    ToolSpec,
)
from codeloop.net.wait_hints import LIMITED_STATUSES, read_wait
from codeloop.schema.errors import APIError, APIErrorData, MessageError
from codeloop.schema.limits import (
    MODEL_ATTEMPTS,
    MODEL_BACKOFF,
    MODEL_REFUSED_ATTEMPTS,
    MODEL_REFUSED_BACKOFF,
    MODEL_WAIT,
)

if TYPE_CHECKING:
    from codeloop.model.wrappers.refused_tools import WithoutTool

# The share of a wait that is added at random, so that many clients don't retry at the same moment.
JITTER_SHARE = 0.25
_LEAST_TOLD_PAUSE = 1.0
"""In seconds."""
ENDED_EARLY_EVENT = Finished(
    "error",
    error=APIError(
        data=APIErrorData(message="The model's answer broke off. Try again.", is_retryable=True)
    ),
)
"""The result of a stream that closed without a Finished event."""


def _draw_fraction() -> float:
    # Imported here: it is only needed after a failed attempt.
    import random

    return random.random()


class RetryingModel:
    """Wraps a model. `attempts` counts all tries; `sleep` takes seconds;
    `random` returns a number in [0, 1).
    """

    def __init__(
        self,
        model: ChatModel,
        *,
        attempts: int = MODEL_ATTEMPTS.value,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        random: Callable[[], float] = _draw_fraction,
    ) -> None:
        self._model = model
        self._attempts = attempts
        self._sleep = sleep
        self._random = random
        self._refused_tools: list[ToolSpec] = []
        """Tools of others that the service does not take: requests go without them."""
        self._busy_until = 0.0
        """Until when (monotonic seconds) no request is sent: the service has no capacity."""

    @property
    def info(self) -> ModelInfo:
        """The wrapped model's metadata."""
        return self._model.info

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        """Yield the model's events. A retryable failure yields RetryScheduled,
        and the next attempt follows.
        """
        if self._refused_tools:
            tools = tuple(each for each in request.tools if each not in self._refused_tools)
            request = msgspec.structs.replace(request, tools=tools)
        own_time = 0.0
        for attempt in range(1, self._attempts + 1):
            # One wait for all: sessions and subagents don't find out one by one.
            pause = self._busy_until - time.monotonic()
            if pause > 0 and self._busy_until > own_time:
                if pause >= _LEAST_TOLD_PAUSE:
                    yield self._announce_pause(attempt, pause)
                await self._sleep(pause)
            end, has_calls = ENDED_EARLY_EVENT, False
            async with aclosing(self._model.stream(request)) as events:
                async for event in events:
                    if isinstance(event, Finished):
                        end = event
                        break
                    has_calls = has_calls or isinstance(event, CallReady)
                    yield event
            error = end.error
            if error is None:
                self._busy_until = 0.0
            if not isinstance(error, APIError) or not error.data.is_retryable:
                without_tool = _leave_out_tool(request, error) if not has_calls else None
                if without_tool is None:
                    yield end
                    return
                self._refused_tools.append(without_tool.tool)
                yield RetryScheduled(0, without_tool.message, int(time.time() * 1000), end.tokens)
                async with aclosing(self.stream(without_tool.request)) as events:
                    async for event in events:
                        yield event
                return
            # The calls may run already: another attempt would make them a second time.
            if has_calls:
                yield Finished("cut", end.tokens)
                return
            wait = self._compute_wait(error, attempt)
            if error.data.status_code in LIMITED_STATUSES and wait <= MODEL_WAIT.seconds:
                own_time = self._busy_until = max(self._busy_until, time.monotonic() + wait)
            if attempt >= self._limit_attempts(request, error) or wait > MODEL_WAIT.seconds:
                yield Finished("error", end.tokens, _make_final_error(error, attempt, wait))
                return
            yield RetryScheduled(
                attempt, error.data.message, int((time.time() + wait) * 1000), end.tokens
            )
            await self._sleep(wait)

    def _announce_pause(self, attempt: int, pause: float) -> RetryScheduled:
        message = f"{self.info.provider_id} is busy: it has refused other requests."
        return RetryScheduled(attempt, message, int((time.time() + pause) * 1000))

    def _limit_attempts(self, request: ModelRequest, error: APIError) -> int:
        """Return the most attempts for a request that failed with this error."""
        allowed = min(self._attempts, request.max_attempts or self._attempts)
        # When the connection is refused, the address is probably wrong.
        return min(allowed, MODEL_REFUSED_ATTEMPTS.value) if _is_refused(error) else allowed

    def _compute_wait(self, error: APIError, attempt: int) -> float:
        """Return the seconds to wait: those that the service asks for, else 2 s, 4 s, 8 s, ...,
        plus up to a quarter.

        A refused connection is retried sooner.
        """
        is_limited = error.data.status_code in LIMITED_STATUSES
        headers = error.data.response_headers or {}
        requested = read_wait(headers, time.time(), is_limited=is_limited)
        # "At once" is believed once: else all attempts would be spent within a second.
        if requested is not None and requested < 1 and attempt > 1:
            requested = None
        # Not shortened: `stream` gives up, with an error that names this time.
        if requested is not None and requested > MODEL_WAIT.seconds:
            return requested
        first = MODEL_REFUSED_BACKOFF.seconds if _is_refused(error) else MODEL_BACKOFF.seconds
        wait = requested if requested is not None else first * 2 ** (attempt - 1)
        return min(wait * (1 + JITTER_SHARE * self._random()), MODEL_WAIT.seconds)


def _leave_out_tool(request: ModelRequest, error: MessageError | None) -> "WithoutTool | None":
    """Return the request without the tool that the service refused; None: it refused none."""
    if not isinstance(error, APIError) or not request.tools:
        return None
    # Imported late: it is only needed after a refusal.
    from codeloop.model.wrappers.refused_tools import leave_out_tool

    return leave_out_tool(request, error)


def _is_refused(error: APIError) -> bool:
    return (error.data.metadata or {}).get("kind") == "refused"


def _make_final_error(error: APIError, attempts: int, wait: float) -> APIError:
    """Return the error of the last attempt, and why there is no further one.
    `wait`: seconds before the next one.
    """
    message = error.data.message
    if wait > MODEL_WAIT.seconds:
        message = (
            f"{message} The service asks to wait {_format_duration(wait)}; "
            f"codeloop waits at most {_format_duration(MODEL_WAIT.seconds)}."
        )
    elif attempts > 1:
        message = f"{message} Gave up after {attempts} tries."
    return APIError(data=msgspec.structs.replace(error.data, message=message))


def _format_duration(seconds: float) -> str:
    if seconds > 366 * 86_400:
        return "more than a year"
    # Two minutes and more, but also exactly one: 90 s are easier to read than 2 min.
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= 2 * size or seconds == size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s"
