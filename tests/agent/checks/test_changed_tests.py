"""Tests that a turn changed are named, whatever changed them;
ordinary work on tests is not called a removal.
"""

import asyncio
from pathlib import Path

import pytest

from codeloop.agent.checks.call_diffs import has_moved_commit
from codeloop.agent.checks.changed_tests import (
    ChangedTest,
    find_exported_options,
    find_test_changes,
)
from codeloop.agent.checks.file_kinds import is_check_file
from codeloop.kit.text.diff import make_unified_diff
from codeloop.model.testing.script import ScriptedAnswer
from codeloop.schema.api.session_inputs import RunLimits
from codeloop.schema.message import SnapshotFileDiff
from tests.agent.answer.test_early_ends import DONE, reminders
from tests.support.scripted_project import make_answer, make_call, open_scripted_project

SHOP = (
    "def test_sum():\n    assert add(1, 2) == 3\n\n\ndef test_tax():\n    assert tax(100) == 19\n"
)
SUM, TAX = (f"{test.rstrip()}\n" for test in SHOP.split("\n\n\n"))
RETURNS = SHOP.replace("    assert tax", "    return\n    assert tax")
OPTIONS = "[tool.pytest.ini_options]\n"
NAMED = "tests/test_shop.py"


def diff(file: str, before: str | None, after: str | None) -> SnapshotFileDiff:
    made = make_unified_diff(file, before or "", after or "")
    status = "added" if before is None else "deleted" if after is None else "modified"
    return SnapshotFileDiff(
        file=file,
        patch=made.patch,
        additions=made.additions,
        deletions=made.deletions,
        status=status,
    )


def find(*diffs: SnapshotFileDiff, failures: str | None = None) -> list[str]:
    return [describe(change) for change in find_test_changes(diffs, failures)]


def describe(change: ChangedTest) -> str:
    return f"{'! ' if change.needs_reason else ''}{change}"


@pytest.mark.parametrize(
    ("diffs", "rows"),
    [
        ([diff(NAMED, SHOP, SUM)], [f"! {NAMED}::test_tax removed"]),
        ([diff(NAMED, SHOP, "")], [f"! {NAMED}::test_sum removed", f"! {NAMED}::test_tax removed"]),
        ([diff(NAMED, SHOP, None)], [f"! {NAMED} removed"]),
        ([diff(NAMED, SHOP, None), diff("tests/shop_off.py", None, SHOP)], [f"! {NAMED} removed"]),
        ([diff(NAMED, SHOP, None), diff("tests/test_shop.py.off", None, SHOP)], [f"! {NAMED} removed"]),
        ([diff(NAMED, SHOP, None), diff("tests/test_b.py", None, SUM)], [f"! {NAMED} removed"]),
        ([diff(NAMED, SHOP, SHOP.replace("19", "20"))], [f"{NAMED}::test_tax edited"]),
        ([diff(NAMED, SHOP, RETURNS)], [f"! {NAMED}::test_tax skipped"]),
        ([diff(NAMED, SHOP, SHOP.replace("test_tax", "test_vat"))], [f"{NAMED}::test_tax replaced"]),
        ([diff(NAMED, f"RATE = 19\n{SHOP}", f"RATE = 20\n{SHOP}")], [f"{NAMED} changed"]),
        ([diff("tests/data/out.json", "1\n", "2\n")], ["tests/data/out.json changed"]),
        ([diff("tests/data/out.json", "1\n", None)], ["tests/data/out.json deleted"]),
        ([diff("tests/conftest.py", None, "collect_ignore = ['test_shop.py']\n")],
         ["! tests/conftest.py changes which tests run"]),
        ([diff("conftest.py", "", "def pytest_collection_modifyitems(items):\n    items.clear()\n")],
         ["! conftest.py changes which tests run"]),
        ([diff("pytest.ini", None, '[pytest]\naddopts = -k "not tax"\n')], ["! pytest.ini changes which tests run"]),
        ([diff("pyproject.toml", OPTIONS, OPTIONS + "addopts = '-q --deselect x'\n")],
         ["! pyproject.toml changes which tests run"]),
        ([diff("Makefile", "test:\n\tpytest\n", "test:\n\tpytest || true\n")], ["! Makefile changes which tests run"]),
        ([diff("package.json", '"test": "jest"\n', '"test": "echo"\n')], ["! package.json changes which tests run"]),
        ([diff("package.json", '"test": "jest"\n', '"test": "node run.js"\n')], ["package.json changed"]),
        ([diff("Makefile", "test:\n\tpytest\n", "test:\n\ttrue\n")], ["! Makefile changes which tests run"]),
        ([diff("Makefile", "test:\n\tgo test ./...\n", "test:\n\t@echo ok\n")], ["! Makefile changes which tests run"]),
        ([diff("Makefile", "test: ; pytest\n", "test: ; @:\n")], ["! Makefile changes which tests run"]),
        ([diff("Makefile", "test:\n\tpytest\n", "test:\n\ttrue\n\tpytest -q\n")], ["Makefile changed"]),
        ([diff("sitecustomize.py", None, "import os\n")], ["! sitecustomize.py changes which tests run"]),
    ],
)  # fmt: skip
def test_what_happened_to_tests_that_were_there_is_named(
    diffs: list[SnapshotFileDiff], rows: list[str]
) -> None:
    assert find(*diffs) == rows


@pytest.mark.parametrize(
    "diffs",
    [
        [diff(NAMED, SUM, SHOP)],
        [diff(NAMED, SHOP, f"import pytest\n\n{SHOP}")],
        [diff(NAMED, SHOP, None), diff("tests/unit/test_shop.py", None, SHOP)],
        [diff(NAMED, SHOP, SUM), diff("tests/test_tax.py", None, TAX)],
        [diff("test_new.py", None, SHOP)],
        [
            diff(
                "tests/conftest.py",
                None,
                "import pytest\n\n@pytest.fixture\ndef shop():\n    return 1\n",
            )
        ],
        [diff("pyproject.toml", "dependencies = []\n", "dependencies = ['rich']\n")],
        [diff("pytest.ini", None, "[pytest]\naddopts = -q\n")],
        [diff("Makefile", "test:\n\tpytest\n", "test:\n\tpytest\n\nrun:\n\tpython app.py\n")],
        [diff("src/shop.py", "RATE = 20\n", "RATE = 19\n")],
        [diff("tests/__pycache__/a.pyc", "1", "2")],
    ],
)
def test_ordinary_work_is_not_named(diffs: list[SnapshotFileDiff]) -> None:
    assert not find(*diffs)


def test_an_edit_of_a_test_that_failed_needs_a_reason() -> None:
    edited = diff(NAMED, SHOP, SHOP.replace("19", "20"))
    assert find(edited, failures="FAILED tests/test_shop.py::test_tax") == [
        f"! {NAMED}::test_tax edited"
    ]
    assert find(edited, failures="FAILED tests/test_shop.py::test_sum") == [
        f"{NAMED}::test_tax edited"
    ]


@pytest.mark.parametrize(
    ("command", "is_named"),
    [
        *(
            ("export PYTEST_ADDOPTS='-k \"not tax\"'", True),
            ("export PYTEST_ADDOPTS=--deselect=tests/a.py", True),
        ),
        *(("export PYTEST_ADDOPTS='-q -n 4'", False), ("echo PYTEST_ADDOPTS=-k", False)),
    ],
)
def test_exported_options_that_leave_tests_out_are_named(command: str, *, is_named: bool) -> None:
    assert bool(find_exported_options([command])) is is_named


@pytest.mark.parametrize(
    ("command", "is_moved"),
    [
        *(
            ("git checkout main", True),
            ("cd a && git checkout -q v1.0", True),
            ("git switch main", True),
        ),
        *(("git rebase origin/main", True), ("git pull", True), ("git checkout -b fix", False)),
        *(
            ("git checkout -- tests/test_a.py", False),
            ("git checkout tests", False),
            ("git checkout .", False),
        ),
        *(
            ("git switch -c fix", False),
            ("git rm tests/test_a.py", False),
            ("echo git pull", False),
        ),
    ],
)
def test_another_commit_has_other_tests(command: str, *, is_moved: bool) -> None:
    assert has_moved_commit([command]) is is_moved


def test_files_that_decide_about_checks_are_known() -> None:
    assert all(
        is_check_file(name)
        for name in ("tests/data/a.json", "src/a_test.go", "conftest.py", "a/pytest.ini")
    )
    assert not any(
        is_check_file(name) for name in ("src/shop.py", "node_modules/a/test/a.js", "README.md")
    )


HEREDOC = "cat > tests/test_shop.py <<'EOF'\ndef test_sum():\n    assert add(1, 2) == 3\nEOF"
MOVED = "git checkout -q bare"
TURNS = (
    (HEREDOC, ["tests/test_shop.py::test_tax removed"]),
    ("head -n 2 tests/test_shop.py > x && cp x tests/test_shop.py", ["tests/test_shop.py::test_tax removed"]),
    ("git mv tests/test_shop.py tests/shop_off.py", ["tests/test_shop.py removed"]),
    ("python3 -c \"open('tests/test_shop.py', 'a').write('pytest.skip()')\"", ["tests/test_shop.py::test_tax skipped"]),
    ("sed -i.orig s/19/20/ tests/test_shop.py", ["tests/test_shop.py::test_tax edited"]),
    ("echo \"collect_ignore = ['test_shop.py']\" > tests/conftest.py", ["tests/conftest.py changes which tests run"]),
    ("export PYTEST_ADDOPTS=-knot_tax", ["PYTEST_ADDOPTS changes which tests run"]),
    ("echo 'def test_x(): assert 1' > test_repro.py; rm test_repro.py", []),
    ("rm tests/test_shop.py; git checkout -q tests", []),
    ("printf '\\n\\ndef test_more():\\n    assert 1\\n' >> tests/test_shop.py", []),
    (MOVED, ["tests/test_shop.py removed"]),  # the last one: the work tree stays there
)  # fmt: skip


@pytest.mark.slow
async def test_a_turn_names_how_commands_changed_tests(tmp_path: Path) -> None:
    steps = [
        step
        for command, _ in TURNS
        for step in (make_answer(make_call("bash", command=command)), *_answers(command))
    ]
    async with open_scripted_project(tmp_path, steps) as it:
        (it.work / "tests").mkdir()
        (it.work / NAMED).write_text(SHOP)
        name = "git init -q . && git config user.name a && git config user.email a@b"
        bare = "git checkout -qb bare && git rm -q tests/test_shop.py && git commit -qm b && git checkout -q -"
        await _run(it.work, f"{name} && git add -A && git commit -qm a && {bare}")
        for command, rows in TURNS:
            await _run(it.work, "git reset -q --hard && git clean -qfd")
            before = len(reminders(it))
            answer = await it.prompt(limits=RunLimits(attended=False))
            assert answer.stop is not None
            assert [*answer.stop.test_changes] == rows, command
            assert len(reminders(it)) - before == _is_asked(command), command


def _is_asked(command: str) -> bool:
    return command != MOVED and any("edited" not in row for row in dict(TURNS)[command])


def _answers(command: str) -> list[ScriptedAnswer]:
    """Return the answers after a command: another one where a reminder follows the first."""
    return [DONE, DONE] if _is_asked(command) else [DONE]


async def _run(folder: Path, line: str) -> None:
    process = await asyncio.create_subprocess_shell(line, cwd=folder)
    assert await process.wait() == 0


ONE_LINE = "const test = 1;\ntest('total', () => assert.equal(total([1]), 3));\ntest('b', f);\n"


def test_a_test_of_one_line_is_edited_or_only_moved() -> None:
    weaker = diff("a.test.js", ONE_LINE, ONE_LINE.replace("3)", "4)"))
    assert find(weaker, failures="not ok 1 - total") == ["! a.test.js::total edited"]
    first, total, other = ONE_LINE.splitlines(keepends=True)
    assert find(diff("a.test.js", ONE_LINE, f"{first}{other}{total}")) == []
