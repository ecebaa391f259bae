"""`codeloop fleet run --table postgresql://...`: machines share one table,
and lose no job with one of them.
"""

import subprocess
import time
from pathlib import Path

import pytest

from codeloop_automation.fleet.driver import Spending
from codeloop_automation.fleet.jobs import FleetJob
from codeloop_automation.fleet.ledger import Ledger
from codeloop_automation.fleet.ledger_databases import PostgresDatabase
from tests.automation.fleet.test_fleet import DONE, repository, status, write_table
from tests.cli.program import HANGING, Desk, bash, serving, steps
from tests.support.postgres import find_programs, run_postgres

PROGRAMS = find_programs()
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        PROGRAMS is None, reason="PostgreSQL is not installed: apt-get install postgresql"
    ),
]


def test_machines_share_a_table_and_one_that_is_killed_leaves_its_jobs_to_the_others(
    tmp_path: Path,
) -> None:
    pytest.importorskip("psycopg")
    assert PROGRAMS is not None
    number = 8
    with (
        run_postgres(PROGRAMS) as address,
        serving(steps(bash("sleep 1; echo line >> log"), DONE)) as server,
    ):
        desks: list[Desk] = []
        for name in ("first", "second"):
            (tmp_path / name).mkdir()
            desks.append(Desk(tmp_path / name))
            desks[-1].use(server, permission={"bash": "allow"})
        first, second = desks
        source = repository(first)
        table = write_table(
            first,
            [{"id": f"j{at}", "repository": str(source), "prompt": "add"} for at in range(number)],
        )
        flags = ("fleet", "run", table, "--table", address, "--at-once", "2")
        killed, other = first.start(*flags), second.start(*flags)
        while not list((first.home / "data").glob("fleet/jobs/attempts/*/run.jsonl")):
            assert killed.poll() is None, killed.communicate()
            time.sleep(0.1)
        killed.kill()
        killed.communicate()
        output = other.communicate(timeout=HANGING)
        assert other.returncode == 0, output
        assert f"{number} done, 0 failed, 0 waiting" in output[1]
        found = status(first)
        assert (found["done"], found["running"]) == (number, 0)
        rows = {row["id"]: row["result"] for row in found["rows"]}
        counted = 0
        for desk in desks:
            for tree in (desk.home / "data" / "fleet" / "jobs" / "jobs").glob("*/work"):
                log = subprocess.check_output(["git", "-C", tree, "rev-list", "HEAD"], text=True)
                assert (tree / "log").read_text() == "start\nline\n"
                assert len(log.split()) == 2
                counted += log.split()[0] == rows[tree.parent.name]["commit"]
        assert counted == number, "each job has its result on one of the machines"
        assert first.run(*flags).stdout == "", "what is done is not done again, by whomever"

        (Path(second.home) / "data" / "fleet" / "own").mkdir()
        (Path(second.home) / "data" / "fleet" / "own" / "fleet.db").touch()
        refused = second.run(*flags, "--name", "own")
        assert refused.returncode == 2
        assert "in SQLite already" in refused.stderr
        wrong = first.run(
            "fleet", "run", table, "--name", "n", "--table", "postgresql:///postgres?host=/nowhere"
        )
        assert wrong.returncode == 1
        assert "PostgreSQL can't be used" in wrong.stderr


def cut_connections(address: str) -> None:
    """Have the server end all connections, as its restart does."""
    import psycopg

    with psycopg.connect(address, autocommit=True) as admin:
        others = "backend_type = 'client backend' AND pid <> pg_backend_pid()"
        admin.execute(
            f"SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity WHERE {others}"
        )


def test_a_lease_ends_with_its_connection_and_what_comes_later_counts_for_nothing() -> None:
    pytest.importorskip("psycopg")
    assert PROGRAMS is not None
    name = "x" * 90 + ".y"
    with run_postgres(PROGRAMS) as address:
        cut = Ledger(PostgresDatabase(address, name))
        cut.add_jobs([FleetJob("r", id="one", prompt="p%s?"), FleetJob("r", id="two", prompt="p")])
        row = cut.claim_job("here")
        assert row is not None
        assert (row.job.id, row.job.prompt) == ("one", "p%s?")
        assert Ledger(PostgresDatabase(address, name)).list_orphans([]) == []
        cut_connections(address)
        other = Ledger(PostgresDatabase(address, name))
        (orphan,) = other.list_orphans([])
        assert (orphan.job_id, orphan.attempt) == ("one", 1)
        other.end_attempt("one", 1, Spending(), "its coordinator was killed")
        other.requeue(("one", 1))
        again = other.claim_job("here")
        assert again is not None
        assert (again.job.id, again.attempt) == ("one", 2)
        assert not cut.finish_attempt("one", 1, "done", {"text": "late", "cost": 0.5})
        assert [(orphan.job_id, orphan.attempt) for orphan in cut.list_orphans([])] == []
        assert other.finish_attempt("one", 2, "done", {"text": "100 % done?", "cost": 0.25})
        assert next((row.state, row.result) for row in cut.list_rows()) == (
            "done",
            {"text": "100 % done?", "cost": 0.25},
        )
        assert other.sum_cost() == 0.75, "also what came too late was paid for"


def test_a_restart_of_the_server_takes_no_job_from_anybody() -> None:
    pytest.importorskip("psycopg")
    assert PROGRAMS is not None
    with run_postgres(PROGRAMS) as address:
        first, second = (Ledger(PostgresDatabase(address, "f")) for _ in range(2))
        first.add_jobs([FleetJob("r", id="one", prompt="p")])
        assert first.claim_job("here") is not None
        cut_connections(address)
        assert second.list_orphans([]) == [], "the first one has had no time to come back"
        assert first.list_orphans(["one"]) == []
        assert second.claim_job("here") is None
        assert first.finish_attempt("one", 1, "done", {"text": "t"})
