"""Servers of each version of the protocol: greeted, listed, called,
and heard when something of theirs changes.
"""

import asyncio
import sys
from pathlib import Path
from typing import Any

import pytest

from codeloop.extend.mcp.tools.parameters import ResourceParams
from tests.extend.mcp.world import PLAIN, World, world
from tests.support.scripted_project import wait_until

PACKAGE = PLAIN.with_name("package_server.py")
NEWEST = "2026-07-28"


def server(tmp_path: Path, version: str) -> dict[str, Any]:
    """Return the definition of a server that speaks a version: the package's for the newest,
    else the plain one.
    """
    traces = tmp_path / "traces"
    traces.mkdir(exist_ok=True)
    words = (
        [str(PACKAGE), "stdio", "0"] if version == NEWEST else [str(PLAIN), str(traces), version]
    )
    return {"type": "local", "command": [sys.executable, *words]}


async def read(it: World, uri: str) -> str:
    tool = it.toolbox.tools_by_name["mcp_resource"].implementation
    return (await tool.run(ResourceParams(server="p", uri=uri), it.ctx)).output


@pytest.mark.slow
@pytest.mark.parametrize(
    "version", ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", NEWEST]
)
async def test_a_server_of_each_version_is_spoken_to(tmp_path: Path, version: str) -> None:
    async with world(tmp_path, {"p": server(tmp_path, version)}) as it:
        listing = await it.server().connect()
        assert listing.protocol == version
        uri = "note://today" if version == NEWEST else "plain://note"
        assert (await read(it, uri)) == ("Buy milk." if version == NEWEST else f"the text of {uri}")
        notices = it.ctx.services.notices
        told = ""
        async with asyncio.timeout(60):
            while not told:  # the newest version's stream of changes is opened beside the calls
                await it.call("touch", uri=uri)
                told = notices.take(it.ctx.session_id)
        assert (
            told
            == f"The MCP resource p:{uri} has changed since you read it; mcp_resource reads it anew."
        )
        if version != NEWEST:
            asked = (tmp_path / "traces" / "asked").read_text().splitlines()
            assert sorted(asked) == ["logging/setLevel info", f"resources/subscribe {uri}"]
        listing = it.server().listing
        assert listing is not None
        before = len(listing.tools)
        await it.call("grow" if version == NEWEST else "new_tool")
        await wait_until(
            lambda: (
                it.server().pending_patch or len((it.server().listing or listing).tools) > before
            )
        )


@pytest.mark.slow
@pytest.mark.parametrize("version", ["2024-11-05", "2025-06-18", "2025-11-25"])
async def test_the_version_that_the_configuration_names_is_spoken_while_it_is_named(
    tmp_path: Path, version: str
) -> None:
    entry = server(tmp_path, NEWEST)
    async with world(tmp_path, {"p": {**entry, "protocol": version}}) as it:
        assert (await it.server().connect()).protocol == version
        assert (await it.call("add", a=1, b=2)).output == "3"
    async with world(tmp_path, {"p": entry}) as it:
        assert (await it.server().connect()).protocol == NEWEST
