"""Tests of scripts: answers given as data become the events that a service would have caused."""

import asyncio
import time
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from codeloop.model.chat import (
    CallDelta,
    CallReady,
    CallStarted,
    ChatModel,
    Finished,
    ModelEvent,
    ModelRequest,
    ReasoningDelta,
    TextDelta,
    TextPiece,
    ToolSpec,
    UserModelMessage,
)
from codeloop.model.errors import ModelUnavailable
from codeloop.model.testing.replay import ScriptedModel, play_pieces
from codeloop.model.testing.script import ProjectPaths, ScriptedAnswer, ScriptedCall, read_answers
from codeloop.schema.errors import get_error_message

ASK = UserModelMessage((TextPiece("go"),))
MAIN = ModelRequest(
    system="s", messages=(ASK,), tools=(ToolSpec("read", "", {}), ToolSpec("bash", "", {}))
)
SIDE = ModelRequest(system="title", messages=(ASK,))


async def said(model: ChatModel, request: ModelRequest = MAIN) -> list[ModelEvent]:
    return [event async for event in model.stream(request)]


def from_json(*lines: str) -> list[ScriptedAnswer]:
    return [msgspec.json.decode(line, type=ScriptedAnswer) for line in lines]


async def test_text_reasoning_and_calls_come_in_order_and_in_pieces() -> None:
    model = ScriptedModel(
        from_json(
            '{"reasoning": "hm", "text": "Hello.", "deltas": 2, "tokens": {"input": 7, "cache_read": 2},'
            ' "calls": [{"name": "read", "arguments": {"filePath": "a"}},'
            ' {"name": "bash", "arguments": "{bad", "id": "x"}]}'
        )
    )
    events = await said(model)
    assert events[:2] == [ReasoningDelta("h", 0), ReasoningDelta("m", 0)]
    assert events[2:4] == [TextDelta("Hel", 1), TextDelta("lo.", 1)]
    first = events[4]
    assert isinstance(first, CallStarted)
    assert CallReady(first.id, "read", '{"filePath":"a"}') in events
    assert CallReady("x", "bash", "{bad") in events
    end = events[-1]
    assert isinstance(end, Finished)
    assert (end.reason, end.tokens.input, end.tokens.cache.read) == ("tool-calls", 7, 2)


@pytest.mark.slow
@given(st.text(), st.integers(1, 50))
def test_cutting_into_pieces_loses_no_character(text: str, deltas: int) -> None:
    answer = ScriptedAnswer(text=text, calls=(ScriptedCall("t", {"a": text}),), deltas=deltas)
    events = [piece.event for piece in play_pieces(answer, 1)]
    deltas_of_text = [event.text for event in events if isinstance(event, TextDelta)]
    assert "".join(deltas_of_text) == text
    assert len(deltas_of_text) == min(deltas, len(text))
    ready = next(event for event in events if isinstance(event, CallReady))
    assert (
        "".join(event.text for event in events if isinstance(event, CallDelta)) == ready.arguments
    )
    assert msgspec.json.decode(ready.arguments) == {"a": text}


async def test_ids_of_calls_are_distinct_over_a_whole_script() -> None:
    line = '{"calls": [{"name": "read"}, {"name": "read"}]}'
    model = ScriptedModel(from_json(line, line, line))
    ids = [
        event.id for _ in range(3) for event in await said(model) if isinstance(event, CallReady)
    ]
    assert len(set(ids)) == 6


async def test_a_request_too_many_ends_with_an_error_that_says_so() -> None:
    model = ScriptedModel(from_json('{"text": "only"}'))
    await said(model)
    [end] = await said(model)
    assert isinstance(end, Finished)
    assert end.reason == "error"
    assert end.error is not None
    assert "no further answer for a main request" in get_error_message(end.error)


async def test_requests_without_tools_take_nothing_from_the_conversation() -> None:
    model = ScriptedModel(
        from_json('{"text": "one"}', '{"kind": "side", "text": "Title"}', '{"text": "two"}')
    )
    assert (await said(model, SIDE))[0] == TextDelta("Title", 0)
    assert (await said(model))[0] == TextDelta("one", 0)
    [end] = await said(model, SIDE)
    assert isinstance(end, Finished)
    assert end.reason == "error"
    assert (await said(model))[0] == TextDelta("two", 0)


async def test_places_are_filled_in_everywhere_and_only_there() -> None:
    answer = from_json(
        '{"text": "In {directory} of {root}.", "calls": [{"name": "bash", "arguments":'
        ' {"command": "ls {directory}/x", "env": [{"{root}": 1}], "brace": "{other}"}}]}'
    )
    model = ScriptedModel(answer, paths=ProjectPaths("/w/p/sub", "/w/p"))
    events = await said(model)
    assert events[0] == TextDelta("In /w/p/sub of /w/p.", 0)
    ready = next(event for event in events if isinstance(event, CallReady))
    assert msgspec.json.decode(ready.arguments) == {
        "command": "ls /w/p/sub/x",
        "env": [{"/w/p": 1}],
        "brace": "{other}",
    }


async def test_a_script_can_choose_other_words_for_the_places() -> None:
    model = ScriptedModel(
        from_json('{"text": "f\\"{directory}\\" @@", "directory": "@@"}'),
        paths=ProjectPaths("/w", "/w"),
    )
    assert (await said(model))[0] == TextDelta('f"{directory}" /w', 0)


async def test_an_error_and_a_finish_reason_are_given_as_they_are() -> None:
    error = (
        '{"name": "APIError", "data": {"message": "busy", "isRetryable": true, "statusCode": 529}}'
    )
    model = ScriptedModel(
        from_json(f'{{"text": "a", "error": {error}}}', '{"text": "b", "finish": "length"}')
    )
    end = (await said(model))[-1]
    assert isinstance(end, Finished)
    assert end.reason == "error"
    assert end.error is not None
    assert get_error_message(end.error) == "busy"
    assert (await said(model))[-1] == Finished("length")


async def test_delays_are_kept_and_a_waiting_stream_can_be_cancelled() -> None:
    start = time.monotonic()
    await said(ScriptedModel(from_json('{"text": "abcd", "deltas": 4, "delay_ms": 20}')))
    assert time.monotonic() - start >= 0.08
    task = asyncio.create_task(said(ScriptedModel(from_json('{"text": "a", "delay_ms": 60000}'))))
    await asyncio.sleep(0.02)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_a_long_answer_lets_other_tasks_run() -> None:
    ticks = 0

    async def tick() -> None:
        nonlocal ticks
        while True:
            await asyncio.sleep(0)
            ticks += 1

    task = asyncio.create_task(tick())
    await said(ScriptedModel([ScriptedAnswer(text="x" * 5000, deltas=5000)]))
    task.cancel()
    assert ticks > 20


async def test_a_file_is_played_and_comments_and_blank_lines_are_passed_over(
    tmp_path: Path,
) -> None:
    path = tmp_path / "script.jsonl"
    path.write_text('// a script\n\n{"text": "one"}\r\n{"text": "two"}\n')
    model = ScriptedModel(read_answers(path))
    assert (await said(model))[0] == TextDelta("one", 0)
    assert (await said(model))[0] == TextDelta("two", 0)


@pytest.mark.parametrize(
    "line",
    ['{"txt": "x"}', "{", "[]", '{"calls": [{"arguments": {}}]}', '{"finish": "now"}', "\udcff"],
)
def test_a_wrong_line_is_named(tmp_path: Path, line: str) -> None:
    path = tmp_path / "script.jsonl"
    path.write_bytes(b'{"text": "fine"}\n' + line.encode("utf-8", "surrogateescape") + b"\n")
    with pytest.raises(ModelUnavailable, match="line 2"):
        read_answers(path)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ModelUnavailable, match="can't be read"):
        read_answers(tmp_path / "none.jsonl")
