"""A conversation's project in this process: what is changed of its configuration counts,
and nothing is missed.
"""

import asyncio
from pathlib import Path

from codeloop.app.app import App
from codeloop.app.models.open_models import SingleModel
from codeloop.client.directory_client import DirectoryClient
from codeloop.model.testing.replay import ScriptedModel
from codeloop.schema.api.config import CONFIG_GET, CONFIG_SETTINGS, CONFIG_UPDATE, UpdateConfig
from codeloop.schema.api.session_requests import SESSION_CREATE, CreateSession
from codeloop.schema.operation import NoArguments
from codeloop.schema.wire import replace
from tests.support.scripted_project import make_startup, wait_until


async def test_a_changed_setting_counts_at_once_and_events_go_on(tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    trusting = replace(make_startup(tmp_path / "home", work), trust=True)
    app = App(trusting, SingleModel(ScriptedModel([])))
    client = DirectoryClient(app, work)
    seen = list[str]()

    async def follow() -> None:
        async for stamped in client.follow():
            seen.append(type(stamped.event).__name__)

    following = asyncio.create_task(follow())
    try:
        first = await app.get_project(work)
        await client.call(
            CONFIG_UPDATE, UpdateConfig(config={"profile": "plan", "sandbox": {"mode": "off"}})
        )
        settings = await client.call(CONFIG_SETTINGS, NoArguments())
        assert (settings["profile"], settings["sandbox"]) == ("plan", {"mode": "off"})
        assert not {"profile", "sandbox"} & (await client.call(CONFIG_GET, NoArguments())).keys()
        assert await app.get_project(work) is not first
        await client.call(SESSION_CREATE, CreateSession())
        await wait_until(lambda: "SessionCreated" in seen)
        await client.call(CONFIG_UPDATE, UpdateConfig(config={"profile": None, "sandbox": None}))
        assert (
            not {"profile", "sandbox"} & (await client.call(CONFIG_SETTINGS, NoArguments())).keys()
        )
    finally:
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)
        await app.close()
    assert app.stores.list_open_stores() == ()
