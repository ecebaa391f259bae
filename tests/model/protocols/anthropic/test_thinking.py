"""Tests of thinking that is sent back or left out,
and of models that accept an effort in place of a budget.
"""

import json
from typing import Any

from codeloop.model.chat import (
    AssistantModelMessage,
    CallPiece,
    ModelInfo,
    ModelMessage,
    ReasoningPiece,
    ResultPiece,
    RetryScheduled,
    TextPiece,
    ToolModelMessage,
    ToolSpec,
    UserModelMessage,
)
from tests.support.answers import Answer
from tests.support.model_server import ModelServer

TOOL = ToolSpec("read", "Read.", {"type": "object", "properties": {}})
USER = UserModelMessage((TextPiece("Hi"),))
SIGNED = ReasoningPiece("  Hm.\n", {"anthropic": {"signature": "SIG+/=="}})
THOUGHT = AssistantModelMessage((SIGNED, TextPiece("Yes.")), "anthropic/claude")
REFUSED = (
    "messages.1.content.0: `thinking` or `redacted_thinking` blocks in the latest assistant message cannot be "
    "modified. "
    "These blocks must remain as they were in the original response."
)
BUDGET = {"thinking": {"type": "enabled", "budgetTokens": 16_000}}


def refusal(message: str) -> Answer:
    error = {"type": "invalid_request_error", "message": message}
    return Answer(status=400, body=json.dumps({"type": "error", "error": error}))


def thoughts(request: Any) -> int:
    return request.body.decode().count('"type":"thinking","thinking"')


async def test_refused_thinking_is_left_out_and_that_is_said_once(
    anthropic: Any, asking: Any
) -> None:
    answers = [refusal(REFUSED), Answer(text="ok"), Answer(text="again")]
    async with ModelServer(answers) as server:
        model = anthropic(server)
        got = await asking(model, USER, THOUGHT, USER, session_id="s")
        later = await asking(model, USER, THOUGHT, USER, THOUGHT, USER, session_id="s")
    assert [type(event) for event in got.events].count(RetryScheduled) == 1
    assert (got.text, later.text) == ("ok", "again")
    assert not any(isinstance(event, RetryScheduled) for event in later.events)
    assert [thoughts(request) for request in server.requests] == [1, 0, 1]


async def test_other_refusals_are_not_tried_again(anthropic: Any, asking: Any) -> None:
    async with ModelServer([refusal("max_tokens: too large")]) as server:
        got = await asking(anthropic(server), USER, THOUGHT, USER)
        assert len(server.requests) == 1
    assert "max_tokens" in got.message


async def test_thinking_goes_back_with_its_blanks(anthropic: Any, asking: Any) -> None:
    async with ModelServer([Answer(text="ok")]) as server:
        await asking(anthropic(server), USER, THOUGHT, USER)
    assert (
        b'{"type":"thinking","thinking":"  Hm.\\n","signature":"SIG+/=="}'
        in server.requests[0].body
    )


async def test_a_model_that_refuses_a_budget_gets_an_effort_and_no_temperature(
    anthropic: Any, asking: Any
) -> None:
    info = ModelInfo(provider_id="anthropic", id="claude-opus-4-8", name="Opus")
    async with ModelServer([Answer(text="ok")]) as server:
        await asking(anthropic(server, info=info), options=BUDGET, temperature=0.3, top_p=0.5)
        await asking(anthropic(server, info=info), temperature=0.3)
    first, second = (request.json for request in server.requests)
    assert first["thinking"] == {"type": "adaptive", "display": "summarized"}
    assert first["output_config"] == {"effort": "high"}
    assert not {"temperature", "top_p"} & (first.keys() | second.keys())


async def test_a_budget_below_0_is_the_least_effort(anthropic: Any, asking: Any) -> None:
    info = ModelInfo(provider_id="anthropic", id="claude-opus-4-8", name="Opus")
    async with ModelServer([Answer(text="ok")]) as server:
        await asking(
            anthropic(server, info=info),
            options={"thinking": {"type": "enabled", "budgetTokens": -1}},
        )
    assert server.requests[0].json["output_config"] == {"effort": "low"}


async def test_no_temperature_is_sent_unless_the_user_sets_one(anthropic: Any, asking: Any) -> None:
    async with ModelServer([Answer(text="ok")]) as server:
        await asking(anthropic(server))
        await asking(anthropic(server), temperature=0.3)
    assert "temperature" not in server.requests[0].json
    assert server.requests[1].json["temperature"] == 0.3


async def test_a_call_of_another_model_is_answered_without_a_budget(
    anthropic: Any, asking: Any
) -> None:
    call, result = (
        CallPiece("c1", "read", "{}"),
        ToolModelMessage((ResultPiece("c1", "read", "x"),)),
    )
    foreign: tuple[ModelMessage, ...] = (USER, AssistantModelMessage((call,), "acme/m"), result)
    own: tuple[ModelMessage, ...] = (
        USER,
        AssistantModelMessage((SIGNED, call), "anthropic/claude"),
        result,
    )
    async with ModelServer([Answer(text="ok")]) as server:
        await asking(anthropic(server), *foreign, tools=(TOOL,), options=BUDGET)
        await asking(anthropic(server), *own, tools=(TOOL,), options=BUDGET)
    assert "thinking" not in server.requests[0].json
    assert server.requests[1].json["thinking"]["type"] == "enabled"
