"""Every theme that comes with the program can be used from the start, and changed while it runs."""

from pathlib import Path

import pytest

from codeloop.model.testing.script import ScriptedAnswer
from codeloop.tui.themes.theme_loader import list_themes
from tests.support.scripted_project import open_scripted_project
from tests.tui.app.running_ui import played


@pytest.mark.slow
@pytest.mark.parametrize("name", ["system", "monochrome"])
async def test_a_theme_of_the_terminals_colours_is_used_from_the_start(
    tmp_path: Path, name: str
) -> None:
    settings = tmp_path / "tui.json"
    settings.write_text(f'{{"theme": "{name}"}}')
    answers = [ScriptedAnswer(text="An answer.")]
    async with (
        open_scripted_project(tmp_path, answers) as desk,
        played(desk, tmp_path / "state", settings=(settings,)) as ui,
    ):
        await ui.type("hello", "enter")
        await ui.sees("An answer.")


@pytest.mark.slow
async def test_each_theme_can_be_put_on_the_screen(tmp_path: Path) -> None:
    async with open_scripted_project(tmp_path, []) as desk, played(desk, tmp_path / "state") as ui:
        for name in list_themes():
            ui.ui.appearance.use_theme(name)
            ui.ui.restyle()
            await ui.pilot.pause()
            assert ui.ui.theme == ui.ui.appearance.theme.name
