"""Pictures within the conversation: asked for when the first one is in sight,
drawn where nothing covers them.
"""

from pathlib import Path

import pytest
from PIL import Image

from codeloop.model.testing.script import ScriptedAnswer
from codeloop.tui.settings.ui_settings import UiSettings
from codeloop.tui.terminal.terminal_driver import TerminalAnswered
from tests.support.scripted_project import make_answer, make_call, open_scripted_project
from tests.tui.app.running_ui import Played, played
from tests.tui.terminal.picture_terminal import DrawingTerminal

SIZE = (80, 24)


class Shown:
    """What of pictures the terminal shows, as if all of its text was just written."""

    def __init__(self, played: Played, monkeypatch: pytest.MonkeyPatch) -> None:
        self.played = played
        self.terminal = DrawingTerminal(*SIZE)
        assert played.ui._driver is not None
        monkeypatch.setattr(played.ui._driver, "write", self._take)

    def _take(self, text: str) -> None:
        if text.startswith("\x1b7"):
            self.terminal.feed(text)

    def rows(self) -> list[int]:
        """Return the rows of the screen that pictures are on."""
        self.terminal = DrawingTerminal(*SIZE)
        painter = self.played.ui.painter
        if painter is not None:
            painter.mark_erased(None)
            self.played.ui.paint()
        return sorted({row for row, _ in self.terminal.tiles()})


@pytest.mark.slow
async def test_a_picture_is_drawn_below_its_words_while_nothing_covers_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("TMUX", "STY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    answers = [make_answer(make_call("read", filePath="red.png")), ScriptedAnswer(text="Red.")]
    async with (
        open_scripted_project(tmp_path, answers) as desk,
        played(desk, tmp_path / "state") as ui,
    ):
        shown = Shown(ui, monkeypatch)
        Image.new("RGB", (300, 100), (255, 0, 0)).save(desk.work / "red.png")
        await ui.type("look at it", "enter")
        await ui.answered("[image red.png 300x100", "Red.")
        await ui.until(lambda: ui.ui.inline_pictures is not None)
        assert shown.rows() == []
        for question, text in (
            ("version", "XTerm(379)"),
            ("cell", "20;10"),
            ("attributes", "64;4;22"),
        ):
            ui.ui.post_message(TerminalAnswered(question, text))
        await ui.until(lambda: len(shown.rows()) == 5)
        lines = ui.screen().split("\n")
        above = next(at for at, line in enumerate(lines) if "[image" in line)
        assert shown.rows() == [*range(above + 1, above + 6)]
        assert next(at for at, line in enumerate(lines) if "Red." in line) == above + 7
        picture = shown.terminal.picture()
        assert picture is not None
        assert picture.getcolors() == [(300 * 100, (255, 0, 0, 255))]

        await ui.pilot.press("ctrl+p")
        await ui.sees("Commands")
        assert shown.rows() == [], "a dialog is above it"
        await ui.pilot.press("escape")
        await ui.until(lambda: len(shown.rows()) == 5)

        ui.ui.appearance.apply_settings(UiSettings(pictures=False))
        ui.ui.restyle()
        await ui.until(lambda: shown.rows() == [])
        assert "Red." in ui.screen().split("\n")[above + 2]
