"""The first start: without a model one is set up, no word that was typed is lost,
and five keys are shown once.
"""

import re
import socket
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from codeloop.model.catalog.vendors import LocalServer
from codeloop.model.providers import Providers
from codeloop.model.testing.script import ScriptedAnswer
from codeloop.schema.limits import DISCOVER_TIME
from codeloop.schema.message import ModelRef
from codeloop.schema.wire import replace
from tests.support.answers import Answer
from tests.support.model_server import ModelServer
from tests.support.scripted_project import (
    ScriptedProject,
    make_startup,
    open_in_process,
    open_scripted_project,
)
from tests.tui.app.running_ui import played

ASKS = "Where do your models come from?"


@asynccontextmanager
async def desk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *local: LocalServer
) -> AsyncGenerator[ScriptedProject]:
    """Open a project on the real table of providers;
    `local` are the servers that are looked for here.
    """
    monkeypatch.setattr(
        "codeloop.app.models.open_models.Providers", partial(Providers, local=local)
    )
    # On a busy machine, a server may need longer than a start waits for one.
    monkeypatch.setattr(
        "codeloop.model.catalog.local_servers.DISCOVER_TIME", replace(DISCOVER_TIME, value=60_000)
    )
    work = tmp_path / "work"
    work.mkdir()
    nothing: Any = None
    async with open_in_process(make_startup(tmp_path / "home", work), None) as (project, client):
        yield ScriptedProject(project, nothing, "", client)


@pytest.mark.slow
async def test_a_server_of_this_machine_is_used_without_a_question_and_can_be_tried(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = tmp_path / "state"
    async with (
        ModelServer([Answer(text="ready")], models=("qwen3-coder:30b",)) as server,
        desk(tmp_path, monkeypatch, LocalServer("ollama", "Ollama", server.url)) as it,
    ):
        async with played(it, state) as ui:
            await ui.sees(
                "Ollama answers on this machine, so qwen3-coder:30b is used",
                "Five keys to begin with",
            )
            assert ASKS not in ui.screen()
            await ui.type("/connect", "enter")
            # The row of the list, not the notice behind the dialog.
            await ui.until(lambda: re.search(r"Ollama {2,}.*answers", ui.screen()))
            await ui.pilot.press("enter")
            await ui.sees("build ollama/qwen3-coder:30b")
            await ui.until(lambda: len(ui.ui.screen_stack) == 1)
            chats = [
                request for request in server.requests if request.path.endswith("/chat/completions")
            ]
            assert len(chats) == 1
        async with played(it, state) as ui:
            await ui.sees("build ollama/qwen3-coder:30b")
            await ui.type("hello", "enter")
            await ui.until(lambda: ui.ui.tab.session is not None)
            assert "on this machine, so" not in ui.screen()
            assert "Five keys" not in ui.screen()


@pytest.fixture
def port() -> Iterator[int]:
    """A port at which nothing listens yet; no other program gets it."""
    with socket.socket() as reserved:
        reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        reserved.bind(("127.0.0.1", 0))
        yield reserved.getsockname()[1]


@pytest.mark.slow
async def test_a_prompt_without_a_model_is_kept_and_sent_once_there_is_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, port: int
) -> None:
    server = ModelServer([Answer(text="Done as asked.")], models=("qwen3-coder:30b",), port=port)
    async with (
        desk(tmp_path, monkeypatch, LocalServer("ollama", "Ollama", server.url)) as it,
        played(it, tmp_path / "state", prompt="fix the parser") as ui,
    ):
        await ui.sees(ASKS, "Anthropic", "ANTHROPIC_API_KEY")
        await ui.pilot.press("escape")
        await ui.sees("Nothing was sent", "/connect")
        assert ui.ui.tab.prompt.entry.text == "fix the parser"
        assert it.project.store.list_sessions() == []
        await ui.pilot.press("enter")
        await ui.sees(ASKS)
        async with server:
            await ui.pilot.press("escape", "enter")
            await ui.sees("Done as asked.")
            assert not ui.ui.tab.prompt.entry.text


@pytest.mark.slow
async def test_what_is_typed_while_the_dialog_opens_goes_to_the_prompt(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with desk(tmp_path, monkeypatch) as it, played(it, tmp_path / "state") as ui:
        await ui.sees(ASKS, "Anthropic")
        await ui.type("fix qqxzj now", "enter")
        await ui.sees("Nothing matches")
        await ui.pilot.press("escape")
        await ui.until(lambda: ui.ui.tab.prompt.entry.text == "fix qqxzj now")


@pytest.mark.slow
async def test_what_was_typed_to_find_a_provider_does_not_go_to_the_prompt(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with desk(tmp_path, monkeypatch) as it, played(it, tmp_path / "state") as ui:
        await ui.sees(ASKS, "Anthropic")
        await ui.type("custom")
        await ui.sees("A server of your own", "by its address")
        await ui.pilot.press("enter")
        await ui.sees("chat completions protocol")
        await ui.pilot.press("escape")
        await ui.sees(ASKS)
        await ui.pilot.press(*["backspace"] * 6)
        await ui.type("anthropic", "enter")
        await ui.sees("Key for Anthropic")
        await ui.pilot.press("escape")
        await ui.sees(ASKS)
        await ui.pilot.press("escape")
        await ui.until(lambda: len(ui.ui.screen_stack) == 1)
        assert ui.ui.tab.prompt.entry.text == ""


@pytest.mark.slow
async def test_the_model_chosen_before_is_one_key_away_and_the_next_session_begins_with_the_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with (
        ModelServer([Answer(text="ready")], models=("qwen3-coder:30b", "gpt-oss:20b")) as server,
        desk(tmp_path, monkeypatch, LocalServer("ollama", "Ollama", server.url)) as it,
    ):
        async with played(it, tmp_path / "state", prompt="go") as ui:
            await ui.sees("build ollama/qwen3-coder:30b", "ready")
            await ui.pilot.press("f2")
            await ui.sees("No other model was chosen lately")
            await ui.type("/models ollama/gpt-oss:20b", "enter")
            await ui.sees("build ollama/gpt-oss:20b")
            ui.ui.choices.use_model(
                ui.ui.tab, ModelRef(provider_id="ollama", model_id="qwen3-coder:30b")
            )
            await ui.pilot.press("f2")
            await ui.sees("build ollama/gpt-oss:20b")
            await ui.pilot.press("shift+f2")
            await ui.sees("build ollama/qwen3-coder:30b")
        async with played(it, tmp_path / "state") as ui:
            await ui.sees("build ollama/qwen3-coder:30b")


@pytest.mark.slow
async def test_the_history_of_another_project_is_not_offered(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    answers = [ScriptedAnswer(text="Yes.")]
    async with (
        open_scripted_project(tmp_path / "other", answers) as other,
        played(other, tmp_path / "state") as ui,
    ):
        await ui.type("a secret plan", "enter")
        await ui.sees("Yes.")
    async with (
        open_scripted_project(tmp_path, [ScriptedAnswer(text="Yes.")]) as it,
        played(it, tmp_path / "state") as ui,
    ):
        await ui.until(lambda: ui.ui.opened_event.is_set())
        await ui.pilot.press("up")
        assert ui.ui.tab.prompt.entry.text == ""


async def test_agents_that_are_here_too_are_named_once(tmp_path: Path) -> None:
    def find_agents() -> dict[str, str]:
        return {"claude": "Claude Code", "codex": "Codex"}

    state = tmp_path / "state"
    async with open_scripted_project(tmp_path, [ScriptedAnswer(text="hi")]) as it:
        async with played(it, state, size=(100, 40), find_other_agents=find_agents) as ui:
            await ui.sees(
                "Claude Code and Codex are in use here, too.", "codeloop import --from codex"
            )
        async with played(it, state, size=(100, 40), find_other_agents=find_agents) as ui:
            await ui.type("hello", "enter")
            await ui.until(lambda: ui.ui.tab.session is not None)
            assert "in use here, too" not in ui.screen()
