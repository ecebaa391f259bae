"""The events of version 2: each of a turn is of the contract, and the durable ones are read again
from the log of the session.
"""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec

from codeloop.model.testing.script import ScriptedAnswer, ScriptedCall
from codeloop.schema.bounds.server import SERVER_STREAMS
from codeloop.schema.ids import now_ms
from codeloop.server.events.subscriber import Subscriber
from tests.server.support.serving import Served, served
from tests.server.version2.contract import find_problem, read_contract
from tests.support.scripted_project import wait_until

DONE = ScriptedAnswer(text="Done.", reasoning="Well.")
RUN = ScriptedAnswer(calls=(ScriptedCall("bash", {"command": "echo hi"}),))
QUESTION = {"question": "Which?", "header": "Which", "options": [{"label": "A", "description": ""}]}
ASK = ScriptedAnswer(calls=(ScriptedCall("question", {"questions": [QUESTION]}),))


@asynccontextmanager
async def followed(it: Served, path: str = "/api/event") -> AsyncGenerator[list[Any]]:
    """Follow a stream; the list grows with its events."""
    events: list[Any] = []
    async with it.http.stream("GET", path) as stream:

        async def read() -> None:
            async for line in stream.aiter_lines():
                events.extend([msgspec.json.decode(line[6:])] if line.startswith("data: ") else [])

        reading = asyncio.create_task(read())
        await wait_until(lambda: bool(events))
        try:
            yield events
        finally:
            reading.cancel()
            await asyncio.gather(reading, return_exceptions=True)


def list_problems(events: list[Any], operation: str) -> list[str]:
    kind = read_contract()[0][operation].answer.removeprefix("SSE ")
    found = [f"{each['type']}: {find_problem(each, kind)}" for each in events]
    return [each for each in found if not each.endswith(": ")]


def types_of(events: list[Any]) -> list[str]:
    return [each["type"] for each in events]


async def answer_all(it: Served, session: str, events: list[Any]) -> None:
    """Allow what is asked, and answer the forms, until the turn is over."""
    path = f"/api/session/{session}"
    await wait_until(lambda: "permission.asked" in types_of(events))
    (asked,) = (await it.get(f"{path}/permission"))["data"]
    await it.post(f"{path}/permission/{asked['id']}/reply", {"decision": "once"}, 204)
    await wait_until(lambda: "form.created" in types_of(events))
    (form,) = (await it.get(f"{path}/form"))["data"]
    wrong = await it.post(f"{path}/form/{form['id']}/reply", {"answer": {}}, 400)
    assert wrong["_tag"] == "FormInvalidAnswerError"
    await it.post(f"{path}/form/{form['id']}/reply", {"answer": {"question0": "A"}}, 204)
    await wait_until(lambda: "session.execution.succeeded" in types_of(events))


async def test_a_turn_is_told_as_the_contract_has_it(tmp_path: Path) -> None:
    answers = [RUN, ASK, DONE]
    async with served(tmp_path, answers, permission={"bash": "ask"}) as it, followed(it) as events:
        session = (await it.post("/api/session", {"id": "ses_mine"}))["data"]["id"]
        await it.post(f"/api/session/{session}/prompt", {"id": "msg_mine", "text": "go"})
        await answer_all(it, session, events)
        assert list_problems(events, "event.subscribe") == []
        told = types_of(events)
        for first, second in (
            ("server.connected", "session.created"),
            ("session.created", "session.inbox.enqueued"),
            ("session.inbox.enqueued", "session.inbox.delivered"),
            ("session.execution.started", "session.step.started"),
            ("session.step.started", "session.tool.input.started"),
            ("session.tool.input.started", "session.tool.called"),
            ("session.tool.called", "permission.asked"),
            ("permission.asked", "permission.replied"),
            ("permission.replied", "session.tool.success"),
            ("session.tool.success", "session.step.ended"),
            ("form.created", "form.replied"),
            ("session.text.started", "session.text.delta"),
            ("session.text.delta", "session.text.ended"),
            ("session.text.ended", "session.execution.succeeded"),
        ):
            assert told.index(first) < told.index(second), (first, second, told)
        called = next(each for each in events if each["type"] == "session.inbox.enqueued")
        assert (called["data"]["inboxID"], called["location"]) == (
            "msg_mine",
            {"directory": str(it.work)},
        )
        (started,) = [each for each in events if each["type"] == "session.text.started"]
        deltas = [each["data"] for each in events if each["type"] == "session.text.delta"]
        assert {each["ordinal"] for each in deltas} == {started["data"]["ordinal"]} == {0}
        assert "".join(each["delta"] for each in deltas) == "Done."
        numbers = [each["durable"]["seq"] for each in events if "durable" in each]
        assert numbers == sorted(set(numbers))


async def test_the_log_holds_the_durable_events_from_a_number_on(tmp_path: Path) -> None:
    async with served(tmp_path, [DONE, DONE]) as it:
        session = (await it.post("/api/session", {}))["data"]["id"]
        path = f"/api/experimental/session/{session}/log"
        await it.post(f"/api/session/{session}/prompt", {"text": "go"})
        await it.post(f"/api/experimental/session/{session}/wait", status=204)
        text = (await it.http.get(path)).text
        events = [msgspec.json.decode(each[6:]) for each in text.splitlines() if each]
        assert list_problems(events, "session.log") == []
        told = types_of(events)
        assert told[0] == "session.created"
        assert told[-2:] == ["session.execution.succeeded", "log.synced"]
        assert {"session.text.ended", "session.step.ended", "session.inbox.delivered"} <= set(told)
        after = events[3]["durable"]["seq"]
        rest = (await it.http.get(path, params={"after": after})).text
        again = [msgspec.json.decode(each[6:]) for each in rest.splitlines() if each]
        assert [each["id"] for each in again if "id" in each] == [
            each["id"] for each in events[4:] if "id" in each
        ]
        async with followed(it, f"{path}?after={events[-1]['seq']}&follow=true") as followed_events:
            await it.post(f"/api/session/{session}/prompt", {"text": "more"})
            await wait_until(lambda: "session.execution.succeeded" in types_of(followed_events))
            assert types_of(followed_events)[0] == "log.synced"
            assert list_problems(followed_events, "session.log") == []


async def test_events_are_dated_by_what_is_stored(tmp_path: Path) -> None:
    async with served(tmp_path, [DONE]) as it, followed(it) as events:
        start = now_ms()
        session = (await it.post("/api/session", {}))["data"]
        await it.post(f"/api/session/{session['id']}/prompt", {"text": "go"})
        await it.post(f"/api/session/{session['id']}/wait", status=204)
        await wait_until(lambda: "session.execution.succeeded" in types_of(events))
        end = now_ms()
        assert [each for each in events[1:] if not start <= each["created"] <= end] == []
        text = (await it.http.get(f"/api/experimental/session/{session['id']}/log")).text
        log = [msgspec.json.decode(each[6:]) for each in text.splitlines() if each][:-1]
        assert [each for each in log if not start <= each["created"] <= end] == []
        times = {each["type"]: each["created"] for each in log}
        answer, prompt = (await it.get(f"/api/session/{session['id']}/message"))["data"]
        assert times["session.created"] == session["time"]["created"]
        assert times["session.inbox.enqueued"] == prompt["time"]["created"]
        assert times["session.step.started"] == answer["time"]["created"]
        assert times["session.step.ended"] == answer["time"]["completed"]


async def test_a_followed_log_is_kept_alive_and_counts_as_a_stream(tmp_path: Path) -> None:
    async with served(tmp_path) as it:
        hub = it.server.hub
        hub.heartbeat_seconds = 0.05
        path = f"/api/experimental/session/{await it.session()}/log?follow=true"
        others = [Subscriber(is_version2=True) for _ in range(SERVER_STREAMS.value - 1)]
        for each in others:
            hub.add_subscriber(each, None)
        async with it.http.stream("GET", path) as stream:
            lines = stream.aiter_lines()
            while await anext(lines) != ": server.heartbeat":
                pass
            refused = await it.http.get(path)
            assert (refused.status_code, refused.headers["retry-after"]) == (503, "5")
            assert (await it.http.get("/event")).status_code == 503
        await wait_until(lambda: not hub.is_full)
        async with followed(it, path) as events:
            assert types_of(events)
        for each in others:
            hub.remove_subscriber(each)


async def test_a_turn_that_is_ended_is_interrupted_and_what_waits_can_be_cancelled(
    tmp_path: Path,
) -> None:
    async with served(tmp_path, [RUN], permission={"bash": "ask"}) as it, followed(it) as events:
        session = (await it.post("/api/session", {}))["data"]["id"]
        path = f"/api/session/{session}"
        await it.post(f"{path}/prompt", {"text": "go"})
        await wait_until(lambda: "permission.asked" in types_of(events))
        later = {"text": "later", "delivery": "queue", "id": "msg_later"}
        assert (await it.post(f"{path}/prompt", later))["data"]["delivery"] == "queue"
        assert [each["id"] for each in (await it.get(f"{path}/inbox"))["data"]] == ["msg_later"]
        assert (await it.http.delete(f"{path}/inbox/msg_later")).status_code == 204
        assert (await it.post(f"{path}/interrupt")) == {"interrupted": True}
        await wait_until(lambda: "session.execution.interrupted" in types_of(events))
        assert "session.inbox.cancelled" in types_of(events)
        assert list_problems(events, "event.subscribe") == []


async def test_missing_routes_and_wrong_methods_have_tags(tmp_path: Path) -> None:
    async with served(tmp_path) as it:
        assert (await it.get("/api/nothing", 404))["_tag"] == "NotFoundError"
        wrong = await it.http.delete("/api/info")
        assert (wrong.status_code, wrong.json()["_tag"]) == (405, "MethodNotAllowedError")
        assert wrong.headers["allow"] == "GET"
        refused = await it.anonymous.get("/api/info")
        assert (refused.status_code, refused.json()["_tag"]) == (401, "UnauthorizedError")
        assert (await it.anonymous.get("/session")).content == b""
