"""Compaction through the real loop: what is summarised, what stays, and that it ends."""

from contextlib import closing
from pathlib import Path

import pytest

from codeloop.agent.compaction import read_request_limit
from codeloop.agent.request.window import compute_compaction_threshold, make_window
from codeloop.model.chat import (
    ModelInfo,
    TextPiece,
    TokenLimits,
    ToolModelMessage,
    UserModelMessage,
)
from codeloop.model.testing.script import ScriptedAnswer, ScriptedCall, TokenCount
from codeloop.schema.api.session_inputs import SUMMARIZE, MessageWithParts, RunLimits, Summarize
from codeloop.schema.api.session_messages import PART_UPDATE, UpdatePart
from codeloop.schema.errors import ContextOverflowError, OverflowData
from codeloop.schema.message import AssistantMessage
from codeloop.schema.part import CompactionPart, TextPart, ToolPart, ToolStateCompleted
from codeloop.schema.wire import replace
from codeloop.store.store import Store
from tests.support.scripted_project import join_texts, open_scripted_project

SMALL = ModelInfo(
    provider_id="scripted",
    id="small",
    name="Small",
    limits=TokenLimits(context=10_000, output=1_000),
)
NOTE = ScriptedAnswer(kind="side", text="NOTE: the goal is X.")
FULL = TokenCount(input=9_000, output=10)


def texts(turns: list[UserModelMessage]) -> str:
    return "\n".join(
        piece.text for turn in turns for piece in turn.content if isinstance(piece, TextPiece)
    )


def test_room_is_nine_tenths_of_what_the_answer_leaves() -> None:
    assert compute_compaction_threshold(SMALL, None) == 8_100
    assert compute_compaction_threshold(SMALL, 5_000) == 4_500
    assert compute_compaction_threshold(ModelInfo(provider_id="a", id="b", name="c"), None) is None


def test_the_limit_that_a_service_names_is_learnt() -> None:
    assert (
        read_request_limit(
            "This model's maximum context length is 8192 tokens, however you requested 9000"
        )
        == 5898
    )
    assert read_request_limit("prompt is too long") is None


async def test_a_full_context_is_summarised_and_the_turn_goes_on(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "a.txt").write_text("alpha\n")
    answers = [
        ScriptedAnswer(calls=(ScriptedCall("read", {"filePath": "a.txt"}),), tokens=FULL),
        NOTE,
        ScriptedAnswer(text="Done after the note."),
    ]
    async with open_scripted_project(tmp_path, answers, info=SMALL) as it:
        answer = await it.prompt("please do the thing")
        assert join_texts(answer.parts) == "Done after the note."
        sent = it.model.requests[-1]
        assert "NOTE: the goal is X." in texts(
            [t for t in sent.messages if isinstance(t, UserModelMessage)]
        )
        assert "please do the thing" in texts(
            [t for t in sent.messages if isinstance(t, UserModelMessage)]
        )
        entries = it.project.store.read_conversation(it.session_id).entries
        summaries = [
            e.info for e in entries if isinstance(e.info, AssistantMessage) and e.info.summary
        ]
        assert len(summaries) == 1
        assert summaries[0].agent == "compaction"
        parts = [p for e in entries for p in e.parts if isinstance(p, CompactionPart)]
        assert [(p.auto, p.overflow) for p in parts] == [(True, False)]


async def test_a_refused_request_is_summarised_and_the_prompt_asked_again(tmp_path: Path) -> None:
    overflow = ContextOverflowError(
        data=OverflowData(message="maximum context length is 8192 tokens")
    )
    answers = [
        ScriptedAnswer(finish="error", error=overflow),
        NOTE,
        ScriptedAnswer(text="Answered."),
    ]
    async with open_scripted_project(tmp_path, answers) as it:
        answer = await it.prompt("a very long story")
        assert join_texts(answer.parts) == "Answered."
        assert "a very long story" in texts(
            [t for t in it.model.requests[-1].messages if isinstance(t, UserModelMessage)]
        )


async def test_a_second_refusal_right_after_a_summary_ends_the_turn(tmp_path: Path) -> None:
    overflow = ContextOverflowError(data=OverflowData(message="too long"))
    refusal = ScriptedAnswer(finish="error", error=overflow)
    async with open_scripted_project(tmp_path, [refusal, NOTE, refusal, NOTE, refusal]) as it:
        answer: MessageWithParts = await it.prompt("x")
        assert answer.stop is not None
        assert answer.stop.reason == "error"
        assert len(it.model.requests) == 3


@pytest.mark.slow
async def test_old_outputs_are_left_out_before_anything_is_summarised(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "big.txt").write_text("".join(f"{n:099}\n" for n in range(450)))
    big = ModelInfo(
        provider_id="scripted",
        id="big",
        name="Big",
        limits=TokenLimits(context=100_000, output=1_000),
    )
    calls = [
        ScriptedAnswer(calls=(ScriptedCall("bash", {"command": f"echo {n}; cat big.txt"}),))
        for n in range(12)
    ]
    full = ScriptedAnswer(
        calls=(ScriptedCall("bash", {"command": "echo last"}),),
        tokens=TokenCount(input=95_000, output=10),
    )
    async with open_scripted_project(
        tmp_path, [*calls, full, ScriptedAnswer(text="Done.")], info=big
    ) as it:
        answer = await it.prompt("go")
        assert join_texts(answer.parts) == "Done."
        results = [
            p.output
            for t in it.model.requests[-1].messages
            if isinstance(t, ToolModelMessage)
            for p in t.content
        ]
        assert "left out" in results[0]
        assert "last" in results[-1]
        stored = [
            p.state
            for e in it.project.store.read_conversation(it.session_id).entries
            for p in e.parts
            if isinstance(p, ToolPart) and isinstance(p.state, ToolStateCompleted)
        ]
        assert "0000" in stored[0].output


async def test_by_hand_everything_is_kept_and_the_next_prompt_starts_from_the_note(
    tmp_path: Path,
) -> None:
    async with open_scripted_project(
        tmp_path, [ScriptedAnswer(text="First."), NOTE, ScriptedAnswer(text="Second.")]
    ) as it:
        await it.prompt("one")
        assert await it.client.call(
            SUMMARIZE,
            Summarize(session_id=it.session_id, provider_id="scripted", model_id="script"),
        )
        before = it.project.store.read_conversation(it.session_id).entries
        assert any(isinstance(p, TextPart) and p.text == "First." for e in before for p in e.parts)
        assert make_window(before).head
        assert join_texts((await it.prompt("two")).parts) == "Second."
        said = texts([t for t in it.model.requests[-1].messages if isinstance(t, UserModelMessage)])
        assert "NOTE" in said
        assert "First." not in said


async def test_without_compaction_a_full_context_is_just_sent(tmp_path: Path) -> None:
    answers = [
        ScriptedAnswer(calls=(ScriptedCall("bash", {"command": "echo 1"}),), tokens=FULL),
        ScriptedAnswer(text="Done."),
    ]
    async with open_scripted_project(tmp_path, answers, info=SMALL) as it:
        answer = await it.prompt("go", limits=RunLimits(compact=False))
        assert join_texts(answer.parts) == "Done."


@pytest.mark.slow
async def test_the_steps_of_a_turn_count_across_a_summary(tmp_path: Path) -> None:
    answers = [
        ScriptedAnswer(
            calls=(ScriptedCall("bash", {"command": f"echo {n}"}),),
            tokens=FULL if n % 3 == 2 else TokenCount(),
        )
        for n in range(9)
    ]
    async with open_scripted_project(tmp_path, [*answers, NOTE, NOTE, NOTE], info=SMALL) as it:
        answer = await it.prompt("work", limits=RunLimits(steps=8))
        assert answer.stop is not None
        assert answer.stop.reason == "limit"
        assert len(it.calls()) < 8, "summaries are steps too"
        assert any(request.tools == () for request in it.model.requests), "it was summarised"


async def test_pinned_text_outlives_every_summary_word_for_word(tmp_path: Path) -> None:
    secret = "The invariant: never touch table B."
    long = "x" * 9_000
    answers = [
        ScriptedAnswer(text="First."),
        *[ScriptedAnswer(text="Ok.")] * 3,
        NOTE,
        NOTE,
        ScriptedAnswer(text="Last."),
    ]
    async with open_scripted_project(tmp_path, answers) as it:
        await it.prompt(secret)
        (said,) = [
            part
            for entry in it.view().entries
            for part in entry.parts
            if getattr(part, "text", "") == secret
        ]
        assert isinstance(said, TextPart)
        pinned = replace(said, metadata={"pinned": True})
        ids = {"session_id": said.session_id, "message_id": said.message_id, "part_id": said.id}
        await it.client.call(PART_UPDATE, UpdatePart(**ids, part=pinned))
        for _ in range(2):
            await it.prompt(long)
        for _ in range(2):
            await it.client.call(
                SUMMARIZE,
                Summarize(session_id=it.session_id, provider_id="scripted", model_id="script"),
            )
        await it.prompt("go on")
        told = texts([t for t in it.model.requests[-1].messages if isinstance(t, UserModelMessage)])
        assert told.count(secret) == 1, "the user's other words have used up their budget"
        assert "First." not in told
        again = Store(it.project.store.path)
        assert (
            make_window(again.read_context(it.session_id).entries).head
            == make_window(it.view().entries).head
        )
        again.close()


BARE_NOTE = ScriptedAnswer(kind="side", text="Go on.")


async def test_a_careless_note_loses_neither_changes_nor_checks_nor_what_runs(
    tmp_path: Path,
) -> None:
    work = tmp_path / "work"
    work.mkdir()
    (work / "Makefile").write_text(
        "test:\n\t@printf 'x%.0s' $$(seq 4000); echo; echo 'FAILED test_a.py::test_a'; exit 1\n"
    )
    calls = (
        ScriptedCall("write", {"filePath": "new.py", "content": "A = 1\n"}),
        ScriptedCall("bash", {"command": "sleep 600", "run_in_background": True}, "call_2"),
    )
    answers = [
        ScriptedAnswer(calls=calls),
        ScriptedAnswer(calls=(ScriptedCall("bash", {"command": "make test"}),), tokens=FULL),
        BARE_NOTE,
        ScriptedAnswer(text="All tests pass."),
        ScriptedAnswer(text="The test fails."),
    ]
    async with open_scripted_project(tmp_path, answers, info=SMALL) as it:
        await it.prompt("please do the thing", limits=RunLimits(attended=False))
        requests = [
            texts([t for t in r.messages if isinstance(t, UserModelMessage)])
            for r in it.model.requests
        ]
        summarised = next(text for text in requests if "hand-over note now" in text)
        assert "FAILED test_a.py::test_a" in summarised
        after = requests[requests.index(summarised) + 1]
        assert "files changed so far: new.py" in after
        assert "last check: `make test` failed" in after
        assert "still running: bash_1, `sleep 600`" in after
        # The turn goes back over the summary: the claim is held against the check before it.
        assert "the last check failed" in requests[-1]


async def test_a_turn_that_only_repeats_itself_after_two_summaries_ends_as_a_loop(
    tmp_path: Path,
) -> None:
    (tmp_path / "work").mkdir()
    steps = [("a.txt", TokenCount()), ("b.txt", FULL)] * 6
    for name in ("a.txt", "b.txt"):
        (tmp_path / "work" / name).write_text(f"{name}\n")
    reads = [
        ScriptedAnswer(calls=(ScriptedCall("read", {"filePath": name}),), tokens=tokens)
        for name, tokens in steps
    ]
    async with open_scripted_project(tmp_path, [*reads, *[NOTE] * 8], info=SMALL) as it:
        answer = await it.prompt("please do the thing")
        assert answer.stop is not None
        assert answer.stop.reason == "loop"
        assert "only repeated earlier calls" in answer.stop.message
        entries = it.project.store.read_conversation(it.session_id).entries
        assert sum(
            isinstance(e.info, AssistantMessage) and bool(e.info.summary) for e in entries
        ) in {2, 3}


async def test_equal_calls_are_counted_across_summaries(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "a.txt").write_text("alpha\n")
    answers: list[ScriptedAnswer] = []
    for number in range(12):
        # Something new in each round, so that only the count of the equal call can end the turn.
        answers.append(ScriptedAnswer(calls=(ScriptedCall("bash", {"command": f"echo {number}"}),)))
        answers.append(
            ScriptedAnswer(calls=(ScriptedCall("grep", {"pattern": "alpha"}),), tokens=FULL)
        )
    async with open_scripted_project(tmp_path, [*answers, *[NOTE] * 12], info=SMALL) as it:
        answer = await it.prompt("please do the thing")
        assert answer.stop is not None
        assert answer.stop.reason == "loop"
        assert sum(part.tool == "grep" for part in it.calls()) <= 8


@pytest.mark.parametrize("length", [20, 100_000])
async def test_the_first_prompt_of_a_turn_is_in_the_request_after_any_number_of_summaries(
    tmp_path: Path, length: int
) -> None:
    (tmp_path / "work").mkdir()
    answers = [
        ScriptedAnswer(
            calls=(ScriptedCall("bash", {"command": f"echo {n}"}),),
            tokens=FULL if n % 2 else TokenCount(),
        )
        for n in range(8)
    ]
    prompt = f"BEGINNING of the task {'x' * length} END of the task"
    async with open_scripted_project(
        tmp_path, [*answers, ScriptedAnswer(text="Done."), *[NOTE] * 5], info=SMALL
    ) as it:
        assert join_texts((await it.prompt(prompt)).parts) == "Done."
        words = texts(
            [turn for turn in it.model.requests[-1].messages if isinstance(turn, UserModelMessage)]
        )
        assert "BEGINNING of the task" in words
        assert "END of the task" in words
        assert words.count("[... ") == (length > 16_000)
        # Another process has the same.
        with closing(Store(it.project.store.path)) as again:
            head = make_window(again.read_context(it.session_id).entries).head
        assert "BEGINNING of the task" in texts([*head])
