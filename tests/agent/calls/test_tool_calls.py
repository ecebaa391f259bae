"""What a call may turn into: a result, a refusal, an error, a question; never silence."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from codeloop.agent.calls.tool_calls import ToolCalls
from codeloop.app.runs import Runs
from codeloop.app.toolbox import make_toolbox
from codeloop.model.chat import CallReady, CallStarted, Finished
from codeloop.model.testing.script import ScriptedAnswer, ScriptedCall
from codeloop.permission.gate import Denied
from codeloop.schema.api.session_inputs import PROMPT_ASYNC, Prompt, TextPartInput
from codeloop.schema.part import (
    ADVICE_KEY,
    RULE_KEY,
    ToolStateCompleted,
    ToolStateError,
    ToolStatePending,
)
from codeloop.schema.wire import replace
from codeloop.tool.tool import ToolContext, ToolResult, tool
from tests.store.states import assistant, said, user
from tests.support.scripted_project import (
    ScriptedProject,
    check_turns,
    make_answer,
    make_call,
    open_scripted_project,
    read_result,
    wait_until,
)

DONE = ScriptedAnswer(text="Done.")
ROOT = Path(__file__).resolve().parents[2]
ANSWERER = """
import sys, time
from pathlib import Path
from codeloop.permission.questions import settle_question
from codeloop.schema.event import PermissionAnswer
from codeloop.store.store import Store
store = Store(Path(sys.argv[1]))
while not store.list_pending_permissions():
    time.sleep(0.005)
request = store.list_pending_permissions()[0]
answer = PermissionAnswer(session_id=request.session_id, request_id=request.id, reply=sys.argv[2], message=None)
print(settle_question(store, answer))
"""


async def start(it: ScriptedProject) -> None:
    await it.client.call(
        PROMPT_ASYNC, Prompt(session_id=it.session_id, parts=[TextPartInput(text="go")])
    )


async def end(it: ScriptedProject) -> None:
    await wait_until(lambda: not it.project.runs.is_running(it.session_id))
    for request in it.model.requests:
        check_turns(request.messages)


async def test_an_unknown_tool_becomes_invalid_and_the_model_goes_on(tmp_path: Path) -> None:
    async with open_scripted_project(
        tmp_path, [make_answer(make_call("teleport", to="mars")), DONE]
    ) as it:
        answer = await it.prompt()
        assert answer.stop is not None
        assert answer.stop.reason == "done"
        assert len(it.model.requests) == 2, "the model is told of it"
        (made,) = it.calls()
        assert (made.tool, type(made.state)) == ("invalid", ToolStateCompleted)
        assert "There is no tool named teleport. The tools are: " in read_result(made)
        assert made.state.input["tool"] == "teleport"
        check_turns(it.model.requests[1].messages)


async def test_a_tool_named_in_another_case_is_found(tmp_path: Path) -> None:
    async with open_scripted_project(
        tmp_path, [make_answer(make_call("Glob", pattern="*.py")), DONE]
    ) as it:
        (it.work / "a.py").touch()
        await it.prompt()
        (made,) = it.calls()
        assert made.tool == "glob"
        assert "a.py" in read_result(made)


@pytest.mark.parametrize(
    "arguments", ['{"filePath": "a', "[1]", "null", '"x"', "", "{}{}", "\ud800"]
)
async def test_arguments_that_are_no_object_are_never_run(tmp_path: Path, arguments: str) -> None:
    async with open_scripted_project(
        tmp_path, [make_answer(ScriptedCall("write", arguments)), DONE]
    ) as it:
        await it.prompt()
        (made,) = it.calls()
        assert made.tool == "invalid"
        assert "not a JSON object" in read_result(made)
        assert list(it.work.iterdir()) == []
        check_turns(it.model.requests[1].messages)


async def test_wrong_types_are_told_with_the_expected_schema(tmp_path: Path) -> None:
    async with open_scripted_project(
        tmp_path, [make_answer(make_call("read", filePath={"x": 1})), DONE]
    ) as it:
        await it.prompt()
        (made,) = it.calls()
        assert made.tool == "read"
        assert isinstance(made.state, ToolStateError)
        assert "filePath" in made.state.error
        assert "It takes" not in made.state.error  # which users see
        assert "It takes read(filePath: string, " in made.state.for_model
        check_turns(it.model.requests[1].messages)


async def test_a_number_written_as_text_is_read_as_one(tmp_path: Path) -> None:
    async with open_scripted_project(
        tmp_path, [make_answer(make_call("read", filePath="a.txt", limit="1")), DONE]
    ) as it:
        (it.work / "a.txt").write_text("one\ntwo\n")
        await it.prompt()
        assert "one" in it.results()[0]


async def test_a_call_forbidden_by_a_rule_is_told_and_the_turn_goes_on(tmp_path: Path) -> None:
    made = make_answer(make_call("bash", command="touch x"), make_call("glob", pattern="*"))
    async with open_scripted_project(
        tmp_path, [made, DONE], permission={"bash": {"*": "allow", "touch *": "deny"}}
    ) as it:
        answer = await it.prompt()
        assert answer.stop is not None
        assert answer.stop.reason == "done"
        denied, other = it.calls()
        assert "Permission denied by the rule bash touch *: deny" in read_result(denied)
        assert isinstance(denied.state, ToolStateError)
        assert denied.state.metadata == {
            "denied": True,
            RULE_KEY: "bash touch *",
            ADVICE_KEY: Denied.advice,
        }
        assert denied.state.error.endswith("touch x.")
        assert isinstance(other.state, ToolStateCompleted)
        assert not (it.work / "x").exists()


async def test_a_tool_that_is_denied_altogether_is_not_offered(tmp_path: Path) -> None:
    async with open_scripted_project(tmp_path, [DONE], permission={"bash": "deny"}) as it:
        await it.prompt()
        names = [spec.name for spec in it.model.requests[0].tools]
        assert "bash" not in names
        assert "read" in names


async def test_once_lets_one_call_through_and_asks_again(tmp_path: Path) -> None:
    script = [
        make_answer(make_call("bash", command="echo a")),
        make_answer(make_call("bash", command="echo b")),
        DONE,
    ]
    async with open_scripted_project(tmp_path, script, permission={"bash": "ask"}) as it:
        await start(it)
        for _ in range(2):
            request = await it.question()
            assert request.tool is not None
            assert request.tool.call_id == it.calls()[-1].call_id
            await it.answer(request, "once")
            await wait_until(lambda: not it.project.store.list_pending_permissions())
        await end(it)
        assert [text.strip() for text in it.results()] == ["a", "b"]


async def test_always_settles_the_others_that_wait_and_is_not_asked_again(tmp_path: Path) -> None:
    reads = make_answer(
        make_call("read", filePath="a.txt"),
        make_call("read", filePath="b.txt"),
        make_call("read", filePath="c.txt"),
    )
    async with open_scripted_project(
        tmp_path,
        [reads, make_answer(make_call("read", filePath="d.txt")), DONE],
        permission={"read": "ask"},
    ) as it:
        for name in "abcd":
            (it.work / f"{name}.txt").write_text(f"{name}=1\n")
        await start(it)
        waiting = await it.questions(3)
        await it.answer(waiting[1], "always")
        await end(it)
        assert all(isinstance(made.state, ToolStateCompleted) for made in it.calls())
        assert len(it.calls()) == 4


async def test_a_rejection_without_words_ends_the_turn_after_the_step(tmp_path: Path) -> None:
    made = make_answer(make_call("bash", command="touch x"), make_call("bash", command="touch y"))
    async with open_scripted_project(tmp_path, [made, DONE], permission={"bash": "ask"}) as it:
        await start(it)
        await it.answer(await it.question(), "reject")
        await end(it)
        assert [type(part.state) for part in it.calls()] == [ToolStateError, ToolStateError]
        assert "rejected an earlier call" in it.results()[1]
        assert list(it.work.iterdir()) == []
        assert len(it.model.requests) == 1
        answer = await it.prompt("another way")
        assert answer.stop is not None
        assert answer.stop.reason == "done"
        check_turns(it.model.requests[-1].messages)


async def test_a_rejection_with_words_is_told_to_the_model(tmp_path: Path) -> None:
    async with open_scripted_project(
        tmp_path,
        [make_answer(make_call("bash", command="touch x")), DONE],
        permission={"bash": "ask"},
    ) as it:
        await start(it)
        await it.answer(await it.question(), "reject", "use write instead")
        await end(it)
        assert "said: use write instead" in it.results()[0]
        assert len(it.model.requests) == 2


@pytest.mark.slow
@pytest.mark.parametrize(("reply", "is_run"), [("once", True), ("always", True), ("reject", False)])
async def test_another_process_may_answer(tmp_path: Path, reply: str, *, is_run: bool) -> None:
    async with open_scripted_project(
        tmp_path,
        [make_answer(make_call("bash", command="touch x")), DONE],
        permission={"bash": "ask"},
    ) as it:
        command = [sys.executable, "-c", ANSWERER, str(it.project.store.path), reply]
        with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as other:
            await start(it)
            await end(it)
            assert other.communicate(timeout=60)[0] == "True\n"
        assert (it.work / "x").exists() is is_run


async def test_the_third_identical_call_in_a_row_is_asked_about(tmp_path: Path) -> None:
    script = [make_answer(make_call("glob", pattern="*.py")) for _ in range(4)]
    async with open_scripted_project(tmp_path, [*script, DONE]) as it:
        await start(it)
        request = await it.question()
        assert request.permission == "doom_loop"
        assert request.metadata == {"tool": "glob", "input": {"pattern": "*.py"}}
        assert len(it.calls()) == 3
        await it.answer(request, "always")
        await end(it)
        assert [type(made.state) for made in it.calls()] == [ToolStateCompleted] * 4


async def test_calls_that_differ_are_not_a_loop(tmp_path: Path) -> None:
    patterns = ["*.a", "*.a", "*.b", "*.a", "*.a"]
    async with open_scripted_project(
        tmp_path, [*(make_answer(make_call("glob", pattern=p)) for p in patterns), DONE]
    ) as it:
        await it.prompt()
        assert len(it.calls()) == 5
        assert all(isinstance(made.state, ToolStateCompleted) for made in it.calls())


class NoParams(msgspec.Struct, frozen=True):
    """Nothing."""


async def test_a_tool_that_breaks_gives_an_error_without_a_traceback(tmp_path: Path) -> None:
    @tool("broken", params=NoParams, description="breaks")
    async def broken(params: Any, ctx: ToolContext) -> ToolResult:
        raise ZeroDivisionError("a fault of the tool")

    async with open_scripted_project(
        tmp_path, [make_answer(make_call("broken"), make_call("glob", pattern="*")), DONE]
    ) as it:
        box = make_toolbox([broken])
        it.project.runs = Runs(replace(it.project.engine, toolbox=box))
        answer = await it.prompt()
        assert answer.stop is not None
        assert answer.stop.reason == "done"
        assert (
            it.results()[0]
            == "The broken tool failed unexpectedly: ZeroDivisionError: a fault of the tool"
        )
        assert isinstance(it.calls()[1].state, ToolStateCompleted)


async def test_two_calls_of_one_id_have_a_result_each(tmp_path: Path) -> None:
    made = make_answer(
        make_call("glob", "same", pattern="*.a"), make_call("glob", "same", pattern="*.b")
    )
    async with open_scripted_project(tmp_path, [made, DONE]) as it:
        await it.prompt()
        assert [part.state.input for part in it.calls()] == [{"pattern": "*.a"}, {"pattern": "*.b"}]
        check_turns(it.model.requests[1].messages)


async def test_a_call_that_is_sent_twice_is_run_once(tmp_path: Path) -> None:
    twice = make_answer(
        make_call("bash", "same", command="echo x >> ran"),
        make_call("bash", "same", command="echo x >> ran"),
    )
    async with open_scripted_project(tmp_path, [twice, DONE]) as it:
        await it.prompt()
        assert (it.work / "ran").read_text() == "x\n"
        assert "Not run: the same call" in it.results()[1]
        check_turns(it.model.requests[1].messages)


async def test_calls_begun_twice_or_never_completed_are_all_closed(tmp_path: Path) -> None:
    """A service may name an id twice before either call is complete, and may never complete one."""
    async with open_scripted_project(tmp_path, []) as it:
        engine = it.project.engine
        asking = user(it.session_id, at=5)
        info = assistant(it.session_id, asking.id, at=6)
        engine.store.append(said(asking), said(info))
        made = ToolCalls(engine, engine.get_agent("build"), info)
        for event in (
            CallStarted("a", "glob"),
            CallStarted("a", "glob"),
            CallStarted("b", "write"),
        ):
            made.open_call(event.id, event.name)
        made.start(CallReady("a", "glob", '{"pattern": "*.a"}'))
        made.start(CallReady("a", "glob", '{"pattern": "*.b"}'))
        assert made.has_tool_calls
        await made.join(Finished("cut"))
        assert not [part for part in it.calls() if isinstance(part.state, ToolStatePending)]
        assert [part.state.input for part in it.calls()] == [
            {"pattern": "*.a"},
            {"pattern": "*.b"},
            {},
        ]
        assert "connection broke" in it.results()[2]


async def test_calls_of_a_try_that_was_given_up_are_closed_too(tmp_path: Path) -> None:
    async with open_scripted_project(tmp_path, []) as it:
        engine = it.project.engine
        asking = user(it.session_id, at=5)
        info = assistant(it.session_id, asking.id, at=6)
        engine.store.append(said(asking), said(info))
        made = ToolCalls(engine, engine.get_agent("build"), info)
        made.open_call("a", "write")
        made.drop_incomplete()
        assert not made.has_tool_calls
        await made.join(Finished("error"))
        assert [type(part.state) for part in it.calls()] == [ToolStateError]


@pytest.mark.slow
async def test_long_output_is_cut_and_the_whole_is_kept_in_a_file(tmp_path: Path) -> None:
    async with open_scripted_project(
        tmp_path, [make_answer(make_call("bash", command="seq 1 50000")), DONE]
    ) as it:
        await it.prompt()
        (made,) = it.calls()
        assert isinstance(made.state, ToolStateCompleted)
        assert len(made.state.output) < 60_000
        whole = Path(made.state.metadata["outputPath"])
        assert whole.read_text().splitlines()[-1] == "50000"
        assert whole.name in made.state.output


async def test_many_large_outputs_in_a_step_stay_below_a_bound_together(tmp_path: Path) -> None:
    calls = [make_call("read", f"c{n}", filePath=f"large{n}.txt") for n in range(8)]
    async with open_scripted_project(tmp_path, [make_answer(*calls), DONE]) as it:
        for n in range(8):
            (it.work / f"large{n}.txt").write_text(
                "".join(f"{n} {row} {'x' * 60}\n" for row in range(700))
            )
        await it.prompt()
        results = it.results()
    sizes = [len(output) for output in results]
    assert sizes[0] > 45_000
    assert min(sizes) > 7_000, "each is shown in part"
    assert sum(sizes) < (120 + 6 * 8) * 1024
    assert "the whole is in tool_" in results[-1]


async def test_an_equal_look_in_the_same_step_is_answered_once(tmp_path: Path) -> None:
    read = {"filePath": "a.txt"}
    calls = [
        *(make_call("read", f"c{n}", **read) for n in range(3)),
        *(make_call("grep", f"g{n}", pattern="one") for n in range(2)),
        make_call("bash", "b", command="echo two > a.txt"),
        make_call("read", "again", **read),
    ]
    async with open_scripted_project(tmp_path, [make_answer(*calls), DONE]) as it:
        (it.work / "a.txt").write_text("one\n")
        await it.prompt()
        results = it.results()
    same = "The same call stands above in this step, with its result."
    assert results[:3] == ["1: one", same, same]
    assert results[3].startswith("1 match in 1 file")
    assert results[4] == same
    assert results[-1] == "1: two", "a command in between may have changed it"
