"""Tests of chat completions over a real socket: requests byte for byte,
and the events of every kind of answer.
"""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.protocols.chat_completions import check_request
from codeloop.model.chat import (
    AssistantModelMessage,
    CallDelta,
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
    ToolModelMessage,
    ToolSpec,
    UserModelMessage,
)
from codeloop.model.protocols.chat_completions.request import ChatCompletionsRequestEncoder
from codeloop.model.quirks import (
    COMPATIBLE_QUIRKS,
    OPENAI_QUIRKS,
    QUIRKS_BY_PROVIDER,
    Quirks,
    find_quirks,
)
from codeloop.schema.errors import APIError, ContextOverflowError, ProviderAuthError
from codeloop.schema.message import CacheTokens, Tokens
from tests.support.answers import Answer, Call, Counts
from tests.support.examples import scale_examples
from tests.support.model_server import ModelServer

TOOL = ToolSpec(
    "read", "Read a file.", {"type": "object", "properties": {"path": {"type": "string"}}}
)
INFO = ModelInfo(provider_id="acme", id="m1", name="M1", input=frozenset({"text", "image", "pdf"}))
HISTORY: tuple[ModelMessage, ...] = (
    UserModelMessage(
        (
            TextPiece("Look"),
            ImagePiece("image/png", "aWk="),
            ImagePiece("application/pdf", "cGRm", "a.pdf"),
        )
    ),
    AssistantModelMessage(
        (
            ReasoningPiece(
                "hm",
                {"openai": {"reasoning_details": [{"type": "reasoning.text", "signature": "s"}]}},
            ),
            TextPiece("I read."),
            CallPiece("c1", "read", '{"path":"a"}'),
            CallPiece("c2", "read", '{"path":"ß"}'),
        ),
        origin="acme/m1",
    ),
    ToolModelMessage((ResultPiece("c1", "read", "one"), ResultPiece("c2", "read", "", error=True))),
    AssistantModelMessage((TextPiece("Done."),), origin="acme/m1"),
    UserModelMessage((TextPiece("Go on"),)),
)


def chunk(delta: dict[str, Any] | None = None, finish: str | None = None, **fields: Any) -> str:
    choice = {"index": 0, "delta": delta or {}, "finish_reason": finish}
    return json.dumps({"choices": [choice], **fields})


def tool(**piece: Any) -> str:
    function = {name: piece.pop(name) for name in ("name", "arguments") if name in piece}
    return chunk({"tool_calls": [{**piece, "function": function}]})


async def test_the_body_is_exactly_this(openai: Any, asking: Any) -> None:
    async with ModelServer([Answer(text="ok")]) as server:
        await asking(
            openai(server, info=INFO, headers={"X-Team": "blue"}),
            *HISTORY,
            tools=(TOOL,),
            max_tokens=100,
            temperature=0.5,
            options={"seed": 7, "reasoningEffort": "high"},
        )
        received = server.requests[0]
    assert received.path == "/v1/chat/completions"
    assert received.headers["authorization"] == "Bearer sk-test-0123456789abcdef"
    assert received.headers["x-team"] == "blue"
    assert received.body.decode() == (
        '{"model":"m1","stream":true,"stream_options":{"include_usage":true},"max_tokens":100,"temperature":0.5,'
        '"reasoning_effort":"high","seed":7,'
        '"tools":[{"type":"function","function":{"name":"read","description":"Read a file.",'
        '"parameters":{"type":"object","properties":{"path":{"type":"string"}}}}}],'
        '"messages":[{"role":"system","content":"Be brief."},'
        '{"role":"user","content":[{"type":"text","text":"Look"},'
        '{"type":"image_url","image_url":{"url":"data:image/png;base64,aWk="}},'
        '{"type":"file","file":{"filename":"a.pdf","file_data":"data:application/pdf;base64,cGRm"}}]},'
        '{"role":"assistant","content":"I read.",'
        '"reasoning_details":[{"type":"reasoning.text","signature":"s"}],'
        '"tool_calls":[{"id":"c1","type":"function","function":{"name":"read","arguments":"{\\"path\\":\\"a\\"}"}},'
        '{"id":"c2","type":"function","function":{"name":"read","arguments":"{\\"path\\":\\"ß\\"}"}}]},'
        '{"role":"tool","tool_call_id":"c1","content":"one"},{"role":"tool","tool_call_id":"c2","content":""},'
        '{"role":"assistant","content":"Done."},{"role":"user","content":"Go on"}]}'
    )


async def test_a_text_answer_with_its_counts(openai: Any, asking: Any) -> None:
    counts = Counts(input=1_000, output=50, cached=900, reasoning=10)
    async with ModelServer([Answer(text="Hello, world", deltas=5, counts=counts)]) as server:
        got = await asking(openai(server))
    assert got.text == "Hello, world"
    tokens = Tokens(
        input=100, output=50, reasoning=10, cache=CacheTokens(read=900, write=0), total=1_050
    )
    assert got.end == Finished("stop", tokens)


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        ({"prompt_tokens": 10, "prompt_cache_hit_tokens": 4, "completion_tokens": 2}, (6, 2, 4, 0)),
        ({"prompt_tokens": 10, "cached_tokens": 3, "completion_tokens": 2}, (7, 2, 3, 0)),
        (
            {
                "prompt_tokens": 10,
                "completion_tokens": 2,
                "total_tokens": 17,
                "completion_tokens_details": {"reasoning_tokens": 5},
            },
            (10, 7, 0, 5),
        ),
        ({"prompt_tokens": None, "prompt_tokens_details": None}, (0, 0, 0, 0)),
    ],
)
async def test_counts_as_vendors_spell_them(
    usage: Any, expected: Any, openai: Any, asking: Any
) -> None:
    events = (chunk({"content": "x"}), chunk({}, "stop", usage=usage), "[DONE]")
    async with ModelServer([Answer(events=events)]) as server:
        tokens = (await asking(openai(server))).end.tokens
    assert (tokens.input, tokens.output, tokens.cache.read, tokens.reasoning) == expected


async def test_parallel_calls_are_ready_as_soon_as_each_is_complete(
    openai: Any, asking: Any
) -> None:
    calls = (Call("read", '{"path":"a"}', "c1"), Call("grep", '{"pattern":"a long pattern"}', "c2"))
    async with ModelServer([Answer(text="Looking.", calls=calls)]) as server:
        got = await asking(openai(server))
    assert got.ready == [("c1", "read", calls[0].arguments), ("c2", "grep", calls[1].arguments)]
    kinds = [type(event) for event in got.events if not isinstance(event, CallDelta)]
    assert kinds == [TextDelta, CallStarted, CallReady, CallStarted, CallReady, Finished]
    pieces = "".join(
        event.text for event in got.events if isinstance(event, CallDelta) and event.id == "c2"
    )
    assert pieces == calls[1].arguments
    assert got.end.reason == "tool-calls"


DEEP_ARGUMENTS = '{"p":' + "[" * 3000 + "]" * 3000 + "}"


def one(index: int | None, call_id: str | None, name: str | None, arguments: Any) -> str:
    piece = {"index": index, "id": call_id, "name": name, "arguments": arguments}
    return tool(**{key: value for key, value in piece.items() if value is not None})


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        pytest.param([one(0, "a", "x", "")], [("a", "x", "{}")], id="empty arguments"),
        pytest.param(
            [tool(index=0, id="a", name="x", arguments=None)],
            [("a", "x", "{}")],
            id="null arguments",
        ),
        pytest.param([one(0, "a", "x", "[1]")], [("a", "x", "[1]")], id="a list"),
        pytest.param(
            [one(0, "a", "x", {"p": 1})], [("a", "x", '{"p":1}')], id="an object instead of text"
        ),
        pytest.param(
            [one(0, "a", "x", '{"p":')], [("a", "x", '{"p":')], id="broken but said to be complete"
        ),
        pytest.param(
            [one(0, "a", "x", "{}"), one(0, "b", "y", "{}")],
            [("a", "x", "{}"), ("b", "y", "{}")],
            id="same index",
        ),
        pytest.param(
            [one(0, None, "x", '{"p":1}'), one(0, None, "x", '{"p":2}')],
            [("call_0", "x", '{"p":1}'), ("call_1", "x", '{"p":2}')],
            id="same index, no ids",
        ),
        pytest.param(
            [one(0, "a", "x", "{}"), one(1, "a", "y", "{}")],
            [("a", "x", "{}"), ("a_2", "y", "{}")],
            id="same id",
        ),
        pytest.param(
            [one(0, "a", "x", '{"p"'), one(0, "b", None, ":1}"), one(0, "c", None, "")],
            [("a", "x", '{"p":1}')],
            id="a new id in every piece",
        ),
        pytest.param(
            [one(0, "a", "x", '{"p"'), one(0, "a", "x", ":1}")],
            [("a", "x", '{"p":1}')],
            id="name repeated",
        ),
        pytest.param(
            [one(0, "a", None, ""), one(0, None, "x", None), one(0, None, None, "{}")],
            [("a", "x", "{}")],
            id="name later",
        ),
        pytest.param(
            [one(0, "a", None, '{"p"'), one(0, None, "x", ":1}")],
            [("a", "x", '{"p":1}')],
            id="name last",
        ),
        pytest.param(
            [one(0, "a", "x", "{}"), one(0, None, "", "")],
            [("a", "x", "{}")],
            id="empty name chunk",
        ),
        pytest.param([one(0, "a", "", "{}")], [("a", "", "{}")], id="never a name"),
        pytest.param(
            [one(None, "a", "x", '{"p"'), one(None, None, None, ":1}"), one(None, "b", "y", "{}")],
            [("a", "x", '{"p":1}'), ("b", "y", "{}")],
            id="no index",
        ),
        pytest.param(
            [
                one(0, "a", "x", '{"p"'),
                one(1, "b", "y", '{"q"'),
                one(0, None, None, ":1}"),
                one(1, None, None, ":2}"),
            ],
            [("a", "x", '{"p":1}'), ("b", "y", '{"q":2}')],
            id="interleaved",
        ),
        pytest.param(
            [
                json.dumps(
                    {
                        "choices": [
                            {"delta": {"tool_calls": [{"index": 0, "id": "a", "function": None}]}}
                        ]
                    }
                )
            ],
            [("a", "", "{}")],
            id="null function",
        ),
        pytest.param(
            [one(0, "a", "x", DEEP_ARGUMENTS), one(1, "b", "y", "{}")],
            [("a", "x", DEEP_ARGUMENTS), ("b", "y", "{}")],
            id="nested deeply",
        ),
    ],
)
async def test_odd_calls(events: list[str], expected: list[Any], openai: Any, asking: Any) -> None:
    async with ModelServer([Answer(events=(*events, chunk({}, "stop"), "[DONE]"))]) as server:
        got = await asking(openai(server))
    assert got.ready == expected
    assert got.end.reason == "tool-calls"
    started = [event.id for event in got.events if isinstance(event, CallStarted)]
    assert started == [call_id for call_id, _, _ in expected]


@pytest.mark.parametrize("pieces", [1, 3, 7, 1_000])
async def test_the_network_may_split_characters_and_events_anywhere(
    pieces: int, openai: Any, asking: Any
) -> None:
    calls = (Call("write", '{"text":"größe 漢字 🎉"}', "c1"),)
    answer = Answer(text="größe 漢字 🎉", deltas=3, calls=calls, pieces=pieces, line_end="\r\n")
    async with ModelServer([answer]) as server:
        got = await asking(openai(server))
    assert got.text == answer.text
    assert got.ready == [("c1", "write", calls[0].arguments)]


@pytest.mark.parametrize("finish", ["length", "content_filter"])
async def test_a_call_that_the_limit_cut_is_never_ready(
    finish: str, openai: Any, asking: Any
) -> None:
    calls = (
        Call("read", '{"path":"a"}', "c1"),
        Call("write", '{"path":"b","text":"hal', "c2"),
        Call("list", "", "c3"),
    )
    async with ModelServer([Answer(calls=calls, finish=finish)]) as server:
        got = await asking(openai(server))
    assert got.ready == [("c1", "read", '{"path":"a"}')]
    assert got.end.reason == finish.replace("_", "-")


@pytest.mark.parametrize("cut", range(1, 8))
async def test_a_cut_stream_never_makes_a_call_of_a_part(
    cut: int, openai: Any, asking: Any
) -> None:
    calls = (Call("write", '{"path":"a name that is long","text":"x"}', "c1"),)
    async with ModelServer([Answer(text="one", calls=calls, cut_after=cut)]) as server:
        got = await asking(openai(server))
    assert got.ready == ([("c1", "write", calls[0].arguments)] if got.end.error is None else [])
    if got.end.error is not None:
        assert isinstance(got.end.error, APIError)
        assert got.end.error.data.is_retryable
    assert got.text == ("one" if cut > 1 else "")


@pytest.mark.parametrize("last", [chunk({}, "stop"), "[DONE]"])
async def test_a_reason_or_done_is_an_end(last: str, openai: Any, asking: Any) -> None:
    async with ModelServer([Answer(events=(chunk({"content": "x"}), last))]) as server:
        assert (await asking(openai(server))).end.reason == "stop"


STOPPED = {"choices": [{"delta": {}, "finish_reason": "stop"}]}
OPENROUTER = {"choices": [{"delta": {"content": ""}, "finish_reason": "error"}]}


@pytest.mark.parametrize(
    ("event", "status", "words"),
    [
        (
            {**OPENROUTER, "error": {"code": 402, "message": "Insufficient credits"}},
            402,
            "Insufficient credits",
        ),
        (
            {**OPENROUTER, "error": {"code": 502, "message": "Overloaded upstream"}},
            502,
            "Overloaded upstream",
        ),
        (
            {"choices": None, "error_type": "rate_limit_error", "error_message": "Slow down"},
            429,
            "Slow down",
        ),
        ({"error_code": 429, "error_msg": "Open api daily limit"}, 429, "Open api daily limit"),
        ({"code": 401, "msg": "token expired", "success": False}, 401, "token expired"),
        ({"success": False}, None, "refused the request"),
        (
            {"base_resp": {"status_code": 1008, "status_msg": "insufficient balance"}},
            402,
            "insufficient balance",
        ),
        (
            {
                "choices": [{"delta": {}, "finish_reason": "stop"}],
                "base_resp": {"status_code": 1002, "status_msg": "rpm"},
            },
            429,
            "rpm",
        ),
        ({"x_groq": {"error": "Tool choice is none"}}, None, "Tool choice is none"),
        ({"errors": [{"message": "Workers AI failed", "code": 3040}]}, None, "Workers AI failed"),
        ({"detail": "Not today"}, None, "Not today"),
        (chunk({"content": "half"}, "insufficient_system_resource"), 503, "too few resources"),
        (chunk({"content": "half"}, "network_error"), 503, "its own network failed"),
        (chunk({"content": "half"}, "abort"), 503, "stopped the answer"),
    ],
)
async def test_an_error_inside_a_stream_is_told_in_whatever_form_it_comes(
    event: dict[str, Any] | str, status: int | None, words: str, openai: Any, asking: Any
) -> None:
    text = event if isinstance(event, str) else json.dumps(event)
    for events in ((text,), (text, "[DONE]"), (chunk({"content": "x"}), text, "[DONE]")):
        async with ModelServer([Answer(events=events)]) as server:
            got = await asking(openai(server))
        error = got.end.error
        assert isinstance(error, APIError | ProviderAuthError), got.end
        assert words in error.data.message
        if isinstance(error, APIError):
            assert error.data.status_code == status
            assert error.data.is_retryable == (status != 402)


@pytest.mark.parametrize(
    "event",
    [
        {
            **OPENROUTER,
            "error": {
                "code": 400,
                "message": "This endpoint's maximum context length is 8192 tokens",
            },
        },
        {
            "choices": [
                {"delta": {"content": "half"}, "finish_reason": "model_context_window_exceeded"}
            ]
        },
        {"base_resp": {"status_code": 1039, "status_msg": "token limit"}},
    ],
)
async def test_a_full_context_inside_a_stream_is_one(
    event: dict[str, Any], openai: Any, asking: Any
) -> None:
    async with ModelServer([Answer(events=(json.dumps(event), "[DONE]"))]) as server:
        got = await asking(openai(server))
    assert isinstance(got.end.error, ContextOverflowError)


@pytest.mark.parametrize(
    "event",
    [
        '{"id":"1","choices":[]}',
        '{"type":"ping"}',
        '{"choices":null,"base_resp":{"status_code":0,"status_msg":"success"}}',
        '{"choices":[],"error":null}',
    ],
)
async def test_what_keeps_a_stream_alive_is_no_error(event: str, openai: Any, asking: Any) -> None:
    async with ModelServer(
        [Answer(events=(event, chunk({"content": "x"}, "stop"), event, "[DONE]"))]
    ) as server:
        got = await asking(openai(server))
    assert (got.end.reason, got.text) == ("stop", "x")


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning", "reasoning_text"])
async def test_reasoning_comes_before_text_in_a_block_of_its_own(
    field: str, openai: Any, asking: Any
) -> None:
    events = (
        chunk({field: "Let me "}),
        chunk({field: "see."}),
        chunk({"content": "Yes."}),
        chunk({}, "stop"),
    )
    async with ModelServer([Answer(events=events)]) as server:
        got = await asking(openai(server))
    assert got.events[:2] == [ReasoningDelta("Let me see.", 0), TextDelta("Yes.", 1)]


@pytest.mark.parametrize("size", [1, 2, 3, 7, 100])
@pytest.mark.parametrize(
    ("content", "thought", "text"),
    [
        (
            "<think>\nI should finish <b>\n</think>\n\nComplete.",
            "\nI should finish <b>\n",
            "Complete.",
        ),
        ("\n<think>hm</think>Done </think>.", "hm", "Done </think>."),
        ("<think></think>\nDone.", "", "Done."),
        ("<thin ice", "", "<thin ice"),
        ("<", "", "<"),
        ("Use <think>x</think> here.", "", "Use <think>x</think> here."),
        ("  two spaces", "", "  two spaces"),
        ("<think>never ends </thi", "never ends </thi", ""),
    ],
)
async def test_thinking_between_tags_at_the_start_is_thinking(
    content: str, thought: str, text: str, size: int, openai: Any, asking: Any
) -> None:
    pieces = [content[at : at + size] for at in range(0, len(content), size)]
    sent = (*(chunk({"content": piece}) for piece in pieces), chunk({}, "stop"))
    async with ModelServer([Answer(events=sent)]) as server:
        got = await asking(openai(server))
    assert "".join(each.text for each in got.events if isinstance(each, ReasoningDelta)) == thought
    assert "".join(each.text for each in got.events if isinstance(each, TextDelta)) == text


async def test_reasoning_details_go_back_unchanged(openai: Any, asking: Any) -> None:
    def details(**piece: Any) -> str:
        return chunk({"reasoning": piece.get("text", ""), "reasoning_details": [piece]})

    events = (
        details(type="reasoning.text", text="Let me ", index=0, format="f"),
        details(type="reasoning.text", text="see.", index=0, signature=None),
        details(type="reasoning.text", index=0, signature="SIG", text=""),
        details(type="reasoning.encrypted", data="QUJD", index=1),
        chunk({"content": "Yes."}),
        chunk({}, "stop"),
    )
    async with ModelServer([Answer(events=events)]) as server:
        model = openai(server)
        got = await asking(model)
        whole = [
            {
                "type": "reasoning.text",
                "text": "Let me see.",
                "index": 0,
                "format": "f",
                "signature": "SIG",
            },
            {"type": "reasoning.encrypted", "data": "QUJD", "index": 1},
        ]
        assert got.reasoning == "Let me see."
        assert got.metadata == [{"openai": {"reasoning_details": whole}}]
        pieces = (ReasoningPiece(got.reasoning, got.metadata[0]), TextPiece("Yes."))
        user = UserModelMessage((TextPiece("Hi"),))
        await asking(model, user, AssistantModelMessage(pieces, origin="acme/m1"), user)
        await asking(model, user, AssistantModelMessage(pieces, origin="other/m1"), user)
        assert server.requests[1].json["messages"][2]["reasoning_details"] == whole
        assert "reasoning_details" not in server.requests[2].json["messages"][2]


async def test_reasoning_goes_back_in_the_field_that_the_model_wants(
    openai: Any, asking: Any
) -> None:
    info = ModelInfo(provider_id="acme", id="r", name="R", reasoning_field="reasoning_content")
    user = UserModelMessage((TextPiece("Hi"),))
    turns = (user, AssistantModelMessage((ReasoningPiece("hm"), TextPiece("Yes."))), user)
    async with ModelServer([Answer(text="ok")]) as server:
        await asking(openai(server, info=info), *turns)
        await asking(openai(server), *turns)
    assert server.requests[0].json["messages"][2]["reasoning_content"] == "hm"
    assert server.requests[1].json["messages"][2] == {"role": "assistant", "content": "Yes."}


@pytest.mark.parametrize(
    ("provider", "model"), [("moonshotai", "kimi-k2.7-code"), ("openrouter", "moonshotai/kimi-k3")]
)
async def test_kimi_is_sent_no_sampling_whoever_serves_it(
    provider: str, model: str, openai: Any, asking: Any
) -> None:
    info = ModelInfo(provider_id=provider, id=model, name="Kimi")
    async with ModelServer([Answer(text="ok")]) as server:
        await asking(
            openai(server, info=info, quirks=find_quirks(info)), temperature=0.5, top_p=0.9
        )
    assert not {"temperature", "top_p"} & server.requests[0].json.keys()


@pytest.mark.parametrize("provider", ["deepseek", "moonshotai", "kimi-for-coding"])
async def test_thinking_goes_back_where_it_must_not_be_missing(
    provider: str, openai: Any, asking: Any
) -> None:
    info = ModelInfo(provider_id=provider, id="new", name="New")
    user = UserModelMessage((TextPiece("Hi"),))
    call = (CallPiece("c1", "read", "{}"),)
    turns = (
        user,
        AssistantModelMessage((ReasoningPiece("hm"), *call)),
        ToolModelMessage((ResultPiece("c1", "read", "r"),)),
    )
    async with ModelServer([Answer(text="ok")]) as server:
        await asking(openai(server, info=info, quirks=find_quirks(info)), *turns)
        await asking(
            openai(server, info=info, quirks=find_quirks(info)),
            user,
            AssistantModelMessage(call),
            turns[-1],
        )
    assert [received.json["messages"][2]["reasoning_content"] for received in server.requests] == [
        "hm",
        "",
    ]


async def test_copilot_is_told_who_begins_a_request(openai: Any, asking: Any) -> None:
    user, copilot = UserModelMessage((TextPiece("Hi"),)), QUIRKS_BY_PROVIDER["github-copilot"]
    turns = (
        user,
        AssistantModelMessage((CallPiece("c1", "read", "{}"),)),
        ToolModelMessage((ResultPiece("c1", "read", "r"),)),
    )
    async with ModelServer([Answer(text="ok")]) as server:
        await asking(openai(server, quirks=copilot), user)
        await asking(openai(server, quirks=copilot), *turns)
    headers = [received.headers for received in server.requests]
    assert [each["x-initiator"] for each in headers] == ["user", "agent"]
    assert headers[0]["openai-intent"] == "conversation-edits"


async def test_content_in_parts_is_read(openai: Any, asking: Any) -> None:
    parts = [
        {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]},
        {"type": "text", "text": "Yes."},
    ]
    async with ModelServer(
        [Answer(events=(chunk({"content": parts}), chunk({}, "stop")))]
    ) as server:
        got = await asking(openai(server))
    assert (got.reasoning, got.text) == ("hm", "Yes.")


async def test_an_answer_that_does_not_stream_is_read_all_the_same(
    openai: Any, asking: Any
) -> None:
    call = Call("read", '{"path":"a"}', "c1")
    async with ModelServer([Answer(text="Reading.", calls=(call,), stream=False)]) as server:
        got = await asking(openai(server))
    assert (got.text, got.ready, got.end.reason) == (
        "Reading.",
        [("c1", "read", call.arguments)],
        "tool-calls",
    )
    assert got.end.tokens.input == 100


async def test_an_attachment_that_the_model_cannot_read_is_named_instead(
    openai: Any, asking: Any
) -> None:
    async with ModelServer([Answer(text="ok")]) as server:
        await asking(
            openai(server),
            UserModelMessage((TextPiece("See"), ImagePiece("image/png", "aWk=", "a.png"))),
        )
    content = server.requests[0].json["messages"][1]["content"]
    assert content[1]["type"] == "text"
    assert "a.png" in content[1]["text"]


async def test_vendor_rows_change_the_body(openai: Any, asking: Any) -> None:
    request: dict[str, Any] = {"tools": (TOOL,), "max_tokens": 5, "session_id": "ses_1"}
    turns = (
        UserModelMessage((TextPiece("x"),)),
        AssistantModelMessage((CallPiece("toolu_long id", "no such.tool", "{}"),)),
        ToolModelMessage((ResultPiece("toolu_long id", "no such.tool", "r"),)),
    )
    async with ModelServer([Answer(text="ok")]) as server:
        await asking(openai(server, quirks=OPENAI_QUIRKS), *turns, **request)
        await asking(openai(server, quirks=QUIRKS_BY_PROVIDER["mistral"]), *turns, **request)
        await asking(openai(server, quirks=Quirks(parallel_tool_calls=False)), *turns, **request)
    first, second, third = (received.json for received in server.requests)
    assert (first["max_completion_tokens"], first["prompt_cache_key"]) == (5, "ses_1")
    assert first["messages"][0]["role"] == "developer"
    assert "stream_options" not in second
    called, answered = second["messages"][2]["tool_calls"][0], second["messages"][3]
    assert called["id"] == answered["tool_call_id"]
    assert len(called["id"]) == 9
    assert called["function"]["name"] == "no_such_tool"
    assert "strict" not in third["tools"][0]["function"], (
        "a call would have to spell out what it leaves out"
    )
    assert third["parallel_tool_calls"] is False


async def test_options_never_replace_the_conversation_and_null_removes_a_field(
    openai: Any, asking: Any
) -> None:
    options = {"messages": [], "stream": False, "temperature": None, "top_k": 3}
    async with ModelServer([Answer(text="ok")]) as server:
        got = await asking(openai(server), temperature=0.3, options=options)
    assert got.text == "ok"
    body = server.requests[0].json
    assert body["stream"] is True
    assert body["top_k"] == 3
    assert "temperature" not in body


async def test_text_that_is_no_unicode_is_sent_all_the_same(openai: Any, asking: Any) -> None:
    async with ModelServer([Answer(text="ok")]) as server:
        await asking(openai(server), UserModelMessage((TextPiece("a\udcffb"),)))
    assert server.requests[0].json["messages"][1]["content"] == r"a\xffb"


def test_a_turn_is_encoded_once() -> None:
    body = ChatCompletionsRequestEncoder(INFO, COMPATIBLE_QUIRKS)
    first = body.encode(ModelRequest(system="s", messages=HISTORY))
    again = body.encode(ModelRequest(system="s", messages=HISTORY))
    fresh = ChatCompletionsRequestEncoder(INFO, COMPATIBLE_QUIRKS).encode(
        ModelRequest(system="s", messages=HISTORY)
    )
    assert first == again == fresh


WORDS = st.text(max_size=20)
NAMED = st.text(min_size=1, max_size=8)


@st.composite
def conversations(draw: st.DrawFn) -> tuple[ModelMessage, ...]:
    turns: list[ModelMessage] = []
    for step in range(draw(st.integers(1, 6))):
        turns.append(UserModelMessage((TextPiece(draw(NAMED)),)))
        calls = tuple(
            CallPiece(f"c{step}_{at}", draw(NAMED), json.dumps({"a": draw(WORDS)}))
            for at in range(draw(st.integers(0, 3)))
        )
        text = (TextPiece(draw(NAMED)),)
        turns.append(AssistantModelMessage((*text, *calls), origin="acme/m1"))
        if calls:
            turns.append(
                ToolModelMessage(
                    tuple(ResultPiece(call.id, call.name, draw(WORDS)) for call in calls)
                )
            )
    turns.append(UserModelMessage((TextPiece(draw(NAMED)),)))
    return tuple(turns)


@pytest.mark.slow
@settings(max_examples=scale_examples(60))
@given(conversations())
def test_each_request_begins_with_the_bytes_of_the_one_before(
    turns: tuple[ModelMessage, ...],
) -> None:
    body = ChatCompletionsRequestEncoder(INFO, COMPATIBLE_QUIRKS)
    before: bytes | None = None
    for length in range(1, len(turns) + 1):
        if isinstance(turns[length - 1], AssistantModelMessage):
            continue
        request = ModelRequest(system="s", messages=turns[:length], tools=(TOOL,), session_id="s1")
        encoded = body.encode(request)
        assert check_request("/chat/completions", encoded) is None
        if before is not None:
            assert encoded.startswith(before.removesuffix(b"]}"))
        before = encoded


def test_a_gateway_to_claude_is_told_what_to_keep_in_the_cache() -> None:
    claude = ModelInfo(
        provider_id="openrouter",
        id="anthropic/claude-opus-5.5",
        name="C",
        input=frozenset({"text"}),
    )
    request = ModelRequest(system="Be brief.", messages=HISTORY[:3], session_id="s")
    sent = json.loads(ChatCompletionsRequestEncoder(claude, find_quirks(claude)).encode(request))[
        "messages"
    ]
    mark = {"type": "ephemeral"}
    assert sent[0]["content"] == [{"type": "text", "text": "Be brief.", "cache_control": mark}]
    assert sent[1]["content"][-1]["cache_control"] == mark
    assert [message["role"] for message in sent] == ["system", "user", "assistant", "tool", "tool"]
    assert (sent[3]["content"], sent[4]["content"]) == ("one", ""), (
        "a mark on nothing would be refused"
    )
    other = ModelInfo(provider_id="openrouter", id="z-ai/glm-5.3", name="G")
    assert b"cache_control" not in ChatCompletionsRequestEncoder(other, find_quirks(other)).encode(
        request
    )
