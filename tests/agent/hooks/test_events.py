"""Commands of `hooks` at what happens beside calls: subagents that end, summaries,
what waits for a person.
"""

import asyncio
import json
import shlex
from pathlib import Path
from typing import Any

import pytest

from codeloop.extend.hooks.directory_events import follow_directory
from codeloop.model.chat import ModelInfo, TokenLimits
from codeloop.model.testing.script import ScriptedAnswer, TokenCount
from codeloop.schema.api.session_inputs import SUMMARIZE, Summarize
from codeloop.schema.errors import OperationError
from codeloop.schema.event import MessageUpdated
from codeloop.schema.live_events import PartDelta
from tests.support.scripted_project import make_answer, make_call, open_scripted_project, wait_until

DONE = ScriptedAnswer(text="Done.")
NOTE = ScriptedAnswer(kind="side", text="NOTE")


def keeping(log: Path, matcher: str = "", then: str = "true") -> list[dict[str, Any]]:
    command = f"cat >> {shlex.quote(str(log))}; echo >> {shlex.quote(str(log))}; {then}"
    return [{"matcher": matcher, "hooks": [{"type": "command", "command": command}]}]


OUTSIDE: dict[str, Any] = {"sandbox": {"extensions": False}}
"""For hooks that leave traces for a test to see."""


def kept(log: Path) -> list[dict[str, Any]]:
    return (
        [json.loads(line) for line in log.read_text().splitlines() if line] if log.exists() else []
    )


async def test_a_subagent_that_ends_is_sent_on_and_no_stop_of_the_session(tmp_path: Path) -> None:
    log, stops = tmp_path / "log", tmp_path / "stops"
    hooks = {
        "SubagentStop": keeping(
            log, then=f"[ $(grep -c Subagent {log}) -gt 1 ] || {{ echo 'and more' >&2; exit 2; }}"
        ),
        "Stop": keeping(stops),
    }
    task = make_call("task", description="d", prompt="p", subagent_type="general")
    async with open_scripted_project(
        tmp_path, [make_answer(task), DONE, DONE, DONE], hooks=hooks, **OUTSIDE
    ) as it:
        await it.prompt()
        assert len(it.model.requests) == 4
        assert [each["stop_hook_active"] for each in kept(log)] == [False, True]
        assert len(kept(stops)) == 1
        (child,) = it.project.store.list_sessions(parent=it.session_id)
        assert {each["session_id"] for each in kept(log)} == {child.id}


async def test_a_summary_is_told_of_with_what_made_it(tmp_path: Path) -> None:
    log = tmp_path / "log"
    async with open_scripted_project(
        tmp_path, [DONE, NOTE], hooks={"PreCompact": keeping(log, "manual")}, **OUTSIDE
    ) as it:
        await it.prompt()
        await it.client.call(
            SUMMARIZE,
            Summarize(session_id=it.session_id, provider_id="scripted", model_id="script"),
        )
        assert [each["trigger"] for each in kept(log)] == ["manual"]


def telling(log: Path, text: str) -> list[dict[str, Any]]:
    return keeping(log, "compact", f"echo {shlex.quote(text)}")


@pytest.mark.slow
async def test_a_session_begins_anew_with_the_summary_of_it(tmp_path: Path) -> None:
    """By itself the turn goes on with what hooks say; by hand the next prompt carries it."""
    log = tmp_path / "log"
    hooks = {"SessionStart": telling(log, "keep to the plan")}
    full = ScriptedAnswer(
        calls=(make_call("bash", command="echo hi"),), tokens=TokenCount(input=7_000, output=10)
    )
    small = ModelInfo(
        provider_id="scripted",
        id="script",
        name="S",
        limits=TokenLimits(context=8_000, output=1_000),
    )
    async with open_scripted_project(
        tmp_path, [full, NOTE, DONE, NOTE, DONE, DONE], info=small, hooks=hooks, **OUTSIDE
    ) as it:
        await it.prompt()
        assert "keep to the plan" in str(it.model.requests[2].messages[-1])
        assert len(kept(log)) == 1
        await it.client.call(
            SUMMARIZE,
            Summarize(session_id=it.session_id, provider_id="scripted", model_id="script"),
        )
        assert len(kept(log)) == 1
        await it.prompt("more")
        assert "keep to the plan" in str(it.model.requests[4].messages[-1])
        await it.prompt("and more")
        assert {each["source"] for each in kept(log)} == {"compact"}
        assert len(kept(log)) == 2


async def test_a_summary_that_a_hook_refuses_is_not_made(tmp_path: Path) -> None:
    hooks = {"PreCompact": keeping(tmp_path / "log", then="echo 'not now' >&2; exit 2")}
    async with open_scripted_project(tmp_path, [DONE, NOTE, DONE], hooks=hooks, **OUTSIDE) as it:
        await it.prompt()
        wanted = Summarize(session_id=it.session_id, provider_id="scripted", model_id="script")
        with pytest.raises(OperationError, match="not now"):
            await it.client.call(SUMMARIZE, wanted)
        assert len(it.model.requests) == 1
        answer = await it.prompt("go on")
        assert answer.stop is not None
        assert answer.stop.reason == "done"
        assert "NOTE" not in str(it.model.requests)


async def test_what_waits_for_a_person_is_told(tmp_path: Path) -> None:
    log = tmp_path / "log"
    settings: dict[str, Any] = {
        "permission": {"bash": "ask"},
        "profile": "ask",
        "hooks": {"Notification": keeping(log)},
        **OUTSIDE,
    }
    async with open_scripted_project(
        tmp_path, [make_answer(make_call("bash", command="touch a")), DONE], **settings
    ) as it:
        asking = asyncio.create_task(it.prompt())
        request = await it.question()
        await wait_until(lambda: kept(log))
        (told,) = kept(log)
        assert told["notification_type"] == "permission_prompt"
        assert "bash touch a" in told["message"]
        await it.answer(request, "once")
        await asking


async def test_a_follower_hears_what_happens_in_its_directory(tmp_path: Path) -> None:
    heard: set[type] = set()

    async with open_scripted_project(tmp_path, [DONE]) as it:

        async def follow() -> None:
            async for event in follow_directory(it.project.store, it.work):
                heard.add(type(event))

        following = asyncio.create_task(follow())
        await asyncio.sleep(0)
        await it.prompt()
        await wait_until(lambda: {MessageUpdated, PartDelta} <= heard)
        following.cancel()
