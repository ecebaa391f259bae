"""A prompt that is sent again after a lost connection, and heartbeats as a client wants them."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from codeloop.model.testing.script import ScriptedAnswer
from tests.server.support.serving import Served, served

ID = "msg_0123456789abcdef"


def body(text: str = "go") -> dict[str, Any]:
    return {"messageID": ID, "parts": [{"type": "text", "text": text}]}


async def said(it: Served, session: str) -> list[str]:
    messages = await it.get(f"/session/{session}/message")
    return [message["info"]["role"] for message in messages]


async def test_a_prompt_that_is_sent_again_is_answered_as_the_first_time(tmp_path: Path) -> None:
    async with served(
        tmp_path, [ScriptedAnswer(text="Done."), ScriptedAnswer(text="Never asked.")]
    ) as it:
        session = await it.session()
        first = await it.post(f"/session/{session}/message", body())
        again = await it.post(f"/session/{session}/message", body())
        assert again == first
        await it.post(f"/session/{session}/prompt_async", body(), status=204)
        assert await said(it, session) == ["user", "assistant"]


async def test_a_prompt_that_is_sent_again_joins_its_running_turn(tmp_path: Path) -> None:
    async with served(tmp_path, [ScriptedAnswer(text="Done.", delay_ms=300)]) as it:
        session = await it.session()
        asking = (it.post(f"/session/{session}/message", body()) for _ in range(2))
        first, again = await asyncio.gather(*asking)
        assert again == first
        assert await said(it, session) == ["user", "assistant"]


async def test_a_command_that_is_sent_again_runs_its_lines_once(tmp_path: Path) -> None:
    own = {"note": {"template": "!`echo x >> lines`"}}
    allowed = {"bash": "allow"}
    async with served(
        tmp_path, [ScriptedAnswer(text="Done.")], command=own, permission=allowed
    ) as it:
        session = await it.session()
        sent = {"messageID": ID, "command": "note", "arguments": ""}
        first = await it.post(f"/session/{session}/command", sent)
        assert await it.post(f"/session/{session}/command", sent) == first
        assert (it.work / "lines").read_text() == "x\n"


async def test_another_prompt_under_the_same_id_is_refused(tmp_path: Path) -> None:
    async with served(tmp_path, [ScriptedAnswer(text="Done.")]) as it:
        session = await it.session()
        await it.post(f"/session/{session}/message", body())
        refused = await it.post(f"/session/{session}/message", body("something else"), status=400)
        assert "in use" in refused["data"]["message"]
        other = await it.session()
        assert (
            "in use"
            in (await it.post(f"/session/{other}/message", body(), status=400))["data"]["message"]
        )


@pytest.mark.parametrize(
    ("asked", "given"), [("300", "300"), ("1", "250"), ("x", None), ("-5", None), ("", None)]
)
async def test_a_client_gets_heartbeats_as_often_as_it_asks(
    tmp_path: Path, asked: str, given: str | None
) -> None:
    async with (
        served(tmp_path) as it,
        it.http.stream("GET", "/event", headers={"x-codeloop-heartbeat": asked}) as stream,
    ):
        assert stream.headers.get("x-codeloop-heartbeat") == given
        if given is not None:
            heard = ""
            async for text in stream.aiter_text():
                heard += text
                if heard.count("server.heartbeat") == 2:
                    break
