"""What a sandboxed command may use: one that takes more is ended, the model is told,
and others go on.
"""

import os
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from codeloop.schema.config import SandboxConfig
from codeloop.workspace.process.shells import CommandResult, ShellCommand, ShellContext, Shells
from codeloop.workspace.sandbox.command_bounds import read_smallest_number
from codeloop.workspace.sandbox.launcher.usage_watch import Bounds
from codeloop.workspace.sandbox.policy import PolicyInput, SandboxPolicy
from codeloop.workspace.sandbox.sandbox import Backend, SandboxUnavailable
from codeloop.workspace.sandbox.sandboxes import BACKENDS, Sandboxes
from tests.support.sandbox_support import list_sandbox_params

BOMB = """
import os, time
end = time.time() + 60
for number in range(700):
    try:
        if not os.fork():
            time.sleep(max(end - time.time(), 0))
            break
    except OSError:
        print(number, flush=True)
        break
else:
    print("all", flush=True)
time.sleep(max(end - time.time(), 0))
"""
"""Bounded by itself, too: a sandbox that fails must not take the machine of who runs this test."""

BOUNDS = Bounds(processes=320, memory=150_000_000)


class Bounded:
    """A project, and commands in a sandbox that may use little."""

    def __init__(self, folder: Path, shells: Shells, backend: Backend) -> None:
        self.backend = backend
        environment = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": str(folder)}
        self.root = folder / "work"
        self.root.mkdir()
        self.shells = shells
        self.context = ShellContext("ses_1", self.root, environment, folder / "scratch")
        self.place = PolicyInput(self.root, self.root, folder / "scratch", environment)

    @property
    def is_counted(self) -> bool:
        """Return whether the kernel counts what is in a sandbox: for root since Linux 6.14,
        where we make it.
        """
        is_new = tuple(map(int, os.uname().release.split(".")[:2])) >= (6, 14)
        return (
            self.backend != "landlock" if os.getuid() else self.backend == "namespaces" and is_new
        )

    @property
    def policy(self) -> SandboxPolicy:
        return self.shells.make_policy(self.place, SandboxConfig(network="off"))

    async def run(self, text: str, timeout: float = 120) -> CommandResult:
        return await self.shells.run(
            self.context, ShellCommand(text, timeout, None, self.policy), lambda _: None
        )


@pytest.fixture(params=list_sandbox_params(*BACKENDS))
async def it(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Bounded]:
    shells = Shells()
    shells.sandboxes = Sandboxes(shells.launcher, (request.param,), BOUNDS)
    made = Bounded(tmp_path, shells, request.param)
    try:
        await made.run("true")
    except SandboxUnavailable as error:
        await shells.close()
        pytest.skip(str(error))
    yield made
    await shells.close()


@pytest.mark.slow
async def test_a_fork_bomb_is_ended_and_other_commands_go_on(it: Bounded) -> None:
    (it.root / "bomb.py").write_text(BOMB)
    server = await it.shells.start(
        it.context, ShellCommand("echo up; exec sleep 600", 600, None, it.policy)
    )
    assert (await server.read(60)).output == "up\n"
    outcome = await it.run(f"python3 {it.root}/bomb.py")
    assert outcome.notes == (
        "The command was ended: it used more than 320 processes and threads, which is all that it may here.",
    )
    if it.is_counted and outcome.output:  # it may be ended before it is refused a process
        assert 320 < int(outcome.output) <= 400, "there are never more, however fast it forks"
    assert (await it.run("echo next")).output == "next\n"
    assert server.status == "running"
    assert not _is_there(it.root / "bomb.py")


def _is_there(program: Path) -> bool:
    """Return whether a process of this machine runs a program."""
    return not subprocess.run(
        ["pgrep", "-f", program], stdout=subprocess.DEVNULL, check=False
    ).returncode


@pytest.mark.slow
@pytest.mark.parametrize("session", ["", "  os.setsid()\n"])
async def test_a_bomb_whose_processes_come_and_go_is_ended(it: Bounded, session: str) -> None:
    if session and it.backend == "landlock":
        pytest.skip(
            "only a PID namespace of its own holds what leaves its session, and is gone before it is seen"
        )
    bomb = (
        "import os, time\nend = time.time() + 60\nfor i in range(3): os.fork()\n"
        f"while time.time() < end:\n try:\n  if os.fork(): os._exit(0)\n{session}"
        " except OSError: pass  # whoever is refused tries again, so that it never ends by itself\n"
    )
    (it.root / "bomb.py").write_text(bomb)
    outcome = await it.run(f"python3 {it.root}/bomb.py")
    assert outcome.leftover_processes, "its first process ends as soon as there is a second one"
    assert not _is_there(it.root / "bomb.py")
    assert (await it.run("echo next")).output == "next\n"


def test_a_container_s_limits_bound_what_a_command_may_use(tmp_path: Path) -> None:
    for name, text in (("less", "100\n"), ("more", "9000\n"), ("none", "max\n")):
        (tmp_path / name).write_text(text)
    paths = [str(tmp_path / name) for name in ("none", "more", "absent")]
    assert read_smallest_number(paths, 500) == 500
    assert read_smallest_number([*paths, str(tmp_path / "less")], 500) == 100


@pytest.mark.slow
async def test_what_takes_too_much_memory_is_ended(it: Bounded) -> None:
    hog = "import time; x = bytearray(400_000_000); time.sleep(60)"
    outcome = await it.run(f"python3 -c '{hog}'")
    assert outcome.notes == (
        "The command was ended: it used more than 150 MB of memory, which is all that it may here.",
    )
    assert outcome.signal == "SIGKILL"


@pytest.mark.slow
async def test_many_that_take_too_much_memory_together_are_ended(it: Bounded) -> None:
    hog = "import time; x = bytearray(40_000_000); time.sleep(60)"
    outcome = await it.run(f"for i in 1 2 3 4 5 6; do python3 -c '{hog}' & done; wait")
    assert "150 MB of memory" in outcome.notes[0]


@pytest.mark.slow
async def test_memory_that_processes_share_counts_once(it: Bounded) -> None:
    code = "import os, time\nx = bytearray(70_000_000)\nfor i in range(6):\n if not os.fork(): break\ntime.sleep(1.5)\n"
    (it.root / "share.py").write_text(code)
    outcome = await it.run("python3 share.py; echo done")
    assert (outcome.output, outcome.notes) == ("done\n", ())
