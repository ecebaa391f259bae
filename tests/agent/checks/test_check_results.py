"""What counts as a check that passed: only what certainly is one, with its real result,
wherever it ran.
"""

import pytest

from codeloop.agent.checks.check_problems import find_check_problem, find_failure
from codeloop.agent.checks.check_runs import CheckRun, list_checks
from codeloop.schema.part import Part
from codeloop.schema.wire import replace
from codeloop.shell.check_commands import find_checks, join_folder
from codeloop.shell.check_scope import CheckCommand
from tests.agent.checks.test_honest_ends import FAILED, PASSED, bash, tool

ROOT = "/home/me/shop"
GREEN = "2 passed in 0.10s"


def run(command: str, output: str = GREEN, code: int = 0) -> CheckRun:
    (check,) = list_checks([bash(command, code, output)], ROOT)
    return check


@pytest.mark.parametrize(
    ("command", "output", "expected"),
    [
        ("pytest -q", GREEN, "passed"),
        ("pytest -q && echo OK", GREEN, "passed"),
        ("pytest -q | tail -3", GREEN, "passed"),
        ("pytest > log; tail -3 log", GREEN, "passed"),
        ("pytest || exit 1; git status", GREEN, "passed"),
        ("pytest 2>&1 | grep -E 'passed|failed'", GREEN, "passed"),
        ("(cd web && npm test)", "ok", "passed"),
        ("make test", "built", "passed"),
        ("pytest", "3 skipped in 0.1s", "unknown"),
        ("python -m unittest", "Ran 0 tests in 0.000s\n\nOK", "unknown"),
        ("npm test", "# tests 0\n# pass 0\n# fail 0", "unknown"),
        ("! pytest", GREEN, "unknown"),
        ("if ! pytest; then echo bad; fi", GREEN, "unknown"),
        ("pytest &", "", "unknown"),
        ("pytest & wait", "", "unknown"),
        ("pytest -q | grep -o passed", "passed", "unknown"),
        ("pytest -q | grep -o '[0-9]* passed.*'", GREEN, "unknown"),
        ("go test ./... | grep ^ok", "ok  \texample.com/shop\t0.004s", "unknown"),
        ("cargo test | head -5", "test result: ok. 9 passed; 0 failed", "unknown"),
        (
            "cargo build && cargo test",
            "running 0 tests\n\ntest result: ok. 0 passed; 0 failed",
            "passed",
        ),
        ("pytest -q | sed s/failed/passed/", GREEN, "unknown"),
        ("pytest -q; echo OK", "OK", "unknown"),
        ("pytest -q; echo '2 passed in 1s'", "2 passed in 1s", "unknown"),
        ("pytest > /dev/null; printf 'OK\\n'", "OK", "unknown"),
        ("echo $(pytest -q)", GREEN, "passed"),
        ("echo `pytest -q`", "", "unknown"),
        ("pytest() { echo '5 passed in 1s'; }; pytest", "5 passed in 1s", "unknown"),
        ("alias pytest='true'; pytest", "", "unknown"),
        ("make() { echo 1 passed; }; make test", "1 passed", "unknown"),
        ("git commit -qm 'Fix:\npytest() is called' && pytest", GREEN, "passed"),
        ("bash -c 'pytest; true'", "", "unknown"),
        ('python -c "import pytest; pytest.main()"', GREEN, "passed"),
        ('python -c "import pytest; pytest.main()"', "1 failed in 0.1s", "failed"),
        ('python -c "import pytest; pytest.main()"', "", "unknown"),
        ('python -c "import pytest, sys; sys.exit(pytest.main())"', "", "passed"),
    ],
)
def test_a_line_that_exits_with_0_passed_only_where_that_is_certain(
    command: str, output: str, expected: str
) -> None:
    check = run(command, output)
    assert ("failed" if check.failed else "passed" if check.passed else "unknown") == expected


@pytest.mark.parametrize(
    "command",
    [
        "pytest --collect-only",
        "pytest --collectonly -q",
        "cd /tmp/x && pytest",
        "echo OK",
        "cd /tmp; pytest",
    ],
)
def test_what_runs_no_test_of_the_project_is_no_check(command: str) -> None:
    assert not list_checks([bash(command, 0, GREEN)], ROOT)


@pytest.mark.parametrize(
    "command", [f"cd {ROOT} && pytest", f"cd {ROOT}/web && npm test", "cd .. && make test"]
)
def test_a_check_below_or_above_the_project_is_one(command: str) -> None:
    assert run(command).passed


@pytest.mark.parametrize(
    "narrow",
    [
        *(
            'pytest -k"not tax"',
            "pytest -knot_tax",
            "pytest -mfast",
            "pytest --ignore-glob='*shop*'",
        ),
        *(
            "pytest -o testpaths=unit",
            "pytest -c other.ini",
            "ls tests/unit | xargs pytest",
            "cd tests/unit && pytest",
        ),
        *(
            "PYTEST_ADDOPTS='-k sum' pytest",
            "npx jest --testPathIgnorePatterns shop",
            "python -m unittest -kshop",
        ),
        *(
            "python -c \"import pytest; pytest.main(['-k', 'sum'])\"",
            "pytest --deselect tests/a.py::b",
        ),
    ],
)
def test_a_narrowed_check_does_not_cover_the_whole(narrow: str) -> None:
    (check,) = find_checks(narrow, "", ROOT)
    whole = find_whole(check.program)
    assert not check.covers(whole)
    assert whole.covers(whole)


def find_whole(program: str) -> CheckCommand:
    (check,) = find_checks(
        {"jest": "npx jest", "unittest": "python -m unittest"}.get(program, "pytest")
    )
    return check


@pytest.mark.parametrize(
    "again", ["pytest", f"cd {ROOT} && python -m pytest", "cd $(git rev-parse --show-toplevel); pytest", "make test",
              "PYTEST_ADDOPTS=-q pytest -n 4", 'python -c "import pytest; pytest.main([\'-q\'])"']
)  # fmt: skip
def test_the_whole_under_another_name_covers_what_failed(again: str) -> None:
    runs = list_checks([bash("pytest -q", 1, FAILED), bash(again, 0, PASSED)], ROOT)
    assert find_check_problem(runs, ROOT) is None


def test_a_script_that_the_turn_wrote_covers_nothing_else() -> None:
    script = tool("write", {"filePath": f"{ROOT}/run_tests.sh"}, "", {}, "run_tests.sh")
    failed = bash("pytest", 1, FAILED)
    for parts, is_covered in (
        ([failed, bash("sh run_tests.sh")], True),
        ([failed, script, bash("sh run_tests.sh")], False),
    ):
        runs = list_checks(parts, ROOT)
        assert (find_failure(runs, ROOT) is None) is is_covered
        assert runs[-1].own_script is not is_covered


def test_a_check_knows_the_folder_that_its_shell_is_in() -> None:
    moved = bash(
        "cd web",
        0,
        "(no output)\n\n<shell_metadata>\nThe working directory is now web.\n</shell_metadata>",
    )
    parts: list[Part] = [moved, bash("npm test", 0, "ok")]
    assert list_checks(parts, ROOT)[0].folder == "web"
    failed: list[Part] = [bash("npm test", 1, "1 failing"), *parts]
    assert find_failure(list_checks(failed, ROOT), ROOT) is not None


def test_a_check_in_the_background_has_the_result_that_is_read_later() -> None:
    start = tool(
        "bash",
        {"command": "pytest -q", "run_in_background": True},
        "Started",
        {"id": "bash_1", "exit": None},
    )
    edit = tool("write", {"filePath": f"{ROOT}/shop.py"}, "", {}, "shop.py")

    def read(status: str, code: int | None, output: str) -> Part:
        return tool(
            "bash_output",
            {"id": "bash_1"},
            output,
            {"id": "bash_1", "status": status, "exit": code},
        )

    (unread,) = list_checks([start], ROOT)
    assert (unread.passed, unread.failed, unread.exit_code) == (False, False, None)
    (passed,) = list_checks([start, read("running", None, "...\n"), read("exited", 0, GREEN)], ROOT)
    assert (passed.passed, passed.exit_code, passed.after_last_edit) == (True, 0, True)
    (failed,) = list_checks([start, read("exited", 1, FAILED)], ROOT)
    assert failed.failed
    assert (unread.error, failed.error) == ("", run("pytest -q", FAILED, 1).error)
    (stale,) = list_checks([start, edit, read("exited", 0, GREEN)], ROOT)
    assert replace(stale, after_last_edit=True) == passed
    assert not stale.after_last_edit
    (ended,) = list_checks([start, read("killed", None, "")], ROOT)
    assert (ended.passed, ended.failed) == (False, False)


def test_a_path_that_does_not_exist_was_no_check_of_it() -> None:
    wrong = bash("pytest tests/wrong.py", 4, "ERROR: file or directory not found: tests/wrong.py")
    assert find_failure(list_checks([wrong, bash("pytest tests/test_a.py")])) is None


@pytest.mark.parametrize(
    ("folder", "target", "joined"),
    [
        *(
            ("", "web", "web"),
            ("web", "..", ""),
            ("", ROOT, ""),
            ("", f"{ROOT}/a/../b", "b"),
            ("web", "/tmp", "/tmp"),
        ),
        ("", "..", "/home/me"),
    ],
)
def test_a_folder_is_relative_to_the_session(folder: str, target: str, joined: str) -> None:
    assert join_folder(folder, target, ROOT) == joined
