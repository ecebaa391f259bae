"""What is asked of sessions over HTTP: what clients hear of it,
and how a bad request is refused.
"""

import asyncio
import base64
import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from codeloop.app.app import App
from codeloop.model.testing.replay import ScriptedModel
from codeloop.model.testing.script import ScriptedAnswer, TokenCount
from codeloop.schema.ids import new_id
from codeloop.server.server import ListenOptions, Server
from tests.cli.program import COMMAND
from tests.server.support.hearing import Event, hearing, of
from tests.server.support.serving import Served, served
from tests.support.scripted_project import (
    PASSWORD,
    RequestRecorder,
    make_answer,
    make_call,
    make_startup,
)

DONE = ScriptedAnswer(text="Done.", tokens=TokenCount(input=5, output=2))
WAIT = make_answer(make_call("bash", command="touch begun; until [ -e go ]; do sleep 0.01; done"))
TEXT = {"type": "text", "text": "go"}


def write(path: str, content: str) -> ScriptedAnswer:
    return make_answer(make_call("write", filePath=path, content=content))


async def messages(it: Served, session: str) -> list[Event]:
    return await it.get(f"/session/{session}/message")


async def begun(it: Served, session: str) -> None:
    """Start a turn that waits, and wait for that."""
    await it.post(f"/session/{session}/prompt_async", {"parts": [TEXT]}, status=204)
    async with asyncio.timeout(60):
        while not (it.work / "begun").exists():
            await asyncio.sleep(0.01)


async def test_revert_unrevert_and_a_new_prompt_after_it(tmp_path: Path) -> None:
    async with served(tmp_path, [write("a.txt", "a\n"), DONE, DONE]) as it, hearing(it) as heard:
        session = await it.session()
        await it.prompt(session, "one")
        await heard.idle(session)
        prompt, *answers = [each["info"]["id"] for each in await messages(it, session)]
        heard.forget()
        reverted = await it.post(f"/session/{session}/revert", {"messageID": prompt})
        assert reverted["revert"]["messageID"] == prompt
        assert len(reverted["revert"]["snapshot"]) == 40
        assert "a.txt" in reverted["revert"]["diff"]
        assert not (it.work / "a.txt").exists()
        await heard.line("session.diff 1", session)
        assert of(heard.events, "session.updated")[-1]["info"]["revert"] == reverted["revert"]
        (undone,) = of(heard.events, "session.diff")[-1]["diff"]
        assert (undone["file"], undone["status"]) == ("a.txt", "added")
        assert await it.get(f"/session/{session}/diff") == [undone]
        assert len(await messages(it, session)) == 3
        back = await it.post(f"/session/{session}/unrevert")
        assert "revert" not in back
        assert (it.work / "a.txt").read_text() == "a\n"
        # It stands for its prompt.
        await it.post(f"/session/{session}/revert", {"messageID": answers[0]})
        await heard.line("session.diff 1", session, 2)
        heard.forget()
        await it.prompt(session, "two")
        lines = await heard.idle(session)
        assert lines[:4] == ["message.removed"] * 3 + ["session.updated"]
        assert [each["messageID"] for each in of(heard.events, "message.removed")] == [
            prompt,
            *answers,
        ]
        after = of(heard.events, "session.updated")[0]["info"]
        assert "revert" not in after
        assert (after["cost"], after["tokens"]["input"]) == (0, 0)
        assert "session.diff 0" in lines
        assert [each["info"]["role"] for each in await messages(it, session)] == [
            "user",
            "assistant",
        ]


async def test_an_unknown_message_to_go_back_to_changes_nothing(tmp_path: Path) -> None:
    async with served(tmp_path, [DONE]) as it:
        session = await it.session()
        await it.prompt(session)
        answer = await it.post(f"/session/{session}/revert", {"messageID": "msg_nowhere"})
        assert "revert" not in answer
        assert len(await messages(it, session)) == 2


async def test_a_copy_has_new_ids_and_the_old_times(tmp_path: Path) -> None:
    async with served(tmp_path, [DONE, DONE]) as it, hearing(it) as heard:
        session = (await it.post("/session", {"title": "T"}))["id"]
        await it.prompt(session, "one")
        await it.prompt(session, "two")
        old = await messages(it, session)
        whole = (await it.http.post(f"/session/{session}/fork")).json()  # no body at all
        assert whole["title"] == "T (fork #1)"
        assert "parentID" not in whole
        new = await messages(it, whole["id"])
        assert [each["info"]["time"] for each in new] == [each["info"]["time"] for each in old]
        assert not {each["info"]["id"] for each in new} & {each["info"]["id"] for each in old}
        await heard.until(
            lambda events: (
                whole["id"] in [each["sessionID"] for each in of(events, "session.created")]
            )
        )
        half = await it.post(f"/session/{session}/fork", {"messageID": old[2]["info"]["id"]})
        assert len(await messages(it, half["id"])) == 2


async def test_rename_and_delete_with_children(tmp_path: Path) -> None:
    async with served(tmp_path) as it, hearing(it) as heard:
        session = await it.session()
        child = (await it.post("/session", {"parentID": session}))["id"]
        renamed = (await it.http.patch(f"/session/{session}", json={"title": "New"})).json()
        assert renamed["title"] == "New"
        assert (await it.http.delete(f"/session/{session}")).json() is True
        await heard.until(lambda events: len(of(events, "session.deleted")) == 2)
        assert {each["sessionID"] for each in of(heard.events, "session.deleted")} == {
            session,
            child,
        }
        assert [each["info"]["title"] for each in of(heard.events, "session.updated")] == ["New"]
        gone = await it.get(f"/session/{session}", status=404)
        data = {"message": f"Session not found: {session}", "cause": "SessionNotFound"}
        assert gone == {"name": "NotFoundError", "data": data}


async def test_a_command_becomes_a_prompt_and_says_when_it_is_over(tmp_path: Path) -> None:
    command = {"hi": {"template": "Greet $1, then $ARGUMENTS", "description": "Greets"}}
    async with served(tmp_path, [DONE], command=command) as it, hearing(it) as heard:
        session = (await it.post("/session", {"title": "T"}))["id"]
        answer = await it.post(f"/session/{session}/command", {"command": "hi", "arguments": "a b"})
        assert answer["info"]["finish"] == "stop"
        lines = await heard.idle(session)
        assert lines[lines.index("user") :][1:3] == ["text '/hi a b'", "text synthetic"]
        await heard.line("command.executed", session)
        executed = {
            "name": "hi",
            "sessionID": session,
            "arguments": "a b",
            "messageID": answer["info"]["id"],
        }
        assert of(heard.events, "command.executed") == [executed]
        unknown = await it.post(
            f"/session/{session}/command", {"command": "no", "arguments": ""}, status=404
        )
        assert "Command not found: no" in unknown["data"]["message"]


async def test_a_command_that_is_a_subtask_shows_a_task_and_is_answered(tmp_path: Path) -> None:
    command = {
        "sub": {
            "template": "Look at $1",
            "description": "Looks",
            "agent": "general",
            "subtask": True,
        }
    }
    async with (
        served(tmp_path, [ScriptedAnswer(text="Looked."), DONE], command=command) as it,
        hearing(it) as heard,
    ):
        session = (await it.post("/session", {"title": "T"}))["id"]
        await it.post(f"/session/{session}/command", {"command": "sub", "arguments": "x"})
        lines = await heard.idle(session)
        assert [
            line
            for line in lines
            if line in {"subtask", "task completed", "assistant tool-calls completed"}
        ] == [
            "subtask",
            "task completed",
            "assistant tool-calls completed",
        ]
        first = next(
            info
            for each in of(heard.events, "message.updated")
            if is_answer(info := each["info"], session)
        )
        assert (first["mode"], first["agent"]) == ("general", "general")
        assert "text 'Done.' end" in lines


def is_answer(info: Event, session: str) -> bool:
    return info["role"] == "assistant" and info["sessionID"] == session


@pytest.mark.slow
async def test_a_command_line_of_a_person(tmp_path: Path) -> None:
    async with served(tmp_path) as it, hearing(it) as heard:
        session = (await it.post("/session", {"title": "T"}))["id"]
        answer = await it.post(
            f"/session/{session}/shell", {"agent": "build", "command": "echo hi"}
        )
        (part,) = answer["parts"]
        assert answer["info"]["role"] == "assistant"
        assert (part["type"], part["tool"]) == ("tool", "bash")
        lines = [line for line in await heard.idle(session) if not line.startswith("user diffs")]
        done = ["assistant completed", "bash completed", "status idle", "session.idle"]
        begin = [
            "session.created",
            "status busy",
            "user",
            "text synthetic",
            "assistant",
            "bash running",
        ]
        assert lines[: len(begin)] == begin
        assert lines[-len(done) :] == done
        assert set(lines[len(begin) : -len(done)]) <= {"bash running"}
        assert it.model.requests == []


@pytest.mark.slow
async def test_a_busy_session_refuses_what_would_change_it(tmp_path: Path) -> None:
    async with served(tmp_path, [WAIT, DONE]) as it:
        session = await it.session()
        await begun(it, session)
        prompt = (await messages(it, session))[0]["info"]["id"]
        for path, body in (
            ("shell", {"command": "true"}),
            ("revert", {"messageID": prompt}),
            ("unrevert", {}),
        ):
            busy = await it.post(f"/session/{session}/{path}", body, status=409)
            assert (busy["_tag"], busy["sessionID"]) == ("SessionBusyError", session)
            assert busy["message"]
        for path in (f"/session/{session}/message/{prompt}", f"/session/{session}"):
            response = await it.http.delete(path)
            assert (response.status_code, response.json()["_tag"]) == (409, "SessionBusyError")
        assert await it.post(f"/session/{session}/abort") is True
        assert (await it.http.delete(f"/session/{session}/message/{prompt}")).json() is True


NOBODY = "ses_nobody0000000000000000"


async def test_what_is_not_there_is_a_404_that_names_it(tmp_path: Path) -> None:
    async with served(tmp_path) as it:
        session = await it.session()
        data = {"message": f"Session not found: {NOBODY}", "cause": "SessionNotFound"}
        no_session = {"name": "NotFoundError", "data": data}
        for path in ("", "/message", "/children", "/todo", "/diff"):
            assert await it.get(f"/session/{NOBODY}{path}", status=404) == no_session
        for path, body in (
            ("message", {"parts": [TEXT]}),
            ("prompt_async", {"parts": [TEXT]}),
            ("shell", {"command": "true"}),
            ("command", {"command": "init", "arguments": ""}),
            ("revert", {"messageID": "msg_x"}),
            ("unrevert", {}),
            ("fork", {}),
            ("summarize", {"providerID": "p", "modelID": "m"}),
        ):
            assert await it.post(f"/session/{NOBODY}/{path}", body, status=404) == no_session, path
        assert await it.post(f"/session/{NOBODY}/abort") is True
        no_message = {"name": "NotFoundError", "data": {"message": "Message not found: msg_x"}}
        assert await it.get(f"/session/{session}/message/msg_x", status=404) == no_message
        assert await it.get(f"/session/{session}/diff", status=404, messageID="msg_x") == no_message
        assert (await it.http.delete(f"/session/{session}/message/msg_x")).json() == no_message
        assert await it.get(f"/session/{session}/diff") == []


BAD: list[tuple[dict[str, Any], str]] = [
    ({}, "parts"),
    ({"parts": "text"}, "parts"),
    ({"parts": [{"type": "text"}]}, "text"),
    ({"parts": [{"type": "song", "text": "x"}]}, "parts"),
    ({"parts": [TEXT], "messageID": "prt_1"}, "messageID"),
    ({"parts": [TEXT], "messageID": "msg_" + "x" * 500}, "messageID"),
    ({"parts": [TEXT], "messageID": "msg_\n"}, "messageID"),
    ({"parts": [{**TEXT, "id": "msg_1"}]}, "parts"),
    ({"parts": [{**TEXT, "id": "prt_1"}, {**TEXT, "id": "prt_1"}]}, "id"),
    ({"parts": [TEXT], "format": {"type": "json_schema", "schema": []}}, "format"),
    ({"parts": [TEXT], "model": {"providerID": "p"}}, "modelID"),
    ({"parts": [TEXT], "tools": {"bash": "no"}}, "tools"),
    ({"parts": [TEXT], "agent": "nobody"}, "nobody"),
    ({"parts": [{"type": "file", "mime": "text/plain", "url": "file:///nowhere/x"}]}, "/nowhere/x"),
]


@pytest.mark.parametrize(("body", "named"), BAD)
async def test_a_bad_prompt_is_refused_with_what_is_wrong_and_stores_nothing(
    tmp_path: Path, body: dict[str, Any], named: str
) -> None:
    async with served(tmp_path) as it:
        session = await it.session()
        for path in ("message", "prompt_async"):
            response = await it.http.post(f"/session/{session}/{path}", json=body)
            assert response.status_code in {400, 404}
            assert named in response.json()["data"]["message"]
        assert await messages(it, session) == []


async def test_bad_sessions_and_pages_are_refused(tmp_path: Path) -> None:
    async with served(tmp_path, [DONE]) as it:
        for content in (
            b"{",
            b"[]",
            b'"x"',
            b'{"title": 5}',
            b'{"permission": [{"permission": "bash"}]}',
        ):
            response = await it.http.post("/session", content=content)
            assert response.status_code == 400, content
            assert response.json()["data"]["message"]
        assert (await it.post("/session", {"agent": "nobody"}, status=404))["data"]["message"]
        assert (await it.post("/session", {"parentID": NOBODY}, status=404))["data"]["message"]
        session = await it.session()
        await it.prompt(session)
        huge = base64.b64encode(json.dumps({"id": "x", "time": 1 << 70}).encode()).decode()
        for query in (
            {"limit": "x"},
            {"limit": 0},
            {"limit": -1},
            {"limit": 1, "before": "x"},
            {"before": huge},
        ):
            refused = await it.get(f"/session/{session}/message", status=400, **query)
            assert refused["name"] == "BadRequest"
        assert len(await it.get(f"/session/{session}/message", limit=1)) == 1


async def test_an_unknown_model_is_refused_before_anything_is_stored(tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    server = Server(App(make_startup(tmp_path / "home", work)), ListenOptions(password=PASSWORD))
    await server.start()
    it = Served(server, RequestRecorder(ScriptedModel([])), work)
    try:
        session = await it.session()
        model = {"providerID": "nobody", "modelID": "nothing"}
        refused = await it.post(
            f"/session/{session}/message", {"parts": [TEXT], "model": model}, status=400
        )
        assert "nobody" in refused["data"]["message"]
        await it.post(
            f"/session/{session}/prompt_async", {"parts": [TEXT], "model": model}, status=400
        )
        await it.post(f"/session/{session}/summarize", model, status=400)
        assert await messages(it, session) == []
    finally:
        await it.http.aclose()
        await it.anonymous.aclose()
        await server.stop()


async def test_an_id_that_is_in_use_is_refused_and_nothing_is_lost(tmp_path: Path) -> None:
    async with served(tmp_path, [DONE, DONE]) as it:
        session, other = await it.session(), await it.session()
        chosen, part = new_id("msg"), new_id("prt")
        body = {"parts": [{**TEXT, "id": part}], "messageID": chosen}
        await it.post(f"/session/{session}/message", body)
        before = await messages(it, session)
        assert (before[0]["info"]["id"], before[0]["parts"][0]["id"]) == (chosen, part)
        same = await it.post(f"/session/{session}/message", body)
        assert same["info"]["parentID"] == chosen, (
            "the same prompt again gets the answer that it has"
        )
        for place, text in ((session, "something else"), (other, TEXT["text"])):
            again = {"parts": [{**TEXT, "text": text}], "messageID": chosen}
            refused = await it.post(f"/session/{place}/message", again, status=400)
            assert "messageID" in refused["data"]["message"]
            await it.post(
                f"/session/{place}/message", {"parts": [{**TEXT, "id": part}]}, status=400
            )
        assert await messages(it, session) == before
        assert await messages(it, other) == []


async def test_two_prompts_of_one_id_at_once_are_stored_once(tmp_path: Path) -> None:
    async with served(tmp_path, [DONE, DONE]) as it:
        session = await it.session()
        body = {"parts": [TEXT], "messageID": new_id("msg")}
        sent = [it.http.post(f"/session/{session}/prompt_async", json=body) for _ in range(4)]
        assert [each.status_code for each in await asyncio.gather(*sent)] == [204, 204, 204, 204]
        await it.post(f"/session/{session}/message", body)  # answered when the turn is over
        stored = [each for each in await messages(it, session) if each["info"]["role"] == "user"]
        assert [each["info"]["id"] for each in stored] == [body["messageID"]]
        assert len(it.model.requests) == 1


async def test_fields_of_a_prompt_do_what_they_say(tmp_path: Path) -> None:
    async with served(tmp_path, [DONE, DONE, DONE]) as it:
        session = await it.session()
        stored = await it.post(f"/session/{session}/message", {"parts": [TEXT], "noReply": True})
        assert stored["info"]["role"] == "user"
        assert it.model.requests == []
        more = {"system": "Speak in verse.", "tools": {"bash": False}, "variant": "high"}
        answer = await it.post(f"/session/{session}/message", {"parts": [], **more, "unknown": 1})
        assert answer["info"]["role"] == "assistant"
        assert answer["info"]["variant"] == "high"
        first = it.model.requests[0]
        assert first.system.endswith("Speak in verse.")
        assert "bash" not in [tool.name for tool in first.tools]
        rules = (await it.get(f"/session/{session}"))["permission"]
        assert rules == [{"permission": "bash", "pattern": "*", "action": "deny"}]
        await it.prompt(session)
        second = it.model.requests[1]
        assert "verse" not in second.system
        assert "bash" not in [tool.name for tool in second.tools]  # it stays


@pytest.mark.slow
async def test_another_process_that_works_on_the_session_is_the_only_writer(tmp_path: Path) -> None:
    script = tmp_path / "slow.jsonl"
    waits = {"command": "until [ -e go ]; do sleep 0.05; done"}
    script.write_text(json.dumps({"calls": [{"name": "bash", "arguments": waits}]}) + "\n")
    async with served(tmp_path, [DONE]) as it:
        session = await it.session()
        environment = {**os.environ, **make_startup(tmp_path / "home", it.work).environment}
        argv = [*COMMAND, "run", "--session", session, "--replay", str(script), "work"]
        quiet = subprocess.DEVNULL
        running = subprocess.Popen(
            argv, cwd=it.work, env=environment, stdin=quiet, stdout=quiet, stderr=quiet
        )
        try:
            async with asyncio.timeout(60):
                while len(await messages(it, session)) < 2:
                    assert running.poll() is None
                    await asyncio.sleep(0.02)
            for path, body in (
                ("message", {"parts": [TEXT]}),
                ("prompt_async", {"parts": [TEXT]}),
                ("shell", {"command": "touch x"}),
                ("summarize", {"providerID": "p", "modelID": "m"}),
                ("revert", {"messageID": "msg_x"}),
            ):
                busy = await it.post(f"/session/{session}/{path}", body, status=409)
                assert (busy["_tag"], busy["sessionID"]) == ("SessionBusyError", session), path
                assert str(running.pid) in busy["message"]
            assert (await it.http.delete(f"/session/{session}")).status_code == 409
            assert len(await messages(it, session)) == 2
        finally:
            running.kill()
            (it.work / "go").touch()
            await asyncio.to_thread(running.wait)
        answer = await it.prompt(session, "go on")  # a dead one is taken over from
        assert answer["parts"][1]["text"] == "Done."
        assert not (it.work / "x").exists()
