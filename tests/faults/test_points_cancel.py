"""Ctrl-C while the program stands at a named point: the state is stored at once, and the session goes on (F37)."""

import signal
import sqlite3
import time
from contextlib import closing
from pathlib import Path

import pytest

from tests.cli.program import Desk, events, serving
from tests.faults.store import calls_without_result
from tests.faults.test_kill import wait_for
from tests.faults.twelve import Work, go_on, is_whole, prepare

PHASES = [
    ("prompt.store", 1), ("step.start", 1), ("step.start", 7), ("step.call_ready", 2), ("call.start", 1),
    ("call.start", 6), ("call.effect", 1), ("call.effect", 6), ("call.result", 4), ("step.finish", 5),
    ("compaction.start", 1), ("compaction.summary", 1), ("compaction.done", 1),
]  # fmt: skip
QUICK = {("call.effect", 6), ("compaction.start", 1)}
AT_ONCE = 1.0
"""Seconds; 0.2 are promised, on a machine that does nothing else."""


def last_row(desk: Desk) -> int:
    """Give how much is stored."""
    try:
        with closing(sqlite3.connect(desk.database())) as database:
            return database.execute("SELECT coalesce(max(seq), 0) FROM event").fetchone()[0]
    except (ValueError, sqlite3.Error):
        return 0


def stands_still(desk: Desk) -> bool:
    """Tell whether nothing has been stored for a while, after something was."""
    before = last_row(desk)
    time.sleep(0.4)
    return before == last_row(desk) > 0


def open_answers(desk: Desk) -> int:
    """Give how many answers are stored as begun and not as ended."""
    with closing(sqlite3.connect(desk.database())) as database:
        sql = """SELECT count(*) FROM message WHERE json_extract(data, '$.role') = 'assistant'
                 AND json_extract(data, '$.time.completed') IS NULL"""
        return database.execute(sql).fetchone()[0]


@pytest.mark.parametrize(
    ("name", "nth"), [pytest.param(*row, marks=() if row in QUICK else pytest.mark.slow) for row in PHASES]
)
@pytest.mark.parametrize("times", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_ctrl_c_stores_the_state_at_once(tmp_path: Path, name: str, nth: int, times: int) -> None:
    desk = Desk(tmp_path)
    with serving(Work(), validate=True) as server:
        prepare(desk, server)
        fault = {"CODELOOP_FAULT": f"{name}:{nth}:delay"}
        child = desk.start("run", "--auto", "--format", "json", "--title", "T", "work", **fault)
        wait_for(lambda: stands_still(desk))
        start = time.monotonic()
        for _ in range(times):
            child.send_signal(signal.SIGINT)
        wait_for(lambda: not open_answers(desk) and not calls_without_result(desk))
        stored = time.monotonic() - start
        out, err = child.communicate(timeout=20)
        ended = time.monotonic() - start
        assert (child.returncode, err) == (130, "")
        last = events(out)[-1]
        assert (last["type"], last["reason"], last["exitCode"]) == ("result", "interrupted", 130)
        assert stored < AT_ONCE
        assert ended < 2 * AT_ONCE
        go_on(desk, server, told=[])
        is_whole(desk)
