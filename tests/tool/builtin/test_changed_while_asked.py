"""An answer may take days: what was asked about has to be what is there then."""

import asyncio
import subprocess
from pathlib import Path

import pytest

from codeloop.model.testing.script import ScriptedAnswer, ScriptedCall
from codeloop.schema.part import ToolStateError
from tests.support.scripted_project import (
    ScriptedProject,
    make_answer,
    make_call,
    open_scripted_project,
    wait_for_result,
)

DONE = ScriptedAnswer(text="Done.")
ASKING = {"bash": {"*": "ask"}, "external_directory": {"*": "ask"}}


def swapped(link: Path, target: Path) -> None:
    link.unlink()
    link.symlink_to(target)


async def test_a_file_that_became_a_link_is_asked_about_anew(tmp_path: Path) -> None:
    async with open_scripted_project(
        tmp_path, [make_answer(make_call("bash", command="cat notes")), DONE], permission=ASKING
    ) as it:
        (it.work / "notes").write_text("harmless\n")
        (it.work / ".env").write_text("KEY=5f2c\n")
        turn = asyncio.create_task(it.prompt())
        asked = await it.question()
        assert asked.permission == "bash"
        swapped(it.work / "notes", it.work / ".env")
        await it.answer(asked, "once")
        again = await it.question()
        assert (again.permission, again.patterns) == ("read", [".env"])
        await it.answer(again, "reject", "not that")
        await wait_for_result(turn)
        assert "KEY" not in it.results()[0]


async def test_what_did_not_change_is_not_asked_about_twice(tmp_path: Path) -> None:
    async with open_scripted_project(
        tmp_path,
        [make_answer(make_call("bash", command="cat notes > copy")), DONE],
        permission=ASKING,
    ) as it:
        (it.work / "notes").write_text("harmless\n")
        turn = asyncio.create_task(it.prompt())
        await it.answer(await it.question(), "once")
        await wait_for_result(turn)
        assert (it.work / "copy").read_text() == "harmless\n"


async def test_a_rule_needs_its_proof_when_the_line_runs(tmp_path: Path) -> None:
    """The line is asked about for its other command; meanwhile `git` finds another repository."""
    rules = {"bash": {"*": "ask", "git status *": "allow"}}
    script = [make_answer(make_call("bash", command="git status; touch x")), DONE]
    async with open_scripted_project(tmp_path, script, permission=rules, sandbox="off") as it:
        subprocess.run(["git", "init", "-q"], cwd=it.work, check=True)
        turn = asyncio.create_task(it.prompt())
        asked = await it.question()
        assert asked.patterns == ["touch x"]
        (it.work / ".git").rename(tmp_path / "gone")
        subprocess.run(["git", "init", "-q", "--bare"], cwd=it.work, check=True)
        await it.answer(asked, "once")
        again = await it.question()
        assert "git status" in again.patterns
        await it.answer(again, "reject")
        await wait_for_result(turn)
        assert not (it.work / "x").exists()


@pytest.mark.parametrize(
    "made",
    [
        make_call("grep", pattern="KEY", path="link"),
        make_call("glob", pattern="*", path="link"),
        make_call("list", path="link"),
        make_call("read", filePath="link"),
    ],
    ids=lambda made: str(made.name),
)
async def test_a_link_that_leads_elsewhere_by_then_is_not_followed(
    tmp_path: Path, made: ScriptedCall
) -> None:
    async with open_scripted_project(tmp_path, [make_answer(made), DONE], permission=ASKING) as it:
        for name in ("shown", "hidden"):
            (tmp_path / name).mkdir()
            (tmp_path / name / f"{name}.txt").write_text(f"KEY={name}\n")
        (it.work / "link").symlink_to(tmp_path / "shown")
        turn = asyncio.create_task(it.prompt())
        asked = await it.question()
        assert asked.patterns == [f"{tmp_path}/shown/*"]
        swapped(it.work / "link", tmp_path / "hidden")
        await it.answer(asked, "once")
        await wait_for_result(turn)
        assert _failed(it)
        assert "hidden" not in it.results()[0]


def _failed(it: ScriptedProject) -> bool:
    return isinstance(it.calls()[0].state, ToolStateError)
