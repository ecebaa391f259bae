"""Tests of chaos: every fault occurs, the same seed makes the same faults,
and a retry loses no answer.
"""

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codeloop.model.chat import (
    CallDelta,
    CallReady,
    CallStarted,
    ChatModel,
    Finished,
    ModelEvent,
    ModelRequest,
    TextDelta,
    TextPiece,
    ToolSpec,
    UserModelMessage,
)
from codeloop.model.testing.chaos import FAULTS, ChaosModel, FaultRates
from codeloop.model.testing.replay import ScriptedModel
from codeloop.model.testing.script import ScriptedAnswer, ScriptedCall
from codeloop.model.wrappers.retrying_model import RetryingModel
from codeloop.schema.errors import APIError
from tests.support.examples import scale_examples

REQUEST = ModelRequest(
    system="s", messages=(UserModelMessage((TextPiece("go"),)),), tools=(ToolSpec("read", "", {}),)
)
TEXT = ScriptedAnswer(text="some longer answer", deltas=8)
CALLS = ScriptedAnswer(
    text="look",
    calls=(
        ScriptedCall("read", {"filePath": "/a"}, "one"),
        ScriptedCall("bash", {"command": "ls"}, "two"),
    ),
)


async def said(model: ChatModel) -> list[ModelEvent]:
    return [event async for event in model.stream(REQUEST)]


def ready(events: list[ModelEvent]) -> list[CallReady]:
    return [event for event in events if isinstance(event, CallReady)]


@settings(max_examples=scale_examples(40))
@given(st.integers(), st.sampled_from(FAULTS))
async def test_a_stream_always_ends_with_finished_and_deltas_tell_what_the_call_says(
    seed: int, fault: str
) -> None:
    events = await said(ChaosModel(ScriptedModel([CALLS]), seed, rates_of(fault)))
    assert [isinstance(event, Finished) for event in events].count(True) == 1
    assert isinstance(events[-1], Finished)
    if fault != "duplicate_id":
        for call in ready(events):
            deltas = [
                event.text
                for event in events
                if isinstance(event, CallDelta) and event.id == call.id
            ]
            assert "".join(deltas) == call.arguments


def rates_of(fault: str, rate: float = 1.0) -> FaultRates:
    return FaultRates(
        cut=rate if fault == "cut" else 0,
        stall=rate if fault == "stall" else 0,
        broken_json=rate if fault == "broken_json" else 0,
        unknown_tool=rate if fault == "unknown_tool" else 0,
        duplicate_id=rate if fault == "duplicate_id" else 0,
        rate_limit=rate if fault == "rate_limit" else 0,
        server_error=rate if fault == "server_error" else 0,
        stall_ms=1,
    )


async def test_the_same_seed_breaks_in_the_same_way_and_another_in_another() -> None:
    async def run(seed: int) -> tuple[list[str], list[list[ModelEvent]]]:
        rates = FaultRates(cut=0.2, broken_json=0.2, unknown_tool=0.2, rate_limit=0.2)
        chaos = ChaosModel(ScriptedModel([CALLS] * 20), seed, rates)
        events = [await said(chaos) for _ in range(12)]
        return chaos.faults, events

    assert await run(1) == await run(1)
    assert (await run(1))[0] != (await run(2))[0]
    assert len(set((await run(1))[0])) >= 4


async def test_without_rates_everything_is_passed_on() -> None:
    assert await said(ChaosModel(ScriptedModel([CALLS]), 1, FaultRates())) == await said(
        ScriptedModel([CALLS])
    )


@pytest.mark.parametrize(("fault", "status"), [("rate_limit", 429), ("server_error", 500)])
async def test_refusals_carry_their_status_and_may_be_tried_again(fault: str, status: int) -> None:
    [end] = await said(ChaosModel(ScriptedModel([TEXT]), 3, rates_of(fault)))
    assert isinstance(end, Finished)
    assert isinstance(end.error, APIError)
    assert (end.error.data.status_code, end.error.data.is_retryable) == (status, True)


@given(st.integers())
@settings(max_examples=scale_examples(20))
async def test_broken_arguments_are_no_json_and_an_unknown_tool_is_unknown(seed: int) -> None:
    broken = await said(ChaosModel(ScriptedModel([CALLS]), seed, rates_of("broken_json")))
    assert sum(not call.arguments.endswith("}") for call in ready(broken)) == 1
    renamed = ready(await said(ChaosModel(ScriptedModel([CALLS]), seed, rates_of("unknown_tool"))))
    assert sum(call.name not in {"read", "bash"} for call in renamed) == 1


async def test_two_calls_get_one_id_and_a_single_one_comes_twice() -> None:
    assert (
        len(
            {
                call.id
                for call in ready(
                    await said(ChaosModel(ScriptedModel([CALLS]), 5, rates_of("duplicate_id")))
                )
            }
        )
        == 1
    )
    single = ScriptedAnswer(calls=(ScriptedCall("read", {}, "one"),))
    calls = ready(await said(ChaosModel(ScriptedModel([single]), 5, rates_of("duplicate_id"))))
    assert [call.id for call in calls] == ["one", "one"]


async def test_a_cut_after_a_whole_call_is_a_cut_and_before_one_an_error() -> None:
    reasons: set[str] = set()
    for seed in range(40):
        events = await said(ChaosModel(ScriptedModel([CALLS]), seed, rates_of("cut")))
        end = events[-1]
        assert isinstance(end, Finished)
        assert end.reason == ("cut" if ready(events) else "error")
        reasons.add(end.reason)
        assert len(events) < 8 or not any(isinstance(event, CallStarted) for event in events[-2:])
    assert reasons == {"cut", "error"}


async def test_a_stall_waits_and_then_goes_on() -> None:
    rates = FaultRates(stall=1.0, stall_ms=60)
    start = time.monotonic()
    events = await said(ChaosModel(ScriptedModel([TEXT]), 1, rates))
    assert time.monotonic() - start >= 0.06
    assert events == await said(ScriptedModel([TEXT]))


async def test_under_a_retry_the_whole_script_comes_through() -> None:
    async def no_wait(_: float) -> None:
        return

    chaos = ChaosModel(
        ScriptedModel([TEXT] * 10), 7, FaultRates(cut=0.3, rate_limit=0.2, server_error=0.2)
    )
    model = RetryingModel(chaos, attempts=30, sleep=no_wait)
    for _ in range(10):
        text = ""
        for event in await said(model):
            match event:
                case TextDelta(text=more):
                    text += more
                case Finished(reason=reason):
                    assert reason == "stop"
                case _:
                    text = ""
        assert text == TEXT.text
    assert {"cut", "rate_limit", "server_error"} <= set(chaos.faults)
