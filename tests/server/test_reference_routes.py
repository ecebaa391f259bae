"""Each route of the reference's version 1.18.33 (method, path and id,
in `reference_routes.txt`) has an answer here.
"""

import re
from pathlib import Path

from starlette.routing import Route, WebSocketRoute

from codeloop.server.application import make_application
from codeloop.server.events.hub import Hub
from codeloop.server.openapi.operations import ALL_OPERATIONS
from codeloop.server.version2.rows import ROWS as VERSION_2_ROWS
from tests.server.support.serving import served

ROWS = [
    line.split()
    for line in (Path(__file__).parent / "reference_routes.txt").read_text().splitlines()
]


def shape(path: str) -> str:
    """Return a path without the names of its parameters."""
    return re.sub(r"\{[^}]*\}|\*", "{}", path)


async def test_every_route_of_the_reference_is_one_of_ours(tmp_path: Path) -> None:
    async with served(tmp_path) as it:
        ours = {(row.method, shape(row.path)) for row in VERSION_2_ROWS}
        for route in make_application(it.app, Hub(it.app)).routes:
            if isinstance(route, Route | WebSocketRoute):
                methods = (route.methods or {"GET"}) if isinstance(route, Route) else {"GET"}
                ours |= {(method, shape(route.path)) for method in methods}
    assert [row for row in ROWS if (row[0], shape(row[1])) not in ours] == []
    assert (len(ROWS), sum(path.startswith("/api/") for _, path, _ in ROWS)) == (188, 58)


def test_they_have_the_ids_that_clients_are_generated_with() -> None:
    ids = {(row.method, shape(row.path)): row.id for row in ALL_OPERATIONS}
    assert {
        row[2]: ids[row[0], shape(row[1])] for row in ROWS if (row[0], shape(row[1])) in ids
    } == {row[2]: row[2] for row in ROWS if (row[0], shape(row[1])) in ids}
