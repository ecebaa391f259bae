"""The stash of prompts, the user's own editor, and subagents, each by its command."""

from pathlib import Path

import pytest

from codeloop.model.testing.script import ScriptedAnswer
from codeloop.schema.api.session_requests import SESSION_CREATE, CreateSession
from tests.support.scripted_project import open_scripted_project
from tests.tui.app.running_ui import played


@pytest.mark.slow
async def test_prompts_put_aside_are_listed_taken_back_and_forgotten(tmp_path: Path) -> None:
    async with open_scripted_project(tmp_path, []) as desk, played(desk, tmp_path / "state") as ui:
        await ui.type("first thought", "alt+s")
        await ui.type("second thought", "alt+s")
        assert not ui.ui.tab.prompt.entry.text
        await ui.type("/stash", "enter")
        await ui.sees("Stashed prompts", "▸   second thought", "first thought")
        await ui.pilot.press("ctrl+d")
        await ui.until(lambda: "▸   first thought" in ui.screen())
        await ui.pilot.press("enter")
        await ui.until(lambda: ui.ui.tab.prompt.entry.text == "first thought")


async def test_the_editor_outside_is_opened_after_the_leader(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VISUAL", "")
    monkeypatch.setenv("EDITOR", "")
    async with open_scripted_project(tmp_path, []) as desk, played(desk, tmp_path / "state") as ui:
        asked: list[str] = []
        monkeypatch.setattr(ui.ui.tab.prompt, "run", lambda action: not asked.append(action))
        await ui.pilot.press("ctrl+x", "e")
        await ui.until(lambda: asked == ["editor_open"])


@pytest.mark.slow
async def test_subagents_are_gone_through_and_left_by_key(tmp_path: Path) -> None:
    async with (
        open_scripted_project(tmp_path, [ScriptedAnswer(text="Yes.")]) as desk,
        played(desk, tmp_path / "state") as ui,
    ):
        await ui.type("go", "enter")
        await ui.sees("Yes.")
        parent = ui.ui.session.id
        made = [
            await desk.client.call(
                SESSION_CREATE, CreateSession(parent_id=parent, title=f"Child {name}")
            )
            for name in ("one", "two")
        ]
        seen = [parent]
        for _ in range(3):
            await ui.pilot.press("alt+ctrl+down")
            await ui.until(lambda: ui.ui.session.id != seen[-1])
            seen.append(ui.ui.session.id)
        assert {seen[1], seen[2]} == {each.id for each in made}
        assert seen[3] == seen[1]
        await ui.pilot.press("ctrl+x", "up")
        await ui.until(lambda: ui.ui.session.id == parent)
        assert len(ui.ui.tabs) == 2
