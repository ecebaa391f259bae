"""What watches over a command can't be stopped or starved by it, nor can its channel be forged."""

import asyncio
import os
import shlex
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

import codeloop
from codeloop.schema.config import SandboxConfig
from codeloop.workspace.process.shells import ShellCommand
from codeloop.workspace.sandbox.launcher.landlock import read_landlock_version
from tests.workspace.sandbox.conftest import Attacked

ENDLESS = f"sleep {7_000_000 + os.getpid()}"
"""Of this process alone: tests that run beside it have their own."""
LIMIT = (
    "import os, resource; resource.prlimit(int(os.environ['PARENT']), resource.RLIMIT_{}, ({}, {}))"
)


def limit(name: str, value: int = 0) -> str:
    return shlex.join(["python3", "-c", LIMIT.format(name, value, value)])


def still_running() -> list[str]:
    found: list[str] = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = path.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if line.startswith(ENDLESS):
            found.append(f"{path}: {line}")
    return found


@pytest.mark.parametrize(
    "attack",
    [
        "kill -STOP $PPID",
        "(while :; do kill -STOP $PARENT; done) 2>/dev/null &",
        "setsid sh -c 'kill -STOP -1' &",
        "for p in /proc/[0-9]*; do kill -STOP ${p#/proc/}; done 2>/dev/null",
        limit("NOFILE"),
        limit("AS", 1000),
        limit("CPU"),
    ],
)
async def test_a_command_that_stops_its_supervisor_ends_at_its_timeout(
    it: Attacked, attack: str
) -> None:
    if (
        it.backend == "landlock"
        and read_landlock_version() < 6
        and ("-1" in attack or "/proc" in attack)
    ):
        pytest.skip("it would stop this test")
    policy = it.shells.make_policy(it.place, SandboxConfig(network="off"))
    command = ShellCommand(
        f"export PARENT=$PPID; {ENDLESS} & {attack}\n{ENDLESS}", 0.5, None, policy
    )
    async with asyncio.timeout(60):
        with suppress(OSError):  # it was so quick that its start was not reported yet
            await it.shells.run(it.context, command, lambda _: None)
    until = time.monotonic() + 60
    while still_running() and time.monotonic() < until:
        await asyncio.sleep(0.05)
    assert still_running() == []
    assert (await it.run("echo works")).output == "works\n"


@pytest.mark.parametrize(
    "attack", [limit("NOFILE", 4), limit("FSIZE"), limit("AS", 1000), "renice -n 19 $PARENT"]
)
async def test_what_a_command_does_to_its_supervisor_is_not_handed_to_the_next(
    it: Attacked, attack: str
) -> None:
    look = "ulimit -n -f -v; nice; echo x > y"
    before = (await it.run(look)).output
    await it.run(f"export PARENT=$PPID; {attack} >/dev/null 2>&1; true")
    assert (await it.run(look)).output == before


async def test_a_supervisor_serves_again_when_nothing_is_left_of_its_command(it: Attacked) -> None:
    seen: set[str] = set()
    # They take turns: one is ready while the other serves,
    # and more while these get no processor time.
    while (supervisor := (await it.run("echo $PPID")).output) not in seen:
        seen.add(supervisor)
        assert len(seen) < 20, "none serves again"
    kept = (await it.run("sleep 7124 >/dev/null 2>&1 & echo $PPID")).output
    later = {(await it.run("echo $PPID; pgrep -x sleep")).output for _ in range(4)}
    assert kept not in later, "one that had to end something is not used again"


async def test_what_sandboxed_commands_export_does_not_steer_those_outside_or_with_grants(
    it: Attacked,
) -> None:
    async def outside(text: str) -> str:
        return (await it.shells.run(it.context, ShellCommand(text, 60), lambda _: None)).output

    async def granted(text: str) -> str:
        policy = it.shells.make_policy(it.place, SandboxConfig(network="off"))
        command = ShellCommand(text, 60, None, policy, has_grants=True)
        return (await it.shells.run(it.context, command, lambda _: None)).output

    (it.root / "sub").mkdir()
    await it.run("export A=1 LD_LIBRARY_PATH=$PWD/evil PATH=$PWD/evil:$PATH")
    looks = "echo ${A-none}; /usr/bin/env 2>/dev/null | grep -c evil"
    assert await outside(f"{looks}; export B=1; unset LANG; cd sub") == "none\n0\n"
    assert await granted(f"{looks}; export C=1") == "none\n0\n"
    assert await outside("echo ${A-none}$B${C-none}${LANG-none}") == "none1nonenone\n"
    inside = await it.run("echo $A$B$C${LANG-none} 2>/dev/null; pwd; echo $PATH")
    assert inside.output.startswith(f"111none\n{it.root}/sub\n{it.root}/evil:")


def test_the_launcher_loads_only_the_core_of_the_standard_library() -> None:
    root = Path(codeloop.__file__).parents[1]
    look = (
        f"import sys; sys.path.insert(0, {str(root)!r}); import codeloop.workspace.sandbox.launcher.main; "
        "print(*{'pathlib', 'typing', 'contextlib', 'collections', 're', 'enum'} & set(sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", look], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == []
