"""Hostile and careless clients with the credential: nothing they send is a fault, hangs,
or harms what is stored.
"""

import asyncio
import logging
import random
import re
import time
from collections import Counter
from collections.abc import AsyncGenerator, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import pytest

from codeloop.model.chat import ModelEvent, ModelInfo, ModelRequest
from codeloop.model.testing.replay import SCRIPT_INFO, play_answer
from codeloop.model.testing.script import ScriptedAnswer, ScriptedCall, TokenCount
from codeloop.schema.api.process import GLOBAL_DISPOSE, INSTANCE_DISPOSE
from codeloop.schema.message import AssistantMessage, Tokens
from codeloop.schema.operation import AnyOperation
from codeloop.schema.part import ToolPart, ToolStatePending, ToolStateRunning
from codeloop.server.openapi.operations import ALL_OPERATIONS
from tests.server.support.raw import ask, basic, request
from tests.server.support.serving import Served, served
from tests.support.scripted_project import wait_until

HOSTILE = (
    "null", "true", "-1", "1.5", "1e300", "1e999", "NaN", "9223372036854775808", "1" + "0" * 400,
    '""', '"\\u0000"', '"\\ud800"', '"../../etc/passwd"', '"{directory}%s%n"', '"' + "x" * 100_000 + '"',
    "[]", "[null]", '["a"]', "{}", '{"a":null}', '{"a":"\\udfff"}', '{"a":1e999}', '{"type":"text"}', '{"type":1}',
    "[" * 500 + "]" * 500, "[" * 100_000, "[" + ",".join(["{}"] * 10_000) + "]", '{"a":1,"a":2}', "{", "\xff",
)  # fmt: skip
QUERIES = (
    "",
    "%00",
    "%ff%fe",
    "%ed%a0%80",
    "-1",
    "9" * 400,
    "NaN",
    "x" * 9_000,
    "..%2f..%2fetc",
    "(",
    "--pre=cat",
    "%",
)
NAMES = ("%00", "%2f", "..", "%ff", "x" * 5_000, "%0a", "%F0%9F%98%80", "'", "ses_0", "msg_0", "-1")
LONGEST = 5
"""Seconds that no answer may take."""


async def test_a_path_with_a_slash_too_many_leads_nowhere(tmp_path: Path) -> None:
    async with served(tmp_path) as it:
        for path in (
            "/session/",
            "/global/health/",
            "/session/%2e%2e/",
            "//session",
            "///evil.example/session/",
        ):
            answer = await ask(it.url, request(it.url, "GET", path, basic()))
            assert (answer.status, answer.headers.get("location")) == (404, None), path


@dataclass
class Fuzz:
    """What was sent, and which answers are faults."""

    it: Served
    faults: list[str] = field(default_factory=list[str])
    statuses: Counter[int] = field(default_factory=Counter[int])

    async def send(self, row: AnyOperation, path: str, body: str | None = None) -> None:
        data = b"" if body is None else body.encode("latin-1")
        head = request(self.it.url, row.method, path, basic(), f"content-length: {len(data)}")
        said = ""
        for _ in range(3):  # the machine itself may stand still, but not each time
            begun = time.monotonic()
            answer = await ask(self.it.url, head + data)
            took = time.monotonic() - begun
            self.statuses[answer.status] += 1
            said = f"{answer.status} after {took:.0f} s: {answer.body[:200]!r}"
            if not 200 <= answer.status < 500:
                break
            if took <= LONGEST:
                return
        self.faults.append(f"{row.method} {path[:80]} {(body or '')[:80]}: {said}")


def bodies(row: AnyOperation) -> Iterator[str]:
    """Yield hostile bodies: as a whole, and in each field."""
    yield from HOSTILE
    for name in row.takes.__struct_encode_fields__ if row.body is None else ():
        for value in HOSTILE:
            yield f'{{"{name}":{value}}}'


@pytest.mark.slow
async def test_whatever_is_sent_to_any_route_is_answered_and_harms_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.ERROR)
    async with served(tmp_path, Endless()) as it:
        session = await it.session()
        await it.prompt(session)
        fuzz = Fuzz(it)
        ids = {"sessionID": session}
        for row in ALL_OPERATIONS:
            if row in (INSTANCE_DISPOSE, GLOBAL_DISPOSE):
                continue
            path = re.sub(r"\{([^}]*)\}", lambda found: ids.get(found[1], "x"), row.path)
            if row.takes_body:
                for body in bodies(row):
                    await fuzz.send(row, path, body)
            elif not row.path.endswith("/session/{sessionID}") or row.method != "DELETE":
                for name in (*row.takes.__struct_encode_fields__, "directory"):
                    for value in QUERIES:
                        await fuzz.send(row, f"{path}?{name}={value}")
            if "{" in row.path:
                for value in NAMES:
                    named = re.sub(r"\{[^}]*\}", value, row.path)
                    await fuzz.send(row, named, "{}" if row.takes_body else None)
        assert fuzz.faults == []
        assert set(fuzz.statuses) >= {200, 400, 404}
        assert (await it.prompt(session))["stop"]["reason"] == "done"
        assert await it.get(f"/session/{session}/message")
        assert await it.get("/session", scope="project")
    assert [record.message for record in caplog.records] == []


# Many at once


class Endless:
    """A model that never runs out: it does what a prompt says after `DO:`,
    else says a few words.
    """

    info: ModelInfo = SCRIPT_INFO

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent]:
        """Yield an answer."""
        said = msgspec.json.encode(request.messages[-1]).decode()
        wanted = re.search(r"DO:(\w+)", said) if request.tools else None
        answer = (
            ANSWERS[wanted[1]]
            if wanted
            else ScriptedAnswer(text="Hello.", kind="main" if request.tools else "side")
        )
        answer = (
            msgspec.structs.replace(answer, tokens=TokenCount(input=10))
            if request.tools
            else answer
        )
        async for event in play_answer(answer, random.getrandbits(40)):
            yield event


ASKING = ScriptedCall("bash", {"command": "touch asked", "description": "x"})
CHOICE = {"question": "Which?", "header": "h", "options": [{"label": "a", "description": "b"}]}
ANSWERS = {
    "slow": ScriptedAnswer(text="slowly " * 20, deltas=20, delay_ms=20),
    "write": ScriptedAnswer(calls=(ScriptedCall("write", {"filePath": "a.txt", "content": "x"}),)),
    "ask": ScriptedAnswer(calls=(ASKING, ScriptedCall("question", {"questions": [CHOICE]}))),
    "task": ScriptedAnswer(
        calls=(
            ScriptedCall(
                "task", {"description": "x", "prompt": "DO:slow", "subagent_type": "general"}
            ),
        )
    ),
}
RULES = [{"permission": "bash", "pattern": "*", "action": "ask"}]
REFUSED = {200, 204, 400, 404, 409}


@dataclass
class Crowd:
    """Clients that do anything at any time to a few sessions."""

    it: Served
    sessions: list[str] = field(default_factory=list[str])
    faults: list[str] = field(default_factory=list[str])

    async def client(self, seed: int, until_then: float) -> None:
        dice = random.Random(seed)
        while time.monotonic() < until_then:
            method, path, body = await self.choice(dice)
            answer = await self.it.http.request(method, path, json=body, timeout=60)
            if answer.status_code not in REFUSED and "not summarised" not in answer.text:
                self.faults.append(f"{method} {path}: {answer.status_code} {answer.text[:200]}")
            if path == "/session" and method == "POST":
                self.sessions = [*self.sessions[-7:], answer.json()["id"]]

    async def choice(self, dice: random.Random) -> tuple[str, str, Any]:
        if not self.sessions or dice.random() < 0.05:
            return "POST", "/session", {"permission": RULES} if dice.random() < 0.5 else {}
        own = f"/session/{dice.choice(self.sessions)}"
        kind = dice.choice(
            (
                "say",
                "say",
                "say",
                "change",
                "change",
                "answer",
                "answer",
                "session",
                "session",
                "look",
            )
        )
        if kind == "say":
            text = dice.choice(("hi", "DO:slow", "DO:write", "DO:ask", "DO:task"))
            is_waited_for = text in {"hi", "DO:write"}
            path = "message" if is_waited_for else "prompt_async"
            return "POST", f"{own}/{path}", {"parts": [{"type": "text", "text": text}]}
        if kind == "answer":
            return await self.reply(dice)
        if kind == "change":
            return await self.change(dice, own)
        if kind == "look":
            return (
                "GET",
                dice.choice(
                    ("/session", "/permission", "/config", own, f"{own}/diff", f"{own}/queued")
                ),
                None,
            )
        wishes = [
            ("DELETE", own),
            ("POST", f"{own}/fork"),
            ("POST", "/global/dispose"),
            ("POST", f"{own}/unrevert"),
        ]
        method, path = dice.choice([*wishes, *[("POST", f"{own}/abort")] * 4])
        return method, path, None

    async def reply(self, dice: random.Random) -> tuple[str, str, Any]:
        for kind, body in (
            ("permission", {"reply": dice.choice(("once", "always", "reject"))}),
            ("question", {"answers": [["a"]]}),
        ):
            waiting = (await self.it.http.get(f"/{kind}")).json()
            if waiting:
                return "POST", f"/{kind}/{dice.choice(waiting)['id']}/reply", body
        return "GET", "/question", None

    async def change(self, dice: random.Random, own: str) -> tuple[str, str, Any]:
        found = (await self.it.http.get(f"{own}/message")).json()
        if not isinstance(found, list) or not found:
            return "PATCH", own, {"title": f"Title {dice.random()}"}
        message = dice.choice(found)["info"]["id"]
        wishes = [
            ("POST", f"{own}/revert", {"messageID": message}),
            ("DELETE", f"{own}/message/{message}", None),
        ]
        return dice.choice(
            [
                *wishes,
                ("POST", f"{own}/shell", {"command": "echo x"}),
                ("PATCH", own, {"title": "T"}),
            ]
        )


@pytest.mark.slow
async def test_many_clients_at_once_leave_sessions_whole(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.ERROR)
    async with served(tmp_path, Endless()) as it:
        crowd = Crowd(it)
        ending = time.monotonic() + 6
        clients = [asyncio.create_task(crowd.client(seed, ending)) for seed in range(30)]
        await wait_until(lambda: time.monotonic() > ending)
        while not all(
            client.done() for client in clients
        ):  # what waits for an answer that nobody gives any more
            for session in list((await it.get("/session/status")).keys()):
                await it.post(f"/session/{session}/abort")
            await asyncio.sleep(0.05)
        await asyncio.gather(*clients)
        assert crowd.faults == []
        for session in list((await it.get("/session/status")).keys()):
            await it.post(f"/session/{session}/abort")
        project = await it.project()
        await wait_until(lambda: not project.store.statuses)
        assert (
            project.store.list_pending_permissions(),
            project.store.list_pending_questions(),
        ) == ([], [])
        for session in project.store.list_sessions(limit=10_000):
            entries = project.store.read_conversation(session.id).entries
            answers = [entry.info for entry in entries if isinstance(entry.info, AssistantMessage)]
            assert [each.id for each in answers if each.time.completed is None] == []
            calls = [
                part for entry in entries for part in entry.parts if isinstance(part, ToolPart)
            ]
            assert [
                call.id
                for call in calls
                if isinstance(call.state, ToolStatePending | ToolStateRunning)
            ] == []
            used = session.tokens or Tokens(
                input=0, output=0, reasoning=0, cache=answers[0].tokens.cache
            )
            own = sum(each.tokens.input for each in answers)
            handed_on = any(call.tool == "task" for call in calls) or project.store.list_sessions(
                parent=session.id
            )
            assert used.input == own or (used.input > own and handed_on), session.id
    assert [record.message for record in caplog.records] == []
