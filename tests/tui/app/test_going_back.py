"""Escape twice goes back to an earlier prompt, and once means what it meant;
a key goes through the profiles.
"""

from pathlib import Path

import pytest

from codeloop.model.testing.script import ScriptedAnswer
from codeloop.schema.permission import PROFILE_KEY
from tests.support.scripted_project import open_scripted_project
from tests.tui.app.running_ui import played

AGAIN = "again to go back to a prompt"


@pytest.mark.slow
async def test_escape_twice_in_an_empty_prompt_goes_back_to_one(tmp_path: Path) -> None:
    vim = tmp_path / "vim.json"
    vim.write_text('{"vim": true}')
    answers = [ScriptedAnswer(text="One done."), ScriptedAnswer(text="Two done.")]
    async with (
        open_scripted_project(tmp_path, answers) as desk,
        played(desk, tmp_path / "state", settings=(vim,), size=(100, 30)) as ui,
    ):
        await ui.pilot.press("escape", "escape")  # there is nothing to go back to
        assert len(ui.ui.screen_stack) == 1
        await ui.type("i")
        for words, answer in (("first wish", "One done."), ("second wish", "Two done.")):
            await ui.type(words, "enter")
            await ui.answered(answer)
        await ui.pilot.press("escape")  # to normal mode
        assert AGAIN not in ui.screen()
        await ui.pilot.press("escape")
        await ui.sees(AGAIN)
        await ui.pilot.press("escape")
        await ui.sees("Go back to a prompt", "first wish")
        await ui.pilot.press("down", "enter")
        await ui.sees("Undo this prompt and what follows?")
        await ui.pilot.press("y")
        await ui.until(lambda: ui.ui.tab.prompt.entry.text == "first wish")
        session = desk.project.store.find_session(ui.ui.session.id)
        assert session is not None
        assert session.revert is not None


@pytest.mark.slow
async def test_a_key_goes_through_the_profiles_but_the_boldest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with (
        open_scripted_project(tmp_path, [ScriptedAnswer(text="Hello.")]) as desk,
        played(desk, tmp_path / "state") as ui,
    ):
        seen, notes = list[str](), list[str]()
        monkeypatch.setattr(ui.ui, "notify", lambda message, **_: notes.append(message))
        await ui.type("hello", "enter")
        await ui.sees("Hello.")
        for _ in range(4):
            await ui.pilot.press("alt+m")
            await ui.until(lambda: ui.ui.choices.get_profile(ui.ui.tab) not in {"", *seen[-1:]})
            seen.append(ui.ui.choices.get_profile(ui.ui.tab))
        assert seen == ["read-only", "ask", "auto", "read-only"]
        session = desk.project.store.find_session(ui.ui.session.id)
        assert session is not None
        assert (session.metadata or {})[PROFILE_KEY] == "read-only"
        await ui.until(lambda: len(notes) == 4)
        assert "reads and plans" in notes[-1]
