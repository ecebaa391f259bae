"""What a place answers is read as data: a reply that is not a result fails its own job,
and nothing else.
"""

import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from codeloop_automation.fleet.driver import check_result, get_cost
from tests.automation.fleet.test_fleet import repository, status, write_table
from tests.cli.program import Desk

GOOD = {
    "reason": "stop",
    "text": "Done.",
    "cost": 0.5,
    "steps": 2,
    "durationMs": 10,
    "sessionID": "s",
    "exitCode": 0,
}
BAD: list[dict[str, Any]] = [
    {},
    {"text": "Done."},
    {"exitCode": None},
    {"exitCode": "0"},
    {"exitCode": True},
    {"exitCode": 0.5},
    {"exitCode": []},
    *(GOOD | {"cost": cost} for cost in ("1", "x", [1], {"a": 1}, True, -1, 1e300)),
    *(
        GOOD | {name: value}
        for name in ("message", "text", "reason", "sessionID")
        for value in (1, ["a"], {"a": 1})
    ),
    *(GOOD | {name: value} for name in ("steps", "durationMs") for value in ("1", -1, [])),
]


@pytest.mark.parametrize("result", BAD)
def test_a_result_of_another_shape_is_a_failure_that_says_so(result: dict[str, Any]) -> None:
    checked = check_result(result)
    assert checked["exitCode"] == 1
    assert "not a result of codeloop" in checked["message"]
    assert get_cost(checked) == 0.0


def test_a_result_is_taken_as_it_is_without_what_the_table_does_not_store() -> None:
    assert check_result({**GOOD, "type": "result", "more": 1}) == GOOD
    partial = {"exitCode": 4, "goal": {"state": "open"}, "checks": [1], "cost": None}
    assert check_result(partial) == partial


@pytest.mark.slow
def test_a_host_that_answers_nonsense_fails_its_job_and_the_fleet_can_be_shown(
    tmp_path: Path,
) -> None:
    desk = Desk(tmp_path)
    source = repository(desk)
    replies = [{**GOOD, "cost": "a lot"}, {}, {**GOOD, "exitCode": "0"}, GOOD]
    for number, reply in enumerate(replies):
        line = json.dumps({"result": reply, "size": 0})
        (tmp_path / f"reply-{number}").write_text(f"{line}\n")
    ssh = tmp_path / "ssh"
    # It answers each job with the reply of its number, which the order says.
    ssh.write_text(
        "#!/usr/bin/env python3\nimport json, pathlib, sys\n"
        "job = json.loads(sys.stdin.buffer.readline())['job']['id']\n"
        f"print(pathlib.Path({str(tmp_path)!r}, 'reply-' + job[1:]).read_text(), end='', flush=True)\n"
    )
    ssh.chmod(0o755)
    jobs: list[dict[str, object]] = [
        {"id": f"j{number}", "repository": str(source), "prompt": "add"}
        for number in range(len(replies))
    ]

    done = desk.run(
        "fleet", "run", write_table(desk, jobs), "--on", "ssh:somewhere", "--ssh", str(ssh)
    )

    assert done.returncode == 1, done.stderr
    assert "Traceback" not in done.stderr
    found = status(desk)
    assert (found["done"], found["failed"], found["cost"]) == (1, 3, 0.5)
    assert [row["state"] for row in found["rows"]] == ["failed", "failed", "failed", "done"]

    # A table of an earlier version, or one that others write to, may hold any result.
    table = desk.home / "data" / "fleet" / "jobs" / "fleet.db"
    with sqlite3.connect(table) as database:
        for number, text in enumerate(('{"cost": "a lot", "message": ["x"]}', "[1]", "nonsense")):
            database.execute("UPDATE job SET result = ? WHERE id = ?", (text, f"j{number}"))
        database.execute("DELETE FROM attempt")
    page = tmp_path / "page.html"
    for arguments in (
        ("status",),
        ("status", "jobs"),
        ("show", "jobs"),
        ("show", "jobs", "--html", str(page)),
    ):
        shown = desk.run("fleet", *arguments)
        assert shown.returncode == 0, shown.stderr
    assert status(desk)["cost"] == 0.5
    assert "$0.5000" in page.read_text()
