"""The files that a session has changed, with their diffs."""

from pathlib import Path

from codeloop.model.testing.script import ScriptedAnswer
from tests.support.project import call, calls, rig
from tests.tui.app.played import played


async def test_changed_files_are_listed_and_one_is_read_over_the_whole_screen(tmp_path: Path) -> None:
    answers = [calls(call("write", filePath="new.txt", content="one\ntwo\n")), ScriptedAnswer(text="Written.")]
    async with rig(tmp_path, answers) as desk, played(desk, tmp_path / "state", size=(120, 30)) as ui:
        await ui.type("write it", "enter")
        await ui.sees("Written.", "Changed files (1)")
        await ui.type("/diff", "enter")
        await ui.sees("▸   new.txt", "+2 -0", "│ 2 + two")
        await ui.pilot.press("enter")
        await ui.sees("↑↓ PgUp PgDn", "│ 1 + one")
        await ui.pilot.press("escape")
        await ui.until(lambda: len(ui.ui.screen_stack) == 1)
        await ui.type("/undo", "enter")
        await ui.sees("Undone from here on")
        await ui.until(lambda: "Changed files" not in ui.screen())
