"""The launcher: whatever a command starts stays below it, however it detaches, and ends with us."""

import ast
import asyncio
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from codeloop.kit.child_process import Launch
from codeloop.kit.processes import list_processes
from codeloop.workspace.process.shells import CommandResult, ShellCommand, ShellContext, Shells
from codeloop.workspace.sandbox.process_launcher import ProcessLauncher

ENVIRONMENT = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": "/root"}
ROOM = Path(__file__).resolve().parents[3] / "src/codeloop/workspace/sandbox/launcher"
DAEMON = (
    "import os,sys,time\nif os.fork(): sys.exit()\nos.setsid()\nos.closerange(0, 999)\n"
    "open({name!r},'w').write(str(os.getpid()))\ntime.sleep(900)"
)


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere it is a pipe")
def test_a_descriptor_that_can_not_be_had_is_an_error() -> None:
    lines = (
        "import resource",
        "from codeloop.workspace.sandbox.launcher.libc import open_child_signals",
        "resource.setrlimit(resource.RLIMIT_NOFILE, (3, 3))",
        "try: print(open_child_signals())",
        "except OSError as error: print(error)",
    )
    ended = subprocess.run(
        [sys.executable, "-c", "\n".join(lines)], capture_output=True, text=True, check=True
    )
    assert ended.stdout == "[Errno 24] signalfd: Too many open files\n"


async def run(shells: Shells, place: ShellContext, text: str, timeout: float = 60) -> CommandResult:
    return await shells.run(place, ShellCommand(text, timeout), lambda _: None)


def alive(pid: int) -> bool:
    return any(row.pid == pid for row in list_processes())


async def ends(pid: int) -> bool:
    until = time.monotonic() + 60
    while alive(pid) and time.monotonic() < until:
        await asyncio.sleep(0.02)
    return not alive(pid)


def test_the_launcher_needs_the_standard_library_alone() -> None:
    for path in ROOM.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            names = [each.name for each in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            for name in names:
                is_own = name.startswith("codeloop.workspace.sandbox.launcher.")
                assert is_own or name.partition(".")[0] in sys.stdlib_module_names, (
                    f"{path.name}: {name}"
                )


async def test_a_program_gets_its_own_descriptors_alone_and_default_signals(
    shells: Shells, place: ShellContext
) -> None:
    outcome = await run(shells, place, "ls /proc/self/fd; yes | head -1; echo ${PIPESTATUS[0]}")
    assert outcome.output.split() == ["0", "1", "2", "3", "99", "y", "141"]
    assert (await run(shells, place, "grep -E 'Sig(Blk|Ign)' /proc/self/status")).output.count(
        "0000000000000000"
    ) >= 1


async def test_a_daemon_that_closed_everything_goes_on_until_the_shells_are_closed(
    shells: Shells, place: ShellContext
) -> None:
    name = str(place.directory / "pid")
    daemon = f'env -i "{sys.executable}" -c "{DAEMON.format(name=name)}"'
    outcome = await run(shells, place, f"{daemon}; until [ -s pid ]; do sleep 0.01; done")
    pid = int(Path(name).read_text())
    assert outcome.leftover_processes == 0
    assert alive(pid)
    await shells.close()
    assert not alive(pid)


async def test_what_a_killed_supervisor_watched_over_is_ended(
    shells: Shells, place: ShellContext
) -> None:
    job = await shells.start(place, ShellCommand("setsid -f sleep 900; echo $PPID; sleep 901", 0))
    supervisor = int((await job.read(60)).output)
    below = [row.pid for row in list_processes() if row.parent == supervisor]
    assert len(below) == 2
    os.kill(supervisor, signal.SIGKILL)
    for pid in below:
        assert await ends(pid)


async def test_a_killed_launcher_is_started_again(shells: Shells, place: ShellContext) -> None:
    outcome = await run(shells, place, "grep PPid /proc/$PPID/status | tr -dc 0-9")
    os.kill(int(outcome.output), signal.SIGKILL)
    assert await ends(int(outcome.output))
    assert (await run(shells, place, "echo again")).output == "again\n"


@pytest.mark.slow
async def test_what_is_stopped_and_what_keeps_forking_is_ended_too(
    shells: Shells, place: ShellContext
) -> None:
    bomb = "bomb() { [ $1 -gt 5 ] || { bomb $(($1+1)) & bomb $(($1+1)) & }; sleep 900; }; trap '' TERM; "
    stopped = "sh -c 'kill -STOP $$' & "
    outcome = await run(shells, place, f"{bomb}{stopped}bomb 1", timeout=1)
    assert outcome.timed_out
    assert [row.pid for row in list_processes() if _stands_in(row.pid) == place.directory] == []


async def test_cancelling_a_start_leaves_nothing(shells: Shells, place: ShellContext) -> None:
    for delay in (0.0, 0.001, 0.003, 0.01):
        task = asyncio.create_task(run(shells, place, "sleep 900"))
        await asyncio.sleep(delay)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    await shells.close()
    here = [row.pid for row in list_processes() if _stands_in(row.pid) == place.directory]
    assert here == []


async def test_a_program_finds_its_directory_in_pwd(tmp_path: Path) -> None:
    launcher = ProcessLauncher()
    reader, writer = os.pipe()
    try:
        launch = Launch(("/usr/bin/env",), tmp_path, {"PWD": "/", "NAME": "value"}, {1: writer})
        await (await launcher.start(launch)).exited
        assert f"PWD={tmp_path}\n" in os.read(reader, 10_000).decode()
    finally:
        await launcher.close()
        os.close(reader)
        os.close(writer)


async def test_what_starts_something_is_not_idle_from_the_first_moment(tmp_path: Path) -> None:
    launcher = ProcessLauncher()
    many = {f"NAME{number}": "x" * 10_000 for number in range(100)}
    starting = asyncio.create_task(launcher.start(Launch(("/bin/sleep", "60"), tmp_path, many, {})))
    try:
        while not starting.done():
            await asyncio.sleep(0)
            assert not launcher.is_idle
        assert not (await starting).has_ended
    finally:
        await launcher.close()


def _stands_in(pid: int) -> Path | None:
    try:
        return Path(f"/proc/{pid}/cwd").readlink()
    except OSError:
        return None


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
async def test_no_way_to_detach_outlives_us(tmp_path: Path, number: signal.Signals) -> None:
    name = str(tmp_path / "closed")
    commands = (
        f"env -i setsid -f sh -c 'echo $$ > {tmp_path}/emptied; exec sleep 900'",
        f"(env -u CODELOOP_CHILD setsid sh -c 'echo $$ > {tmp_path}/again; exec sleep 900' >/dev/null 2>&1 99>&- &)",
        f'env -i "{sys.executable}" -c "{DAEMON.format(name=name)}"',
    )
    script = f"""
import asyncio
from pathlib import Path
from codeloop.workspace.process.shells import *
async def main():
    shells = Shells()
    place = ShellContext("ses_1", Path({str(tmp_path)!r}), {ENVIRONMENT!r}, Path({str(tmp_path)!r}))
    await shells.start(place, ShellCommand({"; ".join(commands) + "; sleep 900"!r}, 0))
    await asyncio.sleep(900)
asyncio.run(main())
"""
    names = [tmp_path / each for each in ("emptied", "again", "closed")]
    with subprocess.Popen([sys.executable, "-c", script]) as ours:
        until = time.monotonic() + 60
        while (
            not all(each.exists() and each.read_text().strip() for each in names)
            and time.monotonic() < until
        ):
            await asyncio.sleep(0.02)
        ours.send_signal(number)
    for each in names:
        assert await ends(int(each.read_text())), each.name
