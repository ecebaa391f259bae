"""Files by which something runs later on are asked about once in a session, by whatever tool they are changed."""

import asyncio
from pathlib import Path

from codeloop.model.testing.script import ScriptedAnswer
from codeloop.permission.gate import KEPT_KEY
from tests.support.project import call, calls, rig, within


async def test_instructions_are_asked_about_once_in_a_session(tmp_path: Path) -> None:
    script = [
        calls(call("write", filePath="AGENTS.md", content="one\n")),
        calls(call("edit", filePath="AGENTS.md", oldString="one", newString="two")),
        calls(call("bash", command="echo three >> AGENTS.md")),
        calls(call("write", filePath="CLAUDE.md", content="x\n")),
        ScriptedAnswer(text="Done."),
    ]
    async with rig(tmp_path, script, permission={"bash": "allow"}) as it:
        turn = asyncio.create_task(it.prompt())
        for name in ("AGENTS.md", "CLAUDE.md"):
            asked = await it.question()
            assert (asked.permission, asked.patterns, asked.metadata[KEPT_KEY]) == ("edit", [name], True)
            await it.answer(asked, "once")
        await within(turn)
        assert (it.work / "AGENTS.md").read_text() == "two\nthree\n"
        assert (it.work / "CLAUDE.md").exists()


async def test_protected_files_are_asked_about_each_time(tmp_path: Path) -> None:
    script = [
        calls(call("write", filePath="codeloop.json", content="{}\n")),
        calls(call("edit", filePath="codeloop.json", oldString="{}", newString="{ }")),
        ScriptedAnswer(text="Done."),
    ]
    async with rig(tmp_path, script) as it:
        turn = asyncio.create_task(it.prompt())
        for _ in range(2):
            asked = await it.question()
            assert KEPT_KEY not in asked.metadata
            await it.answer(asked, "once")
        await within(turn)
        assert (it.work / "codeloop.json").read_text() == "{ }\n"
