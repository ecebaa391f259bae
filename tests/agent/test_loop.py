"""The loop over a real project: answers, calls, their order, limits, and what is stored of it."""

import time
from collections.abc import AsyncGenerator
from itertools import pairwise
from pathlib import Path

import pytest

from codeloop.model.chat import (
    CallReady,
    Finished,
    ModelEvent,
    ModelInfo,
    ModelRequest,
    Prices,
    TextDelta,
)
from codeloop.model.testing.replay import SCRIPT_INFO, ScriptedModel
from codeloop.model.testing.script import (
    RetryBlock,
    ScriptedAnswer,
    ScriptedCall,
    TextBlock,
    TokenCount,
)
from codeloop.schema.api.session_inputs import PROMPT_ASYNC, Prompt, RunLimits, TextPartInput
from codeloop.schema.errors import APIError, APIErrorData
from codeloop.schema.live_events import PartDelta, SessionIdle
from codeloop.schema.message import AssistantMessage, UserMessage
from codeloop.schema.part import (
    StepFinishPart,
    StepStartPart,
    TextPart,
    ToolPart,
    ToolStateCompleted,
    ToolStateError,
)
from tests.support.scripted_project import (
    check_turns,
    join_texts,
    list_texts,
    make_answer,
    make_call,
    open_scripted_project,
    wait_until,
)

DONE = ScriptedAnswer(text="Done.", tokens=TokenCount(input=7, output=3))


async def test_a_text_answer_is_one_step(tmp_path: Path) -> None:
    async with open_scripted_project(
        tmp_path, [ScriptedAnswer(text="Hello there.", deltas=4)]
    ) as it:
        answer = await it.prompt("hi")
        assert answer.stop is not None
        assert answer.stop.reason == "done"
        assert isinstance(answer.info, AssistantMessage)
        assert answer.info.finish == "stop"
        assert answer.info.time.completed is not None
        kinds = [type(part) for part in answer.parts]
        assert kinds == [StepStartPart, TextPart, StepFinishPart]
        text = answer.parts[1]
        assert isinstance(text, TextPart)
        assert text.text == "Hello there."
        assert text.time is not None
        assert text.time.end is not None
        user = it.view().entries[0]
        assert isinstance(user.info, UserMessage)
        assert answer.info.parent_id == user.info.id


async def test_deltas_are_shown_live_and_add_up_to_the_stored_text(tmp_path: Path) -> None:
    async with open_scripted_project(
        tmp_path, [ScriptedAnswer(text="one two three four", deltas=5)]
    ) as it:
        stream = it.client.follow()
        await it.client.call(
            PROMPT_ASYNC, Prompt(session_id=it.session_id, parts=[TextPartInput(text="hi")])
        )
        shown, kinds = "", list[str]()
        async for stamped in stream:
            kinds.append(type(stamped.event).__name__)
            match stamped.event:
                case PartDelta(properties=delta):
                    assert stamped.seq is None
                    shown += delta.delta
                case SessionIdle():
                    break
                case _:
                    pass
        assert shown == "one two three four"
        assert kinds.index("StatusChanged") < kinds.index("PartDelta")
        assert join_texts(it.view().entries[1].parts) == shown


async def test_a_call_is_run_and_its_result_sent_back(tmp_path: Path) -> None:
    async with open_scripted_project(
        tmp_path, [make_answer(make_call("read", filePath="a.txt"), text="Look."), DONE]
    ) as it:
        (it.work / "a.txt").write_text("the content\n")
        answer = await it.prompt()
        assert join_texts(answer.parts) == "Done."
        (made,) = it.calls()
        assert isinstance(made.state, ToolStateCompleted)
        assert "the content" in made.state.output
        assert made.state.input == {"filePath": "a.txt"}
        assert made.state.time.end >= made.state.time.start
        second = it.model.requests[1].messages
        assert [type(turn).__name__ for turn in second] == [
            "UserModelMessage",
            "AssistantModelMessage",
            "ToolModelMessage",
        ]
        check_turns(second)


async def test_each_request_is_the_one_before_with_something_added(tmp_path: Path) -> None:
    script = [make_answer(make_call("glob", pattern=f"*{n}")) for n in range(4)]
    async with open_scripted_project(tmp_path, [*script, DONE, DONE]) as it:
        await it.prompt()
        requests = it.model.requests
        for earlier, later in pairwise(requests):
            assert later.system == earlier.system
            assert later.tools == earlier.tools
            kept = later.messages[: len(earlier.messages)]
            assert all(a is b for a, b in zip(kept, earlier.messages, strict=True))
        await it.prompt("again")
        assert it.model.requests[-1].messages[: len(requests[4].messages)] == requests[4].messages


async def test_reads_of_one_step_run_side_by_side(tmp_path: Path) -> None:
    """The second read is asked about as well while the first one waits for its answer."""
    made = make_answer(make_call("read", filePath="a.env"), make_call("read", filePath="b.env"))
    async with open_scripted_project(tmp_path, [made, DONE]) as it:
        for name in ("a", "b"):
            (it.work / f"{name}.env").write_text(f"KEY={name}\n")
        await it.client.call(
            PROMPT_ASYNC, Prompt(session_id=it.session_id, parts=[TextPartInput(text="go")])
        )
        both = await it.questions(2)
        for request in both:
            await it.answer(request, "once")
        await wait_until(lambda: not it.project.runs.is_running(it.session_id))
        assert ["KEY=a" in it.results()[0], "KEY=b" in it.results()[1]] == [True, True]


async def test_a_call_that_changes_something_waits_for_those_before_it(tmp_path: Path) -> None:
    made = make_answer(
        make_call("bash", command="sleep 0.1; echo one > a.txt"),
        make_call("edit", filePath="a.txt", oldString="one", newString="two"),
        make_call("bash", command="cat a.txt"),
        make_call("read", filePath="a.txt"),
    )
    async with open_scripted_project(tmp_path, [made, DONE]) as it:
        await it.prompt()
        results = it.results()
        assert results[2].strip() == "two"
        assert "two" in results[3]
        times = [
            (s.time.start, s.time.end)
            for s in (part.state for part in it.calls())
            if isinstance(s, ToolStateCompleted)
        ]
        assert len(times) == 4
        assert all(before[1] <= after[0] for before, after in pairwise(times))


async def test_a_call_starts_before_the_answer_has_ended(tmp_path: Path) -> None:
    class Waits:
        """Makes a call and ends its answer only when the call has been run."""

        info = SCRIPT_INFO

        def __init__(self, mark: Path) -> None:
            self.mark = mark
            self.said = False

        async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent]:
            if self.said:
                yield TextDelta("seen" if self.mark.exists() else "not run")
                yield Finished("stop")
                return
            self.said = True
            yield CallReady("c1", "bash", '{"command": "touch mark"}')
            await wait_until(self.mark.exists)
            yield Finished("tool-calls")

    async with open_scripted_project(tmp_path, Waits(tmp_path / "work" / "mark")) as it:
        assert join_texts((await it.prompt()).parts) == "seen"


async def test_tokens_and_cost_are_summed_in_the_session(tmp_path: Path) -> None:
    info = ModelInfo(
        provider_id="p", id="m", name="M", prices=Prices(input=10, output=100, cache_read=1)
    )
    script = [
        ScriptedAnswer(
            calls=(make_call("glob", pattern="*"),),
            tokens=TokenCount(input=1000, output=100, reasoning=20, cache_read=500),
        ),
        ScriptedAnswer(text="Done.", tokens=TokenCount(input=2000, output=50)),
    ]
    async with open_scripted_project(tmp_path, script, info=info) as it:
        await it.prompt()
        steps = [e.info for e in it.view().entries if isinstance(e.info, AssistantMessage)]
        assert [step.cost for step in steps] == pytest.approx([0.0205, 0.025])
        assert steps[0].tokens.total == 1600
        session = it.view().session
        assert session.cost == pytest.approx(0.0455)
        assert session.tokens is not None
        assert (session.tokens.input, session.tokens.output, session.tokens.reasoning) == (
            3000,
            150,
            20,
        )
        assert session.tokens.cache.read == 500
        finishes = [p for e in it.view().entries for p in e.parts if isinstance(p, StepFinishPart)]
        assert [finish.reason for finish in finishes] == ["tool-calls", "stop"]


@pytest.mark.parametrize(
    ("limits", "steps", "words"),
    [
        (RunLimits(steps=2), 2, "limit of 2 steps"),
        (RunLimits(tokens=250), 3, "limit of 250 tokens"),
        (RunLimits(cost=0.0015), 2, "limit of $0.0015"),
    ],
)
async def test_a_limit_ends_the_turn_and_the_next_prompt_goes_on(
    tmp_path: Path, limits: RunLimits, steps: int, words: str
) -> None:
    info = ModelInfo(provider_id="p", id="m", name="M", prices=Prices(input=10))
    script = [make_answer(make_call("glob", pattern=f"*{n}")) for n in range(steps)]
    async with open_scripted_project(tmp_path, [*script, DONE], info=info) as it:
        answer = await it.prompt(limits=limits)
        assert answer.stop is not None
        assert answer.stop.reason == "limit"
        assert words in answer.stop.message
        assert len(it.model.requests) == steps
        again = await it.prompt("go on")
        assert again.stop is not None
        assert again.stop.reason == "done"
        check_turns(it.model.requests[-1].messages)


@pytest.mark.parametrize("limits", [RunLimits(tokens=50), RunLimits(cost=0.0005)])
async def test_the_calls_of_the_answer_that_reaches_a_limit_are_not_run(
    tmp_path: Path, limits: RunLimits
) -> None:
    info = ModelInfo(provider_id="p", id="m", name="M", prices=Prices(input=10))
    calls = (make_call("bash", command="touch mark"), make_call("bash", command="touch mark2"))
    async with open_scripted_project(tmp_path, [make_answer(*calls), DONE], info=info) as it:
        answer = await it.prompt(limits=limits)
        assert answer.stop is not None
        assert answer.stop.reason == "limit"
        assert not list((tmp_path / "work").glob("mark*"))
        parts = [
            part
            for entry in it.view().entries
            for part in entry.parts
            if isinstance(part, ToolPart)
        ]
        errors = [part.state.error for part in parts if isinstance(part.state, ToolStateError)]
        assert len(errors) == 2
        assert all(error.startswith("Not run: the limit of ") for error in errors)
        again = await it.prompt("go on")
        assert again.stop is not None
        assert again.stop.reason == "done"
        check_turns(it.model.requests[-1].messages)


async def test_a_prompt_sent_while_the_session_is_busy_is_taken_up_at_the_next_step(
    tmp_path: Path,
) -> None:
    made = make_answer(make_call("bash", command="until [ -e go ]; do sleep 0.01; done"))
    async with open_scripted_project(tmp_path, [made, DONE]) as it:
        await it.client.call(
            PROMPT_ASYNC, Prompt(session_id=it.session_id, parts=[TextPartInput(text="first")])
        )
        await wait_until(lambda: it.calls() and it.calls()[0].state.input)
        await it.client.call(
            PROMPT_ASYNC, Prompt(session_id=it.session_id, parts=[TextPartInput(text="second")])
        )
        (it.work / "go").touch()
        await wait_until(lambda: not it.project.runs.is_running(it.session_id))
        assert len(it.model.requests) == 2
        last = it.model.requests[1].messages
        assert list_texts(last[-1]) == ["second"]
        check_turns(last)


async def test_a_prompt_sent_during_the_last_step_gets_its_own_answer(tmp_path: Path) -> None:
    script = [
        ScriptedAnswer(text="a long answer", deltas=5, delay_ms=20),
        ScriptedAnswer(text="to the second"),
    ]
    async with open_scripted_project(tmp_path, script) as it:
        await it.client.call(
            PROMPT_ASYNC, Prompt(session_id=it.session_id, parts=[TextPartInput(text="first")])
        )
        await wait_until(lambda: len(it.view().entries) == 2)
        answer = await it.prompt("second")
        assert join_texts(answer.parts) == "to the second"
        assert len(it.model.requests) == 2


async def test_an_error_of_the_service_is_stored_and_ends_the_turn(tmp_path: Path) -> None:
    error = APIError(
        data=APIErrorData(message="no such model", is_retryable=False, status_code=404)
    )
    async with open_scripted_project(
        tmp_path, [ScriptedAnswer(text="half", error=error), DONE]
    ) as it:
        answer = await it.prompt()
        assert answer.stop is not None
        assert (answer.stop.reason, answer.stop.message) == ("error", "no such model")
        assert isinstance(answer.info, AssistantMessage)
        assert answer.info.error == error
        again = await it.prompt("again")
        assert join_texts(again.parts) == "Done."
        check_turns(it.model.requests[-1].messages)


async def test_a_fault_of_the_model_itself_ends_the_turn_instead_of_hanging(tmp_path: Path) -> None:
    class Breaks(ScriptedModel):
        async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent]:
            if not self._answer_count:
                self._answer_count = 1
                yield TextDelta("half")
                raise ZeroDivisionError("a fault of ours")
            async for event in super().stream(request):
                yield event

    async with open_scripted_project(tmp_path, Breaks([DONE])) as it:
        answer = await it.prompt()
        assert answer.stop is not None
        assert (answer.stop.reason, "a fault of ours" in answer.stop.message) == ("error", True)
        assert isinstance(answer.info, AssistantMessage)
        assert answer.info.time.completed is not None
        assert join_texts((await it.prompt("again")).parts) == "Done."


async def test_a_request_sent_again_replaces_what_had_come(tmp_path: Path) -> None:
    retried = ScriptedAnswer(
        content=(TextBlock("old"), RetryBlock(1, "service busy"), TextBlock("new"))
    )
    async with open_scripted_project(tmp_path, [retried]) as it:
        answer = await it.prompt()
        assert [part.text for part in answer.parts if isinstance(part, TextPart)] == ["new"]


async def test_an_answer_cut_at_the_output_limit_runs_no_half_call_and_goes_on(
    tmp_path: Path,
) -> None:
    cut = ScriptedAnswer(
        calls=(ScriptedCall("write", '{"filePath": "a.txt", "cont', complete=False),),
        finish="length",
    )
    async with open_scripted_project(tmp_path, [cut, DONE]) as it:
        answer = await it.prompt()
        assert answer.stop is not None
        assert answer.stop.reason == "done"
        assert not (it.work / "a.txt").exists()
        (made,) = it.calls()
        assert isinstance(made.state, ToolStateError)
        assert "output limit" in made.state.error
        check_turns(it.model.requests[1].messages)


async def test_a_half_call_of_an_answer_that_was_withheld_is_not_blamed_on_the_connection(
    tmp_path: Path,
) -> None:
    half_call = ScriptedCall("write", '{"filePath": "a.txt", "cont', complete=False)
    withheld = ScriptedAnswer(calls=(half_call,), finish="content-filter")
    async with open_scripted_project(tmp_path, [withheld, DONE]) as it:
        await it.prompt()
        assert it.results() == [
            "The answer ended before the call's arguments were complete, so it was not run."
        ]


async def test_text_cut_at_the_output_limit_is_said_to_be(tmp_path: Path) -> None:
    async with open_scripted_project(
        tmp_path, [ScriptedAnswer(text="half a", finish="length")]
    ) as it:
        answer = await it.prompt()
        assert answer.stop is not None
        assert answer.stop.reason == "length"


async def test_a_thousand_deltas_are_stored_a_few_times_only(tmp_path: Path) -> None:
    async with open_scripted_project(
        tmp_path, [ScriptedAnswer(text="x" * 1000, deltas=1000)]
    ) as it:
        begin = time.monotonic()
        await it.prompt()
        stored = it.project.store.read_last_seq()
        assert stored < 20 + 3 * (time.monotonic() - begin)


async def test_what_waits_for_a_person_is_only_offered_where_one_is(tmp_path: Path) -> None:
    async with open_scripted_project(
        tmp_path, [ScriptedAnswer(text="One."), ScriptedAnswer(text="Two.")]
    ) as it:
        await it.prompt("here")
        await it.prompt("away", limits=RunLimits(attended=False))
        there, away = ({spec.name for spec in request.tools} for request in it.model.requests)
        assert there - away == {"question"}
