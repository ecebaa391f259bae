"""A model wrapper that injects faults of services and networks, reproducibly by seed,
for tests of the agent's loop.
"""

import random
from collections.abc import AsyncGenerator

import msgspec

from codeloop.model.chat import (
    CallDelta,
    CallReady,
    CallStarted,
    ChatModel,
    Finished,
    ModelEvent,
    ModelInfo,
    ModelRequest,
)
from codeloop.model.testing.script import RequestKind, classify_request
from codeloop.schema.errors import APIError, APIErrorData


class FaultRates(msgspec.Struct, frozen=True, kw_only=True):
    """The probability of each fault, 0.0 to 1.0. A request has one fault at most,
    so their sum should not exceed 1.

    `cut` ends the stream in the middle, `stall` pauses it for `stall_ms`, `broken_json` cuts a
    call's arguments, `unknown_tool` changes a call's name, `duplicate_id` gives two calls one id;
    `rate_limit` and `server_error` refuse the request.
    """

    cut: float = 0.0
    stall: float = 0.0
    broken_json: float = 0.0
    unknown_tool: float = 0.0
    duplicate_id: float = 0.0
    rate_limit: float = 0.0
    server_error: float = 0.0
    stall_ms: int = 1_000


FAULTS = (
    "cut",
    "stall",
    "broken_json",
    "unknown_tool",
    "duplicate_id",
    "rate_limit",
    "server_error",
)
_REFUSAL_ERRORS = {
    "rate_limit": (429, "Too many requests (chaos)"),
    "server_error": (500, "Internal server error (chaos)"),
}


class ChaosModel:
    """Passes on the events of `inner`, with random faults.

    An answer that was cut or refused is not lost: the same request, sent again, gets it. So a
    script comes to the same end with chaos and retries as without.
    """

    def __init__(self, inner: ChatModel, seed: int, rates: FaultRates) -> None:
        self._inner = inner
        self._rates = rates
        # One generator by kind, since requests for titles come at times that
        # differ from run to run.
        self._generators: dict[RequestKind, random.Random] = {
            "main": random.Random(f"{seed} main"),
            "side": random.Random(f"{seed} side"),
        }
        self._repeats: dict[RequestKind, tuple[ModelRequest, list[ModelEvent]]] = {}
        self.faults: list[str] = []
        """The fault of each request so far, a name of FAULTS; empty for a request without one."""

    @property
    def info(self) -> ModelInfo:
        """The inner model's metadata."""
        return self._inner.info

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent]:
        """Ask the inner model, and pass its answer on with a fault or without."""
        import asyncio

        kind = classify_request(request)
        dice = self._generators[kind]
        fault = self._draw_fault(dice)
        # Drawn in any case, so that each request takes the same number of draws,
        # whatever its fault.
        point = dice.random()
        self.faults.append(fault)
        if fault in _REFUSAL_ERRORS:
            yield _make_refusal(*_REFUSAL_ERRORS[fault])
            return
        events = await self._request_answer(kind, request)
        if fault == "cut":
            self._repeats[kind] = (request, events)
        for number, event in enumerate(inject_fault(events, fault, point)):
            if fault == "stall" and number == int(point * len(events)):
                await asyncio.sleep(self._rates.stall_ms / 1000)
            yield event

    def _draw_fault(self, dice: random.Random) -> str:
        draw = dice.random()
        for name in FAULTS:
            draw -= float(getattr(self._rates, name))
            if draw < 0:
                return name
        return ""

    async def _request_answer(self, kind: RequestKind, request: ModelRequest) -> list[ModelEvent]:
        repeat = self._repeats.pop(kind, None)
        if repeat is not None and repeat[0] == request:
            return repeat[1]
        return [event async for event in self._inner.stream(request)]


def inject_fault(events: list[ModelEvent], fault: str, point: float) -> list[ModelEvent]:
    """Return the events with the fault; `point` (0.0 to 1.0) says how far into the answer it comes.
    Pure.
    """
    match fault:
        case "cut":
            return _cut_answer(events, point)
        case "broken_json" | "unknown_tool" | "duplicate_id":
            return _break_call(events, fault, point)
        case _:
            return events


def _cut_answer(events: list[ModelEvent], point: float) -> list[ModelEvent]:
    beginning = events[: int(point * (len(events) - 1))]
    if any(isinstance(event, CallReady) for event in beginning):
        return [*beginning, Finished("cut")]
    return [
        *beginning,
        _make_refusal(None, "The connection ended in the middle of the answer (chaos)"),
    ]


def _break_call(events: list[ModelEvent], fault: str, point: float) -> list[ModelEvent]:
    calls = [event for event in events if isinstance(event, CallReady)]
    if not calls:
        return events
    victim = calls[int(point * len(calls))]
    match fault:
        case "broken_json":
            short = victim.arguments[: max(1, int(point * len(victim.arguments)))].rstrip("}")
            return _replace_call(events, victim, CallReady(victim.id, victim.name, short or "{"))
        case "unknown_tool":
            return _replace_call(
                events, victim, CallReady(victim.id, f"{victim.name}_x", victim.arguments)
            )
        case _:
            another = next((call for call in calls if call.id != victim.id), None)
            if another is None:
                return [*events[:-1], victim, events[-1]]
            return _replace_call(
                events, victim, CallReady(another.id, victim.name, victim.arguments)
            )


def _replace_call(events: list[ModelEvent], old: CallReady, new: CallReady) -> list[ModelEvent]:
    """Replace one call by another in all of its events."""
    result: list[ModelEvent] = []
    for event in events:
        match event:
            case CallStarted(id=old.id):
                result += [CallStarted(new.id, new.name), CallDelta(new.id, new.arguments)]
            case CallDelta(id=old.id):
                continue
            case CallReady(id=old.id):
                result.append(new)
            case _:
                result.append(event)
    return result


def _make_refusal(status: int | None, message: str) -> Finished:
    return Finished(
        "error",
        error=APIError(data=APIErrorData(message=message, is_retryable=True, status_code=status)),
    )
