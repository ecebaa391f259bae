"""Finding a text in the conversation, also in folded output and in messages
that are not loaded yet.
"""

from pathlib import Path

import pytest

from codeloop.model.testing.script import ScriptedAnswer
from tests.support.scripted_project import make_answer, make_call, open_scripted_project
from tests.tui.app.running_ui import played

OUTPUT = "seq 1 40; echo 'here is a nee''dle'; seq 41 90"


@pytest.mark.slow
async def test_places_are_shown_opened_counted_and_left_again(tmp_path: Path) -> None:
    answers = [
        make_answer(make_call("bash", command=OUTPUT)),
        ScriptedAnswer(text="It was the first."),
    ]
    async with (
        open_scripted_project(tmp_path, answers) as desk,
        played(desk, tmp_path / "state", session=None) as ui,
    ):
        await desk.prompt("run it")
        for number in range(60):  # two pages
            await desk.prompt(
                f"filler {number}, Needle" if number == 59 else f"filler {number}", no_reply=True
            )
        session = desk.project.store.find_session(desk.session_id)
        await ui.ui.open_tab(session)
        await ui.sees("filler 59, Needle")
        assert ui.ui.tab.view is not None
        assert ui.ui.tab.view.cursor is not None
        await ui.pilot.press("ctrl+f")
        await ui.type("needle")
        await ui.sees("2 of 2")
        before = ui.screen()
        await ui.pilot.press("up")
        await ui.sees("1 of 2", "here is a needle")
        await ui.pilot.press("down")
        await ui.sees("2 of 2", "filler 59")
        assert "here is a needle" not in ui.screen()
        await ui.pilot.press("up")
        await ui.sees("here is a needle")
        await ui.pilot.press("escape")
        await ui.until(
            lambda: (
                ui.screen().split("\n")[:15] == before.split("\n")[1:16]
                or "filler 59" in ui.screen()
            )
        )
        assert ui.ui.tab.transcript.follows
        assert not ui.ui.tab.view._toggled_keys
        await ui.type("/find nobody", "enter")
        await ui.sees("not found")
        await ui.pilot.press("ctrl+c")
        await ui.type("still here")
        assert ui.ui.tab.prompt.entry.text == "still here"
