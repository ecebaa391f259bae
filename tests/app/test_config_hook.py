"""The hook `config` of extensions: asked once about a configuration, a layer of it from then on."""

import asyncio
from pathlib import Path

import pytest

from codeloop.app.extensions.open_with_extensions import open_with_extensions
from codeloop.app.models.open_models import SingleModel
from codeloop.app.project import Project
from codeloop.app.settings import find_settings
from codeloop.client.client import Client
from codeloop.model.testing.replay import ScriptedModel
from codeloop.model.testing.script import ScriptedAnswer
from codeloop.schema.api.session_inputs import COMMAND, InvokeCommand
from codeloop.schema.api.session_requests import SESSION_CREATE, CreateSession
from codeloop.schema.bounds.extension import HOST_WAIT
from codeloop.schema.live_events import ToastShown
from codeloop.schema.wire import replace
from tests.support.extension_waits import patient_extensions
from tests.support.scripted_project import (
    make_startup,
    open_in_process,
    open_over_http,
    wait_for_result,
    wait_until,
)

__all__ = ["patient_extensions"]
PLUGIN = """
from pathlib import Path

from codeloop.extension import hook


@hook("config")
def config(input, output):
    with Path({log!r}).open("a") as log:
        log.write("asked\\n")
    output["command"] = {{"go": {{"template": "Go far."}}}}
    output["permission"] = {permission!r}
    return output
"""


def written(tmp_path: Path, permission: object) -> Path:
    """Write a plugin of the person's; return where it says that it was asked."""
    plugin = tmp_path / "home" / "config" / "plugin" / "x.py"
    plugin.parent.mkdir(parents=True)
    log = tmp_path / "asked"
    plugin.write_text(PLUGIN.format(log=str(log), permission=permission))
    # So that it can say it here, where its sandbox would let it write to a home of its own alone.
    (plugin.parents[1] / "codeloop.json").write_text('{"sandbox": {"extensions": false}}')
    (tmp_path / "work").mkdir()
    return log


async def answered(project: Project) -> None:
    await wait_until(
        lambda: (
            project.settings.config_changes_file is not None
            and project.settings.config_changes_file.exists()
        )
    )


@pytest.mark.slow
async def test_what_extensions_change_counts_once_it_is_known_and_is_asked_once(
    tmp_path: Path,
) -> None:
    log = written(tmp_path, {"bash": {"git push *": "deny"}})
    start = make_startup(tmp_path / "home", tmp_path / "work", model="local/m")
    async with open_in_process(start, None) as (project, _):
        assert "go" not in project.settings.config.command
        await answered(project)
        assert project.refresh()
    for model in ("local/m", "local/m", "local/given-for-one-run"):
        again = make_startup(tmp_path / "home", tmp_path / "work", model=model)
        async with open_in_process(again, None) as (project, _):
            assert project.settings.config.command["go"].template == "Go far."
            assert project.settings.config.model == model
            assert [rule.pattern for rule in project.settings.config.restrictions] == ["git push *"]
    assert log.read_text() == "asked\n"


@pytest.mark.slow
async def test_the_first_turn_goes_with_what_extensions_change(tmp_path: Path) -> None:
    """Of two that are both unknown each is asked, over HTTP too;
    and what the first project had to say is not lost.
    """
    log = written(tmp_path, "allow")
    other = tmp_path / "home" / "config" / "plugin" / "y.py"
    other.write_text(
        PLUGIN.format(log=str(log), permission={"bash": {"rm *": "deny"}}).replace('"go"', '"rest"')
    )
    (other.parent / "z.py").write_text("broken(\n")
    start = make_startup(tmp_path / "home", tmp_path / "work")
    async with open_over_http(
        start, SingleModel(ScriptedModel([ScriptedAnswer(text="Done.")] * 2))
    ) as (_, client):
        session = await client.call(SESSION_CREATE, CreateSession())
        heard = asyncio.create_task(warned(client))
        await client.call(
            COMMAND, InvokeCommand(session_id=session.id, command="rest", arguments="")
        )
        assert "z.py can't be used" in await wait_for_result(heard)
    assert log.read_text() == "asked\nasked\n"


async def warned(client: Client) -> str:
    async for stamped in client.follow():
        if isinstance(stamped.event, ToastShown) and stamped.event.properties.variant == "warning":
            return stamped.event.properties.message
    raise AssertionError("it goes on for ever")


@pytest.mark.slow
async def test_a_project_that_is_opened_for_a_turn_waits_for_an_answer_a_while(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written(tmp_path, "allow")
    start = make_startup(tmp_path / "home", tmp_path / "work")
    project = await open_with_extensions(start)
    assert project.settings.config.command["go"].template == "Go far."
    await project.close()
    plugin = tmp_path / "home" / "config" / "plugin" / "x.py"
    plugin.write_text(
        plugin.read_text().replace(
            'output["command"]', 'import time; time.sleep(600); output["command"]'
        )
    )
    monkeypatch.setattr("codeloop.extend.host.hosts.HOST_WAIT", replace(HOST_WAIT, value=300))
    project = await open_with_extensions(start)
    try:
        assert "go" not in project.settings.config.command
    finally:
        await project.close()


async def test_an_answer_that_makes_no_sense_is_told_and_left_out(tmp_path: Path) -> None:
    written(tmp_path, {"bash": 5})
    start = make_startup(tmp_path / "home", tmp_path / "work")
    async with open_in_process(start, None) as (project, _):
        await answered(project)
    settings = find_settings(start)
    assert "go" not in settings.config.command
    (warning,) = [each for each in settings.loaded.warnings if "extensions' changes" in each]
    assert "permission.bash" in warning


def test_without_extensions_nobody_is_asked(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    assert (
        find_settings(make_startup(tmp_path / "home", tmp_path / "work")).config_changes_file
        is None
    )
