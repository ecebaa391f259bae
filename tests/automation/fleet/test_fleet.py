"""`codeloop fleet`: jobs in real clones, done once whatever is killed, stopped in seconds,
shown as a page.
"""

import json
import os
import random
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from codeloop.schema.errors import CodeloopError, UsageProblem
from codeloop_automation.bounds import FLEET_STOP_TIME
from codeloop_automation.fleet.coordinator import Coordinator, FleetReports
from codeloop_automation.fleet.end_programs import MAX_PARALLEL_ENDS, end_programs
from codeloop_automation.fleet.jobs import FleetJob, read_jobs
from codeloop_automation.fleet.ledger import Ledger
from codeloop_automation.fleet.ledger_databases import SqliteDatabase
from codeloop_automation.fleet.limits import FleetLimits
from codeloop_automation.fleet.local_driver import LocalDriver
from tests.cli.program import Desk, bash, call, serving, steps
from tests.support.answers import Answer
from tests.support.http_connection import ReceivedRequest

DONE = Answer(text="Done.")
SILENT = FleetReports(lambda _row, _result: None, lambda _line: None)


def repository(desk: Desk) -> Path:
    (desk.work / "log").write_text("start\n")
    desk.git("init", "-q")
    desk.git("add", ".")
    desk.git("commit", "-qm", "start")
    return desk.work


def last_prompt(received: ReceivedRequest) -> bytes:
    """Return the first message of the user."""
    users = [each for each in received.json["messages"] if each["role"] == "user"]
    return json.dumps(users[0]).encode()


def write_table(desk: Desk, jobs: list[dict[str, object]]) -> str:
    file = desk.folder / "jobs.json"
    file.write_text(json.dumps(jobs))
    return str(file)


def status(desk: Desk) -> dict[str, Any]:
    return json.loads(desk.run("fleet", "status", "jobs", "--json").stdout)


@pytest.mark.slow
def test_each_job_has_its_effect_exactly_once_whatever_is_killed(tmp_path: Path) -> None:
    desk, draw = Desk(tmp_path), random.Random(5)
    source = repository(desk)
    number = 8
    with serving(steps(bash("echo line >> log"), DONE)) as server:
        desk.use(server)
        table = write_table(
            desk,
            [{"id": f"j{at}", "repository": str(source), "prompt": "add"} for at in range(number)],
        )
        for _ in range(4):
            coordinator = desk.start("fleet", "run", table, "--at-once", "2")
            time.sleep(draw.uniform(2, 6))
            children = subprocess.run(
                ["pgrep", "-P", str(coordinator.pid)], capture_output=True, text=True, check=False
            )
            for child in children.stdout.split()[: draw.randint(0, 1)]:
                # It may have ended meanwhile, or have no group of its own yet.
                with suppress(ProcessLookupError):
                    os.killpg(int(child), signal.SIGKILL)
            coordinator.kill()
            coordinator.communicate()
        last = desk.run("fleet", "run", table, "--at-once", "2")
        if last.returncode == 1:  # one whose program was killed has failed, and says so
            assert desk.run("fleet", "retry", "jobs").returncode == 0
            last = desk.run("fleet", "run", table, "--at-once", "2")
    assert last.returncode == 0, last.stderr
    found = status(desk)
    assert (found["done"], found["failed"], found["waiting"]) == (number, 0, 0)
    folder = desk.home / "data" / "fleet" / "jobs"
    assert sorted(path.name for path in (folder / "jobs").iterdir()) == sorted(
        f"j{at}" for at in range(number)
    )
    for at in range(number):
        work = folder / "jobs" / f"j{at}" / "work"
        assert (work / "log").read_text() == "start\nline\n"
        commits = subprocess.run(
            ["git", "-C", str(work), "log", "--oneline", f"codeloop/j{at}"],
            capture_output=True,
            text=True,
            check=True,
        )
        assert len(commits.stdout.splitlines()) == 2
    assert not list((folder / "attempts").glob("*"))
    again = desk.run("fleet", "run", table)
    assert again.stdout == "", "what is done is not done again"


@pytest.mark.slow
def test_an_agent_that_is_killed_in_the_middle_of_its_work_has_failed(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    source = repository(desk)
    with serving([bash("sleep 600")]) as server:
        desk.use(server)
        table = write_table(desk, [{"id": "j", "repository": str(source), "prompt": "wait"}])
        coordinator = desk.start("fleet", "run", table)
        attempts = desk.home / "data" / "fleet" / "jobs" / "attempts"
        while not any(b"step_start" in file.read_bytes() for file in attempts.glob("*/run.jsonl")):
            assert coordinator.poll() is None
            time.sleep(0.1)
        children = subprocess.run(
            ["pgrep", "-P", str(coordinator.pid)], capture_output=True, text=True, check=True
        )
        os.killpg(int(children.stdout), signal.SIGKILL)
        assert coordinator.wait(60) == 1
        coordinator.communicate()
    (row,) = status(desk)["rows"]
    assert (row["state"], row["result"]["exitCode"]) == ("failed", -9)
    assert row["result"]["message"] == "It ended without a result."


@pytest.mark.slow
def test_a_fleet_stops_in_seconds_and_goes_on_later(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    source = repository(desk)
    with serving(steps(bash("sleep 600"), DONE)) as server:
        desk.use(server)
        table = write_table(
            desk, [{"id": f"j{at}", "repository": str(source), "prompt": "wait"} for at in range(4)]
        )
        coordinator = desk.start("fleet", "run", table, "--at-once", "2")
        try:
            attempts = desk.home / "data" / "fleet" / "jobs" / "attempts"
            while not list(attempts.glob("*/run.jsonl")):
                time.sleep(0.1)
            time.sleep(1)
            refused = desk.run("fleet", "run", table)
            assert "worked on already" in refused.stderr
            began = time.monotonic()
            assert desk.run("fleet", "stop", "jobs").returncode == 0
            assert coordinator.wait(120) == 130
            took = time.monotonic() - began
        finally:
            coordinator.kill()
            coordinator.communicate()
    assert took < 60, "5 s on a machine that is not busy, and two minutes if it waited for the jobs"
    assert status(desk)["waiting"] == 4
    with serving(steps(DONE)) as server:
        desk.use(server)
        assert desk.run("fleet", "run", table).returncode == 0


@pytest.mark.slow
def test_ctrl_c_while_a_repository_is_cloned_lets_the_job_wait(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"git://127.0.0.1:{silent.getsockname()[1]}/shop"
        table = write_table(desk, [{"id": "j", "repository": address, "prompt": "p"}])
        coordinator = desk.start("fleet", "run", table)
        connection, _ = silent.accept()
        with connection:
            os.killpg(coordinator.pid, signal.SIGINT)  # as a terminal does
            assert coordinator.wait(60) == 130
            coordinator.communicate()
    assert status(desk)["waiting"] == 1


def test_a_stop_ends_a_clone_that_hangs_and_lets_its_job_wait(tmp_path: Path) -> None:
    ledger = Ledger(SqliteDatabase(tmp_path / "fleet.db"))
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"git://127.0.0.1:{silent.getsockname()[1]}/shop"
        ledger.add_jobs([FleetJob(id="j", repository=address, prompt="p")])
        coordinator = Coordinator(tmp_path, ledger, (), [LocalDriver()], SILENT, FleetLimits())
        work = threading.Thread(target=coordinator.run_jobs, args=(1,))
        work.start()
        connection, _ = silent.accept()
        ledger.set_stopping(on=True)
        work.join(60)
        assert not work.is_alive()
        with connection:  # nobody is left who waits for an answer
            connection.settimeout(60)
            while connection.recv(1024):
                pass
    assert [row.state for row in ledger.list_rows()] == ["waiting"]
    assert not list((tmp_path / "attempts").iterdir())


class Clock:
    """A clock that stands still until a condition is met: then all time is up."""

    def __init__(self, is_over: Callable[[], bool]) -> None:
        self._is_over = is_over
        self.sleep = time.sleep

    def monotonic(self) -> float:
        return FLEET_STOP_TIME.seconds + 1 if self._is_over() else 0


def test_of_many_programs_some_are_asked_to_end_and_all_are_ended_in_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    number = MAX_PARALLEL_ENDS + 4
    asked = tmp_path / "asked"
    asked.touch()
    clock = Clock(lambda: len(asked.read_text().split()) >= number - 4)
    monkeypatch.setattr("codeloop_automation.fleet.end_programs.time", clock)
    script = f"trap 'echo asked >> {asked}' TERM; echo ready; while :; do sleep 60 & wait; done"
    programs = [
        subprocess.Popen(["sh", "-c", script], stdout=subprocess.PIPE, start_new_session=True)
        for _ in range(number)
    ]
    for program in programs:
        assert program.stdout is not None
        with program.stdout:
            program.stdout.readline()
    end_programs((program.pid, "") for program in programs)
    assert [program.wait(60) for program in programs] == [-signal.SIGKILL] * number
    assert asked.read_text().split() == ["asked"] * (number - 4), (
        "hundreds at once would take the cores from each other"
    )


@pytest.mark.slow
def test_goals_that_are_not_reached_fail_and_the_page_shows_all(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    source = repository(desk)
    fix = call("edit", filePath="log", oldString="start", newString="<b>end</b>")
    sly = steps(bash("git config filter.x.clean 'touch /tmp/never'"), DONE)
    plain = steps(fix, DONE)
    with serving(
        lambda received: (sly if b"settings" in last_prompt(received) else plain)(received)
    ) as server:
        desk.use(server, sandbox="off", permission={"bash": "allow"})
        goal = {"repository": str(source), "goal": "the log ends"}
        jobs: list[dict[str, object]] = [
            {**goal, "id": "good", "checks": ["grep -q end log"]},
            {**goal, "id": "bad", "checks": ["grep -q never log"]},
            {**goal, "id": "sly", "goal": "settings", "checks": ["true"]},
            {**goal, "id": "lost", "repository": str(tmp_path / "nothing")},
        ]
        done = desk.run("fleet", "run", write_table(desk, jobs), "--auto")
    assert done.returncode == 1
    rows = {
        row["id"]: row for row in json.loads(desk.run("fleet", "show", "jobs", "--json").stdout)
    }
    assert {name: row["state"] for name, row in rows.items()} == {
        "good": "done",
        "bad": "failed",
        "lost": "failed",
        "sly": "failed",
    }
    assert rows["good"]["result"]["goal"]["status"] == "done"
    assert rows["bad"]["result"]["exitCode"] == 7
    assert "changed the settings of its repository" in rows["sly"]["result"]["message"]
    assert "git failed" in rows["lost"]["result"]["message"]
    page = tmp_path / "page.html"
    assert desk.run("fleet", "show", "jobs", "--html", str(page)).returncode == 0
    text = page.read_text()
    assert "1 of 4 done, 3 failed" in text
    assert "+&lt;b&gt;end&lt;/b&gt;" in text
    assert "<script" not in text
    assert "src=" not in text
    assert "1 of 4 done" in desk.run("fleet", "status").stdout


@pytest.mark.slow
def test_a_fleet_has_cost_what_all_attempts_have_cost(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    job: dict[str, object] = {"id": "j", "repository": str(repository(desk)), "prompt": "wait"}
    # The second answer never begins, so the first alone is paid for;
    # it has ended when the second is asked for.
    with serving(steps(bash("true"), Answer(hang=600))) as server:
        desk.use(server, agent={"title": {"disable": True}})
        table = write_table(desk, [job])
        coordinator = desk.start("fleet", "run", table)
        while len(server.requests) < 2:
            assert coordinator.poll() is None
            time.sleep(0.1)
        assert desk.run("fleet", "stop", "jobs").returncode == 0
        coordinator.communicate(timeout=120)
    assert status(desk)["cost"] == pytest.approx(0.00014)
    with serving([DONE]) as server:
        desk.use(server, agent={"title": {"disable": True}})
        assert desk.run("fleet", "run", table).returncode == 0
    sums = status(desk)
    assert sums["cost"] == sums["rows"][0]["cost"] == pytest.approx(0.00028)
    assert sums["rows"][0]["result"]["cost"] == pytest.approx(0.00014)


@pytest.mark.slow
def test_a_limit_of_no_dollars_is_passed_on(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    job: dict[str, object] = {"id": "one", "repository": str(repository(desk)), "prompt": "add"}
    with serving(steps(DONE)) as server:
        desk.use(server)
        done = desk.run("fleet", "run", write_table(desk, [job]), "--max-cost", "0")
    assert done.returncode == 1
    (row,) = status(desk)["rows"]
    assert row["result"]["exitCode"] == 4


@pytest.mark.parametrize(
    "wrong", [{"id": "../../mine"}, {"repository": "--upload-pack=x"}, {"base": "--upload-pack=x"}]
)
def test_a_row_that_somebody_wrote_into_the_table_leads_nowhere_else(
    tmp_path: Path, wrong: dict[str, str]
) -> None:
    folder, mine = tmp_path / "fleets/jobs", tmp_path / "fleets/mine"
    mine.mkdir(parents=True)
    (folder / "jobs").mkdir(parents=True)
    (mine / "notes").write_text("mine")
    ledger = Ledger(SqliteDatabase(folder / "fleet.db"))
    job = {"repository": str(tmp_path / "none"), "prompt": "p", "id": "a", **wrong}
    row = (job["id"], 0, json.dumps(job), "waiting", 0, 0, "", 0, "", "{}", 0.0)
    with SqliteDatabase(folder / "fleet.db").open_transaction() as cursor:
        cursor.execute("INSERT INTO job VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", row)
    with pytest.raises(CodeloopError, match="a row that is not a job"):
        Coordinator(folder, ledger, (), [LocalDriver()], SILENT, FleetLimits()).run_jobs(1)
    assert (mine / "notes").read_text() == "mine"


def test_a_table_is_read_in_every_format_and_says_what_is_wrong(tmp_path: Path) -> None:
    rows = {
        "a.json": '[{"id": "a", "repository": "r", "goal": "g", "checks": ["make"]}]',
        "a.jsonl": '{"id": "a", "repository": "r", "goal": "g", "checks": ["make"]}\n\n',
        "a.csv": "id,repository,goal,checks,prompt\na,r,g,make,\n",
        "a.yaml": "- id: a\n  repository: r\n  goal: g\n  checks: [make]\n",
    }
    for name, text in rows.items():
        (tmp_path / name).write_text(text)
        (job,) = read_jobs(tmp_path / name)
        assert (job.id, job.repository, job.goal, job.checks) == (
            "a",
            str(tmp_path / "r"),
            "g",
            ("make",),
        )
    bad = {
        '[{"repository": "r"}]': "has to have either a prompt, or a goal",
        '[{"repository": "r", "prompt": "p", "id": "../x"}]': "letters, digits",
        '[{"repository": "r", "prompt": "p", "id": "x"}, {"repository": "s", "prompt": "p", "id": "x"}]': "Two jobs",
        '[{"repository": "r", "prompt": "p", "colour": 1}]': "colour",
        "{}": "a list of jobs is expected",
        "[]": "holds 0 jobs",
    }
    for text, words in bad.items():
        (tmp_path / "bad.json").write_text(text)
        with pytest.raises(UsageProblem, match=words):
            read_jobs(tmp_path / "bad.json")
    (tmp_path / "b.json").write_text('[{"repository": "https://host/shop.git", "prompt": "p"}]')
    assert read_jobs(tmp_path / "b.json")[0].id.startswith("shop-")
