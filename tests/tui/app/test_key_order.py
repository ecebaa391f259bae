"""Keys that are typed faster than what they are for can open."""

from pathlib import Path

import pytest
from textual import events

from codeloop.model.testing.script import ScriptedAnswer
from tests.support.scripted_project import open_scripted_project
from tests.tui.app.running_ui import Played, played


def burst(ui: Played, *keys: str) -> None:
    """Press keys at once; a text is its letters."""
    for key in keys:
        for each in [key] if key in {"enter", "escape", "f1"} or "+" in key else key:
            name = {" ": "space", "/": "slash"}.get(each, each)
            ui.ui.post_message(
                events.Key(name, {"enter": "\r"}.get(each, each) if len(each) == 1 else None)
            )


@pytest.mark.slow
async def test_what_is_typed_right_after_a_command_goes_to_what_it_opens(tmp_path: Path) -> None:
    own = tmp_path / "tui.json"
    async with (
        open_scripted_project(tmp_path, [ScriptedAnswer(text="Hello.")]) as desk,
        played(desk, tmp_path / "state", settings=(own,), own_settings=own) as ui,
    ):
        await ui.type("hello", "enter")
        await ui.sees("Hello.")
        burst(ui, "ctrl+p", "show the status", "enter")
        await ui.sees(f"{ui.ui.session.id}  ")
        burst(ui, "/themes", "enter", "nord", "enter")
        await ui.until(
            lambda: ui.ui.appearance.theme_name == "nord" and len(ui.ui.screen_stack) == 1
        )
        burst(ui, "ctrl+x", "n", "for the new one")
        await ui.until(
            lambda: ui.ui.tab.session is None and ui.ui.tab.prompt.entry.text == "for the new one"
        )
        burst(ui, "f1", "previous tab", "enter", "back")
        await ui.until(
            lambda: ui.ui.tab.session is not None and ui.ui.tab.prompt.entry.text == "back"
        )
        burst(ui, "ctrl+p", "settings", "enter", "vim", "enter", "true", "enter")
        await ui.until(lambda: ui.ui.tab.prompt.editor.vim is not None)
        assert ui.ui.tab.prompt.entry.text == "back"
        assert len(desk.project.store.read_conversation(ui.ui.session.id).entries) == 2
