"""Money that was spent stays spent: whatever becomes of a session,
budgets and sums count what its requests cost.
"""

import json
import re
import signal
import sqlite3
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cli.program import Desk, call, result, serving
from tests.support.answers import Answer, Counts
from tests.support.http_connection import ReceivedRequest

DEAR = Answer(text="Hello.", counts=Counts(input=20_000, output=2_000))
"""An answer for 0.024 dollars."""
PRICE = 0.024


def read_stats(desk: Desk, *flags: str) -> dict[str, Any]:
    return json.loads(desk.run("stats", "--json", *flags).stdout)


def ask(desk: Desk, *flags: str) -> dict[str, Any]:
    """Run a prompt, and return its result."""
    return result(desk.run("run", "--title", "T", "--format", "json", *flags, "go"))


def wait_until(is_so: Callable[[], object]) -> None:
    deadline = time.monotonic() + 60
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def read_row(desk: Desk, column: str) -> int:
    """Return a column of the newest row of the ledger,
    which is there before its request is sent.
    """
    with sqlite3.connect(desk.database()) as database:
        row = database.execute(
            f"SELECT {column} FROM spending ORDER BY number DESC LIMIT 1"
        ).fetchone()
    return row[0]


def read_kinds(desk: Desk) -> list[str]:
    """Return what the requests whose answers have ended were for."""
    with sqlite3.connect(desk.database()) as database:
        return [row[0] for row in database.execute("SELECT kind FROM spending WHERE NOT is_open")]


def shift_rows(desk: Desk, days: int) -> None:
    """Date all rows of the ledger later, as if the clock had been set back since.
    The table itself refuses that.
    """
    with sqlite3.connect(desk.database()) as database:
        (trigger,) = database.execute(
            "SELECT sql FROM sqlite_master WHERE name = 'spending_is_settled'"
        ).fetchone()
        database.execute("DROP TRIGGER spending_is_settled")
        database.execute("UPDATE spending SET time = time + ?", (days * 86_400_000,))
        database.execute(trigger)


def test_undone_turns_stay_spent_and_count_for_the_budget(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    with serving([DEAR]) as server:
        desk.use(server, budget={"day": 0.05})
        reasons = [ask(desk)["reason"]]
        for _ in range(3):
            assert desk.run("undo").returncode == 0
            reasons.append(ask(desk, "--continue")["reason"])
        assert reasons == ["done", "done", "done", "limit"]
        assert len(server.requests) == 3
    stats = read_stats(desk)
    assert stats["total"]["cost"] == pytest.approx(3 * PRICE)
    assert stats["discarded"]["cost"] == pytest.approx(3 * PRICE)
    assert stats["budgets"][0]["spent"] == pytest.approx(3 * PRICE)


def test_deleted_sessions_stay_spent_and_count_for_the_budget(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    with serving([DEAR]) as server:
        desk.use(server, budget={"day": 0.05})
        for _ in range(3):
            answer = ask(desk)
            assert answer["reason"] == "done"
            assert desk.run("session", "delete", answer["sessionID"]).returncode == 0
        assert ask(desk)["reason"] == "limit"
    stats = read_stats(desk)
    assert stats["total"]["cost"] == stats["discarded"]["cost"] == pytest.approx(3 * PRICE)
    assert (stats["total"]["steps"], stats["models"][0]["name"]) == (3, "local/m")
    assert stats["projects"][0]["name"] == str(desk.work)
    shown = desk.run("stats").stdout
    assert re.search(r"of which undone or deleted +\$0\.0720", shown)
    assert "$0.07" in desk.run("stats", "--budget").stdout


def test_copies_of_a_session_are_not_paid_again(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    other = Desk(tmp_path / "other")
    (tmp_path / "other").mkdir()
    with serving([DEAR]) as server:
        desk.use(server)
        other.use(server)
        first = ask(desk)
        ask(desk, "--continue", "--fork")
        assert read_stats(desk)["total"]["cost"] == pytest.approx(2 * PRICE)
        file = tmp_path / "session.json"
        assert desk.run("export", first["sessionID"], "--output", str(file)).returncode == 0
        for place in (desk, other):
            assert place.run("import", str(file)).returncode == 0
    assert read_stats(desk)["total"]["cost"] == pytest.approx(2 * PRICE)
    assert read_stats(other)["total"]["cost"] == 0
    (imported,) = json.loads(other.run("session", "list", "--json").stdout)
    assert imported["cost"] == pytest.approx(PRICE)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_an_answer_that_is_broken_off_counts_as_far_as_it_came(
    tmp_path: Path, number: signal.Signals
) -> None:
    desk = Desk(tmp_path, limits={"CHECKPOINT_INTERVAL": 0})
    text = "word " * 400
    with serving(
        [Answer(text=text, deltas=400, counts=Counts(input=700), stall_after=310)]
    ) as server:
        desk.use(server, "anthropic", budget={"day": 0.001})
        running = desk.start("run", "--title", "T", "tell me")
        wait_until(lambda: server.requests)
        wait_until(lambda: read_row(desk, "output") > 200)
        running.send_signal(number)
        running.communicate(timeout=60)
        spent = read_stats(desk)["total"]["cost"]
        assert 0.0007 + 2 * 200 / 1e6 < spent < 0.0007 + 2 * 700 / 1e6
        assert ask(desk)["reason"] == "limit"
        assert len(server.requests) == 1


def test_a_request_under_way_counts_for_other_processes(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    with serving(
        [Answer(text="word " * 100, deltas=100, counts=Counts(input=700), stall_after=10)]
    ) as server:
        desk.use(server, "anthropic", budget={"day": 0.0005})
        running = desk.start("run", "--title", "T", "tell me")
        wait_until(lambda: server.requests)
        wait_until(lambda: read_row(desk, "input") == 700)
        assert ask(desk)["reason"] == "limit"
        assert len(server.requests) == 1
        running.kill()
        running.communicate(timeout=60)


def test_the_clock_brings_no_budget_back(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    with serving([DEAR]) as server:
        desk.use(server, budget={"day": 0.03})
        assert ask(desk)["reason"] == "done"
        shift_rows(desk, days=2)
        # A day earlier than the last row: what is spent now is dated as that,
        # and counts today and then.
        assert ask(desk)["reason"] == "done"
        assert ask(desk)["reason"] == "limit"
    assert read_stats(desk)["budgets"][0]["spent"] == pytest.approx(2 * PRICE)


def test_a_session_is_told_what_was_paid_for_it(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    with serving([DEAR]) as server:
        desk.use(server)
        ask(desk)
        assert desk.run("undo").returncode == 0
        again = ask(desk, "--continue")
        assert again["cost"] == pytest.approx(PRICE)
        (session,) = json.loads(desk.run("session", "list", "--json").stdout)
        assert session["cost"] == pytest.approx(PRICE)
        cost = json.loads(desk.run("session", "cost", "--json").stdout)
    assert cost["cost"] == pytest.approx(2 * PRICE)
    assert cost["discarded"] == pytest.approx(PRICE)
    assert "$0.0240 of it is for what was undone or deleted." in desk.run("session", "cost").stdout


def test_titles_are_not_asked_for_beyond_a_budget(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    with serving([DEAR]) as server:
        desk.use(server, budget={"day": 0.02}, small_model="local/m")
        assert ask(desk)["reason"] == "done"
        count = len(server.requests)
        assert result(desk.run("run", "--format", "json", "an untitled one"))["reason"] == "limit"
        assert len(server.requests) == count


def test_every_kind_of_request_is_paid_once_and_stays_when_all_is_deleted(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    task = call("task", description="look", prompt="look around", subagent_type="explore")
    done = Answer(text="Done.", counts=Counts(input=100, output=20))

    def choose(received: ReceivedRequest) -> Answer:
        words = json.dumps(received.json)
        has_called = '"role": "tool"' in words
        return (
            task
            if "delegate this" in words and received.json.get("tools") and not has_called
            else done
        )

    with serving(choose) as server:
        desk.use(server, small_model="local/m")
        session = result(desk.run("run", "--format", "json", "delegate this"))["sessionID"]
        assert desk.run("session", "compact", session).returncode == 0
        wait_until(lambda: len(read_kinds(desk)) == len(server.requests))
    assert set(read_kinds(desk)) == {"turn", "subagent", "title", "compaction"}
    before = read_stats(desk)
    assert before["total"]["cost"] == pytest.approx(len(server.requests) * 0.00014)
    cost = json.loads(desk.run("session", "cost", session, "--json").stdout)
    assert (cost["cost"], cost["discarded"]) == (pytest.approx(before["total"]["cost"]), 0)
    assert cost["subagents"][0]["cost"] == pytest.approx(0.00014)
    assert desk.run("session", "delete", session).returncode == 0
    assert json.loads(desk.run("session", "list", "--children", "--json").stdout) == []
    after = read_stats(desk)
    assert (after["total"], after["days"], after["models"]) == (
        before["total"],
        before["days"],
        before["models"],
    )
    assert after["discarded"] == after["total"]


def test_a_session_with_its_subagents_can_not_undo_its_limit(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    with serving([DEAR]) as server:
        desk.use(server, subagents={"cost": 0.05})
        reasons = [ask(desk)["reason"]]
        for _ in range(3):
            assert desk.run("undo").returncode == 0
            reasons.append(ask(desk, "--continue")["reason"])
    assert reasons == ["done", "done", "done", "limit"]


def test_a_failed_request_that_was_billed_counts(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    cut = Answer(text="word " * 100, deltas=100, counts=Counts(input=700), cut_after=60)
    with serving([cut]) as server:
        desk.use(server, "anthropic", budget={"day": 0.0001})
        ask(desk)
        assert ask(desk)["reason"] == "limit"
        tries = len(server.requests)
    assert read_stats(desk)["total"]["cost"] >= tries * 0.0007


def test_a_project_that_is_removed_stays_paid(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    with serving([DEAR]) as server:
        desk.use(server, budget={"day": 0.02})
        assert ask(desk)["reason"] == "done"
        desk.work.rename(tmp_path / "renamed")
        (desk.work / "file").write_text("another project of the same name")
        desk.git("init", "-q")
        desk.git("add", ".")
        desk.git("commit", "-qm", "start")
        assert ask(desk)["reason"] == "limit"
    assert read_stats(desk)["total"]["cost"] == 0
    assert read_stats(desk, "--all")["total"]["cost"] == pytest.approx(PRICE)
