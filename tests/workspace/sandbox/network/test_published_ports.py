"""Servers that run in the background in a sandbox: who reaches them,
and that nothing else leads in or out.
"""

import asyncio
import shlex
import socket
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from codeloop.schema.config import SandboxConfig
from codeloop.workspace.process.background_jobs import Job
from codeloop.workspace.process.shells import ShellCommand, ShellContext, Shells
from codeloop.workspace.sandbox.policy import PolicyInput
from codeloop.workspace.sandbox.sandbox import SandboxUnavailable
from codeloop.workspace.sandbox.sandboxes import Sandboxes
from tests.support.free_port import find_free_port
from tests.support.sandbox_support import list_sandbox_params
from tests.support.scripted_project import wait_until

SERVER = """
import socket, sys
family, address, port = sys.argv[1:]
listener = socket.create_server((address, int(port)), family=socket.AF_INET6 if family == "6" else socket.AF_INET)
print(listener.getsockname()[1], flush=True)
while True:
    connection, _ = listener.accept()
    data = connection.makefile("rb").readline()
    connection.sendall(b"got " + data)
    connection.close()
"""
REACH = """
import socket, sys
try:
    socket.create_connection(("127.0.0.1", int(sys.argv[1])), 20)
    print("reached")
except OSError as error:
    print(type(error).__name__)
"""


@pytest.fixture(params=list_sandbox_params("namespaces", "bubblewrap"), autouse=True)
def backend(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have each test run in each kind of sandbox that has a network of its own."""
    monkeypatch.setattr(Sandboxes.__init__, "__defaults__", ((request.param,), None))


class Session:
    """Runs the commands of one session in the sandbox,
    and knows the addresses at which a user reaches their ports.
    """

    def __init__(self, shells: Shells, root: Path) -> None:
        self.shells = shells
        environment = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": str(root.with_name("home"))}
        self.context = ShellContext("ses_1", root, environment, root.with_name("scratch"))
        self.policy = shells.make_policy(
            PolicyInput(root, root, self.context.scratch, environment), SandboxConfig(network="off")
        )

    def make_command(self, text: str, *arguments: str, **more: Any) -> ShellCommand:
        line = f"exec {shlex.join((sys.executable, '-c', text, *arguments))}"
        return ShellCommand(line, 60, None, self.policy, **more)

    async def serve(
        self, address: str, port: int = 0, *, publishes: bool = True
    ) -> tuple[Job, int]:
        """Start a server in the background; return its job and the port that
        it has in the sandbox.
        """
        family = "6" if ":" in address else "4"
        command = self.make_command(SERVER, family, address, str(port), publishes_ports=publishes)
        job = await self.shells.start(self.context, command)
        output = await job.read(60)
        return job, int(output.output)

    async def reach_from_inside(self, port: int) -> str:
        return (
            await self.shells.run(self.context, self.make_command(REACH, str(port)), lambda _: None)
        ).output.strip()


@asynccontextmanager
async def session(tmp_path: Path) -> AsyncGenerator[Session]:
    root, shells = tmp_path / "project", Shells()
    for folder in (root, tmp_path / "scratch", tmp_path / "home"):
        folder.mkdir()
    try:
        it = Session(shells, root)
        await shells.run(it.context, it.make_command("pass"), lambda _: None)
        yield it
    except SandboxUnavailable as error:
        pytest.skip(str(error))
    finally:
        await shells.close()


async def ask(address: str) -> str:
    """Send a line to an address, as a browser does; return the answer."""
    reader, writer = await asyncio.open_connection(*address.removeprefix("http://").split(":"))
    writer.write(b"hello\n")
    answer = await reader.read()
    writer.close()
    return answer.decode()


@pytest.mark.slow
@pytest.mark.parametrize("address", ["127.0.0.1", "0.0.0.0", "::1"])
async def test_a_server_in_the_background_is_reached_from_this_machine_until_it_ends(
    tmp_path: Path, address: str
) -> None:
    async with session(tmp_path) as it:
        job, port = await it.serve(address)
        await wait_until(lambda: job.addresses)
        url = job.addresses[port]
        assert await ask(url) == "got hello\n"
        assert await ask(url) == "got hello\n"
        await job.kill()
        await wait_until(lambda: not job.addresses)
        with pytest.raises(OSError, match=r"refused|Connect call failed"):
            await ask(url)


@pytest.mark.slow
async def test_a_port_that_this_machine_uses_gets_another_address(tmp_path: Path) -> None:
    async with session(tmp_path) as it:
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = taken.getsockname()[1]
            # What this machine listens on is not reached from inside.
            assert await it.reach_from_inside(port) == "ConnectionRefusedError"
            job, inside = await it.serve("127.0.0.1", port)
            await wait_until(lambda: job.addresses)
            assert inside == port
            assert job.addresses[port] != f"http://127.0.0.1:{port}"
            assert await ask(job.addresses[port]) == "got hello\n"
            # Inside, the port is the sandbox's own.
            assert await it.reach_from_inside(port) == "reached"


@pytest.mark.slow
async def test_ports_of_a_command_that_does_not_publish_them_stay_inside(tmp_path: Path) -> None:
    async with session(tmp_path) as it:
        quiet, port = await it.serve("127.0.0.1", find_free_port(), publishes=False)
        assert await it.reach_from_inside(port) == "reached"
        with pytest.raises(OSError, match=r"refused|Connect call failed"):
            await ask(f"http://127.0.0.1:{port}")
        assert not quiet.addresses


@pytest.mark.slow
async def test_nothing_of_this_machine_is_reached_from_inside_while_ports_are_published(
    tmp_path: Path,
) -> None:
    async with session(tmp_path) as it:
        job, _ = await it.serve("127.0.0.1")
        await wait_until(lambda: job.addresses)
        with socket.create_server(("127.0.0.1", 0)) as own:
            assert await it.reach_from_inside(own.getsockname()[1]) == "ConnectionRefusedError"
