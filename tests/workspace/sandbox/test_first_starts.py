"""Commands that start while their sandbox is being made, or was lost."""

import asyncio
import os
import signal
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from codeloop.kit.processes import list_processes
from codeloop.schema.config import SandboxConfig
from codeloop.schema.limits import SANDBOXES_KEPT
from codeloop.workspace.process.shells import ShellCommand
from codeloop.workspace.sandbox.launched_process import Launch
from codeloop.workspace.sandbox.policy import SandboxGrants
from codeloop.workspace.sandbox.sandboxes import Sandboxes
from tests.workspace.sandbox.conftest import Attacked

_AT_ONCE = 6


@pytest.mark.slow
async def test_commands_that_start_at_once_where_there_is_no_sandbox_yet_all_run(it: Attacked) -> None:
    for config in (SandboxConfig(), SandboxConfig(network="off")):
        await it.shells.sandboxes.close()
        it.shells.sandboxes = Sandboxes(it.shells.launcher, (it.backend,))
        policy = it.shells.make_policy(it.place, config)
        commands = [ShellCommand(f"touch {number}", 30, None, policy) for number in range(_AT_ONCE)]
        running = [it.shells.run(it.context, command, lambda _: None) for command in commands]
        async with asyncio.timeout(30):
            assert [outcome.code for outcome in await asyncio.gather(*running)] == [0] * _AT_ONCE
        for number in range(_AT_ONCE):
            (it.root / str(number)).unlink()


@pytest.mark.slow
async def test_a_sandbox_is_not_ended_for_others_while_a_command_is_about_to_start_in_it(it: Attacked) -> None:
    config = SandboxConfig(network="off")
    async with it.shells.sandboxes.hold_sandbox(it.shells.make_policy(it.place, config)) as sandbox:
        for number in range(SANDBOXES_KEPT.value + 1):
            granted = it.root / str(number)
            granted.touch()
            other = it.shells.make_policy(it.place, config, SandboxGrants(writable=(granted,)))
            assert (await it.shells.sandboxes.enter(other)) != sandbox
        started = await sandbox.starter.start(Launch(("/bin/sh", "-c", "exit 3"), it.root, {}, {}))
        assert await started.exited == 3


@pytest.mark.skipif(sys.platform != "linux", reason="each command has a sandbox of its own there")
async def test_a_sandbox_whose_process_was_killed_is_made_anew(it: Attacked) -> None:
    sandbox = await it.shells.sandboxes.enter(it.shells.make_policy(it.place, SandboxConfig(network="off")))
    running = asyncio.create_task(it.run("sleep 30.250"))
    async with asyncio.timeout(20):
        while not (found := _sleeping()):
            await asyncio.sleep(0.01)
        parents = {row.pid: row.parent for row in list_processes()}
        # The command's shell, what watches over it, what starts the commands of the sandbox.
        os.kill(parents[parents[parents[found[0]]]], signal.SIGKILL)
        assert (await running).code is None
        while not sandbox.starter.is_lost:
            await asyncio.sleep(0.01)
        assert (await it.run("echo again")).output == "again\n"


def _sleeping() -> list[int]:
    found: list[int] = []
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if (folder / "cmdline").read_bytes() == b"sleep\x0030.250\0":
                found.append(int(folder.name))
    return found
