"""A check that found nothing to run has neither passed nor failed, whatever program it is of."""

import json
from pathlib import Path

import pytest

from codeloop.agent.checks.check_problems import find_check_problem
from codeloop.agent.checks.check_runs import list_checks
from tests.agent.checks.test_honest_ends import bash

ROWS = [
    json.loads(line)
    for line in Path(__file__).with_name("nothing_run.jsonl").read_text().splitlines()
]
"""Rows of what ran: `nothing` or `failed`, command, exit code, output.
`failed`: it ran, and missed something else.
"""


@pytest.mark.parametrize(
    ("command", "code", "output"), [row[1:] for row in ROWS if row[0] == "nothing"]
)
def test_a_run_that_found_nothing_is_neither_passed_nor_failed(
    command: str, code: int, output: str
) -> None:
    (run,) = list_checks([bash(command, code, output)])
    assert (run.failed, run.passed) == (False, False)
    assert not run.started or code == 0
    assert find_check_problem([run] if code else []) is None


@pytest.mark.parametrize(
    ("command", "code", "output"), [row[1:] for row in ROWS if row[0] == "failed"]
)
def test_what_ran_and_missed_something_failed(command: str, code: int, output: str) -> None:
    (run,) = list_checks([bash(command, code, output)])
    assert (run.failed, run.started) == (True, True)


def test_nothing_is_held_against_what_runs_later() -> None:
    root = "/home/me/shop"
    runs = list_checks(
        [
            bash(
                "cd tests && node --test t/a.test.js",
                1,
                f"Could not find '{root}/tests/tests/t/a.test.js'",
            ),
            bash("cd tests && node --test t/a.test.js", 0, "# pass 1"),
        ],
        root,
    )
    assert find_check_problem(runs, root) is None
    assert find_check_problem(runs[:1], root) is None
