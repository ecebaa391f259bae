import asyncio
import os
import signal
import sys
import time
import uuid
from pathlib import Path

import pytest

from codeloop.kit.processes import Process, list_processes
from codeloop.kit.run_program import run_program
from tests.support.scripted_project import wait_until


def make_marked_environment() -> tuple[str, dict[str, str]]:
    """Return a marker, and an environment with it, by which `list_processes` finds the processes of one test."""
    marker = f"CODELOOP_TEST_PROGRAM={uuid.uuid4().hex}"
    name, _, value = marker.partition("=")
    return marker, {**os.environ, name: value}


def list_marked(marker: str) -> list[Process]:
    return [each for each in list_processes(marker) if each.has_marker]


def wait_until_gone(marker: str) -> list[int]:
    """Return the marked processes that are still alive after a minute."""
    deadline = time.monotonic() + 60
    while (left := [each.pid for each in list_marked(marker)]) and time.monotonic() < deadline:
        time.sleep(0.01)
    return left


async def test_a_program_reads_its_input_and_reports_its_code_and_outputs(tmp_path: Path) -> None:
    line = "cat; pwd; echo oh >&2; exit 3"
    result = await run_program(
        ("/bin/sh", "-c", line), environment=os.environ, timeout_seconds=60, folder=tmp_path, stdin=b"in "
    )
    assert result == (3, f"in {tmp_path.resolve()}\n".encode(), b"oh\n")


async def test_what_a_program_leaves_in_the_background_is_ended_with_it() -> None:
    marker, environment = make_marked_environment()
    result = await run_program(
        ("/bin/sh", "-c", "sleep 300 >/dev/null 2>&1 & echo done"), environment=environment, timeout_seconds=60
    )
    assert (result.stdout, wait_until_gone(marker)) == (b"done\n", [])


async def test_a_program_that_takes_too_long_is_ended_with_its_children() -> None:
    marker, environment = make_marked_environment()
    with pytest.raises(TimeoutError):
        await run_program(("/bin/sh", "-c", "sleep 300; true"), environment=environment, timeout_seconds=0.2)
    assert wait_until_gone(marker) == []


async def test_a_program_is_given_up_even_when_a_process_outside_its_group_keeps_its_pipes() -> None:
    # The session of its own makes `sleep` survive the kill of the group, and it has the program's stdout.
    marker, environment = make_marked_environment()
    line = "import subprocess; subprocess.run(['sleep', '300'], start_new_session=True)"
    call = asyncio.create_task(run_program((sys.executable, "-c", line), environment=environment, timeout_seconds=600))
    await wait_until(lambda: len({each.session for each in list_marked(marker)}) == 2)
    call.cancel()
    async with asyncio.timeout(60):
        with pytest.raises(asyncio.CancelledError):
            await call
    await wait_until(lambda: len(list_marked(marker)) == 1)
    os.kill(list_marked(marker)[0].pid, signal.SIGKILL)
    assert wait_until_gone(marker) == []
    # The loop closes the pipes when it sees their end.
    await asyncio.sleep(0.1)


@pytest.mark.parametrize("iterations", range(1, 13))
async def test_a_call_that_is_cancelled_while_its_program_starts_leaves_nothing(iterations: int) -> None:
    marker, environment = make_marked_environment()
    call = asyncio.create_task(
        run_program(("/bin/sh", "-c", "sleep 300; true"), environment=environment, timeout_seconds=60)
    )
    # asyncio starts a program in several iterations of its loop; a signal may cancel the call in each of them.
    for _ in range(iterations):
        await asyncio.sleep(0)
    # So that the shell has started `sleep`, which has the pipes, too.
    time.sleep(0.05)
    call.cancel()
    async with asyncio.timeout(60):
        with pytest.raises(asyncio.CancelledError):
            await call
    assert wait_until_gone(marker) == []
