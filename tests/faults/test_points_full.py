"""A disk that is full or broken at a named point: said clearly, nothing lost,
and it goes on afterwards.
"""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.cli.program import Desk, result, serving
from tests.faults.stored_session import read_parts
from tests.faults.twelve_steps import (
    TwelveSteps,
    check_all,
    check_shown_parts,
    continue_work,
    prepare_project,
    run_with_fault,
)

SAID = {
    "enospc": "The disk is full: nothing more can be stored in ",
    "eio": "can't be read or written (",
}
WORDS = {"enospc": "no space", "eio": "input/output error"}
STORE = [
    *[("store.begin", nth) for nth in (1, 3, 5, 20)],
    *[("store.outbox", nth) for nth in (1, 2, 5, 12, 30)],
    ("migration", 5),
]
TURN = [
    *[("step.start", 3), ("step.finish", 6), ("step.call_ready", 2), ("step.delta", 2)],
    *[
        ("compaction.start", 1),
        ("compaction.summary", 1),
        ("compaction.done", 1),
        ("call.result", 2),
    ],
]
BEGUN = [("session.create", 1), ("prompt.store", 1)]
SNAPSHOT = [("snapshot", 1), ("snapshot", 5)]
TOOL = [("call.start", 2), ("call.effect", 6), ("files.write.before", 2), ("files.write.after", 4)]
QUICK = {
    ("prompt.store", 1),
    ("snapshot", 1),
    ("store.outbox", 12),
    ("step.finish", 6),
    ("files.write.after", 4),
}
ERRORS = ("enospc", "eio")


def rows(*points: tuple[str, int]) -> list[object]:
    """Return each point with each error; all but a few are slow."""
    return [
        pytest.param(
            name,
            nth,
            error,
            marks=() if (name, nth) in QUICK and error == "enospc" else pytest.mark.slow,
        )
        for name, nth in points
        for error in ERRORS
    ]


@pytest.mark.parametrize(("name", "nth", "error"), rows(*STORE))
def test_a_store_that_can_not_be_written_ends_the_turn_with_the_reason(
    tmp_path: Path, name: str, nth: int, error: str
) -> None:
    desk = Desk(tmp_path)
    with serving(TwelveSteps(), validate=True) as server:
        prepare_project(desk, server)
        done = run_with_fault(desk, f"{name}:{nth}:{error}")
        ended = result(done)
        assert (ended["exitCode"], ended["reason"]) == (1, "error"), ended
        assert SAID[error] in ended["message"]
        assert str(desk.database()) in ended["message"]
        if name != "migration":
            check_shown_parts(desk, done.stdout)
        told = (
            [part["callID"] for part in read_parts(desk) if open_call(part)]
            if name != "migration"
            else []
        )
        continue_work(desk, server, told=told)
        check_all(desk)


def open_call(part: dict[str, object]) -> bool:
    """Return whether a part is a call that was left running."""
    state = part.get("state")
    return part["type"] == "tool" and isinstance(state, dict) and state.get("status") == "running"


@pytest.mark.parametrize(("name", "nth", "error"), rows(*BEGUN))
def test_a_turn_that_can_not_begin_says_why_and_leaves_nothing_behind(
    tmp_path: Path, name: str, nth: int, error: str
) -> None:
    desk = Desk(tmp_path)
    with serving(TwelveSteps(), validate=True) as server:
        prepare_project(desk, server)
        ended = result(run_with_fault(desk, f"{name}:{nth}:{error}"))
        assert (ended["exitCode"], ended["reason"]) == (1, "error"), ended
        assert WORDS[error] in ended["message"].lower()
        assert "then try again" in ended["message"]
        assert server.requests == []
        assert [stored(desk, table) for table in ("session", "message", "part", "lease")] == [
            0,
            0,
            0,
            0,
        ]
        continue_work(desk, server, told=[])
        check_all(desk)


@pytest.mark.parametrize("error", ["enospc", "eio"])
@pytest.mark.slow
def test_a_prompt_that_can_not_be_stored_leaves_the_session_as_it_was(
    tmp_path: Path, error: str
) -> None:
    desk = Desk(tmp_path)
    with serving(TwelveSteps(), validate=True) as server:
        prepare_project(desk, server)
        assert (
            result(run_with_fault(desk, "", "--title", "T", "--max-steps", "2", "work"))["exitCode"]
            == 4
        )
        before = [stored(desk, table) for table in ("session", "message", "part", "event")]
        ended = result(run_with_fault(desk, f"prompt.store:1:{error}", "-c", "more"))
        assert WORDS[error] in ended["message"].lower()
        assert [stored(desk, table) for table in ("session", "message", "part", "event")] == before
        continue_work(desk, server, told=[])
        check_all(desk)


def stored(desk: Desk, table: str) -> int:
    """Return how many rows a table has."""
    with closing(sqlite3.connect(desk.database())) as database:
        return database.execute(f"SELECT count(*) FROM {table}").fetchone()[0]


@pytest.mark.parametrize(("name", "nth", "error"), rows(*SNAPSHOT))
def test_a_snapshot_that_can_not_be_made_is_noted_and_the_turn_goes_on(
    tmp_path: Path, name: str, nth: int, error: str
) -> None:
    desk = Desk(tmp_path)
    with serving(TwelveSteps(), validate=True) as server:
        prepare_project(desk, server)
        done = desk.run(
            "run", "--auto", "--title", "T", "work", CODELOOP_FAULT=f"{name}:{nth}:{error}"
        )
        assert done.returncode == 0, done
        assert "can't be undone" in done.stdout + done.stderr
        assert WORDS[error] in (done.stdout + done.stderr).lower()
        check_all(desk)
        continue_work(desk, server, told=[])
        check_all(desk)


@pytest.mark.slow
@pytest.mark.parametrize("nth", [1, 4])
def test_a_slow_disk_under_a_snapshot_changes_nothing_in_the_turn(tmp_path: Path, nth: int) -> None:
    desk = Desk(tmp_path)
    with serving(TwelveSteps(), validate=True) as server:
        prepare_project(desk, server)
        ended = result(run_with_fault(desk, f"snapshot:{nth}:delay"))
        assert (ended["exitCode"], ended["reason"]) == (0, "done"), ended
        check_all(desk)
        assert (desk.work / "log").read_text().split() == ["one", "two", "three", "four", "five"]


@pytest.mark.parametrize(("name", "nth", "error"), rows(*TURN))
def test_an_error_in_the_turn_itself_ends_it_with_the_reason(
    tmp_path: Path, name: str, nth: int, error: str
) -> None:
    desk = Desk(tmp_path)
    with serving(TwelveSteps(), validate=True) as server:
        prepare_project(desk, server)
        done = run_with_fault(desk, f"{name}:{nth}:{error}")
        ended = result(done)
        assert (ended["exitCode"], ended["reason"]) == (1, "error"), ended
        assert WORDS[error] in ended["message"].lower()
        check_shown_parts(desk, done.stdout)
        continue_work(desk, server, told=[])
        check_all(desk)


@pytest.mark.parametrize(("name", "nth", "error"), rows(*TOOL))
def test_an_error_in_a_tool_is_told_to_the_model_and_the_turn_goes_on(
    tmp_path: Path, name: str, nth: int, error: str
) -> None:
    desk = Desk(tmp_path)
    with serving(TwelveSteps(), validate=True) as server:
        prepare_project(desk, server)
        ended = result(run_with_fault(desk, f"{name}:{nth}:{error}"))
        assert (ended["exitCode"], ended["reason"]) == (0, "done"), ended
        errors = [
            part["state"]["error"]
            for part in read_parts(desk)
            if part.get("state", {}).get("status") == "error"
        ]
        assert any(WORDS[error] in text.lower() for text in errors), errors
        check_all(desk)
        continue_work(desk, server, told=[])
        check_all(desk)
