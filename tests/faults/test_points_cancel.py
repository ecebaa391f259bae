"""Ctrl-C while the program stands at a named point: the state is stored at once,
and the session goes on (F37).
"""

import json
import signal
import sqlite3
import subprocess
import time
from contextlib import closing
from pathlib import Path

import pytest

from codeloop.cli.run.turn import STOPPING_NOTE
from tests.cli.program import Desk, bash, serving, steps
from tests.faults.stored_session import list_calls_without_result
from tests.faults.test_kill import wait_for
from tests.faults.twelve_steps import TwelveSteps, check_all, continue_work, prepare_project
from tests.support.stored_rows import open_rows

PHASES = [
    ("prompt.store", 1), ("step.start", 1), ("step.start", 7), ("step.call_ready", 2), ("call.start", 1),
    ("call.start", 6), ("call.effect", 1), ("call.effect", 6), ("call.result", 4), ("step.finish", 5),
    ("compaction.start", 1), ("compaction.summary", 1), ("compaction.done", 1),
]  # fmt: skip
QUICK = {("call.effect", 6), ("compaction.start", 1)}


def last_row(desk: Desk) -> int:
    """Return how much is stored."""
    try:
        with closing(sqlite3.connect(desk.database())) as database:
            return database.execute("SELECT last FROM outbox").fetchone()[0]
    except (ValueError, sqlite3.Error):
        return 0


def stands_still(desk: Desk) -> bool:
    """Return whether nothing has been stored for a while, after something was."""
    before = last_row(desk)
    time.sleep(0.4)
    return before == last_row(desk) > 0


def open_answers(desk: Desk) -> int:
    """Return how many answers are stored as begun and not as ended."""
    with closing(open_rows(desk.database())) as database:
        sql = """SELECT count(*) FROM stored_message WHERE json_extract(data, '$.role') = 'assistant'
                 AND json_extract(data, '$.time.completed') IS NULL"""
        return database.execute(sql).fetchone()[0]


def interrupt(desk: Desk, child: subprocess.Popen[str], times: int) -> None:
    """Interrupt a run and check what it stored and said. How soon, `make bench` measures."""
    assert child.stdout is not None
    assert child.stderr is not None
    for _ in range(times):
        child.send_signal(signal.SIGINT)
    lines = iter(child.stdout.readline, "")
    last = next(line for line in lines if '"type":"result"' in line)
    assert (open_answers(desk), list_calls_without_result(desk)) == (0, []), (
        "it is stored before it is shown"
    )
    rest, err = child.communicate(timeout=60)
    assert (child.returncode, rest) == (130, "")
    assert err in {"", f"{STOPPING_NOTE}\n"}
    ended = json.loads(last)
    assert (ended["reason"], ended["exitCode"]) == ("interrupted", 130)


@pytest.mark.parametrize(
    ("name", "nth"),
    [pytest.param(*row, marks=() if row in QUICK else pytest.mark.slow) for row in PHASES],
)
@pytest.mark.parametrize("times", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_ctrl_c_stores_the_state_and_shows_the_result(
    tmp_path: Path, name: str, nth: int, times: int
) -> None:
    desk, fault = Desk(tmp_path), f"{name}:{nth}:delay"
    with serving(TwelveSteps(), validate=True) as server:
        prepare_project(desk, server)
        child = desk.start(
            "run", "--auto", "--format", "json", "--title", "T", "work", CODELOOP_FAULT=fault
        )
        wait_for(lambda: stands_still(desk))
        interrupt(desk, child, times)
        continue_work(desk, server, told=[])
        check_all(desk)


def test_a_tool_that_does_not_end_at_once_is_said_to_be_ended(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    with serving(
        steps(bash("trap '' INT TERM HUP; touch begun; while :; do sleep 0.1; done"))
    ) as server:
        desk.use(server)
        child = desk.start("run", "--title", "T", "work")
        wait_for((desk.work / "begun").exists)
        assert child.stderr is not None
        child.send_signal(signal.SIGINT)
        said = next(
            line
            for line in iter(child.stderr.readline, "")
            if "Stopping" in line or "Interrupted" in line
        )
        child.communicate(timeout=60)
    assert (said.strip(), child.returncode) == (STOPPING_NOTE, 130)
    assert list_calls_without_result(desk) == []
