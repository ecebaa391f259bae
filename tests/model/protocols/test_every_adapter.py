"""Tests of every adapter, against a server that refuses what the real service refuses."""

import asyncio
import base64
import re
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import Any

import pytest

from bench.protocols.bedrock import encode_message
from bench.protocols.dialects import find_dialect
from codeloop.model.chat import (
    AssistantModelMessage,
    CallPiece,
    ImagePiece,
    ModelMessage,
    ModelRequest,
    ResultPiece,
    RetryScheduled,
    TextDelta,
    TextPiece,
    ToolModelMessage,
    ToolSpec,
    UserModelMessage,
)
from codeloop.model.quirks import find_quirks
from codeloop.model.wire.structured_output import (
    make_answer_shape,
    make_forced_call_fields,
    make_format_fields,
)
from codeloop.model.wrappers.retrying_model import RetryingModel
from codeloop.schema.errors import APIError, ContextOverflowError
from codeloop.schema.message import CacheTokens, Tokens
from tests.model.local_server import http, serving
from tests.support.adapter_rows import ADAPTER_ROWS, AdapterRow, fold_turn
from tests.support.answers import Answer, Call, Counts
from tests.support.model_server import ModelServer
from tests.support.models import HELLO, CollectedAnswer, send_request
from tests.support.scripted_project import wait_until

TOOL = ToolSpec(
    "read",
    "Read a file.",
    {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
)
CALLS = (Call("read", '{"path":"a"}', "c1"), Call("read", '{"path":"größe 漢字"}', "c2"))
PNG = base64.b64encode(b"\x89PNG\r\n\x1a\n rest").decode()
PDF = base64.b64encode(b"%PDF-1.4 rest").decode()
PAIRS = [(one, other) for one in ADAPTER_ROWS for other in ADAPTER_ROWS if one != other]
Open = Callable[[AdapterRow, ModelServer], Any]


@pytest.fixture(params=list(ADAPTER_ROWS))
def row(request: pytest.FixtureRequest) -> AdapterRow:
    return ADAPTER_ROWS[request.param]


@pytest.fixture
async def opened() -> AsyncGenerator[Open]:
    made: list[Any] = []

    def make(row: AdapterRow, server: ModelServer) -> Any:
        made.append(row.open(server.url))
        return made[-1]

    yield make
    for model in made:
        await model.aclose()


def results(turn: Any) -> ToolModelMessage:
    calls = [piece for piece in turn.content if isinstance(piece, CallPiece)]
    return ToolModelMessage(
        tuple(ResultPiece(call.id, call.name, f"result of {call.id}") for call in calls)
    )


async def test_a_proxy_is_asked_unless_no_proxy_names_the_service(
    row: AdapterRow, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = "http://models.invalid:81"
    async with ModelServer([Answer(text="by proxy")], validate=False) as proxy:
        monkeypatch.setenv("HTTP_PROXY", proxy.url.removesuffix("/v1"))
        model = row.open(f"{url}/v1")
        assert (await send_request(model)).text == "by proxy"
        assert proxy.requests[0].path.startswith(f"{url}{row.base}/")
        monkeypatch.setenv("NO_PROXY", "models.invalid")
        got = await send_request(row.open(f"{url}/v1"))
        assert got.end.error is not None
        assert len(proxy.requests) == 1
        await model.aclose()


async def test_text_streams(row: AdapterRow, opened: Open) -> None:
    async with ModelServer([Answer(text="größe 漢字 🎉, and so on", deltas=5, pieces=7)]) as server:
        got = await send_request(opened(row, server), tools=(TOOL,), max_tokens=500)
    assert (got.text, got.end.reason) == ("größe 漢字 🎉, and so on", "stop")


async def test_parallel_calls_stream(row: AdapterRow, opened: Open) -> None:
    async with ModelServer([Answer(text="I read.", calls=CALLS, signature="c2ln")]) as server:
        got = await send_request(opened(row, server), tools=(TOOL,))
    assert got.ready == [(call.id, call.name, call.arguments) for call in CALLS]
    assert (got.text, got.end.reason) == ("I read.", "tool-calls")


async def test_an_answer_that_does_not_stream_is_read(row: AdapterRow, opened: Open) -> None:
    async with ModelServer([Answer(text="I read.", calls=CALLS, stream=False)]) as server:
        got = await send_request(opened(row, server), tools=(TOOL,))
    assert got.ready == [(call.id, call.name, call.arguments) for call in CALLS]
    assert (got.text, got.end.reason) == ("I read.", "tool-calls")


@pytest.mark.parametrize("is_streamed", [True, False])
@pytest.mark.parametrize(
    "value", [b'"\xff"', b"[" * 3000 + b"]" * 3000], ids=["not UTF-8", "nested deeply"]
)
async def test_an_answer_that_can_not_be_decoded_is_an_error(
    row: AdapterRow, value: bytes, is_streamed: bool
) -> None:
    body = b'{"error":%b}' % value
    if is_streamed and row.info.provider_id == "amazon-bedrock":
        body = encode_message({":message-type": "event", ":event-type": "contentBlockStart"}, value)
    elif is_streamed:
        body = b"data: %b\n\n" % body
    async with serving(http(body)) as (url, _):
        model = row.open(f"{url}/v1")
        got = await send_request(model)
        await model.aclose()
    assert got.end.reason == "error"
    assert "is not what the protocol says" in got.message


async def test_reasoning_goes_back_over_three_steps(row: AdapterRow, opened: Open) -> None:
    signatures = ["c2lnMQ+/==", "c2lnMg==", "c2lnMw=="] if row.signs else ["", "", ""]
    answers = [
        Answer(reasoning="First, a.", signature=signatures[0], text="Reading.", calls=CALLS),
        Answer(
            reasoning="Then, b.",
            signature=signatures[1],
            calls=(Call("read", '{"path":"b"}', "c3"),),
        ),
        Answer(reasoning="So.", signature=signatures[2], text="Done."),
        Answer(text="Yes."),
    ]
    turns: list[ModelMessage] = [*HELLO]
    async with ModelServer(answers) as server:
        model = opened(row, server)
        for _ in answers[:3]:
            got = await send_request(model, *turns, tools=(TOOL,))
            assert got.end.error is None, got.message
            turn = fold_turn(got.events, row.info.ref)
            turns += [turn, results(turn)] if got.ready else [turn]
        got = await send_request(
            model, *turns, UserModelMessage((TextPiece("Sure?"),)), tools=(TOOL,)
        )
    assert got.text == "Yes."
    last = server.requests[-1].body.decode()
    places = [last.find(signature) for signature in signatures]
    assert -1 not in places
    assert sorted(places) == places
    assert all(last.count(signature) == 1 for signature in signatures if signature)


@pytest.mark.parametrize(("mime", "data"), [("image/png", PNG), ("application/pdf", PDF)])
async def test_attachments_are_sent_as_they_are(
    row: AdapterRow, opened: Open, mime: str, data: str
) -> None:
    prompt = UserModelMessage(
        (
            TextPiece("Look"),
            ImagePiece(mime, data, "my_file (1).x"),
            ImagePiece(mime, data, "my_file.x"),
        )
    )
    async with ModelServer([Answer(text="ok")]) as server:
        got = await send_request(opened(row, server), prompt)
    assert got.text == "ok", got.message
    assert server.requests[0].body.decode().count(data) == 2


async def test_a_full_context_is_recognised(row: AdapterRow, opened: Open) -> None:
    async with ModelServer([Answer(status=400, body=row.overflow)]) as server:
        got = await send_request(opened(row, server))
    assert isinstance(got.end.error, ContextOverflowError)


async def test_one_request_too_many_is_sent_again(row: AdapterRow, opened: Open) -> None:
    async def no_wait(seconds: float) -> None:
        assert seconds < 1.3

    busy = Answer(status=429, body=row.busy, headers={"retry-after": "1"})
    async with ModelServer([busy, Answer(text="ok")]) as server:
        got = await send_request(RetryingModel(opened(row, server), sleep=no_wait))
    assert got.text == "ok"
    assert isinstance(got.events[0], RetryScheduled)


async def test_a_cut_stream_makes_no_call_of_a_part(row: AdapterRow, opened: Open) -> None:
    answer = Answer(text="I read.", calls=CALLS, finish=None)
    for cut in range(1, 12):
        async with ModelServer(
            [Answer(text="I read.", calls=CALLS, finish=None, cut_after=cut)]
        ) as server:
            got = await send_request(opened(row, server), tools=(TOOL,))
        assert {call[2] for call in got.ready} <= {call.arguments for call in answer.calls}
        assert isinstance(got.end.error, APIError)
        assert got.end.error.data.is_retryable


async def test_closing_the_stream_drops_the_connection(row: AdapterRow, opened: Open) -> None:
    async with ModelServer(
        [Answer(text="one " * 20, deltas=0, delay=0.01, stall_after=8)]
    ) as server:
        stream = opened(row, server).stream(ModelRequest(system="s", messages=HELLO))
        async with aclosing(stream) as events:
            async for event in events:
                if isinstance(event, TextDelta):
                    break
        await wait_until(lambda: server.aborted == 1)


async def test_a_cancelled_task_drops_the_connection(row: AdapterRow, opened: Open) -> None:
    async with ModelServer(
        [Answer(text="one two three four five", deltas=0, stall_after=2)]
    ) as server:
        task = asyncio.create_task(send_request(opened(row, server)))
        await wait_until(lambda: bool(server.requests))
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await wait_until(lambda: server.aborted == 1)


async def test_tokens_are_counted_by_kind(row: AdapterRow, opened: Open) -> None:
    counts = Counts(
        input=1_000, output=50, cached=800, written=100 if row.counts_written else 0, reasoning=30
    )
    async with ModelServer([Answer(text="ok", counts=counts)]) as server:
        got = await send_request(opened(row, server))
    assert got.end.tokens == Tokens(
        input=1_000 - 800 - counts.written,
        output=50,
        reasoning=30 if row.counts_thoughts else 0,
        cache=CacheTokens(read=800, write=counts.written),
        total=1_050,
    )


async def test_the_schema_of_an_answer_is_told(row: AdapterRow, opened: Open) -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    shape, quirks = make_answer_shape(schema), find_quirks(row.info)
    native = make_format_fields(row.info, quirks, shape)
    body = native if native is not None else make_forced_call_fields(row.info, quirks, {})
    async with ModelServer([Answer(text='{"n":1}')]) as server:
        got = await send_request(opened(row, server), tools=(TOOL,), body=body)
    assert got.text == '{"n":1}', got.message
    sent = server.requests[0]
    assert native is None or '"n":{"type":"integer"}' in sent.body.decode()
    assert native is not None or body.keys() <= sent.json.keys()


@pytest.mark.parametrize(("one", "other"), PAIRS)
async def test_the_model_can_be_switched_in_mid_turn_and_back(
    one: str, other: str, opened: Open
) -> None:
    first, second = ADAPTER_ROWS[one], ADAPTER_ROWS[other]
    signature = "c2lnMQ+/=="
    answers = [
        Answer(reasoning="Hm.", signature=signature if first.signs else "", calls=CALLS),
        Answer(
            reasoning="Well.",
            signature="c2lnMg==" if second.signs else "",
            calls=(Call("read", "{}", "d1"),),
        ),
        Answer(text="Done."),
    ]
    turns: list[ModelMessage] = [*HELLO]
    got: list[CollectedAnswer] = []
    async with ModelServer(answers) as server:
        for row in (first, second, first):
            got.append(await send_request(opened(row, server), *turns, tools=(TOOL,)))
            assert got[-1].end.error is None, got[-1].message
            turn = fold_turn(got[-1].events, row.info.ref)
            turns += [turn, results(turn)]
    assert got[-1].text == "Done."
    bodies = [request.body.decode() for request in server.requests]
    assert not first.signs or (signature not in bodies[1] and signature in bodies[2])
    assert "result of c2" in bodies[1]
    assert "result of d1" in bodies[2]


async def test_a_history_with_calls_is_sent_without_tools(row: AdapterRow, opened: Open) -> None:
    called = AssistantModelMessage((CallPiece("c1", "read", '{"path":"a"}'),), "acme/m1")
    async with ModelServer([Answer(text="ok")]) as server:
        got = await send_request(
            opened(row, server),
            *HELLO,
            called,
            results(called),
            UserModelMessage((TextPiece("Summarise"),)),
        )
    assert got.text == "ok", got.message


BREAKS: dict[str, Callable[[bytes], bytes]] = {
    "lost": lambda _: b"",
    "twice": lambda event: event * 2,
    "cut": lambda event: event[: len(event) // 2],
    "other brackets": lambda event: event.replace(b"{", b"["),
    "nulls": lambda event: re.sub(rb':("[^"]*"|\d+)', b":null", event),
    "numbers": lambda event: re.sub(rb':"[^"]*"', b":7", event),
    "lists": lambda event: re.sub(rb":\{", b":[{", event).replace(b"}", b"}]"),
}
"""What may happen to one event of a stream."""


@pytest.mark.parametrize("name", BREAKS)
async def test_a_broken_event_ends_an_answer_and_nothing_else(
    row: AdapterRow, opened: Open, name: str
) -> None:
    answer = Answer(
        reasoning="Hm.", signature="c2ln" if row.signs else "", text="I read.", calls=CALLS
    )
    async with ModelServer([answer]) as server:
        await send_request(opened(row, server), tools=(TOOL,))
        path = server.requests[0].path
    dialect = find_dialect(path)
    assert dialect is not None
    events = list(dialect.stream_events(answer, "m"))
    head = f"HTTP/1.1 200 OK\r\nContent-Type: {dialect.content_type}\r\nConnection: close\r\n\r\n".encode()
    for at, event in enumerate(events):
        broken = [*events[:at], BREAKS[name](event), *events[at + 1 :]]
        async with serving(head + b"".join(broken)) as (url, _):
            model = row.open(f"{url}/v1")
            got = await send_request(model, tools=(TOOL,))
            await model.aclose()
        assert len(got.ready) <= len(CALLS) + 1, (
            "what came twice may be taken for a call of its own"
        )
        assert all(isinstance(each, str) for call in got.ready for each in call)
        assert got.end.error is None or got.message
