"""An open project: what it tells its user."""

import asyncio
from pathlib import Path

from codeloop.model.testing.script import ScriptedAnswer
from codeloop.schema.live_events import Toast, ToastShown
from tests.support.scripted_project import open_scripted_project


async def test_problems_with_instruction_files_are_shown_once(tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    (work / "AGENTS.md").write_bytes(b"caf\xe9")
    answers = [ScriptedAnswer(text="One."), ScriptedAnswer(text="Two.")]
    async with open_scripted_project(tmp_path, answers, instructions=["none/*.md"]) as it:
        toasts: list[Toast] = []

        async def follow() -> None:
            async for stamped in it.project.store.follow():
                toasts.extend(
                    [stamped.event.properties] if isinstance(stamped.event, ToastShown) else []
                )

        following = asyncio.create_task(follow())
        await asyncio.sleep(0)
        await it.prompt("one")
        await it.prompt("two")
        await asyncio.sleep(0)
        following.cancel()
        # On some machines a sandbox holds less, which is told as well.
        told = [
            toast
            for toast in toasts
            if "Landlock" not in toast.message and "sandbox" not in toast.message
        ]
        assert [(toast.variant, toast.message) for toast in told] == [
            ("warning", f"{work / 'AGENTS.md'} is not UTF-8 text: not read."),
            ("warning", "instructions: no readable file matches 'none/*.md'."),
        ]
