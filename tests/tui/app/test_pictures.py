"""Pictures of a conversation: a line in their place, and shown when they are asked for."""

import tempfile
from pathlib import Path

import pytest
from PIL import Image

from codeloop.model.testing.script import ScriptedAnswer
from codeloop.schema.part import FilePart
from codeloop.tui.actions.conversation.pictures import find_pictures
from codeloop.tui.state.session_view import SessionView
from tests.support.scripted_project import make_answer, make_call, open_scripted_project
from tests.tui.app.running_ui import played
from tests.tui.stored.client import StoredClient
from tests.tui.stored.stored_messages import Talk


@pytest.mark.slow
async def test_a_picture_that_was_read_is_shown_by_its_command_and_by_a_click(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in (
        "DISPLAY",
        "WAYLAND_DISPLAY",
        "KITTY_WINDOW_ID",
        "TERM_PROGRAM",
        "KONSOLE_VERSION",
    ):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    answers = [make_answer(make_call("read", filePath="dot.png")), ScriptedAnswer(text="A dot.")]
    async with (
        open_scripted_project(tmp_path, answers) as desk,
        played(desk, tmp_path / "state") as ui,
    ):
        await ui.type("/picture", "enter")
        await ui.sees("There is no picture in this conversation.")
        Image.new("RGB", (12, 34)).save(desk.work / "dot.png")
        await ui.type("look at it", "enter")
        await ui.answered("[image dot.png 12x34", "A dot.")
        rows = ui.screen().split("\n")
        row = next(at for at, line in enumerate(rows) if "[image" in line)
        await ui.pilot.click(offset=(rows[row].index("[image") + 2, row))
        await ui.sees("A copy is at")
        assert len(list(tmp_path.glob("picture-*.png"))) == 1
        await ui.type("/picture", "enter")
        await ui.until(lambda: len(list(tmp_path.glob("picture-*.png"))) == 2)


def test_the_latest_picture_is_the_last_one_also_after_older_messages_were_loaded() -> None:
    client = StoredClient()
    talk, view = Talk(client), SessionView(client.session())
    picture = FilePart(
        id="", session_id="", message_id="", mime="image/png", url="data:image/png;base64,"
    )
    older, newer = talk.prompt(picture), talk.prompt(picture)
    view.load([newer], "cursor")
    view.load_older([older], None)
    assert [each.message_id for each in find_pictures(view)] == [older.info.id, newer.info.id]
