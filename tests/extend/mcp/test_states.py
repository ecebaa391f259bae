"""What a server is doing, from configured to connected and back; another process knows why it did not work."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from codeloop.extend.mcp.link.failures import ServerFailed
from tests.extend.mcp.world import plain, world


async def test_each_state_is_told_from_the_first_look_to_the_end(tmp_path: Path) -> None:
    async with world(tmp_path) as it:
        server = it.server()
        assert server.status.state == "configured"
        connecting = asyncio.create_task(server.connect())
        await asyncio.sleep(0)
        assert server.status.state == "starting"
        await asyncio.gather(connecting, server.connect())
        assert server.status.state == "connected"
        assert it.started() == 1
        await server.disconnect()
        assert server.status.state == "known"
        server.is_off = True
        assert (server.status.state, server.status.reason) == ("disabled", "it was switched off")
    off = {"p": plain(tmp_path, enabled=False)}
    async with world(tmp_path, off) as it:
        assert (it.server().status.state, it.server().status.reason) == ("disabled", "`enabled` is false")


async def test_a_failure_is_known_to_other_processes_until_it_works(tmp_path: Path) -> None:
    command = ["sh", "-c", f'test -e {tmp_path}/fixed && exec "$@"; echo no luck >&2; exit 4', "sh"]
    entry: dict[str, Any] = plain(tmp_path)
    servers = {"p": {**entry, "command": [*command, *entry["command"]]}}
    async with world(tmp_path, servers) as it:
        with pytest.raises(ServerFailed, match="it ended with exit code 4; its last line: no luck"):
            await it.server().connect()
    async with world(tmp_path, servers) as it:
        status = it.server().status
        assert status.state == "failed"
        assert status.reason.startswith("it ended with exit code 4; its last line: no luck (")
        (tmp_path / "fixed").touch()
        assert (await it.call("echo", text="hi")).output == "echo: hi"
    async with world(tmp_path, servers) as it:
        assert it.server().status.state == "known"
