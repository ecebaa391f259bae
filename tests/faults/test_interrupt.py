"""A signal or a closed stream at any moment: a result, the exit code, no survivor,
a session that goes on.
"""

import random
import re
import signal
import subprocess
import time
from pathlib import Path

import pytest

from codeloop.cli.run.turn import STOPPING_NOTE
from tests.cli.program import (
    COMMAND,
    HANGING,
    UNCONFINED,
    Desk,
    bash,
    call,
    events,
    lives,
    serving,
    steps,
)
from tests.faults.stored_session import check_integrity, list_calls_without_result
from tests.faults.test_kill import wait_for
from tests.support.answers import Answer

HELLO = Answer(text="Hello.")
WORK = (
    bash("echo $$ >> pids; sleep 0.05; echo side >> log", "c1"),
    Answer(
        text="Thinking about it. " * 10,
        deltas=0,
        delay=0.002,
        calls=call("read", filePath="log").calls,
    ),
    bash("sleep 60 & echo $! >> pids; echo $$ >> pids; wait", "c3"),
    HELLO,
)


LOST = b"Exception ignored in"
"""What Python prints of a Ctrl-C that it forgets while it loads its own modules:
one has to press it again.
"""
EARLY = re.compile(r"codeloop/cli/(?:__init__|main|bootstrap)\.py")
"""What is loaded before signals are caught."""


def interrupted(desk: Desk, after: float, number: int = signal.SIGINT) -> None:
    """Interrupt a run and check how it ended."""
    child = desk.start("run", "--format", "json", "--title", "T", "work")
    time.sleep(after)
    child.send_signal(number)
    try:
        out, err = child.communicate(timeout=60)
    except subprocess.TimeoutExpired as late:
        if LOST not in (late.stderr or b"") or b"KeyboardInterrupt" not in (late.stderr or b""):
            raise
        child.send_signal(number)
        out, err = child.communicate(timeout=60)
        err = err.partition("KeyboardInterrupt: \n")[2]
    if (
        child.returncode == -number or "Fatal Python error: init_" in err
    ):  # while the interpreter itself starts
        assert out == ""
        assert "codeloop/cli" not in EARLY.sub("", err)
        return
    assert out, (child.returncode, after, err)
    lines = events(out)
    assert lines[-1]["type"] == "result", (out, err)
    assert (
        (lines[-1]["exitCode"], lines[-1]["reason"])
        == (child.returncode, "interrupted")
        == (130, "interrupted")
    ), (
        out[-600:],
        err[-600:],
    )
    assert "Traceback" not in err, err


def survivors(desk: Desk) -> list[int]:
    path = desk.work / "pids"
    pids = [int(word) for word in path.read_text().split()] if path.exists() else []
    until = time.monotonic() + 30
    while any(map(lives, pids)) and time.monotonic() < until:
        time.sleep(0.02)
    return [pid for pid in pids if lives(pid)]


def check_moments(folder: Path, moments: list[float], number: int = signal.SIGINT) -> None:
    """Interrupt at each moment; afterwards the session that was left goes
    on with a valid history.
    """
    desk = Desk(folder)
    with serving(steps(*WORK)) as server:
        desk.use(server, **UNCONFINED)
        for moment in moments:
            interrupted(desk, moment, number)
        assert survivors(desk) == []
        server.answers = [HELLO]
        done = (
            desk.run("run", "-c", "go on")
            if "work" in desk.run("session", "list").stdout
            else desk.run("run", "x")
        )
    assert done.returncode in {0, 2}, done.stderr
    check_integrity(desk)
    assert list_calls_without_result(desk) == []


def test_ctrl_c_at_random_moments(tmp_path: Path) -> None:
    chance = random.Random(7)
    check_moments(tmp_path, [chance.uniform(0.12, 0.6) for _ in range(4)])


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(8))
def test_ctrl_c_at_many_random_moments(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    check_moments(tmp_path, [chance.uniform(0.02, 0.9) for _ in range(10)])


def test_a_second_ctrl_c_ends_it_at_once_with_one_result(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    with serving(steps(bash("trap '' INT TERM; echo $$ > pids; sleep 60"), HELLO)) as server:
        desk.use(server, **UNCONFINED)
        for gap in (0.01, 0.15, 0.3):
            (desk.work / "pids").unlink(missing_ok=True)
            child = desk.start("run", "--format", "json", "--title", "T", "work")
            wait_for((desk.work / "pids").exists)
            child.send_signal(signal.SIGINT)
            time.sleep(gap)
            child.send_signal(signal.SIGINT)
            out, err = child.communicate(timeout=60)
            assert [line["type"] for line in events(out)].count("result") == 1, out
            assert (child.returncode, events(out)[-1]["type"]) == (130, "result")
            assert err in {"", f"{STOPPING_NOTE}\n"}
    assert survivors(desk) == []
    check_integrity(desk)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_other_signals_end_it_as_well(tmp_path: Path, number: int) -> None:
    check_moments(tmp_path, [0.7], number)


def test_a_hangup_that_nohup_ignores_ends_nothing(tmp_path: Path) -> None:
    desk = Desk(tmp_path, wrapper=("nohup",))
    with serving(steps(bash("touch begun; sleep 0.3"), HELLO)) as server:
        desk.use(server)
        child = desk.start("run", "--format", "json", "work")
        wait_for((desk.work / "begun").exists)
        child.send_signal(signal.SIGHUP)
        out, err = child.communicate(timeout=HANGING)
    assert child.returncode == 0, err
    assert events(out)[-1]["text"] == "Hello."


def catches(pid: int, number: int) -> bool:
    """Return whether a process has a handler of a signal."""
    (mask,) = re.findall(r"^SigCgt:\s*(\w+)", Path(f"/proc/{pid}/status").read_text(), re.MULTILINE)
    return bool(int(mask, 16) >> (number - 1) & 1)


def test_ctrl_c_while_stdin_is_read(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    child = subprocess.Popen(
        [*COMMAND, "run", "--format", "json"],
        **desk.options(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    # Before that, Ctrl-C is the interpreter's own.
    wait_for(lambda: catches(child.pid, signal.SIGTERM))
    time.sleep(0.5)
    child.send_signal(signal.SIGINT)
    child.wait(timeout=60)
    out, err = child.communicate(timeout=60)
    assert child.returncode == 130, err
    assert events(out)[-1]["exitCode"] == 130


def test_a_reader_that_goes_away_ends_the_turn(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    with serving(
        steps(bash("echo a"), bash("sleep 60 & echo $! > pids; wait", "c2"), HELLO)
    ) as server:
        desk.use(server)
        child = desk.start("run", "--format", "json", "--title", "T", "work")
        assert child.stdout
        child.stdout.readline()
        child.stdout.close()
        assert child.stderr
        err = child.stderr.read()
        assert child.wait(timeout=60) in {0, 1}
        assert "Traceback" not in err
        assert "Exception ignored" not in err
        server.answers = [HELLO]
        assert desk.run("run", "-c", "go on").returncode == 0
    assert survivors(desk) == []


@pytest.mark.parametrize("redirect", ["> /dev/full", ">&-", "<&- >&- 2>&-", "2>&-"])
def test_streams_that_are_full_or_closed_from_the_start(tmp_path: Path, redirect: str) -> None:
    desk = Desk(tmp_path)
    with serving([HELLO]) as server:
        desk.use(server)
        line = f'"$@" {redirect}'
        done = subprocess.run(
            ["sh", "-c", line, "sh", *COMMAND, "run", "--title", "T", "hello"],
            **desk.options(), capture_output=True, text=True, timeout=HANGING, check=False,
        )  # fmt: skip
        assert "Traceback" not in done.stderr
        assert done.returncode in {0, 1}
        assert len(server.requests) >= 1
    assert desk.database().exists()
