"""What is sent before the project and its session are open is not lost,
and goes to that session.
"""

import asyncio
from pathlib import Path

import pytest
from textual import events

from codeloop.model.testing.script import ScriptedAnswer
from tests.support.scripted_project import open_scripted_project
from tests.tui.app.running_ui import played


@pytest.mark.slow
@pytest.mark.parametrize("line", ["go on", "/takeover go on"])
async def test_an_early_line_goes_to_the_session_that_is_being_opened(
    tmp_path: Path, line: str
) -> None:
    opening = asyncio.Event()
    async with open_scripted_project(tmp_path, [ScriptedAnswer(text="Going on.")]) as it:
        session = it.project.store.get_session(it.session_id)
        async with played(it, tmp_path / "state", session=session, opening=opening) as ui:
            await ui.type(line, "enter")
            opening.set()
            await ui.sees("Going on.")
        assert [each.id for each in it.project.store.list_sessions()] == [it.session_id]


async def test_keys_that_come_while_the_early_ones_are_replayed_follow_those(
    tmp_path: Path,
) -> None:
    async with open_scripted_project(tmp_path, []) as it, played(it, tmp_path / "state") as ui:
        ui.ui.dispatcher._events_before_opening += [events.Key(letter, letter) for letter in "ab"]
        ui.ui.call_later(ui.ui.dispatcher.replay_events_before_opening)
        ui.ui.post_message(events.Key("c", "c"))
        await ui.until(lambda: len(ui.ui.tab.prompt.entry.text) == 3)
        assert ui.ui.tab.prompt.entry.text == "abc"
