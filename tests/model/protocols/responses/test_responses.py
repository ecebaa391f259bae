"""Tests of OpenAI's Responses over a real socket: requests byte for byte,
and the events of every kind of answer.
"""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.protocols.responses import check_request
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
from codeloop.model.protocols.responses.request import ResponsesRequestEncoder
from codeloop.model.quirks import OPENAI_QUIRKS, QUIRKS_BY_PROVIDER
from codeloop.model.wire.structured_output import make_answer_shape, make_format_fields
from codeloop.schema.errors import APIError, ContextOverflowError
from codeloop.schema.message import CacheTokens, Tokens
from codeloop.schema.wire import JSON
from tests.support.answers import Answer, Call, Counts
from tests.support.examples import scale_examples
from tests.support.model_server import ModelServer

TOOL = ToolSpec(
    "read", "Read a file.", {"type": "object", "properties": {"path": {"type": "string"}}}
)
PATCH = ToolSpec(
    "apply_patch", "Patch.", {"type": "object", "properties": {"patchText": {"type": "string"}}}
)
MODALITIES = frozenset({"text", "image", "pdf"})
INFO = ModelInfo(
    provider_id="openai",
    id="gpt-5",
    name="GPT",
    reasoning=True,
    temperature=False,
    input=MODALITIES,
)
PLAIN = ModelInfo(provider_id="openai", id="gpt-4.1", name="GPT")
USER = UserModelMessage((TextPiece("Hi"),))
KEPT: JSON = {"responses": {"id": "rs_1", "encrypted_content": "QUJD"}}
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
            ReasoningPiece("hm", KEPT),
            TextPiece("I read.", {"responses": {"phase": "commentary"}}),
            CallPiece("c1", "read", '{"path":"a"}'),
            CallPiece("c2", "read", '{"path":"ß"}'),
        ),
        origin="openai/gpt-5",
    ),
    ToolModelMessage((ResultPiece("c1", "read", "one"), ResultPiece("c2", "read", "", error=True))),
    AssistantModelMessage((TextPiece("Done."),), origin="openai/gpt-5"),
    UserModelMessage((TextPiece("Go on"),)),
)


def event(kind: str, **fields: Any) -> str:
    return json.dumps({"type": kind, "sequence_number": 1, **fields})


def added(index: int, **item: Any) -> str:
    return event("response.output_item.added", output_index=index, item=item)


def ended(index: int, **item: Any) -> str:
    return event("response.output_item.done", output_index=index, item=item)


def completed(**fields: Any) -> str:
    return event("response.completed", response={"status": "completed", "output": [], **fields})


async def test_the_body_is_exactly_this(responses: Any, asking: Any) -> None:
    async with ModelServer([Answer(text="ok")]) as server:
        options = {"reasoningEffort": "high", "textVerbosity": "low", "serviceTier": "flex"}
        request = {
            "tools": (TOOL, PATCH),
            "max_tokens": 100,
            "session_id": "ses_1",
            "temperature": 0.5,
        }
        await asking(responses(server, info=INFO), *HISTORY, options=options, **request)
        received = server.requests[0]
    assert received.path == "/v1/responses"
    assert received.headers["authorization"] == "Bearer sk-test-0123456789abcdef"
    head, _, items = received.body.decode().partition(',"tools":[')
    assert head == (
        '{"model":"gpt-5","stream":true,"store":false,"include":["reasoning.encrypted_content"],'
        '"max_output_tokens":100,"prompt_cache_key":"ses_1","reasoning":{"summary":"auto","effort":"high"},'
        '"service_tier":"flex","text":{"verbosity":"low"}'
    )
    tools, _, items = items.partition('],"input":[')
    assert tools.startswith(
        '{"type":"function","name":"read","description":"Read a file.",'
        '"parameters":{"type":"object","properties":{"path":{"type":"string"}}},"strict":false},'
        '{"type":"custom","name":"apply_patch","description":"Patch.","format":{"type":"grammar","syntax":"lark",'
    )
    assert items == (
        '{"role":"developer","content":"Be brief."},'
        '{"role":"user","content":[{"type":"input_text","text":"Look"},'
        '{"type":"input_image","image_url":"data:image/png;base64,aWk=","detail":"auto"},'
        '{"type":"input_file","filename":"a.pdf","file_data":"data:application/pdf;base64,cGRm"}]},'
        '{"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"hm"}],"encrypted_content":"QUJD"},'
        '{"type":"message","role":"assistant","content":[{"type":"output_text","text":"I read."}],'
        '"phase":"commentary"},'
        '{"type":"function_call","call_id":"c1","name":"read","arguments":"{\\"path\\":\\"a\\"}"},'
        '{"type":"function_call","call_id":"c2","name":"read","arguments":"{\\"path\\":\\"ß\\"}"},'
        '{"type":"function_call_output","call_id":"c1","output":"one"},'
        '{"type":"function_call_output","call_id":"c2","output":""},'
        '{"type":"message","role":"assistant","content":[{"type":"output_text","text":"Done."}]},'
        '{"role":"user","content":[{"type":"input_text","text":"Go on"}]}]}'
    )


async def test_a_model_without_reasoning_is_asked_for_none(responses: Any, asking: Any) -> None:
    async with ModelServer([Answer(text="ok")]) as server:
        await asking(responses(server, info=PLAIN), temperature=0.5)
    body = server.requests[0].json
    assert "include" not in body
    assert "reasoning" not in body
    assert body["temperature"] == 0.5


async def test_an_answer_with_thinking_text_calls_and_counts(responses: Any, asking: Any) -> None:
    calls = (Call("read", '{"path":"a"}', "c1"), Call("grep", '{"pattern":"a long pattern"}', "c2"))
    counts = Counts(input=1_000, output=50, cached=900, reasoning=10)
    answer = Answer(
        reasoning="hm",
        signature="QUJD",
        text="Looking at it.",
        deltas=3,
        calls=calls,
        counts=counts,
    )
    async with ModelServer([answer]) as server:
        got = await asking(responses(server))
    assert (got.reasoning, got.text, got.metadata) == ("hm", "Looking at it.", [KEPT])
    assert TextDelta("", 1, {"responses": {"phase": "commentary"}}) in got.events
    assert got.ready == [("c1", "read", calls[0].arguments), ("c2", "grep", calls[1].arguments)]
    calling = [type(each) for each in got.events if isinstance(each, (CallStarted, CallReady))]
    assert calling == [CallStarted, CallReady, CallStarted, CallReady], (
        "each call is ready as soon as it is complete"
    )
    pieces = "".join(
        each.text for each in got.events if isinstance(each, CallDelta) and each.id == "c2"
    )
    assert pieces == calls[1].arguments
    tokens = Tokens(
        input=100, output=50, reasoning=10, cache=CacheTokens(read=900, write=0), total=1_050
    )
    assert got.end == Finished("tool-calls", tokens)


async def test_thinking_goes_back_to_its_model_over_three_steps(
    responses: Any, asking: Any
) -> None:
    turns: tuple[ModelMessage, ...] = (USER,)
    answers = [
        Answer(reasoning=f"step {n}", signature=f"S{n}", calls=(Call("read", '{"n":1}', f"c{n}"),))
        for n in range(3)
    ]
    async with ModelServer([*answers, Answer(text="ok")]) as server:
        model = responses(server)
        for _ in answers:
            got = await asking(model, *turns, tools=(TOOL,))
            call = CallPiece(*got.ready[0])
            pieces = (ReasoningPiece(got.reasoning, got.metadata[0]), call)
            turns += (
                AssistantModelMessage(pieces, origin="openai/gpt-5"),
                ToolModelMessage((ResultPiece(call.id, "read", "r"),)),
            )
        assert (await asking(model, *turns, tools=(TOOL,))).text == "ok"
    thoughts = [
        item for item in server.requests[-1].json["input"] if item.get("type") == "reasoning"
    ]
    assert [item["encrypted_content"] for item in thoughts] == ["S0", "S1", "S2"]


async def test_anothers_thinking_and_phase_are_left_out_and_thinking_is_never_last(
    responses: Any, asking: Any
) -> None:
    own, other = "openai/gpt-5", "anthropic/claude"
    signed = ReasoningPiece("x", {"anthropic": {"signature": "s"}})
    phase = TextPiece("a", {"responses": {"phase": "final_answer"}})
    turns = (
        USER,
        AssistantModelMessage((ReasoningPiece("y", KEPT), phase), origin=other),
        USER,
        AssistantModelMessage((signed, TextPiece("b"), ReasoningPiece("z", KEPT)), origin=own),
        USER,
        AssistantModelMessage(
            (ReasoningPiece("only", {"responses": {"id": "rs_2"}}), TextPiece("c")), origin=own
        ),
        USER,
    )
    async with ModelServer([Answer(text="ok")]) as server:
        assert (await asking(responses(server), *turns)).text == "ok"
    sent = [item for item in server.requests[0].json["input"] if item.get("role") != "user"][1:]
    assert [item["content"][0]["text"] for item in sent] == ["a", "b", "c"]
    assert not any("phase" in item for item in sent)


async def test_a_patch_is_called_as_plain_text_and_goes_back_so(
    responses: Any, asking: Any
) -> None:
    patch = '*** Begin Patch\n*** Add File: a\n+"ß" \\ 漢\n*** End Patch\n'
    answers = [Answer(calls=(Call("apply_patch", patch, "c1"),)), Answer(text="ok")]
    async with ModelServer(answers) as server:
        model = responses(server)
        got = await asking(model, tools=(PATCH,))
        (call,) = got.ready
        assert (call[0], call[1], json.loads(call[2])) == (
            "c1",
            "apply_patch",
            {"patchText": patch},
        )
        turns = (
            USER,
            AssistantModelMessage((CallPiece(*call),)),
            ToolModelMessage((ResultPiece("c1", "apply_patch", "done"),)),
        )
        assert (await asking(model, *turns, tools=(PATCH,))).text == "ok"
    called, output = server.requests[1].json["input"][2:]
    assert called == {
        "type": "custom_tool_call",
        "call_id": "c1",
        "name": "apply_patch",
        "input": patch,
    }
    assert output == {"type": "custom_tool_call_output", "call_id": "c1", "output": "done"}


async def test_a_patch_by_arguments_for_models_that_know_no_grammar(
    responses: Any, asking: Any
) -> None:
    async with ModelServer([Answer(text="ok")]) as server:
        await asking(responses(server, info=PLAIN), tools=(PATCH,))
    assert server.requests[0].json["tools"][0]["type"] == "function"


async def test_ids_of_other_services_are_made_to_fit(responses: Any, asking: Any) -> None:
    long = "toolu_" + "x" * 100
    turns = (
        USER,
        AssistantModelMessage((CallPiece(long, "no such.tool", "{}"),)),
        ToolModelMessage((ResultPiece(long, "t", "r"),)),
    )
    async with ModelServer([Answer(text="ok")]) as server:
        assert (await asking(responses(server), *turns)).text == "ok"
    called, output = server.requests[0].json["input"][2:]
    assert called["call_id"] == output["call_id"]
    assert called["name"] == "no_such_tool"


async def test_the_schema_of_an_answer_is_the_format_of_its_text(
    responses: Any, asking: Any
) -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}
    fields = make_format_fields(INFO, OPENAI_QUIRKS, make_answer_shape(schema))
    async with ModelServer([Answer(text='{"a":"b"}')]) as server:
        await asking(responses(server), body=fields, options={"textVerbosity": "low"})
    said = server.requests[0].json["text"]
    assert (said["verbosity"], said["format"]["type"], said["format"]["strict"]) == (
        "low",
        "json_schema",
        True,
    )
    assert said["format"]["schema"]["additionalProperties"] is False


@pytest.mark.parametrize(
    ("message", "left"),
    [
        ("Your organization must be verified to generate reasoning summaries.", "reasoning"),
        ("Encrypted content is not supported with this model.", "include"),
    ],
)
async def test_what_is_refused_is_left_out_from_then_on(
    message: str, left: str, responses: Any, asking: Any
) -> None:
    body = json.dumps(
        {
            "error": {
                "message": message,
                "type": "invalid_request_error",
                "code": "unsupported_value",
            }
        }
    )
    async with ModelServer([Answer(status=400, body=body), Answer(text="ok")]) as server:
        model = responses(server)
        assert (await asking(model)).text == "ok"
        assert (await asking(model)).text == "ok"
    first, second, third = (received.json for received in server.requests)
    assert left in first
    assert left not in second
    assert left not in third


async def test_thinking_that_the_service_cannot_read_any_more_is_left_out(
    responses: Any, asking: Any
) -> None:
    said = {
        "message": "The encrypted content gAAA could not be verified.",
        "code": "invalid_encrypted_content",
    }
    body = json.dumps({"error": {**said, "type": "invalid_request_error"}})
    async with ModelServer([Answer(status=400, body=body), Answer(text="ok")]) as server:
        assert (await asking(responses(server), *HISTORY)).text == "ok"
    kinds = [[item.get("type") for item in received.json["input"]] for received in server.requests]
    assert "reasoning" in kinds[0]
    assert "reasoning" not in kinds[1]


async def test_a_refusal_that_nothing_helps_against_is_told(responses: Any, asking: Any) -> None:
    body = json.dumps(
        {"error": {"message": "Unsupported value: 'minimal'", "type": "invalid_request_error"}}
    )
    async with ModelServer([Answer(status=400, body=body)]) as server:
        got = await asking(responses(server))
    assert "minimal" in got.message
    assert len(server.requests) == 1


async def test_an_answer_that_does_not_stream_is_read_all_the_same(
    responses: Any, asking: Any
) -> None:
    call = Call("read", '{"path":"a"}', "c1")
    async with ModelServer(
        [Answer(reasoning="hm", text="Reading.", calls=(call,), stream=False)]
    ) as server:
        got = await asking(responses(server))
    assert (got.reasoning, got.text, got.end.reason) == ("hm", "Reading.", "tool-calls")
    assert got.ready == [("c1", "read", call.arguments)]
    assert got.end.tokens.input == 100


async def test_a_service_may_send_no_deltas_or_no_items(responses: Any, asking: Any) -> None:
    message = {"type": "message", "content": [{"type": "output_text", "text": "Yes."}]}
    call = {
        "type": "function_call",
        "call_id": "c1",
        "name": "read",
        "arguments": '{"a":1}',
        "status": "completed",
    }
    without_deltas = (
        added(0, **message),
        ended(0, **message),
        added(1, **call),
        ended(1, **call),
        completed(),
    )
    async with ModelServer(
        [Answer(events=without_deltas), Answer(events=(completed(output=[message, call]),))]
    ) as server:
        first, second = await asking(responses(server)), await asking(responses(server))
    assert (
        (first.text, first.ready)
        == (second.text, second.ready)
        == ("Yes.", [("c1", "read", '{"a":1}')])
    )


async def test_summaries_of_one_thought_are_paragraphs(responses: Any, asking: Any) -> None:
    def summary(index: int, text: str) -> str:
        kind = "response.reasoning_summary_text.delta"
        return event(kind, output_index=0, summary_index=index, delta=text)

    thought = {"type": "reasoning", "id": "rs_1", "encrypted_content": "QUJD"}
    events = (
        added(0, **thought),
        summary(0, "One."),
        summary(1, "Two."),
        ended(0, **thought),
        completed(),
    )
    async with ModelServer([Answer(events=events)]) as server:
        got = await asking(responses(server))
    assert got.reasoning == "One.\n\nTwo."
    assert [each for each in got.events if isinstance(each, ReasoningDelta)][-1].metadata == KEPT


async def test_a_refusal_is_text(responses: Any, asking: Any) -> None:
    refusal = event("response.refusal.delta", output_index=0, delta="No.")
    async with ModelServer(
        [Answer(events=(added(0, type="message"), refusal, completed()))]
    ) as server:
        assert (await asking(responses(server))).text == "No."


@pytest.mark.parametrize(
    ("reason", "finish"), [("max_output_tokens", "length"), ("content_filter", "content-filter")]
)
async def test_a_call_that_the_limit_cut_is_never_ready(
    reason: str, finish: str, responses: Any, asking: Any
) -> None:
    whole = {
        "type": "function_call",
        "call_id": "c1",
        "name": "read",
        "arguments": "{}",
        "status": "completed",
    }
    part = {
        "type": "function_call",
        "call_id": "c2",
        "name": "write",
        "arguments": "",
        "status": "in_progress",
    }
    delta = event("response.function_call_arguments.delta", output_index=1, delta='{"text":"hal')
    end = {"status": "incomplete", "incomplete_details": {"reason": reason}}
    last = event("response.incomplete", response=end)
    events = (added(0, **whole), ended(0, **whole), added(1, **part), delta, last)
    async with ModelServer([Answer(events=events)]) as server:
        got = await asking(responses(server))
    assert got.ready == [("c1", "read", "{}")]
    assert got.end.reason == finish


@pytest.mark.parametrize(
    ("last", "retryable", "says"),
    [
        (
            event(
                "response.failed", response={"error": {"code": "server_error", "message": "Oops"}}
            ),
            True,
            "Oops",
        ),
        (event("error", code="rate_limit_exceeded", message="Slow down"), True, "Slow down"),
        (event("error", error={"type": "invalid_request_error", "message": "No"}), False, "No"),
        (event("response.failed", response={"status": "failed"}), True, "gave no reason"),
        ("{broken", True, "not what the protocol says"),
    ],
)
async def test_errors_within_a_stream(
    last: str, retryable: bool, says: str, responses: Any, asking: Any
) -> None:
    async with ModelServer([Answer(events=(last,))]) as server:
        got = await asking(responses(server))
    assert isinstance(got.end.error, APIError)
    assert got.end.error.data.is_retryable is retryable
    assert says in got.message


async def test_an_overflow_within_a_stream_asks_for_compaction(responses: Any, asking: Any) -> None:
    said = {
        "code": "context_length_exceeded",
        "message": "Your input exceeds the context window of this model.",
    }
    async with ModelServer(
        [Answer(events=(event("response.failed", response={"error": said}),))]
    ) as server:
        assert isinstance((await asking(responses(server))).end.error, ContextOverflowError)


@pytest.mark.parametrize("cut", range(1, 16))
async def test_a_cut_stream_never_makes_a_call_of_a_part(
    cut: int, responses: Any, asking: Any
) -> None:
    """The stream breaks after every event of an answer."""
    calls = (Call("write", '{"path":"a name that is long","text":"x"}', "c1"),)
    answer = Answer(reasoning="hm", signature="S", text="one", calls=calls, cut_after=cut)
    async with ModelServer([answer]) as server:
        got = await asking(responses(server))
    if got.end.error is None:
        assert got.ready == [("c1", "write", calls[0].arguments)]
    else:
        assert isinstance(got.end.error, APIError)
        assert got.end.error.data.is_retryable
        assert got.ready in ([], [("c1", "write", calls[0].arguments)])


@pytest.mark.parametrize("pieces", [1, 7, 1_000])
async def test_the_network_may_split_characters_and_events_anywhere(
    pieces: int, responses: Any, asking: Any
) -> None:
    calls = (
        Call("write", '{"text":"größe 漢字 🎉"}', "c1"),
        Call("apply_patch", "größe 漢字 🎉", "c2"),
    )
    answer = Answer(text="größe 漢字 🎉", deltas=3, calls=calls, pieces=pieces, line_end="\r\n")
    async with ModelServer([answer]) as server:
        got = await asking(responses(server))
    assert got.text == answer.text
    assert [json.loads(each[2]) for each in got.ready] == [
        {"text": answer.text},
        {"patchText": answer.text},
    ]


async def test_other_vendors_rows_change_the_body(responses: Any, asking: Any) -> None:
    info = ModelInfo(provider_id="xai", id="grok-4", name="Grok", reasoning=True)
    async with ModelServer([Answer(text="ok")]) as server:
        await asking(responses(server, info=info, quirks=QUIRKS_BY_PROVIDER["xai"]), tools=(PATCH,))
    body = server.requests[0].json
    assert body["input"][0]["role"] == "system"
    assert "reasoning" not in body
    assert body["include"] == ["reasoning.encrypted_content"]
    assert body["tools"][0]["type"] == "function"


WORDS = st.text(max_size=20)
NAMED = st.text(min_size=1, max_size=8)


@st.composite
def conversations(draw: st.DrawFn) -> tuple[ModelMessage, ...]:
    turns: list[ModelMessage] = []
    for step in range(draw(st.integers(1, 5))):
        turns.append(UserModelMessage((TextPiece(draw(NAMED)),)))
        names = [
            draw(st.sampled_from(["read", "apply_patch"])) for _ in range(draw(st.integers(0, 3)))
        ]
        calls = tuple(
            CallPiece(f"c{step}_{at}", name, json.dumps({"patchText": draw(WORDS)}))
            for at, name in enumerate(names)
        )
        thinking = (ReasoningPiece(draw(WORDS), KEPT),)
        turns.append(
            AssistantModelMessage(
                (*thinking, TextPiece(draw(NAMED)), *calls, *thinking), origin="openai/gpt-5"
            )
        )
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
    body = ResponsesRequestEncoder(INFO, OPENAI_QUIRKS)
    before: bytes | None = None
    for length in range(1, len(turns) + 1):
        if isinstance(turns[length - 1], AssistantModelMessage):
            continue
        request = ModelRequest(
            system="s", messages=turns[:length], tools=(TOOL, PATCH), session_id="s1"
        )
        encoded = body.encode(request)
        assert check_request("/responses", encoded) is None
        if before is not None:
            assert encoded.startswith(before.removesuffix(b"]}"))
        before = encoded
