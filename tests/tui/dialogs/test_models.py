"""Models, agents, themes, providers and settings, over a real project."""

from pathlib import Path

import msgspec
import pytest

from codeloop.app.app import App
from codeloop.app.models.open_models import SingleModel
from codeloop.client.directory_client import DirectoryClient
from codeloop.model.chat import ModelInfo
from codeloop.model.testing.replay import ScriptedModel
from codeloop.schema.api.config import CONFIG_GET
from codeloop.schema.api.session_requests import SESSION_LIST, ListSessions
from codeloop.schema.message import ModelRef
from codeloop.schema.operation import NoArguments
from codeloop.tui.dialogs.agents import create_agent_picker
from codeloop.tui.dialogs.models import ModelPicker
from codeloop.tui.dialogs.palette import PaletteRow, create_help, create_palette
from codeloop.tui.dialogs.parts.dialog import DialogContext
from codeloop.tui.dialogs.providers.provider_picker import ProviderPicker
from codeloop.tui.dialogs.settings import SettingsPicker
from codeloop.tui.dialogs.themes import ThemePicker
from codeloop.tui.dialogs.trust import TrustScreen
from codeloop.tui.settings.model_memory import ModelMemory, RememberedModels
from codeloop.tui.themes.theme_loader import list_themes
from tests.support.answers import Answer
from tests.support.model_server import ModelServer
from tests.support.scripted_project import (
    make_startup,
    open_in_process,
    open_over_http,
    open_scripted_project,
    wait_until,
)
from tests.tui.dialogs.test_sessions import WIDE, context
from tests.tui.stage import Stage, staged

ACME = {
    "acme": {
        "name": "Acme",
        "npm": "@ai-sdk/openai-compatible",
        "env": ["ACME_KEY"],
        "options": {"baseURL": "http://127.0.0.1:9/v1"},
        "models": {
            "m1": {
                "name": "Model One",
                "reasoning": True,
                "limit": {"context": 200_000},
                "cost": {"input": 3, "output": 15},
            },
            "m2": {"name": "Model Two"},
        },
    }
}
INFO = ModelInfo(provider_id="scripted", id="s1", name="The Script")


@pytest.mark.slow
async def test_models_show_what_they_cost_and_why_one_can_not_be_used(tmp_path: Path) -> None:
    app, memory = Stage(), ModelMemory(tmp_path / "state")
    async with (
        open_scripted_project(tmp_path, [], info=INFO, provider=ACME) as it,
        staged(app, WIDE) as pilot,
    ):
        app.open(ModelPicker(context(app, it), memory))
        await app.sees("The Script")
        await pilot.press("ctrl+f")
        await app.sees("Favourites")
        assert "$3 in · $15 out" in app.shown()
        assert memory.read().favourites == ("scripted/s1",)
        await pilot.press("ctrl+a")
        await pilot.press(*"anthropic")
        await app.sees("needs a key (HELICONE_API_KEY)")
        await pilot.press("enter")
        assert not app.results
        await pilot.press(*["backspace"] * 9, "ctrl+home", "enter")
        assert app.results == [ModelRef(provider_id="scripted", model_id="s1")]


def test_models_that_were_used_are_remembered_by_all_processes(tmp_path: Path) -> None:
    one, other = ModelMemory(tmp_path), ModelMemory(tmp_path)
    for number in range(10):
        one.add_recent(ModelRef(provider_id="p", model_id=f"m{number}"))
    other.add_recent(ModelRef(provider_id="p", model_id="m3", variant="high"))
    other.toggle_favourite("p/m1")
    known = one.read()
    assert known.recent[:2] == ("p/m3", "p/m9")
    assert len(known.recent) == 8
    assert (known.favourites, known.variants) == (("p/m1",), {"p/m3": "high"})
    one.toggle_favourite("p/m1")
    other.add_recent(ModelRef(provider_id="p", model_id="m3"))
    assert (one.read().favourites, one.read().variants) == ((), {})
    (tmp_path / "models.json").write_text("nothing of ours")
    assert one.read() == RememberedModels()


async def test_an_agent_is_chosen(tmp_path: Path) -> None:
    app = Stage()
    async with open_scripted_project(tmp_path, []) as it, staged(app) as pilot:
        app.open(create_agent_picker(context(app, it), "build"))
        await app.sees("plan")
        assert "● build" in app.shown()
        await pilot.press(*"plan", "enter")
        assert app.results == ["plan"]


@pytest.mark.slow
async def test_the_theme_under_the_cursor_is_shown_and_the_first_one_comes_back() -> None:
    app, seen = Stage(), list[str]()
    async with staged(app) as pilot:
        app.open(ThemePicker(list_themes(), "nord", seen.append, app.colours))
        await app.sees("● nord")
        await pilot.press("down", "down", "escape")
        assert seen == ["one", "rosepine", "nord"]
        app.open(ThemePicker(list_themes(), "nord", seen.append, app.colours))
        await app.sees("● nord")
        await pilot.press(*"gruv", "enter")
        assert app.results == [None, "gruvbox"]
        assert seen[-1] == "gruvbox"


@pytest.mark.slow
async def test_a_key_is_entered_and_tried_at_once(tmp_path: Path) -> None:
    app = Stage()
    (tmp_path / "work").mkdir()
    async with ModelServer([Answer(text="ready")], key="sk-right") as server:
        acme = {"acme": {**ACME["acme"], "options": {"baseURL": server.url}}}
        start = make_startup(tmp_path / "home", tmp_path / "work", provider=acme)
        async with open_in_process(start, None) as (project, client), staged(app, WIDE) as pilot:
            app.open(ProviderPicker(DialogContext(client, app.colours, app.ask)))
            await app.sees("Often used")
            await pilot.press(*"acme", "enter")
            await app.sees("Key for Acme")  # it was tried without one
            await pilot.press(*"sk-1", "enter")
            await wait_until(
                lambda: any("refused the key" in each.message for each in app._notifications)
            )
            await wait_until(lambda: "acme" not in project.providers.credentials.read_entries())
            await pilot.press("ctrl+k")
            await app.sees("Key for Acme")
            await pilot.press(*"sk-right", "enter")
            await wait_until(lambda: app.results)
            assert app.results[0].provider_id == "acme"
            assert project.providers.credentials.list_secrets() == {"sk-right"}
            assert await client.call(SESSION_LIST, ListSessions()) == []


@pytest.mark.slow
async def test_a_server_of_ones_own_is_added_step_by_step(tmp_path: Path) -> None:
    app = Stage()
    (tmp_path / "work").mkdir()
    served = App(make_startup(tmp_path / "home", tmp_path / "work"))
    async with (
        ModelServer([Answer(text="ready")], models=("small", "coder"), key="sk-own") as server,
        staged(app, WIDE) as pilot,
    ):
        app.open(
            ProviderPicker(
                DialogContext(DirectoryClient(served, tmp_path / "work"), app.colours, app.ask)
            )
        )
        await app.sees("Often used")
        await pilot.press(*"your own", "enter")
        await app.sees("chat completions protocol")
        await pilot.press(*"127.0.0.1:1", "enter")
        await app.sees("Is the server running?")
        await pilot.press("backspace", *str(server.port), "enter")
        await app.sees("Key for 127.0.0.1")
        await pilot.press(*"sk-x", "enter")
        await app.sees("refused that key")
        await pilot.press(*"sk-own", "enter")
        await app.sees("Which model of 127.0.0.1", "small")
        await pilot.press("down", "enter")
        await app.sees("A name for the server", "NAME/coder", "local")
        await pilot.press("ctrl+u", *"My Box", "enter")
        await wait_until(lambda: app.results)
        assert app.results == [ModelRef(provider_id="my-box", model_id="coder")]
        assert server.requests[-1].headers["authorization"] == "Bearer sk-own"
    await served.close()


@pytest.mark.slow
async def test_settings_tell_where_they_are_from_and_are_written(tmp_path: Path) -> None:
    app = Stage()
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "codeloop.json").write_text('{\n  "username": "ada"\n}\n')
    start = msgspec.structs.replace(make_startup(tmp_path / "home", tmp_path / "work"), trust=True)
    async with (
        open_over_http(start, SingleModel(ScriptedModel([], INFO))) as (_, client),
        staged(app, WIDE) as pilot,
    ):
        app.open(SettingsPicker(DialogContext(client, app.colours, app.ask)))
        await app.sees("codeloop.json:2")
        await pilot.press(*"username", "enter")
        await app.sees("what you are called")
        await pilot.press("end", *" l", "enter")
        await wait_until(lambda: len(app.screen_stack) == 2)  # it stands in the line, too
        await app.sees("ada l")
        await pilot.press(*["backspace"] * 8, *"profile", "enter")
        await app.sees("what is asked before")
        await pilot.press(*"read", "enter")
        await app.sees("read-only · This project")
        await pilot.press(*["backspace"] * 7, *"snapshot", "enter")
        await app.sees("whether changes are kept")
        await pilot.press(*"false", "enter")
        await app.sees("Settings", "false")
        values = await client.call(CONFIG_GET, NoArguments())
        assert (values["username"], values["snapshot"]) == ("ada l", False)
        await pilot.press("ctrl+d")
        await wait_until(lambda: "false" not in app.shown())
        await pilot.press("escape")


ROWS = [
    PaletteRow("session.new", "New session", "Session", "ctrl+x n", "new"),
    PaletteRow("session.undo", "Undo", "Session", "ctrl+x u", "undo"),
    PaletteRow("theme.list", "Themes", "Look"),
]


@pytest.mark.slow
async def test_the_palette_runs_a_command_and_help_lists_all_keys() -> None:
    app = Stage()
    async with staged(app) as pilot:
        app.open(create_palette(ROWS, app.colours))
        await app.sees("New session")
        assert "ctrl+x n" in app.shown()
        await pilot.press(*"/new", "enter")
        app.open(create_help(ROWS, app.colours))
        await app.sees("New session")
        await app.sees("ctrl+x u")
        await pilot.press("escape")
        assert app.results == ["session.new", None]


@pytest.mark.slow
async def test_trust_is_only_given_by_a_key_that_came_after_the_question() -> None:
    app = Stage()
    about = "\n".join(["opencode.json", *(f"+  line {number}" for number in range(50))])
    async with staged(app) as pilot:
        early = TrustScreen(about, app.colours, silence=600)
        app.open(early)
        await app.sees("Trust this project?")
        await pilot.press("y", "e", "s")
        assert not app.results
        assert early.early_text == "yes"
        early.dismiss(False)
        for key, answer in (("n", False), ("y", True)):
            question = TrustScreen(about, app.colours, silence=0)
            app.open(question)
            await wait_until(lambda asked=question: asked.is_ready)
            assert "y trust it from now on" in app.shown()
            await pilot.press("pagedown", key)
            assert app.results[-1] is answer
