"""Files by which something runs later on are asked about once in a session,
by whatever tool they are changed.
"""

import asyncio
from pathlib import Path

from codeloop.model.testing.script import ScriptedAnswer
from codeloop.permission.gate import KEPT_KEY
from tests.support.scripted_project import (
    make_answer,
    make_call,
    open_scripted_project,
    wait_for_result,
)


async def test_instructions_are_asked_about_once_in_a_session(tmp_path: Path) -> None:
    script = [
        make_answer(make_call("write", filePath="AGENTS.md", content="one\n")),
        make_answer(make_call("edit", filePath="AGENTS.md", oldString="one", newString="two")),
        make_answer(make_call("bash", command="echo three >> AGENTS.md")),
        make_answer(make_call("write", filePath="CLAUDE.md", content="x\n")),
        ScriptedAnswer(text="Done."),
    ]
    async with open_scripted_project(tmp_path, script, permission={"bash": "allow"}) as it:
        turn = asyncio.create_task(it.prompt())
        for name in ("AGENTS.md", "CLAUDE.md"):
            asked = await it.question()
            assert (asked.permission, asked.patterns, asked.metadata[KEPT_KEY]) == (
                "edit",
                [name],
                True,
            )
            await it.answer(asked, "once")
        await wait_for_result(turn)
        assert (it.work / "AGENTS.md").read_text() == "two\nthree\n"
        assert (it.work / "CLAUDE.md").exists()


async def test_protected_files_are_asked_about_each_time(tmp_path: Path) -> None:
    script = [
        make_answer(make_call("write", filePath="codeloop.json", content="{}\n")),
        make_answer(make_call("edit", filePath="codeloop.json", oldString="{}", newString="{ }")),
        ScriptedAnswer(text="Done."),
    ]
    async with open_scripted_project(tmp_path, script) as it:
        turn = asyncio.create_task(it.prompt())
        for _ in range(2):
            asked = await it.question()
            assert KEPT_KEY not in asked.metadata
            await it.answer(asked, "once")
        await wait_for_result(turn)
        assert (it.work / "codeloop.json").read_text() == "{ }\n"
