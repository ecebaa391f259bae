"""What this server does not do says so and why; sessions of all projects are listed with them."""

from pathlib import Path

import pytest

from tests.server.support.serving import served
from tests.workspace.snapshot.trees_on_disk import repository

REFUSED = {
    "/experimental/control-plane/move-session": (
        {"sessionID": "ses_x", "destination": {"directory": "/"}},
        "stays in",
    ),
    "/experimental/console/switch": ({"accountID": "a", "orgID": "b"}, "no service of its own"),
    "/experimental/workspace": ({"type": "worktree", "branch": None}, "/experimental/worktree"),
    "/experimental/workspace/warp": ({"id": None, "sessionID": "ses_x"}, "/experimental/worktree"),
    "/sync/replay": ({"directory": "/", "events": []}, "/session/import"),
    "/sync/steal": ({"sessionID": "ses_x"}, "/experimental/worktree"),
    "/sync/history": ({}, "/event"),
    "/tui/control/response": ({"a": 1}, "/event"),
}


@pytest.mark.parametrize("path", REFUSED)
async def test_what_is_not_offered_is_refused_with_the_reason(path: str, tmp_path: Path) -> None:
    body, reason = REFUSED[path]
    async with served(tmp_path) as it:
        refused = await it.post(path, body, 400)
        assert reason in refused["data"]["message"]


async def test_what_is_always_the_same_here(tmp_path: Path) -> None:
    async with served(tmp_path) as it:
        assert await it.get("/experimental/console/orgs") == {"orgs": []}
        assert await it.get("/experimental/workspace/adapter") == []
        assert await it.post("/experimental/workspace/sync-list", status=204) is None
        assert await it.post("/sync/start") is True
        assert (await it.post("/global/upgrade", {"target": "9.9.9"}))["success"] is False
        session = await it.session()
        assert await it.post(f"/experimental/session/{session}/background") is False
        assert (await it.post("/experimental/session/ses_x/background", status=404))[
            "name"
        ] == "NotFoundError"


async def test_sessions_of_all_projects_are_listed_with_their_projects(tmp_path: Path) -> None:
    other = repository(tmp_path / "other", {"a.txt": "a\n"})
    async with served(tmp_path) as it:
        mine = await it.session()
        made = await it.http.post(
            "/session", json={"title": "elsewhere"}, params={"directory": str(other)}
        )
        found = await it.get("/experimental/session")
        assert [each["id"] for each in found] == [made.json()["id"], mine]
        assert [each["project"]["worktree"] for each in found] == [str(other), "/"]
        assert [each["id"] for each in await it.get("/experimental/session", search="elsewh")] == [
            made.json()["id"]
        ]
        await it.http.patch(f"/session/{mine}", json={"time": {"archived": 5}})
        assert [each["id"] for each in await it.get("/experimental/session")] == [made.json()["id"]]
        assert len(await it.get("/experimental/session", archived="true")) == 2
        assert len(await it.get("/experimental/session", archived="true", limit=1)) == 1
