"""A turn does not look like a success when its tests were changed,
or only a part of what failed passes.
"""

from pathlib import Path

import pytest

from codeloop.agent.checks.admissions import admits_failure, names_test_changes, names_unrun_checks
from codeloop.agent.checks.call_diffs import list_call_diffs
from codeloop.agent.checks.changed_tests import ChangedTest, find_test_changes
from codeloop.agent.checks.check_problems import find_check_problem, find_failure
from codeloop.agent.checks.check_runs import list_checks, read_failures
from codeloop.kit.text.diff import make_unified_diff
from codeloop.model.testing.script import ScriptedAnswer
from codeloop.schema.api.session_inputs import RunLimits
from codeloop.schema.ids import new_id
from codeloop.schema.part import ToolPart, ToolStateCompleted, ToolTime
from codeloop.schema.wire import JSON
from tests.agent.answer.test_early_ends import DONE, reminders
from tests.support.scripted_project import make_answer, make_call, open_scripted_project

BEFORE = """import shop

def test_sum():
    assert shop.add(1, 2) == 3


def test_tax():
    assert shop.tax(100) == 19
"""
FAILED = "FAILED tests/test_shop.py::test_tax - assert 20 == 19\n1 failed, 1 passed in 0.1s"
PASSED = "2 passed in 0.1s"


def bash(command: str, code: int = 0, output: str = "") -> ToolPart:
    return tool("bash", {"command": command}, output, {"exit": code})


def edit(before: str, after: str, file: str = "tests/test_shop.py") -> ToolPart:
    return tool(
        "edit",
        {"filePath": file},
        "",
        {"diff": make_unified_diff(f"/home/me/{file}", before, after).patch},
        title=file,
    )


def tool(name: str, given: JSON, output: str, metadata: JSON, title: str = "") -> ToolPart:
    state = ToolStateCompleted(
        input=given, output=output, title=title, metadata=metadata, time=ToolTime(start=1, end=2)
    )
    return ToolPart(
        id=new_id("prt"),
        session_id="ses_1",
        message_id="msg_1",
        call_id="call_1",
        tool=name,
        state=state,
    )


def changes(*between: ToolPart) -> list[str]:
    """Return how tests changed between a run that failed and one that passed,
    as far as an answer has to say why.
    """
    return [str(change) for change in find_changes(*between) if change.needs_reason]


def find_changes(*between: ToolPart) -> list[ChangedTest]:
    parts = [bash("pytest", 1, FAILED), *between, bash("pytest", 0, PASSED)]
    calls_made = [
        (part, part.state) for part in between if isinstance(part.state, ToolStateCompleted)
    ]
    return find_test_changes(list_call_diffs(calls_made), read_failures(parts))


SKIPS = {
    "import shop\n\ndef": "import pytest\nimport shop\n\n@pytest.mark.skip\ndef",
    "def test_tax():\n": "@pytest.mark.xfail(reason='later')\ndef test_tax():\n",
    "    assert shop.tax": "    pytest.skip('later')\n    assert shop.tax",
}


@pytest.mark.parametrize(("old", "new"), SKIPS.items())
def test_a_test_that_is_skipped_is_named(old: str, new: str) -> None:
    name = "test_sum" if "import shop" in old else "test_tax"
    assert changes(edit(BEFORE, BEFORE.replace(old, new))) == [
        f"tests/test_shop.py::{name} skipped"
    ]


@pytest.mark.parametrize(
    ("file", "before", "after", "row"),
    [
        (
            "a.test.js",
            "it('adds', () => {\n});\n",
            "it.skip('adds', () => {\n});\n",
            "a.test.js::adds skipped",
        ),
        ("a.test.js", "test('adds', f);\n", "xtest('adds', f);\n", "a.test.js::adds skipped"),
        (
            "a_test.go",
            "func TestA(t *T) {\n\tx\n",
            "func TestA(t *T) {\n\tt.Skip()\n\tx\n",
            "a_test.go::TestA skipped",
        ),
        (
            "tests/a.rs",
            "#[test]\nfn test_a() {}\n",
            "#[test]\n#[ignore]\nfn test_a() {}\n",
            "tests/a.rs::test_a skipped",
        ),
        (
            "ATest.java",
            "@Test\npublic void testA() {\n",
            "@Disabled\n@Test\npublic void testA() {\n",
            "ATest.java::testA skipped",
        ),
    ],
)
def test_skips_of_other_languages_are_known(file: str, before: str, after: str, row: str) -> None:
    assert row in changes(edit(before, after, file))


def test_removed_tests_and_edited_ones_that_failed_are_named() -> None:
    without = BEFORE[: BEFORE.index("def test_tax")]
    assert changes(edit(BEFORE, without)) == ["tests/test_shop.py::test_tax removed"]
    assert changes(edit(BEFORE, BEFORE.replace("19", "20"))) == [
        "tests/test_shop.py::test_tax edited"
    ]
    assert changes(bash("rm -f tests/test_shop.py")) == ["tests/test_shop.py removed"]
    assert changes(bash("cd a && git rm -q tests/test_shop.py")) == ["tests/test_shop.py removed"]


def test_a_change_that_is_taken_back_does_not_count() -> None:
    without = BEFORE[: BEFORE.index("def test_tax")]
    assert not changes(edit(BEFORE, without), edit(without, BEFORE))
    for restoring in (
        "checkout -- tests/test_shop.py",
        "restore tests/",
        "checkout -q .",
        "reset --hard HEAD",
    ):
        assert not changes(bash("rm tests/test_shop.py"), bash(f"git {restoring}"))
    for other in (
        "checkout -b fix",
        "checkout -- src/shop.py",
        "reset -q",
        "stash list",
        "restore src",
    ):
        assert changes(bash("rm tests/test_shop.py"), bash(f"git {other}")) == [
            "tests/test_shop.py removed"
        ]


def test_ordinary_work_on_tests_raises_no_alarm() -> None:
    own = edit("", "def test_new():\n    assert 1\n", "tests/test_new.py")
    weaker = edit(
        "def test_new():\n    assert 1\n", "def test_new():\n    assert 2\n", "tests/test_new.py"
    )
    assert not changes(edit(BEFORE, BEFORE + "\n\ndef test_more():\n    assert 1\n"))
    assert not changes(edit(BEFORE, BEFORE.replace("1, 2) == 3", "2, 2) == 4"))), "it did not fail"
    assert not changes(edit(BEFORE, BEFORE.replace("import shop\n", "import shop\nimport os\n")))
    assert not changes(edit(BEFORE, BEFORE.replace("test_sum", "test_add")))
    assert not changes(edit("x = 1\n", "x = 2\n", "src/shop.py"))
    assert not changes(
        bash("rm -rf build tests/__pycache__ /tmp/test_a.py"),
        bash("sed -n 1,5p tests/test_shop.py"),
    )
    assert not changes(own, weaker)
    assert not changes(own, bash("rm tests/test_new.py"))


def test_a_narrower_check_that_passes_does_not_hide_that_the_whole_failed() -> None:
    failed = bash("pytest -q", 1, FAILED)
    checks = list_checks([failed, bash("pytest tests/test_a.py")])
    assert find_check_problem(checks) == ("a check failed and has not passed since", "pytest -q")
    for passed in ("pytest", "python3 -m pytest -x", "make test", "tox"):
        assert (
            find_failure(list_checks([failed, bash("pytest tests/test_a.py"), bash(passed)]))
            is None
        ), passed
    for other in ("pytest -k sum", "ruff check", "pytest --lf", "make lint"):
        assert find_failure(list_checks([failed, bash(other)])) is not None, other


def test_what_did_not_start_and_lines_of_several_checks_raise_no_alarm() -> None:
    for start, output in (
        ("pytest", "python: No module named pytest"),
        ("npm run test", 'npm error Missing script: "test"'),
    ):
        checks = list_checks([bash(start, 1, output), bash(".venv/bin/pytest tests/test_a.py")])
        assert find_failure(checks) is None, start
    assert find_failure(list_checks([bash("make test", 127), bash("pytest -k a")])) is None
    assert find_failure(list_checks([bash("ruff check && pytest", 1), bash("pytest")])) is None
    assert (
        find_failure(list_checks([bash("ruff check && pytest", 1), bash("ruff check")])) is not None
    )


ADMISSIONS = (
    "The check still fails, and I could not find out why.",
    "Not done: the parser can't read nested lists.",
    "I was unable to fix the last test.",
    "2 tests still fail: test_a and test_b.",
    "`pytest` fails with 3 errors because trustme is not installed.",
    "I could not run the tests here.",
    "I didn't run the whole suite again.",
    "tests/test_x.py::test_y does not pass yet.",
    "The fix is not finished.",
    "I stopped here. The build is still broken.",
    "test_parse remains failing.",
    "12 failed, 300 passed; they failed before my change, too.",
    "One test fails on Windows only.",
    "I have not been able to verify it.",
)
UNRUN = (
    "Verified: the narrow tests, ruff.\n- **Not run**: the other tests of tests/test_preconf.py.",
    "The slow tests were not run again, only those that had failed.",
    "Checked with pytest -k times. The rest of the suite has not been rerun.",
    "I only ran the failed tests again.",
)
NOT_UNRUN = (
    "Done.",
    "All tests pass.",
    "Hooks are not run twice any more.",
    "The hook is not run when the file is empty.",
    "Only the tests changed.",
)
DENIALS = (
    "Done.",
    "All tests pass.",
    "I fixed the failing test.",
    "The failing test is fixed.",
    "No tests fail any more.",
    "test_y was failing because of a typo; it passes now.",
    "The tests would fail without this.",
    "Fixed the bug that made test_y fail.",
    "Everything works. 0 failures.",
    "I changed the parser so that it does not fail on empty input.",
    "The function raises when the parse fails.",
    "I did not find other callers.",
    "The tests no longer fail.",
    "If the check fails, the error is shown.",
    "The parser did not handle None; now it does.",
)


@pytest.mark.parametrize(
    ("text", "expected"), [(t, True) for t in UNRUN] + [(t, False) for t in NOT_UNRUN]
)
def test_an_answer_that_names_checks_that_were_not_run_is_known(
    text: str, *, expected: bool
) -> None:
    assert names_unrun_checks(text) is expected


@pytest.mark.parametrize(
    ("text", "expected"), [(t, True) for t in ADMISSIONS] + [(t, False) for t in DENIALS]
)
def test_an_answer_that_admits_a_failure_is_known(text: str, *, expected: bool) -> None:
    assert admits_failure(text) is expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        *(("I removed test_y, which tested the old name.", True), ("I updated the tests.", True)),
        *(("The test was skipped.", True), ("I adapted the assertion in test_y.", True)),
        *(("Done. All tests pass.", False), ("I changed the parser and the tests pass.", False)),
        *(("Fixed the failing tests.", False), ("Removed the cache; tests pass", False)),
    ],
)
def test_an_answer_that_names_what_was_done_to_tests_is_known(text: str, *, expected: bool) -> None:
    assert names_test_changes(text) is expected


async def test_no_reminder_follows_an_answer_that_says_what_fails(tmp_path: Path) -> None:
    honest = ScriptedAnswer(text="The check still fails: I could not find the cause.")
    async with open_scripted_project(
        tmp_path, [make_answer(make_call("bash", command="sh test.sh")), honest, DONE]
    ) as it:
        (tmp_path / "work" / "test.sh").write_text("exit 3\n")
        await it.prompt(limits=RunLimits(attended=False))
        assert not reminders(it)
        assert len(it.model.requests) == 2


@pytest.mark.parametrize(("answer", "number"), [(UNRUN[0], 0), ("All done.", 1)])
async def test_an_answer_that_says_which_checks_were_not_run_is_taken(
    tmp_path: Path, answer: str, number: int
) -> None:
    some = make_answer(
        make_call("bash", command="./pytest"), make_call("bash", command="./pytest -k times")
    )
    async with open_scripted_project(tmp_path, [some, ScriptedAnswer(text=answer), DONE]) as it:
        program = tmp_path / "work" / "pytest"
        program.write_text('#!/bin/sh\ntest "$1" = -k\n')
        program.chmod(0o755)
        await it.prompt(limits=RunLimits(attended=False))
        assert ["has not passed since" in words for words in reminders(it)] == [True] * number


async def test_a_removed_test_is_asked_about_once(tmp_path: Path) -> None:
    run = make_call("bash", command="sh test.sh")
    steps = [
        make_answer(run),
        make_answer(make_call("bash", command="rm test_a.py")),
        make_answer(run),
        DONE,
        DONE,
        DONE,
    ]
    async with open_scripted_project(tmp_path, steps) as it:
        (tmp_path / "work" / "test.sh").write_text("! test -e test_a.py\n")
        (tmp_path / "work" / "test_a.py").touch()
        await it.prompt(limits=RunLimits(attended=False))
        (words,) = reminders(it)
    assert "your answer does not say that tests changed (test_a.py removed)" in words
