"""The question tool in a real project: any client answers, in this process or another."""

import asyncio
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from codeloop.model.testing.script import ScriptedAnswer
from codeloop.schema.api.answers import (
    QUESTION_LIST,
    QUESTION_REJECT,
    QUESTION_REPLY,
    AnswerQuestion,
    RejectQuestion,
)
from codeloop.schema.api.session_inputs import ABORT
from codeloop.schema.api.session_requests import SessionId
from codeloop.schema.errors import OperationError
from codeloop.schema.operation import NoArguments
from codeloop.schema.part import ToolStateCompleted, ToolStateError
from codeloop.schema.question import QuestionRequest
from tests.support.scripted_project import (
    ScriptedProject,
    make_answer,
    make_call,
    open_scripted_project,
    wait_for_result,
    wait_until,
)

ROOT = Path(__file__).resolve().parents[3]
DONE = ScriptedAnswer(text="Done.")
COLOUR = {
    "question": "Which colour?",
    "header": "Colour",
    "options": [{"label": "red", "description": "warm"}, {"label": "blue", "description": "cold"}],
}
SIZE = {**COLOUR, "question": "Which sizes?", "header": "Size", "multiple": True, "custom": False}
# What another process does: waits for the question in the same database, and answers or refuses it.
ANSWERER = """
import asyncio, sys
from pathlib import Path
from codeloop.schema.event import QuestionAnswers, QuestionRefusal, QuestionRejected, QuestionReplied
from codeloop.store.store import Store
store = Store(Path(sys.argv[1]))
async def main():
    while not (waiting := store.list_pending_questions()):
        await asyncio.sleep(0.01)
    of = {"session_id": waiting[0].session_id, "request_id": waiting[0].id}
    if sys.argv[2] == "reply":
        store.append(QuestionReplied(properties=QuestionAnswers(answers=[["blue"]], **of)))
    else:
        store.append(QuestionRejected(properties=QuestionRefusal(message="ask me later", **of)))
    print("sent")
asyncio.run(main())
"""


async def asked(it: ScriptedProject) -> QuestionRequest:
    await wait_until(lambda: it.project.store.list_pending_questions())
    return it.project.store.list_pending_questions()[0]


def script(*questions: dict[str, Any]) -> list[ScriptedAnswer]:
    return [make_answer(make_call("question", questions=list(questions))), DONE]


async def test_the_answers_of_several_questions_come_back_in_order(tmp_path: Path) -> None:
    async with open_scripted_project(tmp_path, script(COLOUR, SIZE)) as it:
        turn = asyncio.create_task(it.prompt())
        request = await asked(it)
        assert [one.question for one in request.questions] == ["Which colour?", "Which sizes?"]
        assert (request.questions[1].multiple, request.questions[1].custom) == (True, False)
        assert request.tool is not None
        assert request.tool.call_id == it.calls()[0].call_id
        assert await it.client.call(QUESTION_LIST, NoArguments()) == [request]
        with pytest.raises(OperationError, match="2 answers"):
            await it.client.call(
                QUESTION_REPLY, AnswerQuestion(request_id=request.id, answers=[["red"]])
            )
        assert await it.client.call(
            QUESTION_REPLY,
            AnswerQuestion(request_id=request.id, answers=[["red"], ["red", "of my own"]]),
        )
        await wait_for_result(turn)
        state = it.calls()[0].state
        assert isinstance(state, ToolStateCompleted)
        assert state.title == "Asked 2 questions"
        assert (
            state.output
            == 'The user answered:\n"Which colour?" = "red"\n"Which sizes?" = "red, of my own"'
        )
        assert state.metadata["answers"] == [["red"], ["red", "of my own"]]
        assert it.project.store.list_pending_questions() == []


async def test_an_answer_that_chooses_nothing_is_told_as_such(tmp_path: Path) -> None:
    async with open_scripted_project(tmp_path, script(COLOUR)) as it:
        turn = asyncio.create_task(it.prompt())
        await it.client.call(
            QUESTION_REPLY, AnswerQuestion(request_id=(await asked(it)).id, answers=[[]])
        )
        await wait_for_result(turn)
        assert it.results() == ['The user answered:\n"Which colour?" was left without an answer']


@pytest.mark.parametrize(
    ("how", "told"), [("reply", '"Which colour?" = "blue"'), ("reject", "ask me later")]
)
async def test_another_process_may_answer_or_refuse(tmp_path: Path, how: str, told: str) -> None:
    async with open_scripted_project(tmp_path, script(COLOUR)) as it:
        command = [sys.executable, "-c", ANSWERER, str(it.project.store.path), how]
        with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as other:
            answer = await it.prompt()
            assert other.communicate(timeout=60)[0] == "sent\n"
        assert told in it.results()[0]
        assert answer.stop is not None
        assert answer.stop.reason == "done"


async def test_a_refusal_without_words_ends_the_turn(tmp_path: Path) -> None:
    async with open_scripted_project(tmp_path, script(COLOUR)) as it:
        turn = asyncio.create_task(it.prompt())
        await it.client.call(QUESTION_REJECT, RejectQuestion(request_id=(await asked(it)).id))
        answer = await wait_for_result(turn)
        assert answer.stop.reason == "rejected"
        assert isinstance(it.calls()[0].state, ToolStateError)


async def test_a_question_is_withdrawn_when_its_call_is_cancelled(tmp_path: Path) -> None:
    async with open_scripted_project(tmp_path, script(COLOUR)) as it:
        turn = asyncio.create_task(it.prompt())
        request = await asked(it)
        await it.client.call(ABORT, SessionId(session_id=it.session_id))
        await wait_for_result(turn)
        assert it.project.store.list_pending_questions() == []
        with pytest.raises(OperationError) as late:
            await it.client.call(
                QUESTION_REPLY, AnswerQuestion(request_id=request.id, answers=[["red"]])
            )
        assert late.value.kind == "QuestionNotFoundError"


async def test_a_question_that_nobody_could_answer_is_not_asked(tmp_path: Path) -> None:
    async with open_scripted_project(tmp_path, script({**SIZE, "options": []})) as it:
        await it.prompt()
        assert "no options and no free answer" in it.results()[0]


async def test_it_is_not_offered_to_an_agent_that_may_not_ask(tmp_path: Path) -> None:
    async with open_scripted_project(tmp_path, [DONE], permission={"question": "deny"}) as it:
        await it.prompt()
        assert "question" not in [spec.name for spec in it.model.requests[-1].tools]
