"""`/api/*`: version 1 in the shapes of version 2, and of the preview that 1.18 had of it."""

import asyncio
from pathlib import Path
from typing import Any, get_type_hints

import msgspec
import pytest

from codeloop.kit.lazy import load_object
from codeloop.model.testing.script import ScriptedAnswer, ScriptedCall
from codeloop.schema.operation import AnyOperation
from codeloop.server.version2.row import Forward
from codeloop.server.version2.rows import ANSWERS, ROWS
from tests.server.support.serving import Served, served
from tests.support.scripted_project import wait_until

DONE = ScriptedAnswer(text="Done.")
RUN = ScriptedAnswer(calls=(ScriptedCall("bash", {"command": "echo hi"}),))


async def turn(it: Served, session: str, text: str = "go", **more: Any) -> Any:
    admitted = await it.post(f"/api/session/{session}/prompt", {"prompt": {"text": text}, **more})
    await it.post(f"/api/session/{session}/wait", status=204)
    return admitted["data"]


async def test_the_preview_answers_that_it_is_there(tmp_path: Path) -> None:
    async with served(tmp_path) as it:
        assert await it.get("/api/health") == {"healthy": True}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.id)
def test_what_answers_a_row_takes_its_arguments(row: AnyOperation) -> None:
    match ANSWERS[row.id]:
        case Forward(operation=operation, take=take):
            fields = set(row.takes.__struct_fields__)
            needed = set(
                operation.takes.__struct_fields__[
                    : -len(operation.takes.__struct_defaults__) or None
                ]
            )
            assert take is not None or needed <= fields, "fields that no argument has"
        case str(handler) if handler:
            hints = get_type_hints(load_object(f"server.version2.{handler}"))
            assert list(hints.values())[1] == row.takes
        case _:
            pass


@pytest.mark.slow
async def test_a_session_is_made_prompted_and_read(tmp_path: Path) -> None:
    async with served(tmp_path, [RUN, DONE], permission={"bash": "allow"}) as it:
        session = (
            await it.post(
                "/api/session", {"agent": "build", "location": {"directory": str(it.work)}}
            )
        )["data"]
        assert (session["agent"], session["location"]) == ("build", {"directory": str(it.work)})
        path = f"/api/session/{session['id']}"
        sent = await turn(it, session["id"], id="msg_mine")
        assert (sent["id"], sent["prompt"]["text"], sent["delivery"]) == ("msg_mine", "go", "steer")
        last, middle, first = (await it.get(f"{path}/message"))["data"]
        assert (first["type"], first["text"]) == ("user", "go")
        (tool,) = middle["content"]
        assert (tool["name"], tool["state"]["status"]) == ("shell", "completed")
        assert tool["state"]["input"] == {"command": "echo hi"}
        assert tool["state"]["content"][0]["text"].startswith("hi")
        assert last["content"][0]["text"] == "Done."
        assert (await it.get(f"{path}/message/{last['id']}"))["data"] == last
        assert (await it.get(f"{path}/context"))["data"] == [first, middle, last]
        assert (await it.get(path))["data"]["id"] == session["id"]


@pytest.mark.slow
async def test_the_rules_that_a_client_makes_a_session_with_are_enforced(tmp_path: Path) -> None:
    async with served(tmp_path, [RUN, DONE], permission={"bash": "allow"}) as it:
        rules = [{"action": "shell", "resource": "*", "effect": "deny"}]
        body = {"permissions": rules, "title": "Mine", "metadata": {"mine": 1}}
        session = (await it.post("/api/session", body))["data"]
        assert session["title"] == "Mine"
        await turn(it, session["id"])
        messages = str((await it.get(f"/api/session/{session['id']}/message"))["data"])
        assert "Permission denied by the rule bash *: deny" in messages
        child = (await it.post("/api/session", {"parentID": session["id"]}))["data"]
        assert child["id"] != session["id"]
        wrong = await it.post(
            "/api/session", {"permissions": [{**rules[0], "effect": "forbid"}]}, 400
        )
        assert "permissions" in str(wrong)


async def test_pages_follow_one_another_in_both_directions_and_orders(tmp_path: Path) -> None:
    async with served(tmp_path) as it:
        made = [await it.session() for _ in range(40)]
        for order, ids in (("asc", made), ("desc", made[::-1])):
            page = await it.get("/api/session", limit=2, order=order)
            seen = [each["id"] for each in page["data"]]
            assert "previous" not in page["cursor"]
            while "next" in page["cursor"]:
                before, page = (
                    page,
                    await it.get("/api/session", limit=2, cursor=page["cursor"]["next"]),
                )
                seen += [each["id"] for each in page["data"]]
                again = await it.get("/api/session", limit=2, cursor=page["cursor"]["previous"])
                assert [each["id"] for each in again["data"]] == [
                    each["id"] for each in before["data"]
                ]
            assert seen == ids
        assert (await it.get("/api/session", 400, cursor="x"))["_tag"] == "InvalidCursorError"


@pytest.mark.slow
async def test_permissions_and_questions_are_answered(tmp_path: Path) -> None:
    async with served(tmp_path, [RUN, DONE], permission={"bash": "ask"}) as it:
        session = await it.session()
        await it.post(f"/api/session/{session}/prompt", {"prompt": {"text": "go"}})
        path = f"/api/session/{session}/permission"
        while not (waiting := (await it.get(path))["data"]):
            await asyncio.sleep(0.01)
        assert (await it.get("/api/session/active"))["data"] == {session: {"type": "running"}}
        (request,) = waiting
        assert (request["action"], request["resources"]) == ("shell", ["echo hi"])
        assert (await it.get("/api/permission/request"))["data"] == waiting
        assert (await it.get(f"{path}/{request['id']}"))["data"] == request
        assert await it.post(f"{path}/{request['id']}/reply", {"reply": "once"}, 204) is None
        await it.post(f"/api/session/{session}/wait", status=204)
        assert (await it.get(path))["data"] == []
        assert (await it.get(f"{path}/per_x", 404))["_tag"] == "PermissionNotFoundError"
        gone = await it.post(f"/api/session/{session}/question/que_x/reply", {"answers": []}, 404)
        assert gone["_tag"] == "QuestionNotFoundError"


async def test_a_revert_is_staged_cleared_and_committed(tmp_path: Path) -> None:
    async with served(tmp_path, [DONE, DONE]) as it:
        session = await it.session()
        await turn(it, session, id="msg_one")
        await turn(it, session, id="msg_two")
        path = f"/api/session/{session}"
        staged = await it.post(f"{path}/revert/stage", {"messageID": "msg_two"})
        assert staged["data"]["messageID"] == "msg_two"
        assert (await it.get(path))["data"]["revert"]["messageID"] == "msg_two"
        await it.post(f"{path}/revert/clear", status=204)
        assert "revert" not in (await it.get(path))["data"]
        await it.post(f"{path}/revert/stage", {"messageID": "msg_two"})
        await it.post(f"{path}/revert/commit", status=204)
        assert [each["id"] for each in (await it.get(f"{path}/message"))["data"]][-1] == "msg_one"
        assert len((await it.get(f"{path}/message"))["data"]) == 2
        assert (await it.post(f"{path}/revert/stage", {"messageID": "msg_x"}, 404))[
            "_tag"
        ] == "MessageNotFoundError"


@pytest.mark.parametrize(
    "name", ["agent", "model", "provider", "integration", "command", "skill", "pty", "reference"]
)
async def test_lists_stand_beside_their_location(name: str, tmp_path: Path) -> None:
    async with served(tmp_path) as it:
        found = await it.get(f"/api/{name}")
        assert found["location"]["directory"] == str(it.work)
        assert isinstance(found["data"], list)
        assert found["data"] or name in {"pty", "reference", "skill", "model", "provider"}


async def test_files_and_terminals(tmp_path: Path) -> None:
    async with served(tmp_path) as it:
        (it.work / "deep").mkdir()
        (it.work / "deep" / "a b.txt").write_text("text\n")
        assert {"path": "deep/", "type": "directory"} in (await it.get("/api/fs/list"))["data"]
        read = await it.http.get("/api/fs/read/deep/a%20b.txt")
        assert (read.text, read.headers["content-type"]) == ("text\n", "text/plain; charset=utf-8")
        assert (await it.get("/api/fs/read/gone", 404))["_tag"] == "RemoteFileNotFoundError"
        assert (await it.get("/api/fs/read/..%2f..%2fsecret", 400))["_tag"] == "InvalidRequestError"
        opened = (await it.post("/api/pty", {"command": "cat"}))["data"]
        path = f"/api/pty/{opened['id']}"
        assert (await it.http.put(path, json={"title": "mine"})).json()["data"]["title"] == "mine"
        assert (await it.get(path))["data"]["title"] == "mine"
        assert (await it.post(f"{path}/connect-token", status=403))["_tag"] == "ForbiddenError"
        ticket = await it.http.post(f"{path}/connect-token", headers={"x-opencode-ticket": "1"})
        assert ticket.json()["data"]["ticket"]
        assert (await it.http.delete(path)).status_code == 204
        assert (await it.get(path, 404))["_tag"] == "PtyNotFoundError"


async def test_events_have_the_form_of_version_2(tmp_path: Path) -> None:
    async with served(tmp_path) as it, it.http.stream("GET", "/api/event") as stream:
        lines = stream.aiter_lines()
        events: list[Any] = []

        async def read() -> None:
            async for line in lines:
                events.extend([msgspec.json.decode(line[6:])] if line.startswith("data: ") else [])

        reading = asyncio.create_task(read())
        await wait_until(lambda: bool(events))
        session = await it.session()
        await wait_until(lambda: len(events) > 1)
        reading.cancel()
        await asyncio.gather(reading, return_exceptions=True)
        assert (events[0]["type"], events[0]["data"]) == ("server.connected", {})
        made = next(each for each in events if each["type"] == "session.created")
        assert (made["data"]["sessionID"], made["location"]) == (
            session,
            {"directory": str(it.work)},
        )


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("GET", "/api/session/{session}/history", None),
        ("GET", "/api/session/{session}/event", None),
        ("PATCH", "/api/credential/openai", {"label": "x"}),
    ],
)
async def test_what_is_not_offered_says_so(
    method: str, path: str, body: Any, tmp_path: Path
) -> None:
    async with served(tmp_path) as it:
        answer = await it.http.request(method, path.format(session=await it.session()), json=body)
        assert (answer.status_code, answer.json()["_tag"]) == (400, "InvalidRequestError")
        assert len(answer.json()["message"]) > 30
        assert (await it.get("/api/session/ses_x", 404))["_tag"] == "SessionNotFoundError"
