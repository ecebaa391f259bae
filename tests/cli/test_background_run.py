"""`codeloop run --background`: the terminal is free at once, and the session is found again."""

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cli.program import Desk, bash, serving, steps
from tests.support.answers import Answer

DONE = Answer(text="All is done.")


def state(desk: Desk) -> dict[str, Any]:
    (row,) = json.loads(desk.run("status", "--json").stdout)
    return row


def wait_until(ready: Callable[[], object]) -> None:
    deadline = time.monotonic() + 120
    while not ready():
        assert time.monotonic() < deadline
        time.sleep(0.1)


def begin(desk: Desk, *arguments: str) -> str:
    """Begin a run in the background; return its session."""
    begun = desk.run("run", "--background", *arguments)
    assert begun.returncode == 0, begun.stderr
    assert "`codeloop -c` opens it" in begun.stdout
    return begun.stdout.split()[0]


@pytest.mark.slow
def test_a_run_in_the_background_is_found_and_ends_by_itself(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    with serving(steps(bash("until [ -e go ]; do sleep 0.05; done; touch made"), DONE)) as server:
        desk.use(server)
        session = begin(desk, "--auto", "make it")
        assert (state(desk)["id"], state(desk)["state"]) == (session, "running")
        (desk.work / "go").touch()
        wait_until(lambda: state(desk)["state"] == "finished")
        assert (desk.work / "made").exists()
        assert "All is done." in desk.run("session", "show", session).stdout


@pytest.mark.slow
def test_a_run_in_the_background_waits_for_an_answer_and_is_stopped(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    with serving(steps(bash("touch made"), DONE)) as server:
        desk.use(server)
        session = begin(desk, "--profile", "ask", "make it")
        wait_until(lambda: state(desk)["state"] == "waits")
        assert "touch made" in state(desk)["detail"]
        assert session in desk.run("stop", session).stdout
        wait_until(lambda: state(desk)["state"] not in {"waits", "running"})
        assert not (desk.work / "made").exists()


@pytest.mark.slow
def test_a_run_that_can_not_begin_says_why(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    begun = desk.run("run", "--background", "-m", "nobody/nothing", "make it")
    assert begun.returncode != 0
    assert "nobody" in begun.stderr
    refused = desk.run("run", "--background", "--format", "json", "make it")
    assert refused.returncode == 2
