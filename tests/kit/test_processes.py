import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from codeloop.kit.processes import (
    ALIVE,
    end_tree,
    is_own_scope,
    machine_of,
    pid_scope,
    processes,
    start_time,
    tree,
    which,
)


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(20):
        while not condition():
            await asyncio.sleep(0.005)


def start(script: str, **environment: str) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(
        ["sh", "-c", script], stdout=subprocess.PIPE, start_new_session=True, env={**os.environ, **environment}
    )


def line(popen: "subprocess.Popen[bytes]") -> int:
    assert popen.stdout is not None
    return int(popen.stdout.readline())


def alive(pid: int) -> bool:
    return any(row.pid == pid for row in processes())


async def test_a_tree_is_ended_with_its_grandchildren() -> None:
    popen = start("sh -c 'sleep 900 & echo $!; wait' & wait")
    grandchild = line(popen)
    assert {popen.pid, grandchild} <= {row.pid for row in tree(popen.pid)}
    assert await end_tree(popen.pid, grace=0.2) >= 3
    popen.wait()
    assert not alive(grandchild)


async def test_a_child_in_a_session_of_its_own_is_ended_while_its_parent_lives() -> None:
    popen = start("setsid sh -c 'echo $$; exec sleep 900' & wait")
    child = line(popen)
    await end_tree(popen.pid)
    popen.wait()
    assert not alive(child)


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
async def test_a_daemon_that_left_its_parent_and_session_is_found_by_its_mark() -> None:
    popen = start("(setsid sh -c 'echo $$; exec sleep 900' &) ; exit 0", TEST_MARK="m17.")
    daemon = line(popen)
    popen.wait()
    assert daemon not in {row.pid for row in tree(popen.pid)}
    assert await end_tree(popen.pid, "TEST_MARK=m17.") == 1
    assert not alive(daemon)


async def test_what_ignores_term_is_killed_after_the_grace() -> None:
    popen = start("trap '' TERM; echo $$; while :; do sleep 1; done")
    line(popen)
    await end_tree(popen.pid, grace=0.1)
    assert popen.wait() == -9


async def test_what_is_stopped_is_ended_too() -> None:
    popen = start("echo $$; kill -STOP $$; sleep 900")
    line(popen)
    status = Path(f"/proc/{popen.pid}/stat")
    await until(lambda: status.read_text().rpartition(")")[2].split()[0] == "T")
    await end_tree(popen.pid)
    assert popen.wait() < 0


async def test_processes_that_keep_forking_are_all_ended() -> None:
    bomb = "bomb() { [ $1 -gt 5 ] || { bomb $(($1+1)) & bomb $(($1+1)) & }; sleep 900; }; trap '' TERM; echo $$; bomb 1"
    popen = start(bomb, TEST_MARK="bomb.")
    line(popen)
    await until(lambda: len(tree(popen.pid, "TEST_MARK=bomb.")) > 8)
    await end_tree(popen.pid, "TEST_MARK=bomb.", 0.05)
    popen.wait()
    assert tree(popen.pid, "TEST_MARK=bomb.") == []


async def test_a_tree_that_is_gone_is_no_error() -> None:
    popen = start("exit 0")
    popen.wait()
    assert await end_tree(popen.pid) == 0


def test_we_are_never_part_of_a_tree() -> None:
    assert os.getpid() not in {row.pid for row in tree(os.getpid())}


def test_programs_are_found_in_absolute_folders_only(tmp_path: Path) -> None:
    program = tmp_path / "tool"
    program.write_text("#!/bin/sh\n")
    assert which("tool", str(tmp_path)) is None
    program.chmod(0o755)
    assert which("tool", f"relative:{tmp_path}") == str(program)
    assert which("tool", "") is None
    (tmp_path / "dir").mkdir()
    assert which("dir", str(tmp_path)) is None


def test_this_place_is_here_and_another_is_not() -> None:
    assert is_own_scope(pid_scope())
    assert is_own_scope(os.uname().nodename), "as an older codeloop named it"
    assert machine_of(pid_scope()) == os.uname().nodename
    assert not is_own_scope("elsewhere")
    assert not is_own_scope(f"{os.uname().nodename}#0.0")


def test_a_process_has_a_start_until_it_is_dead_collected_or_not() -> None:
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    assert start_time(child.pid) == start_time(child.pid) != ""
    child.send_signal(signal.SIGKILL)
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert start_time(child.pid) == ""
    child.communicate()
    assert start_time(child.pid) == ""


@pytest.mark.skipif(sys.platform != "linux" or os.geteuid() != 0, reason="only root makes a process namespace")
def test_a_proc_that_numbers_processes_as_another_namespace_does_is_not_read() -> None:
    shown = "pid_scope(), start_time(os.getpid()), repr(start_time(99_999))"
    code = f"import os; from codeloop.kit.processes import *; print({shown})"
    done = subprocess.run(
        ["unshare", "--pid", "--fork", sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    if "unshare failed" in done.stderr:
        pytest.skip(done.stderr)
    place, start, nobody = done.stdout.split()
    assert (start, nobody) == (ALIVE, "''")
    assert not is_own_scope(place)
