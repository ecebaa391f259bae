"""Tests of rate limits: a service that reports an exhausted one is not asked before it resets."""

import asyncio
from datetime import UTC, datetime

import pytest

from codeloop.model.chat import RetryScheduled
from codeloop.model.wrappers.retrying_model import RetryingModel
from codeloop.net.wait_hints import find_pause
from tests.support.adapter_rows import ADAPTER_ROWS
from tests.support.answers import Answer
from tests.support.model_server import ModelServer
from tests.support.models import send_request

NOW = datetime(2026, 1, 1, tzinfo=UTC).timestamp()


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, 0),
        ({"x-ratelimit-remaining-requests": "1", "x-ratelimit-reset-requests": "6m0s"}, 0),
        ({"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "6m0s"}, 360),
        ({"x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "1h0m1.5s"}, 3_601.5),
        ({"x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "20ms"}, 0.02),
        ({"x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "7.5"}, 7.5),
        ({"x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "soon"}, 0),
        (
            {
                "anthropic-ratelimit-requests-remaining": "0",
                "anthropic-ratelimit-requests-reset": "2026-01-01T00:00:05Z",
                "anthropic-ratelimit-output-tokens-remaining": "0",
                "anthropic-ratelimit-output-tokens-reset": "2026-01-01T00:00:09Z",
            },
            9,
        ),
        ({"ratelimit": '"default";r=0;t=50'}, 50),
        ({"x-ratelimit-remaining-tokens-day": "0", "x-ratelimit-reset-tokens-day": "1d2h"}, 93_600),
        ({"x-ratelimit-remaining": "-1", "x-ratelimit-reset": "5 s"}, 5),
        (
            {
                "anthropic-ratelimit-tokens-remaining": "0",
                "anthropic-ratelimit-tokens-reset": "2025-12-31T23:59:59Z",
            },
            0,
        ),
    ],
)
def test_the_headers_of_services_are_read(headers: dict[str, str], seconds: float) -> None:
    assert find_pause(headers, NOW) == pytest.approx(seconds)


async def test_the_next_request_waits_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []
    sleep = asyncio.sleep

    async def note(seconds: float) -> None:
        waits.append(seconds)
        await sleep(0)

    monkeypatch.setattr(asyncio, "sleep", note)
    none_left = {"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "20s"}
    async with ModelServer([Answer(text="one", headers=none_left), Answer(text="two")]) as server:
        model = ADAPTER_ROWS["chat"].open(server.url)
        assert (await send_request(model)).text == "one"
        assert waits == []
        got = await send_request(model)
        await model.aclose()
    assert waits == [pytest.approx(15, abs=5)]
    assert got.text == "two"
    assert isinstance(got.events[0], RetryScheduled)
    assert "127.0.0.1 takes no more requests for now" in got.events[0].message


async def test_an_hour_is_not_waited_for() -> None:
    none_left = {"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "1h"}
    async with ModelServer([Answer(text="one", headers=none_left), Answer(text="two")]) as server:
        model = ADAPTER_ROWS["chat"].open(server.url)
        await send_request(model)
        got = await send_request(model)
        await model.aclose()
    assert got.text == "two"


async def test_a_refusal_holds_for_all_sessions_of_the_model() -> None:
    waits: list[float] = []

    async def note(seconds: float) -> None:
        waits.append(seconds)

    refusal = Answer(status=429, body="{}", headers={"retry-after": "20"})
    async with ModelServer([refusal, Answer(text="two")]) as server:
        inner = ADAPTER_ROWS["chat"].open(server.url)
        model = RetryingModel(inner, attempts=1, sleep=note, random=lambda: 0.0)
        await send_request(model)
        got = await send_request(model)
        await inner.aclose()
    assert waits == [pytest.approx(15, abs=5)]
    assert got.text == "two"
