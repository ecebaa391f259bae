"""Commands that are typed with words, under other names, or again; and what closes by itself."""

from pathlib import Path

import pytest

from codeloop.model.testing.script import ScriptedAnswer
from codeloop.schema.api.session_inputs import FilePartInput
from codeloop.schema.api.session_requests import (
    SESSION_CREATE,
    SESSION_DELETE,
    CreateSession,
    SessionId,
)
from codeloop.tui.widgets.prompt.prompt_messages import PromptSlashCommand
from tests.support.scripted_project import open_scripted_project
from tests.tui.app.running_ui import played


@pytest.mark.slow
async def test_words_after_a_command_are_understood_or_refused(tmp_path: Path) -> None:
    answers = [ScriptedAnswer(text="Hello."), ScriptedAnswer(text="Second session.")]
    async with (
        open_scripted_project(tmp_path, answers) as desk,
        played(desk, tmp_path / "state") as ui,
    ):
        await ui.type("hello", "enter")
        await ui.sees("Hello.")
        await ui.type("/undo it", "enter")
        await ui.sees("/undo takes no words.")
        assert ui.ui.tab.prompt.entry.text == "/undo it"
        assert len(desk.project.store.read_conversation(ui.ui.session.id).entries) == 2
        await ui.type("", "ctrl+c")
        await ui.type("/theme nord", "enter")
        await ui.until(lambda: ui.ui.appearance.theme_name == "nord")
        for _ in range(2):
            await ui.type("/model fake/nope", "enter")
            await ui.sees("There is no model fake/nope.")
        assert ui.screen().count("There is no model") == 1
        model = ui.ui.choices.resolve_model(ui.ui.tab)
        assert model is not None
        await ui.type(f"/models {model.model_id}", "enter")
        await ui.until(lambda: ui.ui.tab.model is not None)
        assert ui.ui.tab.model == model
        first = ui.ui.session.id
        await ui.type("/new say it again", "enter")
        await ui.sees("Second session.")
        assert ui.ui.session.id != first
        assert "▌ say it again" in ui.screen()
        assert not ui.ui.tab.prompt.entry.text


@pytest.mark.slow
async def test_images_go_with_a_new_session_and_with_no_other_command(tmp_path: Path) -> None:
    answers = [ScriptedAnswer(text="Hello."), ScriptedAnswer(text="A red dot.")]
    image = FilePartInput(mime="image/png", url="data:image/png;base64,AAAA", filename="dot.png")
    async with (
        open_scripted_project(tmp_path, answers) as desk,
        played(desk, tmp_path / "state") as ui,
    ):
        await ui.type("hello", "enter")
        await ui.sees("Hello.")
        first = ui.ui.session.id
        ui.ui.screen.post_message(PromptSlashCommand("goal", "fix it", (image,)))
        await ui.sees("/goal takes no images.")
        assert ui.ui.session.id == first
        assert ui.ui.tab.prompt.entry.text == "/goal fix it [Image]"
        ui.ui.tab.prompt.clear()
        ui.ui.screen.post_message(PromptSlashCommand("new", "what is this?", (image,)))
        await ui.sees("A red dot.")
        assert ui.ui.session.id != first


@pytest.mark.slow
async def test_the_tab_of_a_session_that_is_deleted_elsewhere_closes(tmp_path: Path) -> None:
    async with (
        open_scripted_project(tmp_path, []) as desk,
        played(desk, tmp_path / "state", size=(100, 24)) as ui,
    ):
        made = [
            await desk.client.call(SESSION_CREATE, CreateSession(title=f"Title {n}"))
            for n in range(3)
        ]
        for session in made:
            await ui.ui.open_tab(session)
        await ui.ui.open_tab(made[1])
        await ui.type("unsent")
        await desk.client.call(SESSION_DELETE, SessionId(session_id=made[1].id))
        await ui.until(lambda: len(ui.ui.tabs) == 2)
        assert ui.ui.session.id == made[2].id  # the next one, not the first
        await ui.pilot.press("alt+shift+s")
        await ui.until(lambda: ui.ui.tab.prompt.entry.text == "unsent")


@pytest.mark.slow
async def test_keys_of_lists_go_before_the_palette_and_every_dialog_closes(tmp_path: Path) -> None:
    async with open_scripted_project(tmp_path, []) as desk, played(desk, tmp_path / "state") as ui:
        await ui.type("/the")
        await ui.sees("/themes [NAME]")
        await ui.pilot.press("ctrl+p")
        assert len(ui.ui.screen_stack) == 1
        await ui.pilot.press("ctrl+c", "f1")
        await ui.sees("Keys and commands")
        await ui.type("cut to the start", "enter")
        await ui.until(lambda: len(ui.ui.screen_stack) == 1)
        await ui.pilot.press("ctrl+p")
        await ui.sees("Commands")
        await ui.pilot.press("ctrl+c")
        await ui.until(lambda: len(ui.ui.screen_stack) == 1)
        assert ui.ui.is_running
