"""Subagents: a session of their own, at most their parent's rights,
and a bill that the parent's sum holds.
"""

import asyncio
from pathlib import Path

import pytest

from codeloop.agent.subagent.spawn import run_subagent
from codeloop.model.chat import ModelInfo, Prices
from codeloop.model.testing.script import ScriptedAnswer, TokenCount
from codeloop.schema.api.session_inputs import ABORT, PROMPT_ASYNC, Prompt, TextPartInput
from codeloop.schema.api.session_requests import SessionId
from codeloop.schema.ids import new_id
from codeloop.schema.message import Session, SessionModel
from codeloop.schema.part import (
    ToolPart,
    ToolStart,
    ToolStateCompleted,
    ToolStateError,
    ToolStateRunning,
)
from codeloop.schema.permission import PermissionRule
from codeloop.schema.wire import replace
from codeloop.tool.tool import Subtask, ToolFailure
from tests.store.states import updated
from tests.support.scripted_project import (
    ScriptedProject,
    check_turns,
    join_texts,
    list_texts,
    make_answer,
    make_call,
    open_scripted_project,
    read_result,
    wait_until,
)

INFO = ModelInfo(provider_id="p", id="m", name="M", prices=Prices(input=10))
FOUND = ScriptedAnswer(text="Found it in a.py.", tokens=TokenCount(input=1000))
DONE = ScriptedAnswer(text="Done.", tokens=TokenCount(input=1000))
TASK = Subtask(agent="general", description="look around", prompt="Find it.")


def parent_call(it: ScriptedProject) -> ToolPart:
    state = ToolStateRunning(input={}, time=ToolStart(start=1))
    return ToolPart(
        id=new_id("prt"),
        session_id=it.session_id,
        message_id=new_id("msg"),
        call_id="c",
        tool="task",
        state=state,
    )


def with_model(it: ScriptedProject) -> None:
    """Set the session's model and agent that its first prompt would have set."""
    one = it.project.store.get_session(it.session_id)
    model = SessionModel(id=INFO.id, provider_id=INFO.provider_id)
    it.project.store.append(updated(replace(one, agent="build", model=model)))


def children(it: ScriptedProject) -> list[Session]:
    return it.project.store.list_sessions(parent=it.session_id)


def child_calls(it: ScriptedProject) -> list[ToolPart]:
    view = it.project.store.read_conversation(children(it)[0].id)
    return [part for entry in view.entries for part in entry.parts if isinstance(part, ToolPart)]


async def test_a_task_is_done_in_a_child_session_and_its_last_words_come_back(
    tmp_path: Path,
) -> None:
    async with open_scripted_project(
        tmp_path, [make_answer(make_call("glob", pattern="*")), FOUND], info=INFO
    ) as it:
        with_model(it)
        done = await run_subagent(it.project.engine, parent_call(it), TASK, lambda _: None)
        (child,) = children(it)
        assert (done.session_id, done.text) == (child.id, "Found it in a.py.")
        assert child.title == "look around (@general subagent)"
        assert child.parent_id == it.session_id
        assert done.metadata["sessionId"] == child.id
        assert list_texts(it.model.requests[0].messages[0]) == ["Find it."]
        assert "task" not in [spec.name for spec in it.model.requests[0].tools], (
            "it can not hand on"
        )


async def test_the_files_that_a_child_changed_are_named_with_its_last_words(tmp_path: Path) -> None:
    patch = "*** Begin Patch\n*** Add File: sub/b.py\n+x\n*** Delete File: a.py\n*** End Patch"
    made = [
        make_call("write", filePath="sub/c.py", content="x\n"),
        make_call("apply_patch", patchText=patch),
    ]
    async with open_scripted_project(tmp_path, [make_answer(*made), FOUND, FOUND], info=INFO) as it:
        (it.work / "a.py").write_text("x\n")
        with_model(it)
        done = await run_subagent(it.project.engine, parent_call(it), TASK, lambda _: None)
        assert done.text == "Found it in a.py.\n\nFiles changed: a.py, sub/b.py, sub/c.py"
        again = replace(TASK, session_id=done.session_id)
        assert (
            await run_subagent(it.project.engine, parent_call(it), again, lambda _: None)
        ).text == "Found it in a.py."


async def test_what_a_child_costs_is_added_to_its_parent(tmp_path: Path) -> None:
    script = [
        ScriptedAnswer(
            calls=(make_call("task", description="d", prompt="p", subagent_type="general"),),
            tokens=TokenCount(input=1000),
        ),
        FOUND,
        DONE,
    ]
    async with open_scripted_project(tmp_path, script, info=INFO) as it:
        await it.prompt()
        (made,) = it.calls()
        assert isinstance(made.state, ToolStateCompleted)
        assert "Found it in a.py." in made.state.output
        assert children(it)[0].cost == pytest.approx(0.01)
        assert it.view().session.cost == pytest.approx(0.03)


async def test_a_child_is_denied_what_its_parents_session_is_denied(tmp_path: Path) -> None:
    script = [
        make_answer(make_call("bash", command="touch x"), make_call("glob", pattern="*")),
        FOUND,
    ]
    async with open_scripted_project(tmp_path, script, info=INFO) as it:
        with_model(it)
        one = it.project.store.get_session(it.session_id)
        denial = PermissionRule(permission="bash", pattern="*", action="deny")
        it.project.store.append(updated(replace(one, permission=[denial])))
        await run_subagent(it.project.engine, parent_call(it), TASK, lambda _: None)
        denied, allowed = child_calls(it)
        assert "Permission denied" in read_result(denied)
        assert isinstance(allowed.state, ToolStateCompleted)
        assert not (it.work / "x").exists()


async def test_a_child_is_denied_what_its_parents_agent_is_denied(tmp_path: Path) -> None:
    script = [make_answer(make_call("bash", command="touch x")), FOUND]
    settings = {"build": {"permission": {"bash": {"touch *": "deny"}}}}
    async with open_scripted_project(tmp_path, script, info=INFO, agent=settings) as it:
        with_model(it)
        await run_subagent(it.project.engine, parent_call(it), TASK, lambda _: None)
        assert "Permission denied" in read_result(child_calls(it)[0])
        assert not (it.work / "x").exists()


async def test_a_child_that_is_taken_up_again_is_bound_by_what_its_parent_is_denied_now(
    tmp_path: Path,
) -> None:
    script = [FOUND, make_answer(make_call("bash", command="touch x")), DONE]
    async with open_scripted_project(tmp_path, script, info=INFO) as it:
        with_model(it)
        first = await run_subagent(it.project.engine, parent_call(it), TASK, lambda _: None)
        one = it.project.store.get_session(it.session_id)
        denial = PermissionRule(permission="bash", pattern="*", action="deny")
        it.project.store.append(updated(replace(one, permission=[denial])))
        again = Subtask(
            agent="general", description="d", prompt="More.", session_id=first.session_id
        )
        second = await run_subagent(it.project.engine, parent_call(it), again, lambda _: None)
        assert second.session_id == first.session_id
        assert len(children(it)) == 1
        assert not (it.work / "x").exists()
        assert len(it.model.requests[-1].messages) > 3, "it remembers what was said before"
        check_turns(it.model.requests[-1].messages)


@pytest.mark.parametrize(
    ("task", "words"),
    [
        (
            Subtask(agent="nobody", description="d", prompt="p"),
            "no subagent named nobody. Available: explore, general",
        ),
        (Subtask(agent="build", description="d", prompt="p"), "no subagent named build"),
        (
            Subtask(agent="general", description="d", prompt="p", session_id="ses_x"),
            "no subagent session ses_x",
        ),
    ],
)
async def test_a_task_that_can_not_be_started_says_why(
    tmp_path: Path, task: Subtask, words: str
) -> None:
    async with open_scripted_project(tmp_path, [], info=INFO) as it:
        with_model(it)
        with pytest.raises(ToolFailure, match=words):
            await run_subagent(it.project.engine, parent_call(it), task, lambda _: None)
        assert children(it) == []


async def test_a_child_that_fails_is_an_error_result_for_its_parent(tmp_path: Path) -> None:
    script = [
        make_answer(make_call("task", description="d", prompt="p", subagent_type="general")),
        ScriptedAnswer(finish="length"),
    ]
    async with open_scripted_project(tmp_path, [*script, DONE]) as it:
        answer = await it.prompt()
        assert answer.stop is not None
        assert answer.stop.reason == "done"
        (made,) = it.calls()
        assert isinstance(made.state, ToolStateError)
        assert "The subagent stopped" in made.state.error


async def test_aborting_the_parent_stops_the_child(tmp_path: Path) -> None:
    script = [
        make_answer(make_call("task", description="d", prompt="p", subagent_type="general")),
        make_answer(make_call("bash", command="touch begun; sleep 77")),
        DONE,
    ]
    async with open_scripted_project(tmp_path, script) as it:
        await it.client.call(
            PROMPT_ASYNC, Prompt(session_id=it.session_id, parts=[TextPartInput(text="go")])
        )
        await wait_until((it.work / "begun").exists)
        async with asyncio.timeout(30):
            await it.client.call(ABORT, SessionId(session_id=it.session_id))
        (inner,) = child_calls(it)
        assert isinstance(inner.state, ToolStateError)
        assert isinstance(it.calls()[0].state, ToolStateError)
        after = await it.prompt("go on")
        assert join_texts(after.parts) == "Done."
        check_turns(it.model.requests[-1].messages)
