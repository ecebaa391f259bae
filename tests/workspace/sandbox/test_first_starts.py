"""Commands that start while their sandbox is being made, or was lost."""

import asyncio
import os
import signal
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from codeloop.kit.child_process import Launch
from codeloop.kit.processes import list_processes
from codeloop.schema.bounds.sandbox import SANDBOX_START
from codeloop.schema.config import SandboxConfig
from codeloop.schema.limits import LAUNCHER_ANSWER, SANDBOXES_KEPT
from codeloop.schema.wire import replace
from codeloop.workspace.process.shells import ShellCommand, Shells
from codeloop.workspace.sandbox import process_launcher
from codeloop.workspace.sandbox.policy import SandboxGrants
from codeloop.workspace.sandbox.sandbox import SandboxUnavailable
from codeloop.workspace.sandbox.sandboxes import Sandboxes
from tests.workspace.sandbox.conftest import Attacked

_AT_ONCE = 6
SECONDS = f"300.{os.getpid()}"
"""Of this process alone: tests that run beside it have their own."""


@pytest.mark.slow
async def test_commands_that_start_at_once_where_there_is_no_sandbox_yet_all_run(
    it: Attacked,
) -> None:
    for config in (SandboxConfig(), SandboxConfig(network="off")):
        await it.shells.sandboxes.close()
        it.shells.sandboxes = Sandboxes(it.shells.launcher, (it.backend,))
        policy = it.shells.make_policy(it.place, config)
        commands = [ShellCommand(f"touch {number}", 60, None, policy) for number in range(_AT_ONCE)]
        running = [it.shells.run(it.context, command, lambda _: None) for command in commands]
        async with asyncio.timeout(120):
            assert [outcome.code for outcome in await asyncio.gather(*running)] == [0] * _AT_ONCE
        for number in range(_AT_ONCE):
            (it.root / str(number)).unlink()


@pytest.mark.slow
async def test_a_sandbox_is_not_ended_for_others_while_a_command_is_about_to_start_in_it(
    it: Attacked,
) -> None:
    config = SandboxConfig(network="off")
    async with it.shells.sandboxes.hold_sandbox(it.shells.make_policy(it.place, config)) as sandbox:
        for number in range(SANDBOXES_KEPT.value + 1):
            granted = it.root / str(number)
            granted.touch()
            other = it.shells.make_policy(it.place, config, SandboxGrants(writable=(granted,)))
            assert (await it.shells.sandboxes.enter(other)) != sandbox
        started = await sandbox.starter.start(Launch(("/bin/sh", "-c", "exit 3"), it.root, {}, {}))
        assert await started.exited == 3


async def test_a_launcher_that_starts_slowly_is_waited_for(
    it: Attacked, monkeypatch: pytest.MonkeyPatch
) -> None:
    shells = Shells()
    shells.sandboxes = Sandboxes(shells.launcher, (it.backend,))
    try:
        with monkeypatch.context() as short:
            short.setattr(process_launcher, "LAUNCHER_ANSWER", replace(LAUNCHER_ANSWER, value=1))
            await shells.sandboxes.enter(shells.make_policy(it.place, SandboxConfig(network="off")))
        assert shells.sandboxes.refused == {}
    finally:
        await shells.close()


@pytest.mark.skipif(sys.platform != "linux", reason="nothing is waited for there")
async def test_a_start_that_takes_too_long_is_tried_again_and_nothing_weaker_takes_its_place(
    it: Attacked, monkeypatch: pytest.MonkeyPatch
) -> None:
    policy = it.shells.make_policy(it.place, SandboxConfig(network="off"))
    shells = Shells()
    try:
        for attempts in (2, 3):
            shells.sandboxes = Sandboxes(shells.launcher, (it.backend,))
            with monkeypatch.context() as short:
                short.setattr(process_launcher, "SANDBOX_START", replace(SANDBOX_START, value=0))
                for number in range(attempts):
                    with pytest.raises(
                        OSError, match="longer than" if number < 2 else "No sandbox"
                    ) as raised:
                        await shells.sandboxes.enter(policy)
                    assert isinstance(raised.value, SandboxUnavailable) == (number == 2)
            if attempts == 2:
                assert (await shells.sandboxes.enter(policy)).backend == it.backend
                assert shells.sandboxes.refused == {}
                await shells.sandboxes.close()
    finally:
        await shells.close()


@pytest.mark.skipif(sys.platform != "linux", reason="each command has a sandbox of its own there")
async def test_a_sandbox_whose_process_was_killed_is_made_anew(it: Attacked) -> None:
    sandbox = await it.shells.sandboxes.enter(
        it.shells.make_policy(it.place, SandboxConfig(network="off"))
    )
    running = asyncio.create_task(it.run(f"sleep {SECONDS}"))
    async with asyncio.timeout(60):
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
            if (folder / "cmdline").read_bytes() == f"sleep\0{SECONDS}\0".encode():
                found.append(int(folder.name))
    return found
