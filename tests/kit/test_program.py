import asyncio
import os
import signal
import sys
import time
import uuid
from pathlib import Path

import pytest
from msgspec.structs import replace

from codeloop.kit.child_process import ChildProcess, Launch, Pipe
from codeloop.kit.processes import Process, list_processes
from codeloop.kit.program import MessageTooLong, Program, ProgramResult, run_program
from tests.support.scripted_project import wait_until


def make_marked_environment() -> tuple[str, dict[str, str]]:
    """Return a marker, and an environment with it, by which `list_processes` finds
    the processes of one test.
    """
    marker = f"CODELOOP_TEST_PROGRAM={uuid.uuid4().hex}"
    name, _, value = marker.partition("=")
    return marker, {**os.environ, name: value}


def make_launch(line: str, environment: dict[str, str]) -> Launch:
    return Launch(("/bin/sh", "-c", line), "/", environment)


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
        Launch(("/bin/sh", "-c", line), tmp_path, os.environ, stdin=b"in ", seconds=60)
    )
    assert result == ProgramResult(3, f"in {tmp_path.resolve()}\n".encode(), b"oh\n")


@pytest.mark.parametrize("name", ["here", "link", "here/../link"])
async def test_a_program_finds_its_directory_in_pwd(tmp_path: Path, name: str) -> None:
    (tmp_path / "here").mkdir()
    (tmp_path / "link").symlink_to("here")
    script = "import os; print(os.environ['PWD'], os.path.samefile('.', os.environ['PWD']))"
    environment = {**os.environ, "PWD": "/"}
    result = await run_program(
        Launch((sys.executable, "-c", script), f"{tmp_path}/{name}", environment)
    )
    shown = tmp_path / ("link" if name == "link" else "here")
    assert result.stdout.decode() == f"{shown} True\n"


async def test_what_a_program_leaves_in_the_background_is_ended_with_it() -> None:
    marker, environment = make_marked_environment()
    result = await run_program(make_launch("sleep 300 & echo done", environment))
    assert (result.stdout, wait_until_gone(marker)) == (b"done\n", [])


async def test_a_program_that_takes_too_long_is_ended_with_its_children() -> None:
    marker, environment = make_marked_environment()
    result = await run_program(replace(make_launch("sleep 300; true", environment), seconds=0.2))
    assert (result.stop_reason, result.is_late, result.code) == ("time", True, -signal.SIGKILL)
    assert wait_until_gone(marker) == []


async def test_a_program_is_given_up_even_when_a_process_outside_its_group_keeps_its_pipes() -> (
    None
):
    # The session of its own makes `sleep` survive the kill of the group,
    # and it has the program's stdout.
    marker, environment = make_marked_environment()
    line = "import subprocess; subprocess.run(['sleep', '300'], start_new_session=True)"
    launch = Launch((sys.executable, "-c", line), "/", environment)
    call = asyncio.create_task(run_program(launch))
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
async def test_a_call_that_is_cancelled_while_its_program_starts_leaves_nothing(
    iterations: int,
) -> None:
    marker, environment = make_marked_environment()
    call = asyncio.create_task(run_program(make_launch("sleep 300; true", environment)))
    # asyncio starts a program in several iterations of its loop;
    # a signal may cancel the call in each of them.
    for _ in range(iterations):
        await asyncio.sleep(0)
    # So that the shell has started `sleep`, which has the pipes, too.
    time.sleep(0.05)
    call.cancel()
    async with asyncio.timeout(60):
        with pytest.raises(asyncio.CancelledError):
            await call
    assert wait_until_gone(marker) == []


async def test_a_program_that_has_to_end_is_asked_first() -> None:
    line = "trap 'echo asked; exit 7' TERM; echo begun; while :; do sleep 0.05; done"
    launch = Launch(("/bin/sh", "-c", line), "/", os.environ, seconds=2, grace_seconds=60)
    result = await run_program(launch)
    assert (result.code, result.stdout, result.stop_reason) == (7, b"begun\nasked\n", "time")


async def test_a_program_that_writes_more_than_its_bound_is_ended() -> None:
    launch = replace(make_launch("yes", dict(os.environ)), max_bytes=100_000)
    result = await run_program(launch)
    assert (result.stop_reason, result.code) == ("enough", -signal.SIGKILL)
    assert 100_000 < len(result.stdout) < 300_000


async def test_of_its_messages_only_the_first_are_kept() -> None:
    launch = make_launch("head -c 500000 /dev/zero >&2", dict(os.environ))
    result = await run_program(launch)
    assert (result.code, len(result.stderr)) == (0, launch.max_error_bytes)


async def test_what_is_fed_is_not_kept_and_enough_ends_the_program() -> None:
    pieces, errors = list[bytes](), list[bytes]()

    def feed(chunk: bytes) -> bool:
        pieces.append(chunk)
        return True

    line = "echo oh >&2; echo one; sleep 300"
    result = await run_program(
        make_launch(line, dict(os.environ)), feed=feed, feed_errors=errors.append
    )
    assert (pieces, errors, result.stdout, result.stderr) == ([b"one\n"], [b"oh\n"], b"", b"")
    assert result.stop_reason == "enough"


async def test_no_descriptor_and_no_zombie_is_left() -> None:
    await run_program(make_launch("true", dict(os.environ)))
    before = sorted(Path("/proc/self/fd").iterdir())
    for _ in range(3):
        await run_program(
            replace(make_launch("cat; sleep 9 & ", dict(os.environ)), stdin=b"x" * 100_000)
        )
        with pytest.raises(FileNotFoundError):
            await run_program(Launch(("/nonexistent/program",), "/", {}))
        program = await Program.start(make_launch("cat", dict(os.environ)), lambda _: None)
        await program.close()
        child = ChildProcess(make_launch("sleep 300", dict(os.environ)))
        await child.end()
        with pytest.raises(ChildProcessError):
            os.waitpid(child.pid, os.WNOHANG)
    # The loop closes the sockets in its next round.
    await wait_until(lambda: sorted(Path("/proc/self/fd").iterdir()) == before)


async def test_a_program_is_talked_to_over_its_stdin_and_stdout() -> None:
    errors = list[bytes]()
    line = "echo hello >&2; while read line; do echo got $line; done; echo rest; exit 4"
    program = await Program.start(
        make_launch(line, dict(os.environ)), errors.append, end_seconds=60
    )
    lines = program.read_lines(100)
    program.write(b"one\n")
    await program.drain()
    assert (await anext(lines), program.ending) == (b"got one", "")
    closing = asyncio.create_task(program.close(patience_seconds=60))
    assert [line async for line in lines] == [b"rest"]
    await closing
    assert (program.ending, errors) == ("it ended with exit code 4", [b"hello\n"])
    with pytest.raises(BrokenPipeError):
        program.write(b"two\n")


async def test_a_line_beyond_the_bound_is_an_error() -> None:
    program = await Program.start(
        make_launch("head -c 100000 /dev/zero", dict(os.environ)), lambda _: None
    )
    with pytest.raises(MessageTooLong):
        async for _ in program.read_lines(1000):
            pass
    await program.close()


async def test_a_pipe_that_pauses_reads_many_small_pieces_at_once() -> None:
    chunks: list[bytes] = []
    pipe = Pipe(chunks.append, pause_seconds=60)
    writer = os.dup(pipe.writer)
    pipe.listen()
    os.write(writer, b"first ")
    # A turn of the loop sees that something has come, and begins the pause.
    await wait_until(lambda: pipe.is_paused)
    for piece in (b"second ", b"third"):
        os.write(writer, piece)
    assert chunks == []
    pipe.read_now()
    assert b"".join(chunks) == b"first second third"
    os.close(writer)
    await wait_until(lambda: pipe.is_paused)
    pipe.read_now()
    assert pipe.ended.done()


async def test_a_pipe_reads_after_its_pause_by_itself_and_at_its_close() -> None:
    chunks: list[bytes] = []
    pipe = Pipe(chunks.append, pause_seconds=0.001)
    writer = os.dup(pipe.writer)
    pipe.listen()
    # More than a pipe holds: the writer goes on only as this is read.
    await asyncio.to_thread(os.write, writer, b"x" * 200_000)
    os.close(writer)
    await pipe.ended
    assert b"".join(chunks) == b"x" * 200_000
    closed = Pipe(chunks.append, pause_seconds=60)
    os.write(closed.writer, b"last")
    closed.listen()
    await wait_until(lambda: closed.is_paused)
    closed.close()
    assert chunks[-1] == b"last"
    assert closed.ended.done()
