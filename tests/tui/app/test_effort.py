"""How much the model thinks: chosen with a key, it is in the status bar and in the next request."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.answers import Answer
from tests.support.model_server import ModelServer
from tests.support.scripted_project import ScriptedProject, make_startup, open_in_process
from tests.tui.app.running_ui import played


def list_chats(server: ModelServer) -> list[Any]:
    """Return the requests of turns; those for titles have no tools."""
    return [each.json for each in server.requests if b'"tools"' in each.body]


@pytest.mark.slow
async def test_an_effort_that_is_chosen_arrives_at_the_service(tmp_path: Path) -> None:
    work, config = tmp_path / "work", tmp_path / "home" / "config" / "codeloop.json"
    work.mkdir()
    config.parent.mkdir(parents=True)
    nothing: Any = None
    async with ModelServer([Answer(text="Hello.")]) as server:
        options = {"baseURL": server.url, "apiKey": "sk-0123456789"}
        provider = {
            "options": options,
            "models": {"m": {"reasoning": True, "limit": {"context": 9_000}}},
        }
        config.write_text(
            json.dumps({"model": "p/m", "provider": {"p": provider}, "snapshot": False})
        )
        async with (
            open_in_process(make_startup(tmp_path / "home", work), None) as (project, client),
            played(
                ScriptedProject(project, nothing, "", client), tmp_path / "state", prompt="one"
            ) as ui,
        ):
            await ui.answered("Hello.")
            for keys, shown in ((1, "p/m (low)"), (2, "p/m (high)"), (1, "p/m ")):
                await ui.pilot.press(*["ctrl+t"] * keys)
                await ui.sees(shown)
                before = len(list_chats(server))
                await ui.type("go", "enter")
                await ui.until(lambda before=before: len(list_chats(server)) > before)
                await ui.until(lambda: ui.ui.tab.view is not None and not ui.ui.tab.view.is_busy)
    assert [each.get("reasoning_effort") for each in list_chats(server)] == [
        None,
        "low",
        "high",
        None,
    ]


@pytest.mark.slow
async def test_without_a_model_its_effort_is_not_spoken_of(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    nothing: Any = None
    startup = make_startup(tmp_path / "home", tmp_path / "work")
    async with (
        open_in_process(startup, None) as (project, client),
        played(ScriptedProject(project, nothing, "", client), tmp_path / "state") as ui,
    ):
        await ui.sees("Where do your models come from?")
        await ui.pilot.press("escape")
        await ui.sees("no model: /connect")
        for keys in (["ctrl+t"], [*"/effort", "enter"], [*"/effort", "space", *"high", "enter"]):
            ui.ui.tab.clear_notices()
            ui.ui.tab.sync()
            await ui.pilot.press(*("slash" if key == "/" else key for key in keys))
            await ui.sees("No model can be used yet. /connect sets one up.")
