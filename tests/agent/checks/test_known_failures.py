"""Failures that are not the turn's, and runs that show nothing, bring no reminder."""

import pytest

from codeloop.agent.checks.check_problems import (
    EARLIER_FAILURE_PROBLEM,
    UNENDED_CHECK_PROBLEM,
    UNPROVEN_CHECK_PROBLEM,
    find_check_problem,
    find_failure,
)
from codeloop.agent.checks.check_runs import list_checks
from codeloop.schema.ids import new_id
from codeloop.schema.part import Part, PatchPart, ToolPart
from tests.agent.checks.test_honest_ends import FAILED, PASSED, bash, edit, tool

ROOT = "/home/me/shop"
RUFF = "src/old.py:3:1: PLR0917 Too many arguments (6/5)\nsrc/old.py:90:5: RUF036 None not last\nFound 36 errors."
ESLINT = (
    "/home/me/shop/src/{}.py\n  3:1  error  'x' is not defined  no-undef\n\n1 problem (1 error)"
)
MYPY = "src/old.py:{}: error: bad [x]\nFound 1 error"
EDIT = edit("x = 1\n", "x = 2\n", "src/new.py")


def unchanged(command: str, code: int, output: str) -> ToolPart:
    return tool("bash", {"command": command, "unchanged": True}, output, {"exit": code})


def problem_of(*parts: Part) -> str | None:
    runs = list_checks(parts, ROOT)
    problem = find_check_problem(runs, ROOT)
    return problem.reason if problem is not None else None


@pytest.mark.parametrize(
    ("command", "before", "now", "is_known"),
    [
        ("ruff check", RUFF, RUFF, True),
        ("ruff check", RUFF, RUFF.replace(":90:", ":97:"), True),
        ("ruff check", RUFF.replace("36", "35"), RUFF, True),
        ("ruff check src", f"{RUFF}\nsrc/new.py:2:1: E501 Line too long", RUFF, True),
        ("ruff check", RUFF, f"{RUFF}\nsrc/new.py:2:1: E501 Line too long", False),
        ("ruff check", RUFF, f"src/new.py:91:1: E501 Line too long\n{RUFF}", False),
        ("pytest", FAILED, FAILED, True),
        ("pytest", FAILED, FAILED.replace("20 == 19", "21 == 19"), True),
        ("pytest", FAILED, f"FAILED tests/test_shop.py::test_sum - assert 1 == 2\n{FAILED}", False),
        ("mypy src", MYPY.format(3), MYPY.format(4), True),
        ("mypy src", "src/old.py:3: error: bad [x]", "src/new.py:3: error: bad [x]", False),
        ("make test", "the server is not there", "the server is not there", True),
        ("make test", "the server is not there", "the client is not there", False),
    ],
)  # fmt: skip
def test_what_the_last_commit_has_as_well_is_not_the_turns(
    command: str, before: str, now: str, *, is_known: bool
) -> None:
    new = tool("write", {"filePath": f"{ROOT}/src/new.py"}, "", {}, "src/new.py")
    for order in ((new, unchanged(command, 1, before), bash(command, 1, now)),
                  (new, bash(command, 1, now), unchanged(command, 1, before))):  # fmt: skip
        assert problem_of(*order) == (None if is_known else "the last check failed")


def test_a_check_on_stashed_changes_is_one_of_the_last_commit() -> None:
    now = bash("pytest", 1, FAILED)
    for before in (
        [bash("git stash -u && pytest; git stash pop", 1, FAILED)],
        [bash("git stash push"), bash("pytest", 1, FAILED), bash("git stash pop")],
    ):
        assert problem_of(now, *before, bash("pytest", 1, FAILED)) is None
        assert problem_of(now, *before) is None
    assert problem_of(bash("git stash list"), now) == "the last check failed"
    assert (
        problem_of(bash("git stash -u"), edit("a", "b", "shop.py"), now) == "the last check failed"
    )
    assert problem_of(bash("git stash"), bash("git stash pop"), now) == "the last check failed"


@pytest.mark.parametrize(
    ("command", "output", "is_known"),
    [
        ("ruff check", RUFF, True),
        ("npx eslint .", ESLINT.format("old"), True),
        ("npx eslint .", ESLINT.format("new"), False),
        ("ruff check src", "./src/new.py:3:1: E501 Line too long", False),
        ("ruff check", "Found 36 errors.", False),
        ("mypy src", "src/old.py:3: error: bad [x]", False),
        ("pytest", "src/old.py:3: AssertionError", False),
    ],
)  # fmt: skip
def test_a_linters_messages_about_other_files_are_not_the_turns(
    command: str, output: str, *, is_known: bool
) -> None:
    new = tool("write", {"filePath": f"{ROOT}/src/new.py"}, "", {}, "src/new.py")
    patch = PatchPart(
        id=new_id("prt"), session_id="s", message_id="m", hash="", files=[f"{ROOT}/src/new.py"]
    )
    for change in (new, patch):
        assert problem_of(change, bash(command, 1, output)) == (
            None if is_known else "the last check failed"
        )


@pytest.mark.parametrize("command", ["make check-bad", "npm run test:fail", "make test-invalid"])
def test_a_task_that_is_meant_to_fail_is_no_failure(command: str) -> None:
    assert find_failure(list_checks([bash(command, 2, "error: bad")], ROOT)) is None
    assert problem_of(bash("make check", 0, "fine"), bash(command, 2, "error: bad")) is None


def test_as_many_tests_as_had_failed_are_enough() -> None:
    unittest = bash("python -m unittest a b", 1, "Ran 40 tests in 1s\n\nFAILED (failures=5)")
    stopped = bash("pytest -x", 1, "!!! stopping after 1 failures !!!\n1 failed in 0.2s")
    five = bash("pytest tests/a.py", 0, "5 passed in 1s")
    for failed, passed, is_settled in (
        (unittest, bash("tools/x tests; pytest -k x", 0, "755 passed in 2s"), True),
        (bash("make check", 2, FAILED), bash("pytest", 0, PASSED), True),
        (
            bash("pytest -q", 1, FAILED),
            bash("npx jest", 0, "Tests:       9 passed, 9 total"),
            False,
        ),
        (bash("pytest -q", 1, FAILED), bash("ruff check", 0, "All checks passed!"), False),
        (
            bash("pytest tests/a.py", 1, FAILED),
            bash("pytest tests/b.py", 0, "1 passed in 1s"),
            False,
        ),
        (bash("pytest", 2, "1 error in 0.2s"), five, False),
        (stopped, five, False),
    ):
        assert problem_of(failed, EDIT, passed) == (None if is_settled else EARLIER_FAILURE_PROBLEM)


def test_a_check_that_was_ended_has_not_failed() -> None:
    ended = tool("bash", {"command": "npx eslint"}, "...", {"exit": None, "timedOut": True})
    assert problem_of(ended) == UNENDED_CHECK_PROBLEM
    assert problem_of(ended, bash("npx eslint lib types")) is None
    assert problem_of(bash("npm run lint"), ended) is None


def test_a_run_that_shows_nothing_is_no_problem_beside_one_that_passed() -> None:
    looks = bash("pytest | grep -o passed", 0, "passed")
    assert problem_of(looks) == UNPROVEN_CHECK_PROBLEM
    assert problem_of(bash("pytest", 0, PASSED), looks) is None
    assert problem_of(bash("pytest", 0, PASSED), EDIT, looks) == UNPROVEN_CHECK_PROBLEM
    assert problem_of(bash("ruff check"), looks) == UNPROVEN_CHECK_PROBLEM
    verbose = "python3 -m unittest -v 2>&1 | grep -E 'ok|FAIL|Ran'"
    assert (
        problem_of(
            bash(verbose, 0, "test_a (t.T) ... ok\ntest_b (t.T) ... ok\nRan 2 tests in 0.001s")
        )
        is None
    )
    assert (
        problem_of(
            bash(verbose, 0, "test_a (t.T) ... FAIL\nRan 2 tests in 0.001s\nFAILED (failures=1)")
        )
        is not None
    )
