"""An operator corrects a fleet: changed rows, cancelled and removed jobs, budgets, deadlines,
outages that are waited for, and what a killed coordinator has left.
"""

import json
import os
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from codeloop.kit.limit import Limit
from codeloop.kit.processes import is_alive, read_start_time
from codeloop_automation.fleet import limits
from codeloop_automation.fleet.driver import Spending
from codeloop_automation.fleet.jobs import FleetJob
from codeloop_automation.fleet.ledger import Ledger
from codeloop_automation.fleet.ledger_databases import SqliteDatabase
from codeloop_automation.fleet.limits import Outage
from tests.automation.fleet.test_fleet import DONE, repository, status, write_table
from tests.cli.program import HANGING, Desk, bash, serving, steps
from tests.support.answers import Answer
from tests.support.http_connection import ReceivedRequest

pytestmark = pytest.mark.slow
ONE_ANSWER = 0.00014
"""What an answer of the scripted model costs, in dollars."""
NO_TITLE = {"title": {"disable": True}}


def jobs_of(source: Path, *ids: str, **fields: object) -> list[dict[str, object]]:
    return [{"id": name, "repository": str(source), "prompt": "add", **fields} for name in ids]


def show(desk: Desk, job: str) -> dict[str, Any]:
    (row,) = json.loads(desk.run("fleet", "show", "jobs", job, "--json").stdout)
    return row


def states(desk: Desk) -> dict[str, str]:
    return {row["id"]: row["state"] for row in status(desk)["rows"]}


def test_a_row_that_is_changed_waits_again_and_one_that_is_done_is_told(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    source = repository(desk)
    with serving([DONE]) as server:
        desk.use(server, agent=NO_TITLE)
        wrong = jobs_of(source, "a", model="nowhere/none") + jobs_of(source, "b")
        assert desk.run("fleet", "run", write_table(desk, wrong)).returncode == 1
        assert states(desk) == {"a": "failed", "b": "done"}
        right = jobs_of(source, "a") + jobs_of(source, "b", prompt="another")
        done = desk.run("fleet", "run", write_table(desk, right))
        assert done.returncode == 0, done.stderr
        assert "Changed in the table, so they wait again: a." in done.stderr
        assert "running or done: b. `codeloop fleet retry jobs ID`" in done.stderr
        assert len(server.requests) == 2
        assert desk.run("fleet", "retry", "jobs", "b").returncode == 0
        assert desk.run("fleet", "run", write_table(desk, right)).returncode == 0
        assert b"another" in server.requests[-1].body
    unknown = desk.run("fleet", "retry", "jobs", "c", "b")
    assert (unknown.returncode, "There is no job c." in unknown.stderr) == (2, True)
    history = show(desk, "b")["history"]
    assert [(each["attempt"], each["place"], each["reason"]) for each in history] == [
        (1, "here", "done"),
        (2, "here", "done"),
    ]
    assert all(each["ended"] > each["started"] for each in history)
    assert status(desk)["cost"] == pytest.approx(3 * ONE_ANSWER)


def test_the_command_that_opens_a_job_opens_its_session(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    source = repository(desk)
    with serving(steps(DONE)) as server:
        desk.use(server)
        assert desk.run("fleet", "run", write_table(desk, jobs_of(source, "a"))).returncode == 0
        shown = desk.run("fleet", "show", "jobs", "a").stdout
        opening = next(line for line in shown.splitlines() if line.startswith("open it: "))
        program, *flags = opening.removeprefix("open it: ").split()
        assert program == "codeloop"
        assert desk.run(*flags, "go on", stdin="").returncode == 0
        users = [each for each in server.requests[-1].json["messages"] if each["role"] == "user"]
        assert len(users) == 2


def test_cancelled_jobs_end_and_removed_ones_leave_their_dollars(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    source = repository(desk)

    def answer(received: ReceivedRequest) -> Answer:
        return (steps(bash("sleep 600"), DONE) if b"wait" in received.body else steps(DONE))(
            received
        )

    jobs = jobs_of(source, "low") + jobs_of(source, "high", prompt="wait", priority=5)
    with serving(answer) as server:
        desk.use(server, agent=NO_TITLE)
        coordinator = desk.start("fleet", "run", write_table(desk, jobs), "--at-once", "1")
        outputs = desk.home / "data" / "fleet" / "jobs" / "attempts"
        while not any(b"step_start" in file.read_bytes() for file in outputs.glob("*/run.jsonl")):
            assert coordinator.poll() is None
            time.sleep(0.1)
        assert states(desk) == {"high": "running", "low": "waiting"}
        assert desk.run("fleet", "cancel", "jobs", "high").returncode == 0
        output = coordinator.communicate(timeout=HANGING)
        assert coordinator.returncode == 0, output
        assert "1 done, 0 failed, 0 waiting, 1 cancelled" in output[1]
    assert [each["reason"] for each in show(desk, "high")["history"]] == ["cancelled"]
    before = status(desk)["cost"]
    assert before == pytest.approx(2 * ONE_ANSWER)
    clone = Path(show(desk, "low")["work"])
    assert desk.run("fleet", "remove", "jobs", "low").returncode == 0
    assert not clone.exists()
    assert (states(desk), status(desk)["cost"]) == ({"high": "cancelled"}, before)
    assert desk.run("fleet", "remove", "jobs").returncode == 0
    assert not (desk.home / "data" / "fleet" / "jobs").exists()


@pytest.mark.parametrize("limit", ["budget", "deadline"])
def test_at_its_limit_a_fleet_stops_and_its_jobs_wait(tmp_path: Path, limit: str) -> None:
    desk = Desk(tmp_path, limits={"automation.FLEET_SPENDING": 100})
    source = repository(desk)
    with serving(steps(bash("true"), Answer(hang=600))) as server:
        desk.use(server, agent=NO_TITLE)
        value = {"budget": "0.0001", "deadline": "5"}[limit]
        table = write_table(desk, jobs_of(source, "a", "b"))
        done = desk.run("fleet", "run", table, f"--{limit}", value, "--at-once", "1")
    assert done.returncode == 130, done.stderr
    assert {"budget": "the budget of $0.0001 is spent", "deadline": "the deadline of 5 s"}[
        limit
    ] in done.stderr
    assert states(desk) == {"a": "waiting", "b": "waiting"}


def test_an_outage_of_the_service_is_waited_for(tmp_path: Path) -> None:
    desk = Desk(
        tmp_path,
        limits={"automation.FLEET_OUTAGE_PAUSE": 200, "automation.FLEET_OUTAGE_PAUSE_MOST": 400},
    )
    source = repository(desk)
    refusals = 6

    def answer(_: ReceivedRequest) -> Answer:
        if len(server.requests) <= refusals:
            return Answer(status=401, body='{"error": {"message": "the key has expired"}}')
        return DONE

    names = [f"j{number}" for number in range(6)]
    with serving(answer) as server:
        desk.use(server, agent=NO_TITLE)
        table = write_table(desk, jobs_of(source, *names))
        done = desk.run("fleet", "run", table, "--at-once", "1")
    assert done.returncode == 1, done.stderr
    assert "No job is started for 0.2 s: 3 jobs in a row have failed at the models' service" in (
        done.stderr
    )
    assert list(states(desk).values()).count("failed") == 2
    assert list(states(desk).values()).count("done") == 4


def test_what_a_killed_coordinator_left_is_shown_and_ended_by_stop(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    source = repository(desk)
    with serving(steps(bash("sleep 600"), DONE)) as server:
        desk.use(server, agent=NO_TITLE)
        coordinator = desk.start("fleet", "run", write_table(desk, jobs_of(source, "a")))
        outputs = desk.home / "data" / "fleet" / "jobs" / "attempts"
        while not any(
            b"tool_use" in f.read_bytes() or b"step_start" in f.read_bytes()
            for f in outputs.glob("*/run.jsonl")
        ):
            assert coordinator.poll() is None
            time.sleep(0.1)
        children = subprocess.run(
            ["pgrep", "-P", str(coordinator.pid)], capture_output=True, text=True, check=True
        )
        agent = int(children.stdout.split()[0])
        started = read_start_time(agent)
        os.kill(coordinator.pid, signal.SIGKILL)
        coordinator.communicate()
        assert status(desk)["lost"] == 1
        assert (
            "1 running jobs have lost their coordinator"
            in desk.run("fleet", "status", "jobs").stderr
        )
        assert desk.run("fleet", "stop", "jobs").returncode == 0
        assert not is_alive(agent, started)
    assert states(desk) == {"a": "waiting"}
    assert [each["reason"] for each in show(desk, "a")["history"]] == ["its coordinator was killed"]


def test_a_table_out_of_reach_keeps_no_other_fleet_from_being_shown_and_stopped(
    tmp_path: Path,
) -> None:
    desk = Desk(tmp_path)
    source = repository(desk)
    with serving([DONE]) as server:
        desk.use(server, agent=NO_TITLE)
        assert desk.run("fleet", "run", write_table(desk, jobs_of(source, "a"))).returncode == 0
    broken = desk.home / "data" / "fleet" / "a-broken-one"
    broken.mkdir()
    (broken / "table").write_text("postgresql:///postgres?host=/nowhere")
    shown, stopped = desk.run("fleet", "status"), desk.run("fleet", "stop")
    assert "jobs  1 of 1 done" in shown.stdout
    for done in (shown, stopped):
        assert done.returncode == 1
        assert done.stderr.startswith("a-broken-one: ")


def test_a_job_waits_until_its_last_attempt_has_ended_and_keeps_its_number(tmp_path: Path) -> None:
    ledger = Ledger(SqliteDatabase(tmp_path / "fleet.db"))
    job = FleetJob("r", id="a", prompt="p")
    ledger.add_jobs([job])
    assert ledger.claim_job("here") is not None
    ledger.cancel(["a"])
    assert ledger.requeue_ended(["a"]) == 1
    assert ledger.claim_job("here") is None, "its program is still being ended"
    assert ledger.remove(["a"]) == 0
    assert [each.job_id for each in ledger.list_orphans([])] == ["a"]
    ledger.end_attempt("a", 1, Spending(0.5), "cancelled\0")
    assert ledger.list_orphans([]) == []
    assert ledger.remove(["a"]) == 1
    assert (ledger.list_rows(), ledger.sum_removed_cost()) == ([], 0.5)
    ledger.add_jobs([job])
    row = ledger.claim_job("here")
    assert row is not None
    assert row.attempt == 2
    assert ledger.finish_attempt("a", 2, "done", {"cost": 0.25, "diff": "+\0"})
    (row,) = ledger.list_rows(with_diffs=True)
    assert (row.cost, row.result["diff"]) == (0.75, "+\ufffd")
    assert [each.reason for each in ledger.list_attempts("a")] == ["cancelled\ufffd", "done"]


def test_a_full_disk_before_an_outage_of_the_models_does_not_shorten_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = list[str]()
    outage = Outage(tmp_path, lines.append)
    monkeypatch.setattr(limits, "FLEET_DISK", Limit("test", 1 << 60, "bytes", "for a test"))
    assert not outage.may_start()
    assert "of free space" in lines[0]
    assert [outage.record_failure("down") for _ in range(4)] == [False, False, True, True]
