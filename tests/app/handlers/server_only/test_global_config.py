"""The user's own configuration over HTTP."""

import json
from pathlib import Path

from tests.server.support.serving import served


async def test_the_users_settings_are_shown_without_the_projects_and_changed_in_their_file(
    tmp_path: Path,
) -> None:
    async with served(tmp_path) as it:
        config = (await it.project()).settings.paths.config
        (it.work / "codeloop.json").write_text('{"share": "disabled"}')
        assert "share" not in await it.get("/global/config")
        said = await it.http.patch(
            "/global/config", json={"snapshot": False, "provider": {"mine": {"name": "Mine"}}}
        )
        assert (said.status_code, said.json()["snapshot"]) == (200, False)
        assert (await it.get("/config"))["snapshot"] is False, "it holds in the project at once"
        text = next(config.glob("codeloop.json*")).read_text()
        assert '"snapshot": false' in text
        said = await it.http.patch("/global/config", json={"snapshot": None})
        assert "snapshot" not in said.json()
        assert said.json()["provider"]["mine"]["name"] == "Mine"


async def test_what_no_file_may_hold_changes_nothing(tmp_path: Path) -> None:
    async with served(tmp_path) as it:
        before = await it.get("/global/config")
        for wrong in ({"model": 5}, {"nonsense": 1}, {"model": None, "sahre": "auto"}):
            assert (await it.http.patch("/global/config", json=wrong)).status_code == 400
        assert await it.get("/global/config") == before


async def test_a_server_becomes_one_of_another_kind_by_one_change(tmp_path: Path) -> None:
    async with served(tmp_path) as it:
        config = (await it.project()).settings.paths.config
        config.mkdir(parents=True, exist_ok=True)
        file = config / "codeloop.json"
        local = {"type": "local", "command": ["a", "b"], "environment": {"KEY": "1"}}
        file.write_text(json.dumps({"mcp": {"own": local}}))
        remote = {"type": "remote", "url": "http://127.0.0.1:9/"}
        gone = {"command": None, "environment": None, "cwd": None}
        wrong = {"mcp": {"own": {**remote, **gone}}, "sahre": "auto"}
        assert (await it.http.patch("/global/config", json=wrong)).status_code == 400
        assert json.loads(file.read_text()) == {"mcp": {"own": local}}
        right = {"mcp": {"own": {**remote, **gone}}}
        assert (await it.http.patch("/global/config", json=right)).status_code == 200
        assert json.loads(file.read_text()) == {"mcp": {"own": remote}}
