"""A server's program is in a sandbox of its own: what it reads,
writes and reaches is what its entry says.
"""

import asyncio
import os
import socket
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from codeloop.extend.mcp.definition import LocalDefinition, parse_definition
from codeloop.kit.small_files import read_start
from codeloop.schema.config import SandboxConfig
from tests.extend.mcp.world import PLAIN, World, world
from tests.support.sandbox_support import has_sandbox

SERVER = [sys.executable, str(PLAIN.with_name("shell_server.py"))]
pytestmark = pytest.mark.skipif(not has_sandbox(), reason="no sandbox can be had here")


@asynccontextmanager
async def boxed(tmp_path: Path, **entry: Any) -> AsyncGenerator[World]:
    """Open a server in its sandbox, in a home with a key, a project with a secret, caches,
    a session's socket.
    """
    for name, text in {
        ".ssh/id_rsa": "KEY",
        ".aws/credentials": "KEY",
        ".npm/_npx/1/index.js": "good",
        ".cache/uv/a": "good",
        ".bashrc": "good",
        "work/.env": "KEY",
        "work/plain.txt": "plain",
        "work/tools/lib.js": "good",
        "home/data/auth.json": "KEY",
        "home/data/servers/other/data": "good",
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    given = {"type": "local", "command": SERVER, **entry}
    async with world(tmp_path, {"p": given}, sandbox=SandboxConfig()) as it:
        yield it


async def run(it: World, line: str) -> str:
    return (await it.call("run", line=line)).output


@pytest.mark.slow
async def test_a_server_reads_no_key_and_writes_nothing_but_what_is_its_own(tmp_path: Path) -> None:
    key = tmp_path / "keys" / "service.json"
    key.parent.mkdir()
    key.write_text("its key")
    (key.parent / "other.json").write_text("KEY")
    async with boxed(tmp_path, environment={"TOKEN": "its own", "KEY_FILE": str(key)}) as it:
        assert await run(it, "cat $KEY_FILE") == "its key[0]"
        assert "KEY" not in await run(it, f"cat {key.parent}/other.json")
        it.ctx.workspace.environment["OTHER_TOKEN"] = "somebody else's"
        for name in (".ssh/id_rsa", ".aws/credentials", "work/.env", "home/data/auth.json"):
            assert "KEY" not in await run(it, f"cat {tmp_path}/{name}"), name
        for name in (
            *(
                ".npm/_npx/1/index.js",
                ".cache/uv/a",
                ".bashrc",
                "work/plain.txt",
                "work/tools/lib.js",
                "work/new",
            ),
            *("home/data/servers/other/data", ".ssh/authorized_keys", "home/config/codeloop.json"),
        ):
            await run(it, f"mkdir -p $(dirname {tmp_path}/{name}); echo bad > {tmp_path}/{name}")
            file = tmp_path / name
            assert not file.exists() or "bad" not in file.read_text(), name
        assert await run(it, f"cat {it.ctx.workspace.root}/plain.txt") == "plain[0]"
        assert (
            await run(it, "echo mine > data; cat data; echo x > /tmp/x; cat /tmp/x")
            == "mine\nx\n[0]"
        )
        assert await run(it, "echo $TOKEN $OTHER_TOKEN $DBUS_SESSION_BUS_ADDRESS") == "its own\n[0]"
        assert await run(it, "cat ~/.npm/_npx/1/index.js ~/.cache/uv/a") == "bad\nbad\n[0]"
    assert (tmp_path / "home/data/servers/p/data").read_text() == "mine\n"
    assert not Path("/tmp/x").exists() or Path("/tmp/x").read_text() != "x\n"


@pytest.mark.slow
async def test_an_entry_opens_what_it_names_and_no_more(tmp_path: Path) -> None:
    opened = {"writable": [".", "~/notes"], "readable": [str(tmp_path / ".aws")], "network": "off"}
    async with boxed(tmp_path, sandbox=opened) as it:
        (tmp_path / "work" / ".git").mkdir()
        assert await run(it, f"echo good > {it.ctx.workspace.root}/plain.txt") == "[0]"
        assert await run(it, f"cat {tmp_path}/.aws/credentials") == "KEY[0]"
        assert "KEY" not in await run(
            it, f"cat {tmp_path}/.ssh/id_rsa {it.ctx.workspace.root}/.env"
        )
        reached = await run(
            it, "python3 -c 'import socket; socket.create_connection((\"127.0.0.1\", 9), 2)'"
        )
        assert "Error" in reached
    assert (tmp_path / "work/plain.txt").read_text() == "good\n"


@pytest.mark.slow
async def test_a_server_reaches_the_network_but_no_socket_of_the_session(tmp_path: Path) -> None:
    agent = tmp_path / "agent.sock"
    with socket.create_server(("127.0.0.1", 0)) as web, socket.socket(socket.AF_UNIX) as unix:
        unix.bind(str(agent))
        unix.listen()
        async with boxed(tmp_path) as it:
            connect = 'import socket,sys; socket.socket(int(sys.argv[1])).connect(eval(sys.argv[2])); print("in")'
            where = f'("127.0.0.1", {web.getsockname()[1]})'
            assert "in" in await run(it, f"python3 -c '{connect}' {socket.AF_INET:d} '{where}'")
            assert "in\n" not in await run(
                it, f"python3 -c '{connect}' {socket.AF_UNIX:d} '\"{agent}\"'"
            )


async def test_what_a_server_started_ends_with_it(tmp_path: Path) -> None:
    async with boxed(tmp_path) as it:
        # Seconds by which no other run of this test knows its process.
        seconds = f"9876{os.getpid()}"
        await run(it, f"(setsid sleep {seconds} >/dev/null 2>&1 &) ; echo started")
        await asyncio.sleep(0)
    assert [
        each
        for each in Path("/proc").glob("[0-9]*/cmdline")
        if seconds.encode() in read_arguments(each)
    ] == []


def read_arguments(file: Path) -> bytes:
    """Return the start of a file of /proc; nothing for a process of somebody else
    that has ended meanwhile.
    """
    try:
        return read_start(file, 99)
    except OSError:
        return b""


@pytest.mark.parametrize(
    ("entry", "has_sandbox"),
    [
        ({"command": ["npx", "x"]}, True),
        ({"command": ["npx", "x"], "sandbox": True}, True),
        ({"command": ["npx", "x"], "sandbox": False}, False),
        ({"command": ["npx", "x"], "sandbox": {"hosts": ["a.example"]}}, True),
        ({"command": ["docker", "run", "-i", "mcp/x"]}, False),
        ({"command": ["/usr/bin/podman", "run", "-i", "x"]}, False),
        ({"command": ["docker", "run", "-i", "mcp/x"], "sandbox": True}, True),
    ],
)
def test_an_entry_says_whether_there_is_a_sandbox(entry: dict[str, Any], has_sandbox: bool) -> None:
    config = parse_definition("p", {"type": "local", **entry}).config
    assert isinstance(config, LocalDefinition)
    assert bool(config.effective_sandbox) is has_sandbox


def test_another_sandbox_is_another_server() -> None:
    entry = {"type": "local", "command": ["x"]}
    before, after = parse_definition("p", entry), parse_definition("p", {**entry, "sandbox": False})
    assert before.digest != after.digest
    assert after.text == "command:\n  x\nsandbox: false\n"


CONNECT = (
    'import socket,sys; socket.create_connection(("127.0.0.1", int(sys.argv[1])), 5); print("in")'
)


@pytest.mark.slow
async def test_a_projects_server_reaches_what_commands_reach_whatever_its_entry_says(
    tmp_path: Path,
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as web:
        port = web.getsockname()[1]
        entry = {"type": "local", "command": SERVER}
        opened = {
            **entry,
            "sandbox": {"network": "on", "hosts": [f"localhost:{port}", "example.invalid"]},
        }
        for given in (entry, opened):
            async with world(
                tmp_path, {"p": given}, sandbox=SandboxConfig(), scopes={"p": "here"}
            ) as it:
                assert "in\n" not in await run(it, f"python3 -c '{CONNECT}' {port}")
                refused = "python3 -c 'import urllib.request as r; r.urlopen(\"https://example.invalid\", timeout=9)'"
                assert "Error" in await run(it, refused)
                async with asyncio.timeout(60):
                    while not any(
                        '"sandbox": {"hosts": ["example.invalid"]}' in each for each in it.changed
                    ):
                        await asyncio.sleep(0.05)
        config = SandboxConfig(hosts=[f"localhost:{port}"])
        async with world(tmp_path, {"p": entry}, sandbox=config, scopes={"p": "here"}) as it:
            assert "in\n" in await run(it, f"python3 -c '{CONNECT}' {port}")


@pytest.mark.slow
async def test_a_server_that_may_write_the_project_plants_nothing_there(tmp_path: Path) -> None:
    async with boxed(tmp_path, sandbox={"writable": ["."]}) as it:
        root = it.ctx.workspace.root
        # The folder may go while `mkdir` is in it.
        planting = "mkdir -p .codeloop/plugins 2>/dev/null; echo x > codeloop.json"
        assert await run(it, f"cd {root}; echo mine > made; {planting}") == "[0]"
        assert "planted" not in await run(
            it, f"cd {root}; echo planted > .codeloop/plugins/x.py; sleep 1; cat codeloop.json"
        )
        assert (root / "made").read_text() == "mine\n"
        assert not (root / "codeloop.json").exists()
        assert not (root / ".codeloop").exists()
        assert any("codeloop.json appeared" in each for each in it.changed)
