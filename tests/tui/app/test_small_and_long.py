"""Long sessions and small screens: the first message is there at once,
and every choice can be seen and chosen.
"""

from pathlib import Path

import pytest

from codeloop.model.testing.script import ScriptedAnswer
from codeloop.schema.api.session_requests import SESSION_GET, SessionId
from codeloop.schema.event import make_message_updated, make_part_updated
from codeloop.schema.ids import new_id
from codeloop.schema.message import ModelRef, UserMessage, UserTime
from codeloop.schema.part import TextPart
from tests.support.scripted_project import (
    ScriptedProject,
    make_answer,
    make_call,
    open_scripted_project,
)
from tests.tui.app.running_ui import played

MESSAGES = 300
QUESTION = {
    "question": "Which of these many colours is to be taken for the background of the page that comes first?",
    "header": "Colour",
    "options": [
        {"label": f"Colour {n}", "description": "that is described at some length"}
        for n in range(6)
    ],
}


def fill(desk: ScriptedProject, count: int) -> None:
    """Store prompts, the last of them at the time of the session."""
    created = desk.project.store.get_session(desk.session_id).time.created
    model = ModelRef(provider_id="test", model_id="test")
    for number in range(count):
        message_id, at = new_id("msg"), created - 7 * (count - number) ** 2
        info = UserMessage(
            id=message_id,
            session_id=desk.session_id,
            time=UserTime(created=at),
            agent="build",
            model=model,
        )
        text = TextPart(
            id=new_id("prt"),
            session_id=desk.session_id,
            message_id=message_id,
            text=f"prompt {number}.",
        )
        desk.project.store.append(make_message_updated(info), make_part_updated(text))


@pytest.mark.slow
async def test_the_first_message_of_a_long_session_is_there_before_those_between(
    tmp_path: Path,
) -> None:
    async with open_scripted_project(tmp_path, []) as desk:
        fill(desk, MESSAGES)
        session = await desk.client.call(SESSION_GET, SessionId(session_id=desk.session_id))
        async with played(desk, tmp_path / "state", session=session) as ui:
            await ui.sees(f"prompt {MESSAGES - 1}.")
            view, sessions = ui.ui.tab.view, ui.ui.sessions
            assert view is not None
            assert sessions is not None
            await sessions.load_first(view)
            assert view.log.list_prompts()[0].time.created < view.log.list_prompts()[1].time.created
            assert len(view.log.ids) < MESSAGES // 2
            await ui.pilot.press("ctrl+g")
            await ui.sees("prompt 0.")
            await ui.until(lambda: view.cursor is None and len(view.log.ids) == MESSAGES)
            assert "prompt 0." in ui.screen()


@pytest.mark.slow
async def test_each_choice_of_a_question_can_be_reached_on_a_small_screen(tmp_path: Path) -> None:
    answers = [
        make_answer(make_call("question", questions=[QUESTION])),
        ScriptedAnswer(text="Taken."),
    ]
    async with (
        open_scripted_project(tmp_path, answers) as desk,
        played(desk, tmp_path / "state", size=(40, 12)) as ui,
    ):
        await ui.type("ask me", "enter")
        await ui.until(lambda: ui.ui.tab.panel.is_ready)
        await ui.sees("Colour 0", "1 of 7 ↕", "esc esc reject")
        for number in range(1, 6):
            await ui.pilot.press("down")
            await ui.sees(f"Colour {number}", f"{number + 1} of 7 ↕", "esc esc reject")
        await ui.pilot.press("enter")
        await ui.sees("Taken.")


@pytest.mark.slow
async def test_dialogs_show_their_rows_and_keys_on_a_small_screen(tmp_path: Path) -> None:
    async with (
        open_scripted_project(tmp_path, []) as desk,
        played(desk, tmp_path / "state", size=(40, 12)) as ui,
    ):
        await ui.type("/themes", "enter")
        await ui.sees("Themes", "codeloop", "enter use it")
        await ui.pilot.press("end", "ctrl+end")
        await ui.sees("▸", "enter use it")
        await ui.pilot.press("escape")
        await ui.type("?")
        await ui.sees("Keys and commands", "enter run it")
        await ui.pilot.press("escape")
        await ui.until(lambda: len(ui.ui.screen_stack) == 1)
        await ui.pilot.press("ctrl+c")
        await ui.sees("Press ctrl+c again to exit")


async def test_a_message_never_covers_the_first_cards(tmp_path: Path) -> None:
    async with open_scripted_project(tmp_path, []) as desk, played(desk, tmp_path / "state") as ui:
        await ui.type("/tour", "enter")
        await ui.sees("Five keys to begin with")
        ui.ui.notify("Something that a server has to say.", severity="warning")
        await ui.sees("Something that a server has to say.", "tour shows it again")
        assert not ui.ui._notifications


@pytest.mark.slow
async def test_without_a_leader_messages_name_no_empty_key(tmp_path: Path) -> None:
    settings = tmp_path / "tui.json"
    settings.write_text('{"keybinds": {"leader": "none"}}')
    async with (
        open_scripted_project(tmp_path, []) as desk,
        played(desk, tmp_path / "state", settings=(settings,)) as ui,
    ):
        await ui.type("/tour", "enter")
        await ui.sees("Five keys to begin with", "/undo", "undo the last turn")
        await ui.pilot.press("f2")
        await ui.sees("/models lists all.")
