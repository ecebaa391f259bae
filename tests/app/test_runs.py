"""Turns that are aborted whenever that comes, and never two at work on one session."""

import asyncio
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import pytest

from codeloop.app.models.open_models import SingleModel
from codeloop.app.project import open_project
from codeloop.client.local import LocalClient
from codeloop.model.testing.replay import ScriptedModel
from codeloop.model.testing.script import ScriptedAnswer
from codeloop.schema.api.answers import (
    PERMISSION_LIST,
    PERMISSION_REPLY,
    QUESTION_LIST,
    QUESTION_REJECT,
    QUESTION_REPLY,
    AnswerPermission,
    AnswerQuestion,
    RejectQuestion,
)
from codeloop.schema.api.session_inputs import (
    ABORT,
    PROMPT,
    SESSION_SHELL,
    SUMMARIZE,
    MessageWithParts,
    Prompt,
    RunShell,
    Summarize,
    TextPartInput,
)
from codeloop.schema.api.session_messages import MESSAGE_DELETE, MessageId
from codeloop.schema.api.session_requests import (
    SESSION_CREATE,
    SESSION_DELETE,
    SESSION_UPDATE,
    CreateSession,
    SessionId,
    UpdateSession,
)
from codeloop.schema.api.session_undo import SESSION_REVERT, RevertSession
from codeloop.schema.errors import OperationError
from codeloop.schema.event import PermissionAsked, QuestionAsked
from codeloop.schema.ids import new_id
from codeloop.schema.operation import AnyOperation, NoArguments
from codeloop.schema.part import ToolPart
from codeloop.schema.permission import PermissionRequest
from codeloop.schema.question import QuestionInfo, QuestionRequest
from codeloop.schema.wire import Wire
from tests.support.scripted_project import (
    ScriptedProject,
    join_texts,
    make_answer,
    make_call,
    make_startup,
    open_scripted_project,
    read_result,
    wait_for_result,
    wait_until,
)

SLOW = make_call("bash", command="touch begun; while [ ! -e go ]; do sleep 0.02; done")


@pytest.mark.slow
async def test_a_turn_that_is_aborted_at_any_moment_has_an_end_that_is_told(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    hello = ScriptedAnswer(text="Hello. " * 500, deltas=500)
    answers = [hello, ScriptedAnswer(kind="side", text="A title", delay_ms=1)] * 100
    project = await open_project(
        make_startup(tmp_path / "home", tmp_path / "work"), SingleModel(ScriptedModel(answers))
    )
    client = LocalClient(project)
    ends: set[str] = set()
    try:
        for moment in range(60):
            session = await client.call(SESSION_CREATE, CreateSession())
            said = client.call(
                PROMPT, Prompt(session_id=session.id, parts=[TextPartInput(text="go")])
            )
            turn = asyncio.create_task(said)
            while not project.runs.is_running(session.id):
                await asyncio.sleep(0)
            for _ in range(moment):
                await asyncio.sleep(0)
            await wait_for_result(client.call(ABORT, SessionId(session_id=session.id)))
            ends.add((await wait_for_result(turn)).stop.reason)
            assert not project.runs.is_any_running
    finally:
        await project.close()
    assert ends == {"aborted", "done"}, "the moments of a whole turn were tried"


async def test_a_summary_that_is_aborted_is_no_fault_of_the_server(tmp_path: Path) -> None:
    async with open_scripted_project(
        tmp_path,
        [ScriptedAnswer(text="Hello."), ScriptedAnswer(kind="side", text="slow", delay_ms=20_000)],
    ) as it:
        await it.prompt()
        summary = it.client.call(
            SUMMARIZE,
            Summarize(session_id=it.session_id, provider_id="scripted", model_id="script"),
        )
        working = asyncio.create_task(summary)
        await wait_until(lambda: it.project.runs.is_running(it.session_id))
        await it.client.call(ABORT, SessionId(session_id=it.session_id))
        with pytest.raises(OperationError, match="not summarised: Aborted") as caught:
            await wait_for_result(working)
        assert caught.value.kind == "BadRequest"


async def test_a_prompt_to_a_subagent_at_work_is_taken_up_by_it(tmp_path: Path) -> None:
    task = make_call("task", description="d", prompt="look", subagent_type="general")
    script = [
        make_answer(task),
        make_answer(SLOW),
        ScriptedAnswer(text="Both done."),
        ScriptedAnswer(text="All done."),
    ]
    async with open_scripted_project(tmp_path, script, permission={"bash": "allow"}) as it:
        parent = asyncio.create_task(it.prompt())
        await wait_until((it.work / "begun").exists)
        (child,) = it.project.store.list_sessions(parent=it.session_id)
        said = it.client.call(
            PROMPT, Prompt(session_id=child.id, parts=[TextPartInput(text="and this")])
        )
        second: asyncio.Task[MessageWithParts] = asyncio.create_task(said)
        await wait_until(lambda: len(it.project.store.read_conversation(child.id).entries) == 3)
        (it.work / "go").touch()
        assert join_texts((await wait_for_result(second)).parts) == "Both done."
        assert join_texts((await wait_for_result(parent)).parts) == "All done."
        view = it.project.store.read_conversation(child.id)
        (done,) = [
            part for entry in view.entries for part in entry.parts if isinstance(part, ToolPart)
        ]
        assert "Interrupted" not in read_result(done)
        assert not it.project.store.statuses


async def test_nothing_else_is_done_to_a_session_while_its_files_are_put_back(
    tmp_path: Path,
) -> None:
    async with open_scripted_project(
        tmp_path, [ScriptedAnswer(text="Hello."), ScriptedAnswer(text="Hello again.")]
    ) as it:
        answer = await it.prompt()
        async with it.project.runs.lock_session(it.session_id):
            for attempt in attempts(it, answer.info.id):
                with pytest.raises(OperationError) as caught:
                    await attempt
                assert caught.value.kind == "SessionBusyError"
            assert len(it.view().entries) == 2, "what is refused is not stored"
        assert join_texts((await it.prompt()).parts) == "Hello again."


def attempts(it: ScriptedProject, message_id: str) -> list[Coroutine[Any, Any, Any]]:
    asked = [TextPartInput(text="go")]
    return [
        it.client.call(PROMPT, Prompt(session_id=it.session_id, parts=asked)),
        it.client.call(PROMPT, Prompt(session_id=it.session_id, parts=asked, no_reply=True)),
        it.client.call(
            SUMMARIZE,
            Summarize(session_id=it.session_id, provider_id="scripted", model_id="script"),
        ),
        it.client.call(SESSION_SHELL, RunShell(session_id=it.session_id, command="true")),
        it.client.call(
            SESSION_REVERT, RevertSession(session_id=it.session_id, message_id=message_id)
        ),
        it.client.call(MESSAGE_DELETE, MessageId(session_id=it.session_id, message_id=message_id)),
        it.client.call(SESSION_DELETE, SessionId(session_id=it.session_id)),
    ]


async def test_files_are_not_put_back_while_a_prompt_is_on_its_way_in(tmp_path: Path) -> None:
    async with open_scripted_project(tmp_path, [ScriptedAnswer(text="Hello.")]) as it:
        answer = await it.prompt()
        reading = asyncio.create_task(asyncio.sleep(30))
        coming = asyncio.create_task(it.project.runs.run_before_turn(it.session_id, reading))
        await asyncio.sleep(0)
        with pytest.raises(OperationError, match="busy"):
            await it.client.call(
                SESSION_REVERT, RevertSession(session_id=it.session_id, message_id=answer.info.id)
            )
        await it.client.call(ABORT, SessionId(session_id=it.session_id))
        with pytest.raises(OperationError, match="Aborted"):
            await wait_for_result(coming)
        await it.client.call(
            SESSION_REVERT, RevertSession(session_id=it.session_id, message_id=answer.info.id)
        )


async def test_a_new_title_outlives_an_undo_that_was_under_way(tmp_path: Path) -> None:
    async with open_scripted_project(
        tmp_path,
        [
            make_answer(make_call("write", filePath="a.txt", content="x")),
            ScriptedAnswer(text="Done."),
        ],
    ) as it:
        answer = await it.prompt()
        undoing = it.client.call(
            SESSION_REVERT, RevertSession(session_id=it.session_id, message_id=answer.info.id)
        )
        going = asyncio.create_task(undoing)
        while not it.project.runs.is_working_on(it.session_id):
            await asyncio.sleep(0)
        await it.client.call(SESSION_UPDATE, UpdateSession(session_id=it.session_id, title="Mine"))
        assert not going.done()
        assert (await wait_for_result(going)).title == "Mine"
        assert it.view().session.title == "Mine"
        assert not (it.work / "a.txt").exists()


async def test_questions_of_a_process_that_has_ended_are_neither_shown_nor_answered(
    tmp_path: Path,
) -> None:
    script = [make_answer(make_call("bash", command="touch x")), ScriptedAnswer(text="Done.")]
    async with open_scripted_project(tmp_path, script, permission={"bash": "ask"}) as it:
        left = await it.client.call(SESSION_CREATE, CreateSession())
        request = PermissionRequest(
            id=new_id("per"),
            session_id=left.id,
            permission="bash",
            patterns=["ls"],
            metadata={},
            always=["ls *"],
        )
        info = QuestionInfo(question="Which?", header="h", options=[])
        question = QuestionRequest(id=new_id("que"), session_id=left.id, questions=[info])
        it.project.store.append(
            PermissionAsked(properties=request), QuestionAsked(properties=question)
        )
        turn = asyncio.create_task(it.prompt())
        (waiting,) = [each for each in await it.questions(2) if each.id != request.id]
        assert [each.id for each in await it.client.call(PERMISSION_LIST, NoArguments())] == [
            waiting.id
        ]
        assert await it.client.call(QUESTION_LIST, NoArguments()) == []
        rows: list[tuple[AnyOperation, Wire]] = [
            (PERMISSION_REPLY, AnswerPermission(request_id=request.id, reply="always")),
            (QUESTION_REPLY, AnswerQuestion(request_id=question.id, answers=[["a"]])),
            (QUESTION_REJECT, RejectQuestion(request_id=question.id)),
        ]
        for operation, given in rows:
            with pytest.raises(OperationError, match="not found"):
                await it.client.call(operation, given)
        await it.answer(waiting, "once")
        await wait_for_result(turn)


async def test_what_comes_before_a_prompt_keeps_other_processes_away_and_leaves_nothing(
    tmp_path: Path,
) -> None:
    async with open_scripted_project(tmp_path, []) as it:
        leases = it.project.store.leases
        reading = asyncio.create_task(asyncio.sleep(30))
        coming = asyncio.create_task(it.project.runs.run_before_turn(it.session_id, reading))
        await asyncio.sleep(0)
        assert leases.is_held(it.session_id)
        await it.client.call(ABORT, SessionId(session_id=it.session_id))
        with pytest.raises(OperationError, match="Aborted"):
            await wait_for_result(coming)
        await wait_until(lambda: not leases.is_held(it.session_id))
        with pytest.raises(OperationError, match="must begin with"):
            await it.prompt(message_id="x")
        await wait_until(lambda: not leases.is_held(it.session_id))
