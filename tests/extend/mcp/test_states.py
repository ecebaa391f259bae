"""What a server is doing, from configured to connected and back;
another process knows why it did not work.
"""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from codeloop.extend.mcp.transport.failures import ServerFailed
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
        assert (it.server().status.state, it.server().status.reason) == (
            "disabled",
            "`enabled` is false",
        )


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


LISTS = ("resources/list", "resources/templates/list", "prompts/list")


@pytest.mark.parametrize("how", ["missing", "broken"])
@pytest.mark.parametrize("methods", [LISTS[:1], LISTS[1:2], LISTS[2:], LISTS, ("tools/list",)])
async def test_a_list_that_is_advertised_and_not_given_is_left_out(
    tmp_path: Path, how: str, methods: tuple[str, ...]
) -> None:
    async with world(tmp_path) as it:
        (it.traces / "refused.json").write_text(json.dumps(dict.fromkeys(methods, how)))
        if (methods, how) == (("tools/list",), "broken"):
            with pytest.raises(ServerFailed, match="what it sent is not of the protocol's form"):
                await it.server().connect()
            return
        listing = await it.server().connect()
        assert len(listing.problems) == len(methods)
        assert ("can't be listed: no 'p" in str(listing.problems)) == (
            how == "missing" and "prompts/list" in methods
        )
        assert bool(listing.tools) == ("tools/list" not in methods)
        assert bool(listing.prompts) == ("prompts/list" not in methods)
        assert bool(listing.resources) == (methods != LISTS)
        if listing.tools:
            assert (await it.call("echo", text="hi")).output == "echo: hi"


async def test_a_server_that_gives_no_list_is_refused_with_the_cause(tmp_path: Path) -> None:
    entry = plain(tmp_path)
    entry["command"] = [
        "sh",
        "-c",
        'echo "DeprecationWarning: use something else" >&2; exec "$@"',
        "sh",
        *entry["command"],
    ]
    async with world(tmp_path, {"p": entry}) as it:
        (it.traces / "refused.json").write_text(
            json.dumps(dict.fromkeys((*LISTS, "tools/list"), "missing"))
        )
        with pytest.raises(
            ServerFailed, match=r"can't be used: its tools can't be listed: no 'tools/list'\.$"
        ):
            await it.server().connect()


async def test_tools_that_run_only_as_tasks_are_not_offered(tmp_path: Path) -> None:
    rows = [
        {"name": support, "inputSchema": {"type": "object"}, "execution": {"taskSupport": support}}
        for support in ("required", "optional", "forbidden")
    ]
    entry = plain(tmp_path)
    async with world(
        tmp_path, {"p": {**entry, "command": [*entry["command"], "2025-11-25"]}}
    ) as it:
        (it.traces / "tools.json").write_text(json.dumps(rows))
        listing = await it.server().connect()
        assert {tool.name for tool in listing.tools} & {"required", "optional", "forbidden"} == {
            "optional",
            "forbidden",
        }
        assert listing.problems == ["its tool required runs only as a task, which is not supported"]


async def test_at_rest_programs_end_and_the_next_call_starts_them_again(tmp_path: Path) -> None:
    async with world(tmp_path) as it:
        await it.call("echo", text="one")
        assert (it.started(), it.server().is_running) == (1, True)
        await it.table.rest()
        assert not it.server().is_running
        await it.table.rest()
        await it.call("echo", text="two")
        assert (it.started(), it.server().is_running) == (2, True)
