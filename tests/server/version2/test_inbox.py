"""The inbox of version 2: prompts that wait for the end of a turn."""

from pathlib import Path
from typing import Any

from codeloop.model.testing.script import ScriptedAnswer, ScriptedCall
from tests.server.support.serving import Served, served
from tests.server.version2.test_events import followed, types_of
from tests.support.scripted_project import wait_until

RUN = ScriptedAnswer(calls=(ScriptedCall("bash", {"command": "echo hi"}),))
DONE = ScriptedAnswer(text="Done.")


async def start_turn(it: Served, events: list[Any]) -> str:
    """Start a turn that waits for an answer; return the path of its session."""
    path = f"/api/session/{(await it.post('/api/session', {}))['data']['id']}"
    await it.post(f"{path}/prompt", {"text": "go"})
    await wait_until(lambda: "permission.asked" in types_of(events))
    return path


async def end_turn(it: Served, path: str) -> None:
    (asked,) = (await it.get(f"{path}/permission"))["data"]
    await it.post(f"{path}/permission/{asked['id']}/reply", {"decision": "once"}, 204)
    await it.post(f"{path}/wait", status=204)


def name_items(events: list[Any], kind: str) -> list[str]:
    return [each["data"]["inboxID"] for each in events if each["type"] == f"session.inbox.{kind}"]


async def test_a_queued_prompt_that_is_refused_is_cancelled_and_the_others_go_on(
    tmp_path: Path,
) -> None:
    answers = [RUN, DONE, DONE, DONE]
    async with served(tmp_path, answers, permission={"bash": "ask"}) as it, followed(it) as events:
        path = await start_turn(it, events)
        file = it.work / "gone.txt"
        file.write_text("text\n")
        prompts: list[Any] = [
            {"id": "msg_one", "text": "one"},
            {"id": "msg_two", "text": "two", "files": [{"uri": file.as_uri()}]},
            {"id": "msg_three", "text": "three"},
        ]
        for each in prompts:
            await it.post(f"{path}/prompt", {**each, "delivery": "queue"})
        file.unlink()
        await end_turn(it, path)
        users = [
            each["text"]
            for each in (await it.get(f"{path}/message"))["data"]
            if each["type"] == "user"
        ]
        assert users == ["three", "one", "go"]
        await wait_until(lambda: "msg_three" in name_items(events, "delivered"))
        assert name_items(events, "cancelled") == ["msg_two"]
        enqueued = name_items(events, "enqueued")
        assert enqueued[1:] == ["msg_one", "msg_two", "msg_three"]


async def test_a_prompt_that_can_not_be_stored_is_not_queued(tmp_path: Path) -> None:
    answers = [RUN, DONE]
    async with served(tmp_path, answers, permission={"bash": "ask"}) as it, followed(it) as events:
        path = await start_turn(it, events)
        (sent,) = (await it.get(f"{path}/message", order="asc", limit=1))["data"]
        for more in (
            {"files": [{"uri": (it.work / "gone.txt").as_uri()}]},
            {"id": "not an id"},
            {"id": sent["id"]},
        ):
            refused = await it.post(
                f"{path}/prompt", {"text": "later", "delivery": "queue", **more}, 400
            )
            assert refused["_tag"] == "InvalidRequestError"
        assert [each for each in name_items(events, "enqueued") if each != sent["id"]] == []
        await end_turn(it, path)
