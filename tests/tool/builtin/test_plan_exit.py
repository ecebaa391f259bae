"""Leaving plan mode: what the user says decides,
and after a yes the next step is the build agent's.
"""

import asyncio
from pathlib import Path

import pytest

from codeloop.model.testing.script import ScriptedAnswer, ScriptedCall
from codeloop.schema.api.answers import (
    PERMISSION_REPLY,
    QUESTION_REPLY,
    AnswerPermission,
    AnswerQuestion,
)
from codeloop.schema.event import make_message_updated, make_session_created
from codeloop.schema.ids import new_id, now_ms
from codeloop.schema.message import (
    AssistantMessage,
    ModelRef,
    Session,
    SessionTime,
    UserMessage,
    UserTime,
)
from codeloop.schema.part import ToolStateCompleted, ToolStateError
from codeloop.schema.permission import PROFILE_KEY
from tests.support.scripted_project import (
    check_turns,
    make_answer,
    make_call,
    open_scripted_project,
    wait_for_result,
    wait_until,
)
from tests.tool.context import make_context

DONE = ScriptedAnswer(text="Done.")
PLAN_FILE = ".codeloop/plans/p.md"
WRITE_PLAN = make_answer(
    make_call("write", filePath=PLAN_FILE, content="# Plan\n\nFirst this:\n\n    then that\n")
)
EXIT = make_answer(make_call("plan_exit"), text="First this, then that.")
PLAN = [WRITE_PLAN, EXIT, DONE]


async def test_after_a_yes_the_next_step_is_the_build_agents(tmp_path: Path) -> None:
    async with open_scripted_project(tmp_path, PLAN) as it:
        turn = asyncio.create_task(it.prompt(agent="plan"))
        await wait_until(lambda: it.project.store.list_pending_questions())
        (request,) = it.project.store.list_pending_questions()
        assert [option.label for option in request.questions[0].options] == [
            "Yes",
            "Yes, and ask before edits",
            "No",
        ]
        document = request.questions[0].document
        assert document is not None
        assert (document.path, document.text) == (
            PLAN_FILE,
            "# Plan\n\nFirst this:\n\n    then that\n",
        )
        await it.client.call(
            QUESTION_REPLY, AnswerQuestion(request_id=request.id, answers=[["Yes"]])
        )
        answer = await wait_for_result(turn)
        assert isinstance(it.calls()[1].state, ToolStateCompleted)
        steps = [
            entry.info.agent
            for entry in it.view().entries
            if isinstance(entry.info, AssistantMessage)
        ]
        assert steps == ["plan", "plan", "build"]
        assert isinstance(answer.info, AssistantMessage)
        _, before, after = [{spec.name for spec in r.tools} for r in it.model.requests if r.tools]
        assert "plan_exit" in before
        assert "plan_exit" not in after
        assert it.project.store.get_session(it.session_id).agent == "build"
        check_turns(it.model.requests[-1].messages)


@pytest.mark.parametrize(
    ("answers", "told"),
    [
        ([["No"]], "continue planning"),
        ([[]], "continue planning"),
        ([["leave the tests alone"]], "Thread 1: leave the tests alone"),
    ],
)
async def test_anything_but_a_yes_stays_with_the_plan(
    tmp_path: Path, answers: list[list[str]], told: str
) -> None:
    async with open_scripted_project(tmp_path, PLAN) as it:
        turn = asyncio.create_task(it.prompt(agent="plan"))
        await wait_until(lambda: it.project.store.list_pending_questions())
        (request,) = it.project.store.list_pending_questions()
        await it.client.call(QUESTION_REPLY, AnswerQuestion(request_id=request.id, answers=answers))
        await wait_for_result(turn)
        assert isinstance(it.calls()[1].state, ToolStateError)
        assert told in it.results()[1]
        steps = [
            entry.info.agent
            for entry in it.view().entries
            if isinstance(entry.info, AssistantMessage)
        ]
        assert steps == ["plan", "plan", "plan"]


async def test_yes_and_ask_before_edits_makes_the_session_ask(tmp_path: Path) -> None:
    edit = make_answer(make_call("write", filePath="a.txt", content="x"))
    async with open_scripted_project(tmp_path, [WRITE_PLAN, EXIT, edit, DONE]) as it:
        turn = asyncio.create_task(it.prompt(agent="plan"))
        await wait_until(lambda: it.project.store.list_pending_questions())
        (request,) = it.project.store.list_pending_questions()
        answers = [["Yes, and ask before edits"]]
        await it.client.call(QUESTION_REPLY, AnswerQuestion(request_id=request.id, answers=answers))
        await wait_until(lambda: it.project.store.list_pending_permissions())
        (asked,) = it.project.store.list_pending_permissions()
        assert asked.permission == "edit"
        await it.client.call(PERMISSION_REPLY, AnswerPermission(request_id=asked.id, reply="once"))
        await wait_for_result(turn)
        assert (it.project.store.get_session(it.session_id).metadata or {})[PROFILE_KEY] == "ask"


@pytest.mark.parametrize("content", [None, "", " \n"])
async def test_a_plan_that_is_not_there_can_not_be_approved(
    tmp_path: Path, content: str | None
) -> None:
    before = (
        []
        if content is None
        else [make_answer(make_call("write", filePath=PLAN_FILE, content=content))]
    )
    async with open_scripted_project(tmp_path, [*before, EXIT, DONE]) as it:
        # That of another session is not this one's.
        folder = it.project.workspace.root / ".codeloop/plans"
        folder.mkdir(parents=True)
        (folder / "old.md").write_text("Delete all.")
        await it.prompt(agent="plan")
        assert it.project.store.list_pending_questions() == []
        assert "There is no plan" in it.results()[-1]


@pytest.mark.parametrize(
    "call",
    [
        make_call("bash", command="cat .codeloop/plans/p.md"),
        make_call("read", filePath=".codeloop/plans/p.md"),
        make_call(
            "edit", filePath=".codeloop/../.codeloop/plans/p.md", oldString="it", newString="that"
        ),
        make_call(
            "apply_patch",
            patchText="*** Begin Patch\n*** Update File: .codeloop/plans/p.md\n@@\n-it\n+that\n*** End Patch",
        ),
    ],
)
async def test_the_plan_is_the_file_that_a_call_named_last(
    tmp_path: Path, call: ScriptedCall
) -> None:
    async with open_scripted_project(tmp_path, [make_answer(call), EXIT, DONE]) as it:
        folder = it.project.workspace.root / ".codeloop/plans"
        folder.mkdir(parents=True)
        (folder / "p.md").write_text("it\n")
        turn = asyncio.create_task(it.prompt(agent="plan"))
        await wait_until(lambda: it.project.store.list_pending_questions())
        (request,) = it.project.store.list_pending_questions()
        assert request.questions[0].question == "Carry out the plan .codeloop/plans/p.md?"
        await it.client.call(
            QUESTION_REPLY, AnswerQuestion(request_id=request.id, answers=[["No"]])
        )
        await wait_for_result(turn)


COMMENTS = """About @.codeloop/plans/p.md line 3:
```diff
+- use a list
```
Why no set?

About @.codeloop/plans/p.md line 9:
And the docs?"""


async def test_each_comment_is_a_thread_that_must_be_answered_before_the_plan_is_asked_about_again(
    tmp_path: Path,
) -> None:
    def exit_with(*answers: tuple[int, str]) -> ScriptedAnswer:
        given = [{"thread": number, "answer": text} for number, text in answers]
        return make_answer(make_call("plan_exit", answers=given))

    steps = [
        WRITE_PLAN,
        exit_with(),
        exit_with((1, "A set now."), (7, "?")),
        exit_with((2, "Added.")),
        DONE,
    ]
    async with open_scripted_project(tmp_path, steps) as it:
        turn = asyncio.create_task(it.prompt(agent="plan"))
        await wait_until(lambda: it.project.store.list_pending_questions())
        (request,) = it.project.store.list_pending_questions()
        await it.client.call(
            QUESTION_REPLY, AnswerQuestion(request_id=request.id, answers=[[COMMENTS]])
        )
        await wait_until(lambda: len(it.calls()) == 4 and it.project.store.list_pending_questions())
        (request,) = it.project.store.list_pending_questions()
        assert "And the docs?\n  Answer: Added." in request.questions[0].question
        await it.client.call(
            QUESTION_REPLY, AnswerQuestion(request_id=request.id, answers=[["Yes"]])
        )
        await wait_for_result(turn)
        _, first, second, _ = it.results()
        assert "Thread 1, .codeloop/plans/p.md line 3: Why no set?\nThread 2" in first
        assert "Thread 2, .codeloop/plans/p.md line 9: And the docs?" in second
        assert "Thread 1" not in second, "one is answered, the other is open"
        state = it.calls()[3].state
        assert isinstance(state, ToolStateCompleted)
        assert [thread["answer"] for thread in state.metadata["threads"]] == [
            "A set now.",
            "Added.",
        ]


async def test_comments_of_a_prompt_on_lines_of_the_plan_are_threads_too(tmp_path: Path) -> None:
    async with open_scripted_project(tmp_path, PLAN) as it:
        await it.prompt(COMMENTS, agent="plan")
        assert "not answered yet:\nThread 1" in it.results()[1]


async def test_the_approval_follows_the_step_though_the_clock_has_stepped_back(
    tmp_path: Path,
) -> None:
    context = make_context(tmp_path)
    time = UserTime(created=now_ms() + 3_600_000)
    model = ModelRef(provider_id="p", model_id="m")
    info = UserMessage(
        id=new_id("msg"), session_id=context.session_id, time=time, agent="plan", model=model
    )
    times = SessionTime(created=1, updated=1)
    session = Session(
        id=context.session_id,
        slug="s",
        project_id="p",
        directory=str(tmp_path),
        title="t",
        version="1",
        time=times,
    )
    context.store.append(
        make_session_created(session),
        make_message_updated(info),
    )
    context.session.continue_as_agent("build", "Carry it out.")
    assert [
        entry.info.agent for entry in context.store.read_context(context.session_id).entries
    ] == ["plan", "build"]


async def test_the_build_agent_is_not_offered_it(tmp_path: Path) -> None:
    async with open_scripted_project(tmp_path, [DONE]) as it:
        await it.prompt()
        assert "plan_exit" not in [spec.name for spec in it.model.requests[-1].tools]
