"""Tests of recordings: they can be played in another folder,
and a difference ends the replay with an error.
"""

from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codeloop.model.chat import (
    AssistantModelMessage,
    CallDelta,
    CallPiece,
    CallReady,
    CallStarted,
    ChatModel,
    Finished,
    ModelEvent,
    ModelMessage,
    ModelRequest,
    ReasoningDelta,
    ResultPiece,
    TextDelta,
    TextPiece,
    ToolModelMessage,
    ToolSpec,
    UserModelMessage,
)
from codeloop.model.testing.answer_recorder import RecordingModel
from codeloop.model.testing.replay import ReplayModel, ScriptedModel
from codeloop.model.testing.script import (
    ProjectPaths,
    ScriptedAnswer,
    ScriptedCall,
    TextBlock,
    read_answers,
)
from codeloop.schema.errors import get_error_message
from codeloop.schema.wire import replace
from tests.support.examples import scale_examples

HERE, THERE = (
    ProjectPaths("/home/me/code/proj/sub", "/home/me/code/proj"),
    ProjectPaths("/tmp/x y", "/tmp/x y"),
)
TOOLS = (ToolSpec("read", "", {}), ToolSpec("bash", "", {}))
ASK = UserModelMessage((TextPiece("go"),))
CALLED = (
    AssistantModelMessage((CallPiece("1", "read", "{}"),)),
    ToolModelMessage((ResultPiece("1", "read", "text"),)),
)


def request(
    *turns: ModelMessage, tools: tuple[ToolSpec, ...] = TOOLS, system: str = "s"
) -> ModelRequest:
    return ModelRequest(system=system, messages=(ASK, *turns), tools=tools)


async def said(model: ChatModel, asked: ModelRequest) -> list[ModelEvent]:
    return [event async for event in model.stream(asked)]


def folded(events: list[ModelEvent]) -> list[object]:
    """What was said, whatever the pieces: texts joined, calls whole, the end."""
    told: list[object] = []
    for event in events:
        match event, told[-1] if told else None:
            case TextDelta(text=text), ("text", str(before)):
                told[-1] = ("text", before + text)
            case TextDelta(text=text), _:
                told.append(("text", text))
            case ReasoningDelta(text=text, metadata=metadata), (
                "reasoning",
                str(before),
                dict(known),
            ):
                told[-1] = ("reasoning", before + text, {**known, **metadata})
            case ReasoningDelta(text=text, metadata=metadata), _:
                told.append(("reasoning", text, metadata))
            case CallReady(id=call_id, name=name, arguments=arguments), _:
                told.append((call_id, name, parsed(arguments)))
            case ((CallStarted() | CallDelta()), _):
                continue
            case _:
                told.append(event)
    return told


def parsed(arguments: str) -> object:
    try:
        return msgspec.json.decode(arguments)
    except msgspec.DecodeError:
        return arguments


def end_of(events: list[ModelEvent]) -> str:
    end = events[-1]
    assert isinstance(end, Finished)
    return get_error_message(end.error) if end.error is not None else end.reason


WORDS = st.lists(
    st.sampled_from([
        HERE.directory, HERE.root, HERE.root + "/a.py", HERE.root + "er", "/x" + HERE.root, "{directory}", "{root}",
        "{directory-2}", "{", "}", "/", " ", "é", '"', "\\", "\n", THERE.root,
    ]),
    max_size=12,
).map("".join)  # fmt: skip
ANSWERS = st.builds(
    ScriptedAnswer,
    reasoning=WORDS,
    text=WORDS,
    calls=st.lists(
        st.builds(
            ScriptedCall,
            st.sampled_from(["read", "bash"]),
            st.dictionaries(WORDS, WORDS, max_size=2) | WORDS,
        ),
        max_size=2,
    ).map(tuple),
    deltas=st.integers(1, 7),
    directory=st.just("\x00"),
    root=st.just("\x01"),
)


@pytest.mark.slow
@settings(max_examples=scale_examples(150))
@given(answers=st.lists(ANSWERS, min_size=1, max_size=3))
async def test_a_recording_played_in_the_same_place_says_the_same(
    tmp_path_factory: pytest.TempPathFactory, answers: list[ScriptedAnswer]
) -> None:
    path = tmp_path_factory.mktemp("r") / "recording.jsonl"
    recorder = RecordingModel(ScriptedModel(answers), path, HERE)
    first = [folded(await said(recorder, request())) for _ in answers]
    player = ReplayModel(path, HERE)
    assert player.remaining_count == len(answers)
    assert [folded(await said(player, request())) for _ in answers] == first
    assert player.remaining_count == 0


async def test_paths_of_the_project_move_with_it_and_are_not_in_the_file(tmp_path: Path) -> None:
    path = tmp_path / "recording.jsonl"
    text = f"{HERE.directory}/a.py, {HERE.root}, {HERE.root}-old and {{directory}}"
    script = [
        ScriptedAnswer(
            text=text,
            deltas=30,
            calls=(ScriptedCall("read", {"filePath": f"{HERE.directory}/a.py"}),),
            directory="\x00",
        )
    ]
    await said(RecordingModel(ScriptedModel(script), path, HERE), request())
    assert HERE.directory not in path.read_text()
    events = folded(await said(ReplayModel(path, THERE), request()))
    assert events[0] == ("text", "/tmp/x y/a.py, /tmp/x y, /home/me/code/proj-old and {directory}")
    assert isinstance(events[1], tuple)
    assert events[1][1:] == ("read", {"filePath": "/tmp/x y/a.py"})


async def test_pieces_reasoning_data_and_tokens_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "recording.jsonl"
    lines = (
        '{"content": [{"type": "reasoning", "text": "abc", "deltas": 3, "metadata": {"signature": "s"}},'
        ' {"type": "call", "call": {"name": "read", "arguments": {"a": 1}, "id": "c"}, "deltas": 4},'
        ' {"type": "text", "text": "after", "deltas": 5}], "tokens": {"input": 3, "output": 4}, "finish": "length"}'
    )
    script = [msgspec.json.decode(lines, type=ScriptedAnswer)]
    first = await said(RecordingModel(ScriptedModel(script), path), request())
    second = await said(ReplayModel(path), request())
    assert second == first
    assert folded(first)[0] == ("reasoning", "abc", {"signature": "s"})


async def test_a_hand_written_script_is_a_recording(tmp_path: Path) -> None:
    path = tmp_path / "script.jsonl"
    path.write_text('{"text": "In {root}."}\n')
    assert folded(await said(ReplayModel(path, HERE), request()))[0] == ("text", f"In {HERE.root}.")


async def test_titles_are_recorded_beside_the_conversation_and_found_by_their_system_prompt(
    tmp_path: Path,
) -> None:
    path = tmp_path / "recording.jsonl"
    title, summary = request(tools=(), system="title"), request(tools=(), system="summary")
    script = [
        ScriptedAnswer(text="one"),
        ScriptedAnswer(text="two"),
        ScriptedAnswer(kind="side", text="Title"),
        ScriptedAnswer(kind="side", text="Summary"),
    ]
    recorder = RecordingModel(ScriptedModel(script), path)
    for asked in (request(), title, summary, request()):
        await said(recorder, asked)
    player = ReplayModel(path)
    played = [
        folded(await said(player, asked))[0] for asked in (summary, request(), request(), title)
    ]
    assert played == [("text", "Summary"), ("text", "one"), ("text", "two"), ("text", "Title")]


async def test_the_end_of_a_recording_is_told(tmp_path: Path) -> None:
    path = tmp_path / "script.jsonl"
    path.write_text("")
    assert "ends here" in end_of(await said(ReplayModel(path), request()))


async def test_a_request_of_another_shape_is_told_with_both_shapes(tmp_path: Path) -> None:
    path = tmp_path / "recording.jsonl"
    recorder = RecordingModel(
        ScriptedModel([ScriptedAnswer(calls=(ScriptedCall("read"),)), ScriptedAnswer(text="done")]),
        path,
    )
    await said(recorder, request())
    await said(recorder, request(*CALLED))
    same = ReplayModel(path)
    await said(same, request())
    assert end_of(await said(same, request(*CALLED))) == "stop"
    other = ReplayModel(path)
    await said(other, request())
    text = end_of(await said(other, request(*CALLED, ASK)))
    assert "at answer 2" in text
    assert (
        "calls of read, then 1 results, and now comes after calls of read, then 1 results, then a prompt"
        in text
    )


async def test_a_recording_of_a_resumed_session_plays_in_a_new_one(tmp_path: Path) -> None:
    path = tmp_path / "recording.jsonl"
    await said(
        RecordingModel(ScriptedModel([ScriptedAnswer(text="hi")]), path), request(*CALLED, ASK)
    )
    assert end_of(await said(ReplayModel(path), request())) == "stop"


async def test_a_tool_that_is_gone_is_named_before_anything_is_said(tmp_path: Path) -> None:
    path = tmp_path / "recording.jsonl"
    await said(
        RecordingModel(
            ScriptedModel([ScriptedAnswer(text="x", calls=(ScriptedCall("bash"),))]), path
        ),
        request(),
    )
    events = await said(ReplayModel(path), request(tools=TOOLS[:1]))
    assert len(events) == 1
    assert "`bash`, which does not exist here" in end_of(events)


async def test_a_call_that_was_always_unknown_is_played(tmp_path: Path) -> None:
    path = tmp_path / "recording.jsonl"
    await said(
        RecordingModel(ScriptedModel([ScriptedAnswer(calls=(ScriptedCall("nonsense"),))]), path),
        request(),
    )
    assert end_of(await said(ReplayModel(path), request())) == "tool-calls"


async def test_a_stream_closed_early_is_recorded_as_far_as_it_came(tmp_path: Path) -> None:
    path = tmp_path / "recording.jsonl"
    stream = RecordingModel(ScriptedModel([ScriptedAnswer(text="abcdef", deltas=6)]), path).stream(
        request()
    )
    assert await anext(stream) == TextDelta("a", 0)
    await stream.aclose()
    [answer] = read_answers(path)
    assert (replace(answer.content[0], ms=0), answer.finish) == (TextBlock("a"), "cut")


async def test_a_recording_that_can_not_be_written_does_not_stop_the_answer(tmp_path: Path) -> None:
    recorder = RecordingModel(
        ScriptedModel([ScriptedAnswer(text="hi")]), tmp_path / "no" / "folder.jsonl"
    )
    assert end_of(await said(recorder, request())) == "stop"
    assert "folder.jsonl" in recorder.problem


async def test_a_recording_is_private(tmp_path: Path) -> None:
    path = tmp_path / "recording.jsonl"
    await said(RecordingModel(ScriptedModel([ScriptedAnswer(text="hi")]), path), request())
    assert path.stat().st_mode & 0o077 == 0
