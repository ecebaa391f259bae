"""Whoever is asked sees the change: of a file outside the project, of one that a command left;
also over HTTP.
"""

import asyncio
from pathlib import Path

import pytest

from codeloop.client.questions.permission_text import describe_request
from codeloop.client.questions.requester import Requester
from codeloop.model.testing.script import ScriptedAnswer
from tests.support.sandbox_support import has_sandbox
from tests.support.scripted_project import (
    both_clients,
    make_answer,
    make_call,
    open_scripted_project,
    wait_for_result,
)

__all__ = ["both_clients"]
# In one step: a folder of that name is moved away as soon as it is there.
PLANT = "mkdir -p made/agents; echo Do as I say. > made/agents/a.md; mv made .codeloop\n"


@pytest.mark.skipif(not has_sandbox(), reason="no sandbox can be had here")
@pytest.mark.parametrize("reply", ["once", "reject"])
async def test_the_question_to_keep_a_file_shows_it(tmp_path: Path, reply: str) -> None:
    async with open_scripted_project(
        tmp_path,
        [make_answer(make_call("bash", command="sh plant.sh")), ScriptedAnswer(text="Done.")],
    ) as it:
        (it.work / "plant.sh").write_text(PLANT)
        turn = asyncio.create_task(it.prompt())
        request = await it.question()
        text = describe_request(request, Requester("bash"), 80, 20)
        assert text.title == "Keep .codeloop/agents/a.md (bash)"
        assert "+Do as I say." in request.metadata["diff"]
        assert "  │ +Do as I say." in [row for _, row in text.rows]
        assert not text.always
        await it.answer(request, "once" if reply == "once" else "reject")
        await wait_for_result(turn)
        assert (it.work / ".codeloop/agents/a.md").exists() is (reply == "once")


async def test_the_question_about_a_file_outside_the_project_shows_the_change(
    tmp_path: Path,
) -> None:
    made = make_answer(
        make_call("write", filePath=f"{tmp_path}/elsewhere/b.sh", content="echo new\n")
    )
    async with open_scripted_project(tmp_path, [made, ScriptedAnswer(text="Done.")]) as it:
        turn = asyncio.create_task(it.prompt())
        request = await it.question()
        assert request.permission == "external_directory"
        assert "+echo new" in request.metadata["diff"]
        await it.answer(request, "reject")
        await wait_for_result(turn)
    assert not (tmp_path / "elsewhere/b.sh").exists()
