"""Commands in a sandbox of our own namespaces: which hosts and services they reach,
and what is said of the others.
"""

import asyncio
import shlex
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from codeloop.schema.config import SandboxConfig
from codeloop.workspace.process.shells import CommandResult, ShellCommand, ShellContext, Shells
from codeloop.workspace.sandbox.policy import PolicyInput
from codeloop.workspace.sandbox.sandbox import SandboxUnavailable
from codeloop.workspace.sandbox.sandboxes import Sandboxes
from tests.support.sandbox_support import list_sandbox_params

GET = """
import sys, urllib.request
try:
    print(urllib.request.urlopen(sys.argv[1], timeout=60).read().decode())
except Exception as error:
    print(type(error).__name__, error)
"""
THROUGH = """
import os, socket, sys
from urllib.parse import urlsplit
proxy = urlsplit(os.environ["HTTP_PROXY"])
with socket.create_connection((proxy.hostname, proxy.port), 20) as there:
    there.sendall(f"CONNECT {sys.argv[1]} HTTP/1.1\\r\\n\\r\\n".encode())
    print(there.makefile("rb").readline().decode())
"""
DIRECTLY = """
import socket, sys
try:
    print(socket.create_connection((sys.argv[1], int(sys.argv[2])), 20).recv(100))
except OSError as error:
    sys.exit(str(error))
"""


@pytest.fixture(params=list_sandbox_params("namespaces", "bubblewrap"), autouse=True)
def backend(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have each test run in each kind of sandbox that has a network of its own."""
    monkeypatch.setattr(Sandboxes.__init__, "__defaults__", ((request.param,), None))


class Session:
    """Runs the commands of one session, each in the sandbox unless it is `outside`."""

    def __init__(
        self, shells: Shells, root: Path, config: SandboxConfig, environment: dict[str, str]
    ) -> None:
        self.shells = shells
        self.config = config
        self._place = ShellContext("ses_1", root, environment, root.with_name("scratch"))
        self._sandbox = PolicyInput(root, root, self._place.scratch, environment)

    async def run(self, text: str, *, outside: bool = False) -> CommandResult:
        policy = None if outside else self.shells.make_policy(self._sandbox, self.config)
        return await self.shells.run(
            self._place, ShellCommand(text, 60, None, policy), lambda _text: None
        )

    async def program(self, text: str, *arguments: str) -> CommandResult:
        return await self.run(shlex.join((sys.executable, "-c", text, *arguments)))


@asynccontextmanager
async def session(
    tmp_path: Path, *hosts: str, network: str = "hosts", **variables: str
) -> AsyncGenerator[Session]:
    root, shells = tmp_path / "project", Shells()
    for folder in (root, tmp_path / "scratch", tmp_path / "home"):
        folder.mkdir()
    environment = {
        "PATH": "/usr/local/bin:/usr/bin:/bin",
        "HOME": str(tmp_path / "home"),
        **variables,
    }
    config = SandboxConfig(network="off" if network == "off" else "hosts", hosts=list(hosts))
    found = Session(shells, root, config, environment)
    try:
        try:
            sandbox = await shells.sandboxes.enter(
                shells.make_policy(PolicyInput(root, root, root, environment), config)
            )
        except SandboxUnavailable as error:
            pytest.skip(str(error))
        assert sandbox.backend != "landlock"
        yield found
    finally:
        await shells.close()


@asynccontextmanager
async def service() -> AsyncGenerator[int]:
    """Serve b"hello" on a port of this machine."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"hello")
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()


@pytest.mark.slow
async def test_the_model_is_told_which_host_was_refused(tmp_path: Path) -> None:
    async with session(tmp_path) as commands:
        for url in ("https://evil.example/", "http://evil.example:8080/"):
            got = await commands.program(GET, url)
            port = "443" if url.startswith("https") else "8080"
            assert "403" in got.output
            line = (
                f"blocked: connection to evil.example:{port}, not among the hosts of the sandbox."
            )
            assert [note.partition(" If it must")[0] for note in got.notes] == [line]
        assert (await commands.run("true")).notes == ()


@pytest.mark.slow
async def test_the_machine_is_not_reached_around_the_proxy(tmp_path: Path) -> None:
    async with service() as port, session(tmp_path) as commands:
        got = await commands.program(DIRECTLY, "127.0.0.1", str(port))
        assert "refused" in got.output
        got = await commands.program(DIRECTLY, "93.184.216.34", "80")
        assert "unreachable" in got.output
        assert "a direct connection; programs reach hosts through the proxy" in got.notes[0]
        for place in (
            f"127.0.0.1:{port}",
            f"localhost:{port}",
            f"[::1]:{port}",
            f"0x7f000001:{port}",
        ):
            assert "403 blocked: " in (await commands.program(THROUGH, place)).output


async def test_a_named_service_of_the_machine_is_reached_as_localhost(tmp_path: Path) -> None:
    async with service() as port, session(tmp_path, f"localhost:{port}") as commands:
        assert (await commands.program(DIRECTLY, "localhost", str(port))).output == "b'hello'\n"


async def test_a_command_sees_its_own_variables_after_one_that_ran_elsewhere(
    tmp_path: Path,
) -> None:
    own = "http://proxy.of.the.user:1"
    async with session(tmp_path, HTTPS_PROXY=own, SSH_AUTH_SOCK="/run/agent") as commands:
        show = 'echo "$HTTPS_PROXY|$http_proxy|$SSH_AUTH_SOCK|$MINE"'
        outside = f"{own}||/run/agent|"
        assert (await commands.run(f"{show}; export MINE=1", outside=True)).output == f"{outside}\n"
        inside = (await commands.run(show)).output.strip().split("|")
        assert inside[0].startswith("http://127.0.0.1:")
        assert inside == [inside[0], inside[0], "", "1"]
        assert (await commands.run(show, outside=True)).output == f"{outside}1\n"


@pytest.mark.slow
async def test_a_changed_list_counts_for_what_an_older_one_had_opened(tmp_path: Path) -> None:
    async with service() as port, session(tmp_path, f"localhost:{port}") as commands:
        before = (await commands.run("echo $HTTPS_PROXY")).output.strip().rpartition(":")[2]
        commands.config = SandboxConfig(network="off")
        for old in (before, str(port)):
            assert "refused" in (await commands.program(DIRECTLY, "localhost", old)).output


async def test_without_network_there_is_no_proxy(tmp_path: Path) -> None:
    async with session(tmp_path, network="off") as commands:
        got = await commands.run('echo "[$HTTPS_PROXY]"')
        assert got.output == "[]\n"
        got = await commands.program(DIRECTLY, "93.184.216.34", "80")
        assert "the network, which is off for sandboxed commands" in got.notes[0]


async def test_a_list_with_an_entry_that_is_no_host_is_an_error_that_names_it(
    tmp_path: Path,
) -> None:
    async with session(tmp_path, "https://example.com/") as commands:
        with pytest.raises(OSError, match=r"'https://example.com/' names no host: write a name"):
            await commands.run("true")
