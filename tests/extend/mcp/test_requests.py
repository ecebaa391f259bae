"""What a server asks of us while it works: forms, a model's answer, the project's place;
resources.
"""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from codeloop.extend.mcp.server_requests import SecretAsked, convert_answers, make_questions
from codeloop.permission.gate import Denied
from codeloop.schema.event import (
    QuestionAnswers,
    QuestionRefusal,
    QuestionRejected,
    QuestionReplied,
)
from codeloop.schema.permission import NOBODY_MESSAGE
from codeloop.tool.tool import Subtask, SubtaskResult, ToolFailure
from tests.extend.mcp.world import World, plain, world
from tests.support.scripted_project import wait_until


async def answered(it: World, tool: str, answers: list[list[str]]) -> Any:
    """Call a tool that asks, answer its questions, and return what the server was told."""
    calling = asyncio.create_task(it.call(tool))
    await wait_until(lambda: it.ctx.store.list_pending_questions())
    (request,) = it.ctx.store.list_pending_questions()
    reply = QuestionAnswers(session_id=request.session_id, request_id=request.id, answers=answers)
    it.ctx.store.append(QuestionReplied(properties=reply))
    return request, json.loads((await calling).output)


async def test_a_form_becomes_questions_and_their_answers_its_content(tmp_path: Path) -> None:
    async with world(tmp_path) as it:
        request, told = await answered(it, "form", [["Ada"], ["36"], ["Yes"], ["green"]])
        assert [each.header for each in request.questions] == ["Name", "age", "sure", "colour"]
        assert request.questions[0].question == "The MCP server p asks: Who are you?\nName"
        assert [each.label for each in request.questions[3].options] == ["red", "green"]
        assert told == {
            "action": "accept",
            "content": {"name": "Ada", "age": 36, "sure": True, "colour": "green"},
        }


async def test_a_form_without_what_it_requires_is_cancelled(tmp_path: Path) -> None:
    async with world(tmp_path) as it:
        _, told = await answered(it, "form", [[], ["36"], [], []])
        assert told == {"action": "cancel"}


async def test_a_secret_is_never_asked_for(tmp_path: Path) -> None:
    async with world(tmp_path) as it:
        assert json.loads((await it.call("secret")).output) == {"action": "cancel"}, (
            "no user has declined it"
        )
        assert it.ctx.store.list_pending_questions() == []
        assert "it asks for 'api_key', a secret" in it.server().log.read()
        told = it.ctx.services.notices.take(it.ctx.session_id)
        assert told.startswith(
            "A form of the MCP server p was refused by codeloop, not by the user: it asks for"
        )


@pytest.mark.parametrize(("message", "action"), [(None, "decline"), (NOBODY_MESSAGE, "cancel")])
async def test_only_a_user_declines_a_form(
    tmp_path: Path, message: str | None, action: str
) -> None:
    async with world(tmp_path) as it:
        calling = asyncio.create_task(it.call("form"))
        await wait_until(lambda: it.ctx.store.list_pending_questions())
        (request,) = it.ctx.store.list_pending_questions()
        refusal = QuestionRefusal(
            session_id=request.session_id, request_id=request.id, message=message
        )
        it.ctx.store.append(QuestionRejected(properties=refusal))
        assert json.loads((await calling).output) == {"action": action}
        assert ("nobody is there" in it.ctx.services.notices.take(it.ctx.session_id)) == (
            action == "cancel"
        )


@pytest.mark.parametrize(("answer", "action"), [("I have opened it", "accept"), ("No", "decline")])
async def test_an_address_is_shown_and_never_opened_by_itself(
    tmp_path: Path, answer: str, action: str
) -> None:
    local = plain(tmp_path)
    async with world(
        tmp_path, {"p": {**local, "command": [*local["command"], "2025-11-25"]}}
    ) as it:
        request, told = await answered(it, "visit", [[answer]])
        assert request.questions[0].question == (
            "The MCP server p asks: Sign in there.\nOpen https://x.example/a"
        )
        assert told == {"action": action}


@pytest.mark.parametrize(
    ("field", "given", "value"),
    [
        ({"type": "string"}, ["x"], "x"),
        ({"type": "integer"}, ["no number"], None),
        ({"type": "number"}, ["1.5"], 1.5),
        ({"type": "boolean"}, ["No"], False),
        ({"type": "array", "items": {"enum": ["a", "b"]}}, ["a", "b"], ["a", "b"]),
        ({"oneOf": [{"const": "r", "title": "Red"}]}, ["Red"], "r"),
        ({"type": "string", "enum": ["r"], "enumNames": ["Red"]}, ["Red"], "r"),
    ],
)
def test_answers_have_the_types_of_the_form(
    field: dict[str, Any], given: list[str], value: object
) -> None:
    schema = {"properties": {"x": field}}
    assert len(make_questions(schema, "who")) == 1
    assert convert_answers(schema, [given]) == ({} if value is None else {"x": value})


@pytest.mark.parametrize(
    ("name", "field", "message"),
    [
        *(
            (name, {}, "")
            for name in (
                "password",
                "apiKey",
                "access_token",
                "PIN",
                "card_pin",
                "pinCode",
                "db_passwd",
            )
        ),
        ("code", {"title": "PIN"}, ""),
        ("pin", {"type": "integer"}, ""),
        ("value", {"description": "Enter your PIN."}, ""),
        ("login", {"format": "password"}, ""),
        ("value", {}, "What is your password?"),
    ],
)
def test_fields_for_secrets_are_known(name: str, field: dict[str, Any], message: str) -> None:
    with pytest.raises(SecretAsked):
        make_questions({"properties": {name: {"type": "string", **field}}}, "who", message)


@pytest.mark.parametrize(
    ("name", "field", "message"),
    [
        ("pin", {"type": "boolean", "title": "Pin"}, "Pin the note?"),
        ("pin_to_top", {}, ""),
        ("pinned", {}, ""),
        (
            "title",
            {"description": "Pin this note under a title."},
            "Which note do you want to pin?",
        ),
        ("max_tokens", {"type": "integer"}, ""),
        ("kind", {"enum": ["password", "key"]}, "What is the secret called?"),
        ("shipping", {"title": "Shipping pin location"}, ""),
    ],
)
def test_words_that_only_sound_like_secrets_are_none(
    name: str, field: dict[str, Any], message: str
) -> None:
    assert (
        len(make_questions({"properties": {name: {"type": "string", **field}}}, "who", message))
        == 1
    )


async def test_the_project_is_the_root(tmp_path: Path) -> None:
    async with world(tmp_path) as it:
        told = json.loads((await it.call("roots")).output)
        assert told["roots"] == [{"uri": (tmp_path / "work").as_uri(), "name": "work"}]


async def test_a_model_answers_a_server_in_a_session_of_its_own_when_that_is_allowed(
    tmp_path: Path,
) -> None:
    async with world(tmp_path) as it:
        made: list[Subtask] = []

        async def spawn(task: Subtask) -> SubtaskResult:
            made.append(task)
            return SubtaskResult("ses_x", "Hi!", {"model": {"modelID": "m"}})

        it.ctx.spawn = spawn
        told = json.loads((await it.call("sample")).output)
        assert told == {
            "role": "assistant",
            "content": {"type": "text", "text": "Hi!"},
            "model": "m",
        }
        assert (made[0].agent, made[0].prompt) == ("sampling", "<user>\nSay hi.\n</user>")
        assert (it.ctx.asked[-1].permission, it.ctx.asked[-1].patterns) == ("mcp_sampling", ("p",))
        it.ctx.deny = ("mcp_sampling",)
        assert "It was not done. Permission denied" in (await it.call("sample")).output


async def test_resources_are_listed_and_read(tmp_path: Path) -> None:
    async with world(tmp_path) as it:
        await it.server().connect()
        tool = it.toolbox.tools_by_name["mcp_resource"].implementation
        listed = await tool.run(_resource(), it.ctx)
        assert listed.output.splitlines()[0] == "- p plain://note (note) A note."
        read = await tool.run(_resource(server="p", uri="plain://note"), it.ctx)
        assert read.output == "the text of plain://note"
        assert it.ctx.asked[-1].patterns == ("p:plain://note",)
        with pytest.raises(ToolFailure, match="There is no MCP server 'q'"):
            await tool.run(_resource(server="q"), it.ctx)
        it.ctx.deny = ("mcp_resource",)
        with pytest.raises(Denied):
            await tool.run(_resource(server="p", uri="plain://note"), it.ctx)


def _resource(**given: str) -> Any:
    from codeloop.extend.mcp.tools.parameters import ResourceParams

    return ResourceParams(**given)
