"""Several calls in one: each with its own permission check and result."""

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest

from codeloop.model.testing.script import ScriptedAnswer
from codeloop.schema.limits import BATCH_CALLS
from codeloop.schema.part import ToolStateCompleted, ToolStateError
from tests.support.scripted_project import (
    make_answer,
    make_call,
    open_scripted_project,
    wait_for_result,
    wait_until,
)

DONE = ScriptedAnswer(text="Done.")


def one(name: str, **parameters: Any) -> dict[str, Any]:
    return {"tool": name, "parameters": parameters}


def script(*made: dict[str, Any]) -> list[ScriptedAnswer]:
    return [make_answer(make_call("batch", tool_calls=list(made))), DONE]


ALLOWED = {"batch": "allow"}
SLEEP = f"sleep 600.{os.getpid()}"
"""A command that is known from those of other runs of these tests."""


@pytest.mark.slow
async def test_the_full_number_of_calls_runs_and_each_has_its_result(tmp_path: Path) -> None:
    made = [one("glob", pattern=f"{number}.txt") for number in range(BATCH_CALLS.value)]
    async with open_scripted_project(tmp_path, script(*made), permission=ALLOWED) as it:
        (it.work / "7.txt").touch()
        await it.prompt()
        (part,) = it.calls()
        assert isinstance(part.state, ToolStateCompleted)
        assert part.state.title == "25 of 25 calls succeeded"
        assert part.state.output.count("<result ") == BATCH_CALLS.value
        assert '<result call="8" tool="glob" ok="true">\n7.txt' in part.state.output
        assert len(part.state.metadata["details"]) == BATCH_CALLS.value


async def test_one_call_more_is_refused_and_none_runs(tmp_path: Path) -> None:
    made = [
        one("write", filePath=f"{number}", content="x") for number in range(BATCH_CALLS.value + 1)
    ]
    async with open_scripted_project(tmp_path, script(*made), permission=ALLOWED) as it:
        await it.prompt()
        assert "tool_calls" in it.results()[0]
        assert list(it.work.iterdir()) == []


async def test_a_call_that_fails_does_not_touch_the_others(tmp_path: Path) -> None:
    made = [
        one("read", filePath="missing"),
        one("write", filePath="a", content="x"),
        one("nonsense"),
        one("glob"),
        one("batch", tool_calls=[]),
    ]
    async with open_scripted_project(tmp_path, script(*made), permission=ALLOWED) as it:
        await it.prompt()
        (part,) = it.calls()
        assert isinstance(part.state, ToolStateCompleted)
        assert (part.state.metadata["successful"], part.state.metadata["failed"]) == (1, 4)
        assert (it.work / "a").read_text() == "x"
        for reason in (
            "File not found",
            "no tool named nonsense",
            "pattern",
            "no tool named batch",
        ):
            assert reason in part.state.output


@pytest.mark.slow
async def test_each_call_is_asked_for_by_itself_and_a_refusal_with_words_is_its_result(
    tmp_path: Path,
) -> None:
    made = [
        one("bash", command="touch a"),
        one("bash", command="touch b"),
        one("bash", command="touch c"),
    ]
    rules = {**ALLOWED, "bash": {"*": "ask", "touch c*": "deny"}}
    async with open_scripted_project(tmp_path, script(*made), permission=rules) as it:
        turn = asyncio.create_task(it.prompt())
        for request in await it.questions(2):
            wanted = "touch a" in str(request.metadata)
            await it.answer(request, "once" if wanted else "reject", None if wanted else "not this")
        await wait_for_result(turn)
        assert [path.name for path in it.work.iterdir()] == ["a"]
        output = it.results()[0]
        assert "not this" in output
        assert output.count('ok="false"') == 2


async def test_a_refusal_without_words_ends_all_of_them_and_the_turn(tmp_path: Path) -> None:
    made = [one("bash", command="touch a"), one("bash", command=f"{SLEEP} && touch b")]
    rules = {**ALLOWED, "bash": {"*": "allow", "touch a*": "ask"}}
    async with open_scripted_project(tmp_path, script(*made), permission=rules) as it:
        turn = asyncio.create_task(it.prompt())
        asked = await it.question()
        await wait_until(_commands)
        await it.answer(asked, "reject")
        answer = await wait_for_result(turn)
        assert answer.stop.reason == "rejected"
        assert isinstance(it.calls()[0].state, ToolStateError)
        assert list(it.work.iterdir()) == []
        assert _commands() == []


def _commands() -> list[str]:
    found: list[str] = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            found.append(
                (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
            )
        except OSError:
            continue
    return [line for line in found if line.startswith(SLEEP)]


async def test_it_is_only_offered_when_a_person_allows_it(tmp_path: Path) -> None:
    async with open_scripted_project(tmp_path, [DONE]) as it:
        await it.prompt()
        assert "batch" not in [spec.name for spec in it.model.requests[-1].tools]
