"""Tests of Anthropic's messages over a real socket: requests byte for byte,
and the events of every kind of answer.
"""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.protocols.anthropic import check_request
from codeloop.model.chat import (
    AssistantModelMessage,
    CallPiece,
    CallReady,
    CallStarted,
    Finished,
    ImagePiece,
    ModelInfo,
    ModelMessage,
    ModelRequest,
    ReasoningDelta,
    ReasoningPiece,
    ResultPiece,
    TextDelta,
    TextPiece,
    TokenLimits,
    ToolModelMessage,
    ToolSpec,
    UserModelMessage,
)
from codeloop.model.protocols.anthropic.request import AnthropicRequestEncoder
from codeloop.model.quirks import ANTHROPIC_QUIRKS, Quirks
from codeloop.schema.errors import APIError, ContextOverflowError, ProviderAuthError
from codeloop.schema.message import CacheTokens, Tokens
from tests.support.answers import Answer, Call, Counts
from tests.support.examples import scale_examples
from tests.support.model_server import ModelServer
from tests.support.scripted_project import wait_until

TOOL = ToolSpec(
    "read", "Read a file.", {"type": "object", "properties": {"path": {"type": "string"}}}
)
INFO = ModelInfo(
    provider_id="anthropic",
    id="claude",
    name="Claude",
    limits=TokenLimits(output=8_000),
    input=frozenset({"text", "image", "pdf"}),
)
MARK = b',"cache_control":{"type":"ephemeral"}'


async def test_the_body_is_exactly_this(anthropic: Any, asking: Any) -> None:
    turns: tuple[ModelMessage, ...] = (
        UserModelMessage(
            (
                TextPiece("Look"),
                ImagePiece("image/png", "aWk="),
                ImagePiece("application/pdf", "cGRm", "a.pdf"),
            )
        ),
        AssistantModelMessage(
            (
                ReasoningPiece("hm", {"anthropic": {"signature": "SIG"}}),
                ReasoningPiece("", {"anthropic": {"redacted": "QUJD"}}),
                TextPiece("I read."),
                CallPiece("t1", "read", '{"path": "a"}'),
                CallPiece("t2", "read", '{"path":"ß"}'),
            ),
            origin="anthropic/claude",
        ),
        ToolModelMessage(
            (ResultPiece("t1", "read", "one"), ResultPiece("t2", "read", "no file", error=True))
        ),
        UserModelMessage((TextPiece("Go on"),)),
    )
    async with ModelServer([Answer(text="ok")]) as server:
        await asking(
            anthropic(server, info=INFO),
            *turns,
            tools=(TOOL, TOOL),
            temperature=0.5,
            options={"top_k": 5},
        )
        received = server.requests[0]
    assert received.path == "/v1/messages"
    assert received.headers["x-api-key"] == "sk-test-0123456789abcdef"
    assert received.headers["anthropic-version"] == "2023-06-01"
    assert "authorization" not in received.headers
    tool = '{"name":"read","description":"Read a file.","input_schema":{"type":"object",'
    tool += '"properties":{"path":{"type":"string"}}}'
    assert received.body.decode() == (
        '{"model":"claude","max_tokens":8000,"stream":true,"temperature":0.5,"top_k":5,'
        f'"tools":[{tool}}},{tool},"cache_control":{{"type":"ephemeral"}}}}],'
        '"system":[{"type":"text","text":"Be brief.","cache_control":{"type":"ephemeral"}}],'
        '"messages":[{"role":"user","content":[{"type":"text","text":"Look"},'
        '{"type":"image","source":{"type":"base64","media_type":"image/png","data":"aWk="}},'
        '{"type":"document","source":{"type":"base64","media_type":"application/pdf","data":"cGRm"},"title":"a.pdf"}]},'
        '{"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"SIG"},'
        '{"type":"redacted_thinking","data":"QUJD"},{"type":"text","text":"I read."},'
        '{"type":"tool_use","id":"t1","name":"read","input":{"path": "a"}},'
        '{"type":"tool_use","id":"t2","name":"read","input":{"path":"ß"},"cache_control":{"type":"ephemeral"}}]},'
        '{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"one"},'
        '{"type":"tool_result","tool_use_id":"t2","content":"no file","is_error":true},'
        '{"type":"text","text":"Go on","cache_control":{"type":"ephemeral"}}]}]}'
    )


async def test_text_and_counts(anthropic: Any, asking: Any) -> None:
    counts = Counts(input=1_000, output=50, cached=800, written=150)
    async with ModelServer([Answer(text="Hello, world", deltas=4, counts=counts)]) as server:
        got = await asking(anthropic(server))
    tokens = Tokens(
        input=50, output=50, reasoning=0, cache=CacheTokens(read=800, write=150), total=1_050
    )
    assert got.text == "Hello, world"
    assert got.end == Finished("stop", tokens)


async def test_thinking_goes_back_unchanged_and_only_to_the_model_that_made_it(
    anthropic: Any, asking: Any
) -> None:
    answer = Answer(reasoning="Let me see.", signature="SIG", redacted="QUJD", text="Yes.")
    async with ModelServer([answer]) as server:
        model = anthropic(server)
        got = await asking(model)
        assert got.events[1:5] == [
            ReasoningDelta("Let me see.", 0),
            ReasoningDelta("", 0, {"anthropic": {"signature": "SIG"}}),
            ReasoningDelta("", 1, {"anthropic": {"redacted": "QUJD"}}),
            TextDelta("Yes.", 2),
        ]
        pieces = (
            ReasoningPiece("Let me see.", got.metadata[0]),
            ReasoningPiece("", got.metadata[1]),
            ReasoningPiece("cut off, so without a signature"),
            TextPiece("Yes."),
        )
        user = UserModelMessage((TextPiece("Hi"),))
        await asking(model, user, AssistantModelMessage(pieces, origin="anthropic/claude"), user)
        await asking(model, user, AssistantModelMessage(pieces, origin="other/claude"), user)
    own, foreign = (received.json["messages"][1]["content"] for received in server.requests[1:])
    assert own[:2] == [
        {"type": "thinking", "thinking": "Let me see.", "signature": "SIG"},
        {"type": "redacted_thinking", "data": "QUJD"},
    ]
    assert [block["type"] for block in own[2:]] == ["text"]
    assert [block["type"] for block in foreign] == ["text"]


async def test_parallel_calls_are_ready_as_soon_as_each_is_complete(
    anthropic: Any, asking: Any
) -> None:
    calls = (
        Call("read", '{"path":"a"}', "t1"),
        Call("list", "", "t2"),
        Call("grep", '{"pattern":"long one"}', "t3"),
    )
    async with ModelServer([Answer(text="Looking.", calls=calls)]) as server:
        got = await asking(anthropic(server))
    assert sorted(got.ready) == [
        ("t1", "read", '{"path":"a"}'),
        ("t2", "list", "{}"),
        ("t3", "grep", '{"pattern":"long one"}'),
    ]
    kinds = [type(event) for event in got.events]
    assert kinds.index(CallReady) < len(kinds) - 1 - kinds[::-1].index(CallStarted)
    assert got.end.reason == "tool-calls"


@pytest.mark.parametrize(
    ("reason", "expected"),
    [
        ("end_turn", "stop"),
        ("stop_sequence", "stop"),
        ("pause_turn", "length"),
        ("max_tokens", "length"),
        ("model_context_window_exceeded", "error"),
        ("refusal", "content-filter"),
        ("something new", "stop"),
    ],
)
async def test_reasons(reason: str, expected: str, anthropic: Any, asking: Any) -> None:
    async with ModelServer([Answer(text="x", finish=reason)]) as server:
        assert (await asking(anthropic(server))).end.reason == expected


@pytest.mark.parametrize("arguments", ['{"path":"b","text":"hal', "", '{"a":1'])
async def test_a_call_that_the_limit_cut_is_never_ready(
    arguments: str, anthropic: Any, asking: Any
) -> None:
    calls = (Call("read", '{"path":"a"}', "t1"), Call("write", arguments, "t2"))
    async with ModelServer([Answer(calls=calls, finish="max_tokens")]) as server:
        got = await asking(anthropic(server))
    assert got.ready == [("t1", "read", '{"path":"a"}')]
    assert got.end.reason == "length"


@pytest.mark.parametrize("cut", range(1, 9))
async def test_a_cut_stream_never_makes_a_call_of_a_part(
    cut: int, anthropic: Any, asking: Any
) -> None:
    calls = (Call("write", '{"path":"a name that is long","text":"x"}', "t1"),)
    async with ModelServer([Answer(calls=calls, cut_after=cut)]) as server:
        got = await asking(anthropic(server))
    assert got.ready == ([("t1", "write", calls[0].arguments)] if cut >= 8 else [])
    assert isinstance(got.end.error, APIError)
    assert got.end.error.data.is_retryable
    assert got.end.tokens.input == 100


async def test_a_missing_end_of_block_and_odd_ids(anthropic: Any, asking: Any) -> None:
    def start(index: int, call_id: str, **given: Any) -> str:
        block = {"type": "tool_use", "id": call_id, "name": "read", "input": given}
        return json.dumps({"type": "content_block_start", "index": index, "content_block": block})

    delta = {"type": "input_json_delta", "partial_json": '{"path":"b"}'}
    events = (
        start(0, "", path="a"),
        start(1, "t1"),
        json.dumps({"type": "content_block_delta", "index": 1, "delta": delta}),
        start(2, "t1"),
        json.dumps({"type": "message_delta", "delta": {"stop_reason": "tool_use"}}),
        '{"type":"message_stop"}',
    )
    async with ModelServer([Answer(events=events)]) as server:
        got = await asking(anthropic(server))
    assert got.ready == [
        ("call_0", "read", '{"path":"a"}'),
        ("t1", "read", '{"path":"b"}'),
        ("t1_2", "read", "{}"),
    ]


@pytest.mark.parametrize("pieces", [1, 5, 1_000])
async def test_the_network_may_split_characters_and_events_anywhere(
    pieces: int, anthropic: Any, asking: Any
) -> None:
    calls = (Call("write", '{"text":"größe 漢字 🎉"}', "t1"),)
    async with ModelServer(
        [Answer(text="größe 漢字 🎉", deltas=3, calls=calls, pieces=pieces)]
    ) as server:
        got = await asking(anthropic(server))
    assert got.text == "größe 漢字 🎉"
    assert got.ready == [("t1", "write", calls[0].arguments)]


async def test_an_overload_inside_the_stream_may_be_tried_again(
    anthropic: Any, asking: Any
) -> None:
    start = {
        "type": "content_block_delta",
        "index": 0,
        "delta": {"type": "text_delta", "text": "one"},
    }
    error = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
    async with ModelServer([Answer(events=(json.dumps(start), json.dumps(error)))]) as server:
        got = await asking(anthropic(server))
    assert got.text == "one"
    assert isinstance(got.end.error, APIError)
    assert (got.end.error.data.status_code, got.end.error.data.is_retryable) == (529, True)
    assert "Overloaded" in got.message


@pytest.mark.parametrize(
    ("status", "kind", "message", "expected"),
    [
        (
            400,
            "invalid_request_error",
            "prompt is too long: 210000 tokens > 200000 maximum",
            ContextOverflowError,
        ),
        (413, "request_too_large", "Request exceeds the maximum size", ContextOverflowError),
        (401, "authentication_error", "invalid x-api-key", ProviderAuthError),
        (
            400,
            "invalid_request_error",
            "Your credit balance is too low to access the API",
            APIError,
        ),
        (404, "not_found_error", "model: claude", APIError),
        (429, "rate_limit_error", "too many input tokens per minute", APIError),
        (529, "overloaded_error", "Overloaded", APIError),
    ],
)
async def test_failures(
    status: int, kind: str, message: str, expected: Any, anthropic: Any, asking: Any
) -> None:
    body = json.dumps({"type": "error", "error": {"type": kind, "message": message}})
    async with ModelServer([Answer(status=status, body=body)]) as server:
        got = await asking(anthropic(server))
    assert isinstance(got.end.error, expected)
    if isinstance(got.end.error, APIError):
        assert got.end.error.data.is_retryable == (status in {429, 529})
    assert message.split(":", maxsplit=1)[0] in got.message


async def test_an_answer_that_does_not_stream_is_read_all_the_same(
    anthropic: Any, asking: Any
) -> None:
    call = Call("read", '{"path":"a"}', "t1")
    async with ModelServer([Answer(text="Reading.", calls=(call,), stream=False)]) as server:
        got = await asking(anthropic(server))
    assert (got.text, got.ready, got.end.reason) == (
        "Reading.",
        [("t1", "read", '{"path":"a"}')],
        "tool-calls",
    )


async def test_silence_in_the_middle_has_a_deadline(anthropic: Any, asking: Any) -> None:
    async with ModelServer([Answer(text="one", stall_after=4, pieces=10_000)]) as server:
        got = await asking(anthropic(server, idle=0.1))
        await wait_until(lambda: server.aborted == 1)
    assert got.text == "one"
    assert "stalled" in got.message


async def test_pings_keep_a_silent_model_alive(anthropic: Any, asking: Any) -> None:
    ping = '{"type":"ping"}'
    stop = '{"type":"message_delta","delta":{"stop_reason":"end_turn"}}'
    async with ModelServer(
        [Answer(events=(*[ping] * 60, stop, '{"type":"message_stop"}'), delay=0.02)]
    ) as server:
        got = await asking(anthropic(server, idle=1.0))
    assert got.end.reason == "stop"


async def test_thinking_options_are_passed_on_and_agree_with_the_rest(
    anthropic: Any, asking: Any
) -> None:
    thinking = {"thinking": {"type": "enabled", "budgetTokens": 10_000}}
    async with ModelServer([Answer(text="ok")]) as server:
        await asking(anthropic(server), options=thinking, temperature=0.2, max_tokens=4_000)
    body = server.requests[0].json
    assert body["thinking"] == {"type": "enabled", "budget_tokens": 10_000}
    assert body["max_tokens"] == 14_000
    assert "temperature" not in body


async def test_turns_that_nothing_is_left_of_are_not_sent(anthropic: Any, asking: Any) -> None:
    user = UserModelMessage((TextPiece("Hi"), TextPiece("  ")))
    thought = AssistantModelMessage(
        (ReasoningPiece("hm", {"anthropic": {"signature": "S"}}),), origin="anthropic/claude"
    )
    async with ModelServer([Answer(text="ok")]) as server:
        got = await asking(
            anthropic(server),
            user,
            thought,
            UserModelMessage((TextPiece("Still there?"),)),
            system="",
        )
    assert got.text == "ok"
    assert [len(message["content"]) for message in server.requests[0].json["messages"]] == [2]
    assert "system" not in server.requests[0].json


@pytest.mark.parametrize("metadata", [{"signature": "SIG"}, {"redacted": "QUJD"}])
async def test_an_answer_of_thinking_alone_is_not_sent(
    metadata: dict[str, str], anthropic: Any, asking: Any
) -> None:
    thought = AssistantModelMessage(
        (ReasoningPiece("", {"anthropic": metadata}),), origin="anthropic/claude"
    )
    turns = (
        UserModelMessage((TextPiece("Look"),)),
        thought,
        UserModelMessage((TextPiece("Go on"),)),
    )
    async with ModelServer([Answer(text="ok")]) as server:
        await asking(anthropic(server, info=INFO), *turns)
        assert "thinking" not in server.requests[0].body.decode()


async def test_calls_of_another_service_are_sent_under_ids_that_are_accepted(
    anthropic: Any, asking: Any
) -> None:
    turns = (
        UserModelMessage((TextPiece("x"),)),
        AssistantModelMessage((CallPiece("functions.read:0", "read", '{"a"'),)),
        ToolModelMessage((ResultPiece("functions.read:0", "read", ""),)),
    )
    async with ModelServer([Answer(text="ok")]) as server:
        got = await asking(anthropic(server), *turns)
    assert got.text == "ok"
    called, answered = (
        message["content"][0] for message in server.requests[0].json["messages"][1:]
    )
    assert called["id"] == answered["tool_use_id"] == "functions_read_0"
    assert called["input"] == {}


def test_services_without_cache_marks_get_none() -> None:
    body = AnthropicRequestEncoder(INFO, Quirks(accepts_cache_marks=False))
    request = ModelRequest(
        system="s", messages=(UserModelMessage((TextPiece("x"),)),), tools=(TOOL,)
    )
    assert b"cache_control" not in body.encode(request)


def test_what_is_kept_for_an_hour_is_marked_so_where_the_service_takes_that() -> None:
    request = ModelRequest(
        system="s",
        messages=(UserModelMessage((TextPiece("x"),)),),
        tools=(TOOL,),
        wants_hour_cache=True,
    )
    hour = b'"cache_control":{"type":"ephemeral","ttl":"1h"}'
    assert AnthropicRequestEncoder(INFO, ANTHROPIC_QUIRKS).encode(request).count(hour) == 3
    assert hour not in AnthropicRequestEncoder(INFO, Quirks()).encode(request)


WORDS = st.text(max_size=20)
NAMED = st.text("abc ß🎉", min_size=1, max_size=8).map(lambda text: f"x{text}")


@st.composite
def conversations(draw: st.DrawFn) -> tuple[ModelMessage, ...]:
    turns: list[ModelMessage] = []
    for step in range(draw(st.integers(1, 6))):
        turns.extend(
            UserModelMessage((TextPiece(draw(NAMED)),)) for _ in range(draw(st.integers(1, 2)))
        )
        calls = tuple(
            CallPiece(f"c{step}_{at}", draw(NAMED), json.dumps({"a": draw(WORDS)}))
            for at in range(draw(st.integers(0, 3)))
        )
        thought = ReasoningPiece(draw(WORDS), {"anthropic": {"signature": draw(NAMED)}})
        turns.append(
            AssistantModelMessage(
                (thought, TextPiece(draw(NAMED)), *calls), origin="anthropic/claude"
            )
        )
        if calls:
            turns.append(
                ToolModelMessage(
                    tuple(
                        ResultPiece(call.id, call.name, draw(WORDS), draw(st.booleans()))
                        for call in calls
                    )
                )
            )
    turns.append(UserModelMessage((TextPiece(draw(NAMED)),)))
    return tuple(turns)


@pytest.mark.slow
@settings(max_examples=scale_examples(60))
@given(conversations())
def test_each_request_continues_the_one_before_but_for_the_cache_marks(
    turns: tuple[ModelMessage, ...],
) -> None:
    body = AnthropicRequestEncoder(INFO, ANTHROPIC_QUIRKS)
    before: bytes | None = None
    for length in range(1, len(turns) + 1):
        if isinstance(turns[length - 1], AssistantModelMessage):
            continue
        request = ModelRequest(system="s", messages=turns[:length], tools=(TOOL,), session_id="s1")
        encoded = body.encode(request)
        assert check_request("/messages", encoded) is None
        assert encoded.count(b'"cache_control"') <= 4
        plain = encoded.replace(MARK, b"")
        if before is not None:
            assert plain.startswith(before.removesuffix(b"]}]}"))
        before = plain
