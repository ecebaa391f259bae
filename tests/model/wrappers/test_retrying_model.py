"""Tests of retries: which failures are repeated, after which wait, and how often."""

import asyncio
import time
from email.utils import formatdate
from typing import Any

import pytest

from codeloop.model.chat import (
    CallReady,
    Finished,
    ModelRequest,
    RetryScheduled,
    TextDelta,
    TextPiece,
    UserModelMessage,
)
from codeloop.model.wrappers.retrying_model import RetryingModel
from codeloop.schema.errors import APIError, ProviderAuthError
from codeloop.schema.limits import MODEL_ATTEMPTS, MODEL_WAIT
from tests.support.answers import Answer, Call
from tests.support.model_server import ModelServer
from tests.support.models import send_request
from tests.support.scripted_project import wait_until


class Sleeps:
    """Notes the waits instead of waiting."""

    def __init__(self) -> None:
        self.waits: list[float] = []

    async def __call__(self, seconds: float) -> None:
        self.waits.append(seconds)


def failing(status: int, body: str = "no", **headers: str) -> Answer:
    return Answer(
        status=status,
        body=body,
        headers={name.replace("_", "-"): value for name, value in headers.items()},
    )


@pytest.mark.parametrize("status", [408, 409, 429, 500, 502, 503, 529])
async def test_a_passing_failure_is_tried_again_and_shown(
    status: int, openai: Any, asking: Any
) -> None:
    sleeps, began = Sleeps(), time.time() * 1000
    async with ModelServer([failing(status), Answer(text="hi")]) as server:
        got = await asking(RetryingModel(openai(server), sleep=sleeps, random=lambda: 0.0))
    assert (got.text, got.end.reason, sleeps.waits) == ("hi", "stop", [2.0])
    retrying = next(event for event in got.events if isinstance(event, RetryScheduled))
    assert retrying.attempt == 1
    assert str(status) in retrying.message
    assert began - 1 < retrying.at - 2000 < time.time() * 1000 + 1


@pytest.mark.parametrize("status", [400, 401, 403, 404, 422])
async def test_a_lasting_failure_is_not_tried_again(status: int, openai: Any, asking: Any) -> None:
    sleeps = Sleeps()
    async with ModelServer([failing(status), Answer(text="hi")]) as server:
        got = await asking(RetryingModel(openai(server), sleep=sleeps))
        assert len(server.requests) == 1
    assert (got.end.reason, sleeps.waits) == ("error", [])


async def test_tries_are_bounded_and_waits_double_with_jitter(openai: Any, asking: Any) -> None:
    sleeps = Sleeps()
    async with ModelServer([failing(500)]) as server:
        got = await asking(RetryingModel(openai(server), sleep=sleeps, random=lambda: 1.0))
        assert len(server.requests) == MODEL_ATTEMPTS.value
    assert sleeps.waits == [2.5, 5.0, 10.0, 20.0]
    assert isinstance(got.end.error, APIError)
    assert "Gave up after 5 tries" in got.message


async def test_the_service_says_how_long_to_wait(openai: Any, asking: Any) -> None:
    sleeps = Sleeps()
    soon = formatdate(time.time() + 30, usegmt=True)
    answers = [
        failing(429, retry_after="5"),
        failing(429, retry_after="soon"),
        failing(429, retry_after=soon),
        failing(429, retry_after_ms="1500"),
        Answer(text="hi"),
    ]
    async with ModelServer(answers) as server:
        await asking(RetryingModel(openai(server), sleep=sleeps, random=lambda: 0.0))
    assert sleeps.waits == [5.0, 4.0, pytest.approx(25, abs=5), 1.5]


@pytest.mark.parametrize("hint", ["0", "-5", "20ms", "Thu, 01 Jan 2026 00:00:00 GMT"])
async def test_at_once_is_believed_only_once(hint: str, openai: Any, asking: Any) -> None:
    sleeps = Sleeps()
    async with ModelServer([failing(429, retry_after=hint)]) as server:
        await asking(RetryingModel(openai(server), sleep=sleeps, random=lambda: 0.0))
    assert sleeps.waits == [pytest.approx(0, abs=0.03), 4.0, 8.0, 16.0]


async def test_a_wait_that_is_no_number_is_not_taken(openai: Any, asking: Any) -> None:
    sleeps = Sleeps()
    async with ModelServer([failing(429, retry_after="nan"), Answer(text="hi")]) as server:
        got = await asking(RetryingModel(openai(server), sleep=sleeps, random=lambda: 0.0))
    assert (got.text, sleeps.waits) == ("hi", [2.0])


async def test_a_long_wait_is_surfaced_and_not_slept(openai: Any, asking: Any) -> None:
    sleeps = Sleeps()
    async with ModelServer([failing(429, retry_after=str(16 * 86_400))]) as server:
        got = await asking(RetryingModel(openai(server), sleep=sleeps))
        assert len(server.requests) == 1
    assert sleeps.waits == []
    assert "16 d" in got.message


async def test_a_wait_without_sense_is_told_in_words(openai: Any, asking: Any) -> None:
    async with ModelServer([failing(503, retry_after="9" * 20)]) as server:
        got = await asking(RetryingModel(openai(server), sleep=Sleeps()))
    assert "asks to wait more than a year" in got.message


async def test_no_wait_is_longer_than_the_bound(openai: Any, asking: Any) -> None:
    sleeps = Sleeps()
    async with ModelServer([failing(429, retry_after="60")]) as server:
        await asking(RetryingModel(openai(server), attempts=9, sleep=sleeps, random=lambda: 0.99))
    assert sleeps.waits == [MODEL_WAIT.seconds] * 8


@pytest.mark.parametrize(
    "body",
    [
        '{"error":{"message":"You exceeded your current quota, please check your plan","code":"insufficient_quota"}}',
        '{"error":{"message":"Insufficient balance"}}',
    ],
)
async def test_a_key_without_credit_is_not_tried_again(body: str, openai: Any, asking: Any) -> None:
    async with ModelServer([failing(429, body)]) as server:
        got = await asking(RetryingModel(openai(server), sleep=Sleeps()))
        assert len(server.requests) == 1
    assert "no credit" in got.message


async def test_a_cut_stream_is_tried_again_and_what_came_last_stays(
    openai: Any, asking: Any
) -> None:
    answers = [
        Answer(text="one two", deltas=2, cut_after=2),
        Answer(text="three four", deltas=2, cut_after=3),
    ]
    async with ModelServer(answers) as server:
        got = await asking(RetryingModel(openai(server), attempts=2, sleep=Sleeps()))
    after = got.events[
        next(at for at, event in enumerate(got.events) if isinstance(event, RetryScheduled)) + 1 :
    ]
    assert "".join(event.text for event in after if isinstance(event, TextDelta)) == "three four"
    assert got.end.reason == "error"


async def test_after_a_complete_call_the_answer_ends_as_cut_and_is_not_repeated(
    openai: Any, asking: Any
) -> None:
    calls = (Call("read", '{"path":"a"}', "c1"), Call("read", '{"path":"a long name"}', "c2"))
    async with ModelServer([Answer(calls=calls, cut_after=4)]) as server:
        got = await asking(RetryingModel(openai(server), sleep=Sleeps()))
        assert len(server.requests) == 1
    assert got.ready == [("c1", "read", '{"path":"a"}')]
    assert got.end.reason == "cut"
    assert got.end.error is None


async def test_a_call_that_was_cut_is_asked_for_again(anthropic: Any, asking: Any) -> None:
    call = Call("read", '{"path":"a long name of a file"}', "c1")
    async with ModelServer([Answer(calls=(call,), cut_after=5), Answer(calls=(call,))]) as server:
        got = await asking(RetryingModel(anthropic(server), sleep=Sleeps()))
    assert [event.arguments for event in got.events if isinstance(event, CallReady)] == [
        call.arguments
    ]
    assert got.end.reason == "tool-calls"


async def test_a_refused_key_is_the_providers_error(anthropic: Any, asking: Any) -> None:
    async with ModelServer([Answer()], key="another") as server:
        got = await asking(RetryingModel(anthropic(server), sleep=Sleeps()))
    assert isinstance(got.end.error, ProviderAuthError)
    assert "codeloop auth login anthropic" in got.message


async def test_closing_the_retrying_stream_closes_the_connection(openai: Any) -> None:
    async with ModelServer([Answer(text="a b c", deltas=3, stall_after=3)]) as server:
        stream = RetryingModel(openai(server)).stream(
            ModelRequest(system="", messages=(UserModelMessage((TextPiece("x"),)),))
        )
        async for event in stream:
            assert not isinstance(event, Finished)
            break
        await stream.aclose()
        await wait_until(lambda: server.aborted == 1)


async def test_requests_wait_together_for_a_service_without_capacity(openai: Any) -> None:
    """A request that begins while another one waits is not refused first."""
    refused = Answer(status=503, body='{"error":{"message":"overloaded"}}')
    waits: list[float] = []
    is_waiting, may_go_on = asyncio.Event(), asyncio.Event()

    async def sleep(seconds: float) -> None:
        waits.append(seconds)
        is_waiting.set()
        await may_go_on.wait()

    async with ModelServer([refused, Answer(text="ok")]) as server:
        model = RetryingModel(openai(server), sleep=sleep, random=lambda: 0.0)
        first = asyncio.create_task(send_request(model))
        await is_waiting.wait()
        is_waiting.clear()
        second = asyncio.create_task(send_request(model))
        await is_waiting.wait()
        assert len(server.requests) == 1
        may_go_on.set()
        assert [(await each).text for each in (first, second)] == ["ok", "ok"]
        assert len(server.requests) == 3
    assert 0 < waits[1] <= waits[0]
