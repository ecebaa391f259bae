"""Setting up a provider in its dialog: where its key is kept, which key counts,
what is deployed there.
"""

import json
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import keyring
import pytest

from codeloop.app.app import App
from codeloop.client.directory_client import DirectoryClient
from codeloop.schema.api.session_requests import SESSION_LIST, ListSessions
from codeloop.schema.limits import Limit
from codeloop.tui.dialogs.parts.dialog import DialogContext
from codeloop.tui.dialogs.providers import provider_picker
from codeloop.tui.dialogs.providers.provider_picker import ProviderPicker
from tests.support.answers import Answer
from tests.support.file_keyring import FileKeyring
from tests.support.model_server import ModelServer
from tests.support.scripted_project import make_startup, wait_until
from tests.tui.dialogs.test_models import ACME
from tests.tui.dialogs.test_sessions import WIDE
from tests.tui.stage import Stage, staged

NOT_DEPLOYED = {
    "code": "DeploymentNotFound",
    "message": "The API deployment for this resource does not exist.",
}


@pytest.fixture
def ring(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Generator[Path]:
    """The file of the keyring that there is."""
    monkeypatch.setenv("FILE_KEYRING", str(tmp_path / "ring.json"))
    before = keyring.get_keyring()
    keyring.set_keyring(FileKeyring())
    yield tmp_path / "ring.json"
    keyring.set_keyring(before)


@asynccontextmanager
async def picking(tmp_path: Path, provider: dict[str, Any]) -> AsyncGenerator[tuple[Stage, Any]]:
    """Open the dialog over a project whose user has configured these providers."""
    config = tmp_path / "home" / "config"
    config.mkdir(parents=True)
    (config / "codeloop.json").write_text(json.dumps({"provider": provider}))
    (tmp_path / "work").mkdir()
    served, app = App(make_startup(tmp_path / "home", tmp_path / "work")), Stage()
    client = DirectoryClient(served, tmp_path / "work")
    async with staged(app, WIDE) as pilot:
        app.open(ProviderPicker(DialogContext(client, app.colours, app.ask)))
        await app.sees("Often used")
        yield app, pilot
    await served.close()


async def notes(app: Stage, *texts: str) -> None:
    """Wait until one of the notices has all of the texts."""
    try:
        await wait_until(
            lambda: any(all(text in note.message for text in texts) for note in app._notifications)
        )
    except TimeoutError:
        raise AssertionError(
            f"{texts} not in {[note.message for note in app._notifications]}\n{app.shown()}"
        ) from None


@pytest.mark.slow
async def test_a_key_is_kept_where_the_user_says_and_a_refused_one_nowhere(
    tmp_path: Path, ring: Path
) -> None:
    async with ModelServer([Answer(text="ready")], key="sk-right") as server:
        acme = {"acme": {**ACME["acme"], "options": {"baseURL": server.url}}}
        async with picking(tmp_path, acme) as (app, pilot):
            for key in ("wrong", "right"):
                await pilot.press(*"acme" if key == "wrong" else (), "ctrl+k")
                await app.sees("Key for Acme")
                await pilot.press(*f"sk-{key}", "enter")
                await app.sees("Where is the key kept?", "In a file", "In the system's keyring")
                await pilot.press("down", "enter")
                await notes(app, "refused the key" if key == "wrong" else "Acme answers")
                if key == "wrong":
                    # After the notice.
                    await wait_until(lambda: json.loads(ring.read_text() or "null") == {})
            await wait_until(lambda: app.results)
            assert app.results[0].provider_id == "acme"
            assert list(json.loads(ring.read_text()).values()) == ["sk-right"]
    stored = json.loads(next((tmp_path / "home").rglob("auth.json")).read_text())
    assert stored["acme"]["type"] == "keyring"
    assert "sk-right" not in json.dumps(stored)


@pytest.mark.slow
async def test_after_a_refusal_no_key_is_asked_for_where_another_one_counts(tmp_path: Path) -> None:
    async with ModelServer([Answer(text="ready")], key="sk-right") as server:
        acme = {
            "acme": {
                **ACME["acme"],
                "options": {"baseURL": server.url, "apiKey": "sk-wrong-0123456789"},
            }
        }
        async with picking(tmp_path, acme) as (app, pilot):
            await pilot.press(*"acme", "enter")
            await notes(
                app,
                "acme refused the key",
                "It comes from `apiKey` at",
                "codeloop.json:1:",
                "Correct it there.",
            )
            assert "Key for Acme" not in app.shown()
            assert not app.results
            await pilot.press("ctrl+k")
            await app.sees("Key for Acme", "does not count before the one of `apiKey` at")


@pytest.mark.slow
async def test_a_deployment_is_asked_for_where_the_model_tried_is_not_deployed(
    tmp_path: Path,
) -> None:
    lost = Answer(status=404, body=json.dumps({"error": NOT_DEPLOYED}))
    async with ModelServer([lost, Answer(text="ready")], key="azure-key") as server:
        azure = {"azure": {"options": {"baseURL": server.url}}}
        async with picking(tmp_path, azure) as (app, pilot):
            await pilot.press(*"azure", "enter")
            await app.sees("Key for Azure")
            await pilot.press(*"azure-key", "enter")
            await app.sees("The name of a deployment", "empty: all that the resource lists")
            await pilot.press("enter")
            await notes(app, "does not list its deployments", "--deployment NAME")
            await notes(app, "azure has no deployment", "--deployment NAME")
            await app.sees("Key for Azure", "empty: the one in use")
            await pilot.press("enter")
            await app.sees("The name of a deployment")
            await pilot.press(*"my-gpt", "enter")
            await notes(app, "Azure answers")
            await wait_until(lambda: app.results)
            assert app.results[0].model_id == "my-gpt"
            assert server.requests[-1].json["model"] == "my-gpt"


@pytest.mark.slow
async def test_a_silent_server_keeps_a_key_only_if_one_was_entered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(provider_picker, "PROVIDER_TRY", Limit("test", 1_000, "ms", "for a test"))
    async with ModelServer([Answer(hang=60)]) as server:
        acme = {"acme": {**ACME["acme"], "options": {"baseURL": server.url}}}
        mine = {"options": {"baseURL": server.url}, "models": {"m": {"limit": {"context": 9_000}}}}
        async with picking(tmp_path, {**acme, "mine": mine}) as (app, pilot):
            await pilot.press(*"mine", "enter")
            await notes(app, "It did not answer in 1 s.")
            assert not any("key" in note.message for note in app._notifications)
            await pilot.press("ctrl+u", *"acme", "ctrl+k")
            await app.sees("Key for Acme")
            await pilot.press(*"sk-0123456789", "enter")
            await notes(app, "It did not answer in 1 s. The key is kept; try again.")
            await app.sees("Acme", "key stored, did not answer")
            await pilot.press("escape")
            await wait_until(lambda: app.results == [None])


@pytest.mark.slow
async def test_a_dialog_that_is_closed_while_a_provider_is_tried_leaves_no_session(
    tmp_path: Path,
) -> None:
    async with ModelServer([Answer(hang=60)]) as server:
        mine = {"options": {"baseURL": server.url}, "models": {"m": {"limit": {"context": 9_000}}}}
        async with picking(tmp_path, {"mine": mine}) as (app, pilot):
            picker = app.screen
            assert isinstance(picker, ProviderPicker)
            await pilot.press(*"mine", "enter")
            await wait_until(lambda: bool(server.requests))
            trial = next(each for each in picker.workers if each.group == "act")
            await pilot.press("escape")
            await wait_until(lambda: app.results == [None] and trial.is_finished)
            assert [note.message for note in app._notifications] == ["Trying mine…"]
            client = picker._dialog_context.client
            assert await client.call(SESSION_LIST, ListSessions()) == []
