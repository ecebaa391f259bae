"""The UI's own settings in the dialog: what they are, where they are set,
and a change that holds at once.
"""

from pathlib import Path
from typing import Any

import pytest

from tests.support.scripted_project import open_scripted_project
from tests.tui.app.running_ui import played


@pytest.mark.slow
async def test_a_setting_of_the_ui_is_changed_written_and_taken_back(tmp_path: Path) -> None:
    own = tmp_path / "config" / "tui.json"
    given: Any = {"size": (120, 40), "settings": (own,), "own_settings": own}
    async with (
        open_scripted_project(tmp_path, []) as desk,
        played(desk, tmp_path / "state", **given) as ui,
    ):
        await ui.until(lambda: ui.ui.opened_event.is_set())
        await ui.type("/settings", "enter")
        await ui.sees(
            "Terminal UI (tui.json)", "codeloop (default)", "vim", "false (default)", "This project"
        )
        await ui.type("vim")
        await ui.sees("▸   vim")
        await ui.pilot.press("enter")
        await ui.sees("the keys of vi in the prompt", "● false")
        await ui.pilot.press("up", "enter")
        await ui.until(lambda: own.exists() and ui.ui.tab.prompt.editor.vim is not None)
        assert own.read_text() == '{\n  "vim": true\n}\n'
        await ui.sees("vim", "true", "tui.json")
        await ui.pilot.press("ctrl+d")
        await ui.until(lambda: ui.ui.tab.prompt.editor.vim is None)
        assert own.read_text().split() == ["{", "}"]
        await ui.pilot.press("ctrl+u")
        await ui.type("scroll")
        await ui.sees("▸   scroll_speed", "2 (default)")
        await ui.pilot.press("enter")
        await ui.sees("rows that one turn")
        await ui.type("many", "enter")
        await ui.until(lambda: len(ui.ui.screen_stack) == 2)
        await ui.sees("2 (default)")
        await ui.pilot.press("enter")
        await ui.sees("rows that one turn")
        await ui.type("5", "enter")
        await ui.until(lambda: ui.ui.scroll_sensitivity_y == 5)
