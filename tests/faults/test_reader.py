"""A reader of stdout that is slow, or that does not read at all."""

import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cli.program import COMMAND, Desk, bash, events, serving, steps
from tests.cli.terminal import Terminal
from tests.faults.stored_session import check_integrity
from tests.support.answers import Answer

HELLO = Answer(text="Hello.")
LONG = Answer(text="".join(f"word {number} " for number in range(40_000)), deltas=50)


def until(is_true: Callable[[], bool]) -> None:
    assert comes_within(is_true, 60), "it never came"


def comes_within(is_true: Callable[[], bool], seconds: float) -> bool:
    """Wait, and return whether something becomes true in time."""
    end = time.monotonic() + seconds
    while not is_true():
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


@pytest.mark.parametrize(
    ("form", "stream"), [("json", "stdout"), ("text", "stdout"), ("text", "stderr")]
)
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_though_nobody_reads(
    tmp_path: Path, form: str, stream: str, number: int
) -> None:
    desk = Desk(tmp_path)
    talk = Answer(
        text=LONG.text, reasoning=LONG.text, deltas=50, calls=bash("touch begun; sleep 60").calls
    )
    with serving(steps(talk, HELLO)) as server:
        desk.use(server)
        flags = ["--format", form, "--title", "T", *(["--thinking"] if stream == "stderr" else [])]
        streams: dict[str, Any] = {
            "stdout": subprocess.DEVNULL,
            "stderr": subprocess.DEVNULL,
            stream: subprocess.PIPE,
        }
        child = subprocess.Popen(
            [*COMMAND, "run", *flags, "talk"], **desk.options(), stdin=subprocess.DEVNULL, **streams
        )
        until((desk.work / "begun").exists)
        child.send_signal(number)
        assert child.wait(timeout=60) == 130
        child.communicate(timeout=60)
        server.answers = [HELLO]
        check_integrity(desk)
        assert desk.run("run", "-c", "go on").returncode == 0


def test_the_turn_and_its_time_limit_do_not_wait_for_a_reader(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    talk = Answer(text=LONG.text, deltas=50, calls=bash("touch begun; sleep 60; touch ended").calls)
    with serving(steps(talk, HELLO)) as server:
        desk.use(server)
        child, seconds = desk.start("run", "--format", "json", "--timeout", "4", "talk"), 4
        if not comes_within(
            (desk.work / "begun").exists, 10
        ):  # a busy machine takes longer for so much text
            child.kill()
            child.communicate(timeout=60)
            child, seconds = desk.start("run", "--format", "json", "--timeout", "60", "talk"), 60
            until((desk.work / "begun").exists)
        time.sleep(seconds + 0.2)
        out, err = child.communicate(timeout=60)
    assert (child.returncode, events(out)[-1]["reason"]) == (124, "timeout"), err


@pytest.mark.parametrize("form", ["json", "text"])
def test_a_slow_reader_gets_everything_in_order(tmp_path: Path, form: str) -> None:
    desk = Desk(tmp_path)
    with serving(steps(bash("echo side"), LONG)) as server:
        desk.use(server)
        child = subprocess.Popen(
            [*COMMAND, "run", "--format", form, "--title", "T", "talk"],
            **desk.options(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, bufsize=0,
        )  # fmt: skip
        assert child.stdout
        pieces: list[bytes] = []
        while piece := child.stdout.read(9_973):
            pieces.append(piece)
            time.sleep(0.002)
            if len(pieces) == 3:
                time.sleep(0.2)
        out = b"".join(pieces).decode()
        assert child.wait(timeout=60) == 0
    if form == "json":
        assert events(out)[-1]["text"] == LONG.text
        assert [line["type"] for line in events(out)].count("result") == 1
        return
    heading, body = out.index("bash"), out.index("word 0 ")
    assert heading < body < out.index("word 39999") < out.index("2 steps")
    assert LONG.text.strip() in out


def test_a_signal_does_not_cut_off_a_reader_that_still_reads(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    talk = Answer(text=LONG.text, deltas=50, calls=bash("touch begun; sleep 60").calls)
    with serving(steps(talk, HELLO)) as server:
        desk.use(server)
        child = desk.start("run", "--format", "json", "talk")
        until((desk.work / "begun").exists)
        child.send_signal(signal.SIGTERM)
        out, err = child.communicate(timeout=60)
    assert (child.returncode, events(out)[-1]["reason"]) == (130, "interrupted"), err


def test_ctrl_c_in_a_terminal_that_shows_nothing_more(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    talk = Answer(text=LONG.text, deltas=50, calls=bash("touch begun; sleep 60").calls)
    with serving(steps(talk, HELLO)) as server:
        desk.use(server)
        terminal = Terminal(desk, "run", "--title", "T", "talk")
        until((desk.work / "begun").exists)
        terminal.child.send_signal(signal.SIGINT)
        assert terminal.child.wait(timeout=60) == 130
        terminal.end()
