"""What a request holds becomes an operation's arguments, or is refused by its place;
never a 500.
"""

from pathlib import Path
from typing import Any

import pytest

from tests.server.support.serving import served


@pytest.mark.parametrize(
    ("path", "query", "place"),
    [
        ("/session", {"limit": 0}, "limit"),
        ("/session", {"limit": -62510665}, "limit"),
        ("/session", {"limit": 10**30}, "limit"),
        ("/session", {"start": "null"}, "start"),
        ("/session/everything", {"limit": -1}, "limit"),
        ("/session/search", {"query": ""}, "query"),
        ("/session/search", {"query": "x" * 501}, "query"),
        ("/session/stats", {"days": 0}, "days"),
        ("/find/file", {"query": "x", "limit": 201}, "limit"),
        ("/vcs/diff", {"mode": "git", "context": -1}, "context"),
    ],
)
async def test_a_value_outside_of_its_bounds_is_refused_by_its_place(
    path: str, query: dict[str, Any], place: str, tmp_path: Path
) -> None:
    async with served(tmp_path) as it:
        refused = await it.get(path, status=400, **query)
        assert refused["data"]["kind"] == "Query"
        assert refused["data"]["message"].endswith(f'at ["{place}"]')


async def test_a_whole_number_may_be_written_with_a_point(tmp_path: Path) -> None:
    async with served(tmp_path) as it:
        session_id = await it.session()
        response = await it.http.patch(
            f"/session/{session_id}", content=b'{"time": {"archived": 1000.0}}'
        )
        assert response.json()["time"]["archived"] == 1000
        refused = await it.http.patch(
            f"/session/{session_id}", content=b'{"time": {"archived": 1000.5}}'
        )
        assert refused.status_code == 400
        too_large = await it.http.patch(
            f"/session/{session_id}", content=b'{"metadata": {"n": 1e400}}'
        )
        assert too_large.json()["data"]["kind"] == "Body"


async def test_a_wrong_method_is_told_the_right_ones_of_its_path(tmp_path: Path) -> None:
    async with served(tmp_path) as it:
        for path, methods in [
            ("/config", "GET, HEAD, PATCH"),
            ("/session/status", "GET, HEAD"),
            ("/mcp", "GET, HEAD, POST"),
        ]:
            response = await it.http.request("TRACE", path)
            assert (response.status_code, response.headers["allow"]) == (405, methods)
            assert response.json()["name"] == "BadRequest"
