"""A session of codeloop driven by the client of the protocol's own package,
in the old way of asking and the new.
"""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from mcp_types import CallToolResult, ElicitResult, ErrorData, TextContent

from codeloop.client.client import Client as OurClient
from codeloop.client.mcp_server.serve import McpRequestHandler, create_server
from codeloop.client.mcp_server.served_sessions import PromptOptions, ServedSessions
from codeloop.model.testing.script import ScriptedAnswer
from codeloop.schema.api.session_requests import (
    SESSION_CREATE,
    SESSION_GET,
    CreateSession,
    SessionId,
)
from codeloop.schema.event import PermissionAsked
from codeloop.schema.message import Session
from codeloop.schema.permission import NOBODY_MESSAGE, PermissionRequest
from codeloop.schema.question import QuestionInfo, QuestionRequest
from tests.support.scripted_project import (
    ScriptedProject,
    make_answer,
    make_call,
    open_scripted_project,
    wait_until,
)

WRITES = make_answer(make_call("write", filePath="a.txt", content="hello\n"))
ASKS = {"edit": "ask"}
ERAS = pytest.mark.parametrize("mode", ["legacy", "auto"])


@asynccontextmanager
async def turns_of(it: ScriptedProject, **more: Any) -> AsyncGenerator[ServedSessions]:
    async def created(client: OurClient) -> Session:
        return await client.call(SESSION_CREATE, CreateSession())

    async def resumed(client: OurClient, session_id: str) -> Session:
        return await client.call(SESSION_GET, SessionId(session_id=session_id))

    turns = ServedSessions(
        it.client, PromptOptions(**more), partial(created, it.client), partial(resumed, it.client)
    )
    following = asyncio.create_task(turns.follow())
    await asyncio.sleep(0)
    try:
        yield turns
    finally:
        await turns.close()
        following.cancel()


class Person:
    """Fills in each form with the next of some answers, and remembers the forms."""

    def __init__(self, *answers: dict[str, Any] | None) -> None:
        self.answers = list(answers)
        self.forms: list[Any] = []

    async def __call__(self, context: Any, params: Any) -> ElicitResult | ErrorData:
        assert context
        self.forms.append(params)
        answer = self.answers.pop(0)
        return (
            ElicitResult(action="accept", content=answer)
            if answer is not None
            else ElicitResult(action="decline")
        )


@asynccontextmanager
async def driven(
    tmp_path: Path,
    answers: list[ScriptedAnswer],
    mode: str,
    person: Person | None = None,
    **settings: Any,
) -> AsyncGenerator[tuple[ScriptedProject, Client]]:
    more = settings.pop("more", {})
    async with (
        open_scripted_project(tmp_path, answers, **settings) as it,
        turns_of(it, **more) as turns,
        Client(
            create_server(McpRequestHandler(turns)),
            mode=mode,
            elicitation_callback=person,
            cache=None,
        ) as client,
    ):
        yield it, client


def text_of(result: CallToolResult) -> str:
    (block,) = result.content
    assert isinstance(block, TextContent)
    return block.text


def report(result: CallToolResult) -> dict[str, Any]:
    return dict(result.structured_content)


@ERAS
async def test_a_task_is_done_and_reported(tmp_path: Path, mode: str) -> None:
    heard: list[str | None] = []

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        assert progress
        assert total is None
        heard.append(message)

    async with driven(tmp_path, [WRITES, ScriptedAnswer(text="It is written.")], mode) as (
        it,
        client,
    ):
        tools = (await client.list_tools()).tools
        assert [tool.name for tool in tools] == ["prompt", "continue", "status", "stop"]
        assert tools[1].input_schema["required"] == ["session_id", "prompt"]
        done = await client.call_tool("prompt", {"prompt": "Write a.txt"}, progress_callback=hear)
        found = report(done)
        assert (found["status"], found["answer"], found["steps"]) == ("done", "It is written.", 2)
        assert found["changed"] == [str(it.work / "a.txt")]
        assert text_of(done).startswith(
            f"It is written.\n\n[session_id {found['session_id']}: done; 2 steps, "
        )
        assert any("write" in (line or "") for line in heard), heard
        assert (it.work / "a.txt").read_text() == "hello\n"


@ERAS
async def test_a_permission_is_asked_as_a_form(tmp_path: Path, mode: str) -> None:
    person = Person({"decision": "Allow once"})
    script = [WRITES, ScriptedAnswer(text="Done.")]
    async with driven(tmp_path, script, mode, person, permission=ASKS) as (it, client):
        found = report(await client.call_tool("prompt", {"prompt": "Write a.txt"}))
        assert found["status"] == "done"
        assert (it.work / "a.txt").exists()
        (form,) = person.forms
        assert "a.txt" in form.message
        assert "hello" in form.message
        choices = form.requested_schema["properties"]["decision"]["enum"]
        assert (choices[0], choices[-1]) == ("Allow once", "Deny")
        assert choices[2].startswith("Allow always: ")


@ERAS
async def test_a_refusal_ends_the_turn_and_one_with_words_does_not(
    tmp_path: Path, mode: str
) -> None:
    person = Person({"decision": "Deny", "instead": "Leave it"}, None)
    script = [WRITES, ScriptedAnswer(text="I left it."), WRITES]
    async with driven(tmp_path, script, mode, person, permission=ASKS) as (it, client):
        first = report(await client.call_tool("prompt", {"prompt": "Write"}))
        assert (first["status"], first["answer"]) == ("done", "I left it.")
        second = report(
            await client.call_tool(
                "continue", {"session_id": first["session_id"], "prompt": "Again"}
            )
        )
        assert (second["session_id"], second["status"]) == (first["session_id"], "denied")
        assert not (it.work / "a.txt").exists()


@ERAS
async def test_a_client_without_forms_is_told_what_to_do(tmp_path: Path, mode: str) -> None:
    script = [WRITES, ScriptedAnswer(text="I could not.")]
    async with driven(tmp_path, script, mode, permission=ASKS) as (it, client):
        done = report(await client.call_tool("prompt", {"prompt": "Write"}))
        assert (done["status"], done["answer"]) == ("done", "I could not.")
        assert (
            "can't ask anybody: edit a.txt. Start `codeloop mcp serve` with another --profile"
            in done["message"]
        )
        assert all(
            "question" not in {tool.name for tool in request.tools} for request in it.model.requests
        )


@ERAS
async def test_the_models_questions_are_asked_but_never_for_a_secret(
    tmp_path: Path, mode: str
) -> None:
    options = [{"label": "Red", "description": "Warm"}, {"label": "Blue", "description": ""}]
    asks = make_call(
        "question",
        questions=[{"question": "Which colour?", "header": "Colour", "options": options}],
    )
    secret = make_call(
        "question",
        questions=[{"question": "What is the API key?", "header": "Key", "options": options}],
    )
    script = [make_answer(asks), make_answer(secret), ScriptedAnswer(text="Blue it is.")]
    person = Person({"answer_1": "Blue"})
    async with driven(tmp_path, script, mode, person) as (it, client):
        assert (
            report(await client.call_tool("prompt", {"prompt": "Paint"}))["answer"] == "Blue it is."
        )
        assert len(person.forms) == 1
        first, second = it.project.store.read_context(
            report(await client.call_tool("status", {}))["sessions"][0]["session_id"]
        ).entries[1:3]
        assert "Blue" in str(first.parts)
        assert "A secret is not asked for" in str(second.parts)


@ERAS
async def test_work_is_waited_for_as_long_as_wanted_then_looked_at_and_stopped(
    tmp_path: Path, mode: str
) -> None:
    script = [make_answer(make_call("bash", command="sleep 60", description="Waits"))]
    async with driven(tmp_path, script, mode, sandbox="off", permission={"bash": "allow"}) as (
        _,
        client,
    ):
        found = report(await client.call_tool("prompt", {"prompt": "Wait", "wait": 0}))
        assert found["status"] == "working"
        other = report(await client.call_tool("prompt", {"prompt": "Another", "wait": 0}))
        listed = report(await client.call_tool("status", {}))["sessions"]
        assert [each["session_id"] for each in listed] == [found["session_id"], other["session_id"]]
        stopped = report(await client.call_tool("stop", {"session_id": found["session_id"]}))
        assert stopped["status"] == "stopped"
        assert (
            report(await client.call_tool("status", {"session_id": other["session_id"]}))["status"]
            != "stopped"
        )


@ERAS
async def test_a_cancelled_call_stops_the_work(tmp_path: Path, mode: str) -> None:
    script = [make_answer(make_call("bash", command="sleep 60", description="Waits"))]
    async with driven(tmp_path, script, mode, sandbox="off", permission={"bash": "allow"}) as (
        it,
        client,
    ):
        calling = asyncio.create_task(client.call_tool("prompt", {"prompt": "Wait"}))
        await wait_until(lambda: it.project.runs.is_any_running)
        calling.cancel()
        await wait_until(lambda: not it.project.runs.is_any_running)
        (begun,) = report(await client.call_tool("status", {}))["sessions"]
        look = {"session_id": begun["session_id"], "wait": 20}
        assert report(await client.call_tool("status", look))["status"] == "stopped"


async def test_what_is_wrong_with_a_call_is_told(tmp_path: Path) -> None:
    async with driven(tmp_path, [], "legacy") as (_, client):
        for name, given, words in [
            ("prompt", {}, "Object missing required field `prompt`"),
            ("prompt", {"prompt": "x", "promt": 1}, "unknown field `promt`"),
            ("status", {"session_id": "ses_none"}, "ses_none"),
            (
                "nothing",
                {},
                "Unknown tool 'nothing'. Available tools: prompt, continue, status, stop.",
            ),
        ]:
            done = await client.call_tool(name, given)
            assert (done.is_error, words in text_of(done)) == (True, True), done


async def test_a_question_that_waits_is_asked_by_the_next_look(tmp_path: Path) -> None:
    person = Person({"decision": "Allow once"})
    async with driven(
        tmp_path, [WRITES, ScriptedAnswer(text="Done.")], "auto", person, permission=ASKS
    ) as (
        it,
        client,
    ):
        begun = report(await client.call_tool("prompt", {"prompt": "Write", "wait": 0}))
        await wait_until(lambda: it.project.store.list_pending_permissions())
        seen = report(
            await client.call_tool("status", {"session_id": begun["session_id"], "wait": 20})
        )
        assert (seen["status"], len(person.forms)) == ("done", 1)


async def test_a_request_of_a_session_that_is_gone_ends_nothing(tmp_path: Path) -> None:
    gone = PermissionRequest(
        id="per_gone",
        session_id="ses_gone",
        permission="edit",
        patterns=["a"],
        metadata={},
        always=[],
    )
    async with (
        open_scripted_project(
            tmp_path, [WRITES, ScriptedAnswer(text="Done.")], permission=ASKS
        ) as it,
        turns_of(it) as turns,
    ):
        it.project.store.append(PermissionAsked(properties=gone))
        served = await turns.start("Write a.txt", can_ask=True)
        await wait_until(lambda: bool(served.pending_requests))
        await turns.stop(served)


async def test_a_question_that_nobody_can_answer_is_no_matter_of_permission(tmp_path: Path) -> None:
    asked = QuestionInfo(question="Which colour?", header="Colour", options=[])
    async with (
        open_scripted_project(tmp_path, [ScriptedAnswer(text="Done.")]) as it,
        turns_of(it) as turns,
    ):
        served = await turns.start("Paint", can_ask=False)
        await turns.refuse(
            served,
            QuestionRequest(id="que_1", session_id=served.session.id, questions=[asked]),
            NOBODY_MESSAGE,
        )
        message = served.report.message
        await wait_until(lambda: not served.is_working)
    assert "can't ask anybody: “Which colour?” Use a program that shows forms" in message
    assert "--profile" not in message


async def test_the_flag_auto_asks_nobody(tmp_path: Path) -> None:
    script = [WRITES, ScriptedAnswer(text="Done.")]
    async with driven(tmp_path, script, "legacy", permission=ASKS, more={"auto": True}) as (
        it,
        client,
    ):
        assert report(await client.call_tool("prompt", {"prompt": "Write"}))["status"] == "done"
        assert (it.work / "a.txt").exists()
