"""Turns that end too early, or would never end: calls as text, empty answers, work that is left,
loops.
"""

from pathlib import Path

import pytest

from codeloop.agent.answer.reminders import announces_step
from codeloop.agent.checks.check_problems import find_check_problem
from codeloop.agent.checks.check_runs import CheckRun, list_checks
from codeloop.client.formatting import describe_side_effects
from codeloop.model.testing.script import ScriptedAnswer
from codeloop.schema.api.session_inputs import MessageWithParts, RunLimits
from codeloop.schema.part import REMINDER_KEY, TextPart, ToolPart, ToolStateCompleted, ToolTime
from codeloop.shell.check_commands import is_check
from tests.support.scripted_project import (
    ScriptedProject,
    make_answer,
    make_call,
    open_scripted_project,
)

DONE = ScriptedAnswer(text="Done.")
FAILED = "the last check failed (sh test.sh), whose last error is: ValueError: no number."
FAILS = make_answer(make_call("bash", command="sh test.sh"))


def reason_of(answer: MessageWithParts) -> str:
    return answer.stop.reason if answer.stop else "done"


def reminders(it: ScriptedProject) -> list[str]:
    parts = [
        part for entry in it.view().entries for part in entry.parts if isinstance(part, TextPart)
    ]
    return [
        str((part.metadata or {})[REMINDER_KEY])
        for part in parts
        if REMINDER_KEY in (part.metadata or {})
    ]


@pytest.mark.slow
async def test_a_call_that_came_as_text_is_run_and_leaves_the_text(tmp_path: Path) -> None:
    written = 'I look.\n<tool_call>\n{"name": "bash", "arguments": {"command": "echo seen"}}\n</tool_call>'
    async with open_scripted_project(tmp_path, [ScriptedAnswer(text=written), DONE]) as it:
        await it.prompt()
        (result,) = it.results()
        texts = [
            part.text
            for entry in it.view().entries
            for part in entry.parts
            if isinstance(part, TextPart)
        ]
    assert result.startswith("seen\n")
    assert "the call came as text and was run" in result
    assert texts[-2:] == ["I look.", "Done."]


async def test_a_call_of_no_tool_that_came_as_text_stays_text(tmp_path: Path) -> None:
    written = '<tool_call>\n{"name": "launch", "arguments": {}}\n</tool_call>'
    async with open_scripted_project(tmp_path, [ScriptedAnswer(text=written)]) as it:
        await it.prompt()
        assert not it.calls()


async def test_an_empty_answer_is_asked_for_again_once(tmp_path: Path) -> None:
    async with open_scripted_project(
        tmp_path, [ScriptedAnswer(text=" "), ScriptedAnswer(text=""), DONE]
    ) as it:
        await it.prompt()
        assert len(it.model.requests) == 2
        assert len(reminders(it)) == 1


@pytest.mark.parametrize("is_alone", [True, False])
async def test_where_nobody_is_there_the_model_is_told_once_what_is_left(
    tmp_path: Path, *, is_alone: bool
) -> None:
    todo = make_answer(
        make_call("todowrite", todos=[{"content": "mend the parser", "status": "pending"}])
    )
    async with open_scripted_project(tmp_path, [todo, FAILS, DONE, DONE, DONE]) as it:
        (tmp_path / "work" / "test.sh").write_text("echo 'ValueError: no number'; exit 3\n")
        answer = await it.prompt(limits=RunLimits(attended=not is_alone))
        words = reminders(it)
    assert reason_of(answer) == "done"
    assert len(words) == is_alone
    assert not words or all(part in words[0] for part in ("mend the parser", FAILED))


async def test_a_todo_that_is_open_after_another_reminder_is_told_to_model_and_user(
    tmp_path: Path,
) -> None:
    todo = make_answer(
        make_call("todowrite", todos=[{"content": "mend the parser", "status": "pending"}])
    )
    async with open_scripted_project(tmp_path, [FAILS, DONE, todo, DONE, DONE]) as it:
        (tmp_path / "work" / "test.sh").write_text("echo 'ValueError: no number'; exit 3\n")
        answer = await it.prompt(limits=RunLimits(attended=False))
        words = reminders(it)
    assert ["mend the parser" in each for each in words] == [False, True]
    assert answer.stop is not None
    assert answer.stop.facts is not None
    assert "1 todo is still open." in describe_side_effects(answer.stop.facts)


@pytest.mark.parametrize(
    ("printed", "error"),
    [
        ("E   assert 1 == 2\nFAILED test_a.py::test_b - assert\n=== 1 failed in 0.1s ===", "FAILED test_a.py::test_b"),
        ("  1) adds\n     AssertionError [ERR_A]: 1 == 2\n      at a.js:3:1\n\n  1 failing", "AssertionError [ERR"),
        ("src/a.ts(3,1): error TS2322: no string\n\nFound 1 error.", "src/a.ts(3,1): error TS2322: no string"),
        ("it is broken\nsomewhere", "somewhere"),
    ],
)  # fmt: skip
def test_a_failed_check_names_the_last_line_that_says_what_failed(printed: str, error: str) -> None:
    output = f"{printed}\n\n<shell_metadata>\nexit code 1\n</shell_metadata>"
    state = ToolStateCompleted(
        input={"command": "sh test.sh"},
        output=output,
        title="",
        metadata={"exit": 1},
        time=ToolTime(start=0, end=0),
    )
    part = ToolPart(
        id="prt_1", session_id="ses", message_id="msg", call_id="c", tool="bash", state=state
    )
    (run,) = list_checks([part])
    assert run.error.startswith(error)


@pytest.mark.slow
async def test_the_third_equal_result_is_told_and_the_eighth_ends_the_turn(tmp_path: Path) -> None:
    steps = [make_answer(make_call("bash", command=f"echo {'ab'[n % 2]}")) for n in range(20)]
    async with open_scripted_project(tmp_path, steps) as it:
        answer = await it.prompt()
        results = it.results()
    assert (reason_of(answer), len(results)) == ("loop", 15)
    assert ["same result" in text for text in results[:6]] == [
        False,
        False,
        False,
        False,
        True,
        True,
    ]
    assert "3 times" in results[4]


@pytest.mark.slow
async def test_an_edit_before_them_all_hides_no_loop(tmp_path: Path) -> None:
    edit, again = (
        make_answer(make_call("write", filePath=f"{name}.txt", content="x")) for name in ("a", "b")
    )
    one, two = (
        make_answer(make_call("bash", command=f"echo {word} in 0.$RANDOM s"))
        for word in ("ab", "cd")
    )
    async with open_scripted_project(
        tmp_path, [edit, one, two, one, two, one, again, one, DONE]
    ) as it:
        await it.prompt()
        assert ["same result" in text for text in it.results()] == [
            *[False] * 5,
            True,
            False,
            False,
        ]


@pytest.mark.slow
async def test_a_file_that_swings_between_two_contents_is_told_however_it_is_changed(
    tmp_path: Path,
) -> None:
    there = [
        make_answer(make_call("edit", filePath="a.txt", oldString="one", newString="two")),
        make_answer(make_call("write", filePath="a.txt", content="two\n")),
        make_answer(
            make_call(
                "multiedit", filePath="a.txt", edits=[{"oldString": "one\n", "newString": "two\n"}]
            )
        ),
    ]
    back = make_answer(make_call("edit", filePath="a.txt", oldString="two", newString="one"))
    looks = [make_answer(make_call("bash", command=f"cat a.txt; echo {n}")) for n in range(8)]
    steps = [
        there[0],
        *looks[:3],
        back,
        *looks[3:5],
        there[1],
        looks[5],
        back,
        *looks[6:],
        there[2],
        DONE,
    ]
    async with open_scripted_project(tmp_path, steps) as it:
        (tmp_path / "work" / "a.txt").write_text("one\n")
        await it.prompt()
        results = it.results()
    assert ["This same change of the file was made 3 times" in text for text in results] == [
        *[False] * 12,
        True,
    ]


@pytest.mark.parametrize(
    ("text", "is_announced"),
    [
        ("I will look at the code first.", True),
        ("The parser is wrong. Let me fix it:", True),
        ("Done. Now I\u2019ll run the tests\u2026", True),
        ("First, let me start by reading the files.", True),
        ("It is fixed. Let me know if you want more.", False),
        ("I will not change the rest.", False),
        ("I'll read it. It holds 3 lines.", False),
        ("Users say: let me in!\n\nThat works now", False),
        ("Done.", False),
        ("", False),
    ],
)
def test_an_announced_step_is_known(text: str, *, is_announced: bool) -> None:
    assert announces_step(text) is is_announced


async def test_an_announced_step_is_asked_for_once_where_nobody_is_there(tmp_path: Path) -> None:
    announced = ScriptedAnswer(text="I will look at the code first.")
    async with open_scripted_project(tmp_path, [announced, FAILS, announced, DONE, DONE]) as it:
        (tmp_path / "work" / "test.sh").write_text("exit 3\n")
        await it.prompt(limits=RunLimits(attended=False))
        words = reminders(it)
    assert ["announced" in each for each in words] == [True, False], "what is left is said, too"


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("I found the mistake. Would you like me to fix it?", "announced"),
        (
            '<tool_call>\n{"name": "bash", "arguments": {"command": "ls"}\n</tool_call>\nThen I will know more.',
            "as text",
        ),
        ("Action: bash\nAction Input: ls -la\n", "as text"),
        ("A rebase moves commits. Would you like an example?", ""),
        ("Call it with the arguments that it names.", ""),
    ],
)
async def test_an_offer_or_a_broken_call_is_asked_about_before_anything_was_done(
    tmp_path: Path, text: str, word: str
) -> None:
    async with open_scripted_project(tmp_path, [ScriptedAnswer(text=text), DONE]) as it:
        await it.prompt(limits=RunLimits(attended=False))
        words = reminders(it)
    assert [word in each for each in words] == [True] * bool(word)


@pytest.mark.slow
async def test_an_edit_in_between_is_work_that_goes_on(tmp_path: Path) -> None:
    check = make_answer(make_call("bash", command="true"))
    steps = [
        step
        for n in range(9)
        for step in (make_answer(make_call("write", filePath=f"{n}.txt", content="x")), check)
    ]
    async with open_scripted_project(tmp_path, [*steps, DONE]) as it:
        answer = await it.prompt()
        assert reason_of(answer) == "done"
        assert not any("same result" in text for text in it.results())


@pytest.mark.parametrize(
    "command",
    ["pytest -q", "cd a && .venv/bin/pytest", "npm test", "npm run lint:fix", "go test ./...", "cargo test",
     "make test",
     "python -m unittest", "npx tsc --noEmit", "./gradlew :app:test", "node --test", "sh test.sh", "make -j4 check"],
)  # fmt: skip
def test_a_check_is_known_by_its_command(command: str) -> None:
    assert is_check(command)


@pytest.mark.parametrize(
    "command",
    [
        *(
            "cat pytest.ini",
            "grep -rn pytest .",
            "ls tests",
            "pip install pytest",
            "git log",
            "echo pytest",
            "make",
        ),
        *("python3 /tmp/pytest-of-me/run.py", "./mocha/start", "python jest-report.py"),
    ],
)
def test_what_only_looks_is_no_check(command: str) -> None:
    assert not is_check(command)


@pytest.mark.slow
async def test_the_checks_of_a_turn_say_whether_files_changed_after_them(tmp_path: Path) -> None:
    steps = [FAILS, make_answer(make_call("write", filePath="a.txt", content="x")), FAILS]
    async with open_scripted_project(tmp_path, [*steps, DONE]) as it:
        (tmp_path / "work" / "test.sh").write_text("echo 'test.sh: it is broken'; exit 3\n")
        await it.prompt()
        parts: list[ToolPart] = it.calls()
    checks = list_checks(parts)
    assert [each.after_last_edit for each in checks] == [False, True]
    assert checks[0] == CheckRun(
        command="sh test.sh",
        exit_code=checks[0].exit_code,
        after_last_edit=False,
        failed=True,
        passed=False,
        error=checks[0].error,
    )
    assert "test.sh" in checks[0].error
    assert checks[0].exit_code == 3


@pytest.mark.parametrize(
    ("command", "output", "failed"),
    [
        ("pytest -q | tail -3", "==== 47 failed, 867 passed, 1 warning in 16.09s ====", True),
        ("pytest -q 2>&1 | tail -3", "==== 906 passed, 1 warning in 6.94s ====", False),
        ("pytest -q; git status", "FAILED tests/test_a.py::test_b - assert 1 == 2", True),
        ("npx jest | tail", "Tests:       1 failed, 40 passed, 41 total", True),
        ("npx vitest run | tail", "      Tests  1 failed | 90 passed (91)", True),
        ("go test ./... | tail", "FAIL\texample.com/shop\t0.004s", True),
        ("cargo test | tail", "test result: FAILED. 90 passed; 1 failed", True),
        ("npx tsc --noEmit | head", "src/a.ts(3,1): error TS2304: Cannot find name 'x'.", True),
        ("mypy src | tail -1", "Found 3 errors in 2 files (checked 9 source files)", True),
        ("make test | tail", "make: *** [Makefile:9: test] Error 1", True),
        ("pytest -q", "==== 1 failed in 1s ====", False),
    ],
)
def test_a_check_whose_exit_code_a_pipe_hides_fails_by_what_it_printed(
    command: str, output: str, failed: bool
) -> None:
    assert run_check(command, output).failed is failed


def run_check(command: str, output: str) -> CheckRun:
    state = ToolStateCompleted(
        input={"command": command},
        output=output,
        title="",
        metadata={"exit": 0},
        time=ToolTime(start=1, end=2),
    )
    part = ToolPart(
        id="prt_1",
        session_id="ses_1",
        message_id="msg_1",
        call_id="call_1",
        tool="bash",
        state=state,
    )
    (run,) = list_checks([part])
    return run


@pytest.mark.parametrize(
    ("runner", "failing", "passing"),
    [
        ("pytest, collection", "1 error in 0.20s", "3 passed, 1 skipped in 0.20s"),
        ("pytest, both", "3 passed, 1 error in 0.20s", "0 failed, 3 passed in 0.20s"),
        (
            "pytest, interrupted",
            "!!!! Interrupted: 1 error during collection !!!!",
            "==== 3 passed in 1s ====",
        ),
        (
            "pytest, long",
            "1 failed, 3 passed in 61.03s (0:01:01)",
            "1 passed, 2 warnings in 61.03s (0:01:01)",
        ),
        (
            "pytest, log",
            "KeyError: logged by a test\n1 failed in 1s",
            "KeyError: logged by a test\n1 passed in 0.01s",
        ),
        (
            "pytest, conftest",
            "E   ModuleNotFoundError: No module named 'trustme'",
            "==== 9 passed in 1s ====",
        ),
        ("traceback", "Traceback (most recent call last):\n  File\nKeyError: 1", "9 passed in 1s"),
        ("unittest", "FAILED (errors=1)", "Ran 3 tests in 0.001s\n\nOK (skipped=1)"),
        ("node, TAP", "# pass 9\n# fail 5\n# cancelled 0", "# pass 9\n# fail 0\n# cancelled 0"),
        ("node, TAP line", "ok 2 - a\nnot ok 3 - b", "not ok 3 - b # TODO later\n# fail 0"),
        (
            "node, spec",
            "\u2139 pass 9\n\u2139 fail 5",
            "\u2139 pass 9\n\u2139 fail 0\n\u2139 cancelled 0",
        ),
        ("node, dot", "....XX..\n\nFailed tests:\n", "# fail 0"),
        ("jest", "Tests:       1 failed, 9 passed, 10 total", "Tests:       9 passed, 9 total"),
        ("vitest", " Test Files  1 failed | 3 passed (4)", "      Tests  9 passed (9)"),
        ("mocha", "  3 passing (8ms)\n  1 failing", "  3 passing (8ms)"),
        ("ava", "  1 test failed", "  3 tests passed"),
        ("bun", " 1 pass\n 1 fail", " 2 pass\n 0 fail"),
        ("deno", "FAILED | 1 passed | 1 failed (3ms)", "ok | 2 passed | 0 failed (3ms)"),
        ("rspec", "3 examples, 1 failure", "3 examples, 0 failures"),
        ("jasmine", "1 spec, 1 failure", "1 spec, 0 failures"),
        ("mix", "2 doctests, 3 tests, 1 failure", "2 doctests, 3 tests, 0 failures"),
        (
            "minitest",
            "3 runs, 5 assertions, 0 failures, 1 errors",
            "3 runs, 5 assertions, 0 failures, 0 errors",
        ),
        ("bats", "not ok 1 foo", "3 tests, 0 failures"),
        ("phpunit", "Tests: 3, Assertions: 3, Failures: 1.", "OK (3 tests, 3 assertions)"),
        (
            "ctest",
            "50% tests passed, 1 tests failed out of 2",
            "100% tests passed, 0 tests failed out of 2",
        ),
        ("go test", "--- FAIL: TestA (0.00s)", "ok  \texample.com/shop\t0.004s"),
        ("go build", "./x.go:3:2: undefined: foo", "ok  \texample.com/shop\t(cached)"),
        (
            "cargo",
            "error: could not compile `x` (lib) due to 1 previous error",
            "test result: ok. 9 passed; 0 failed",
        ),
        (
            "dotnet",
            "Failed!  - Failed:     1, Passed:     2",
            "Passed!  - Failed:     0, Passed:     3",
        ),
        ("gradle", "BUILD FAILED in 3s", "BUILD SUCCESSFUL in 3s"),
        ("maven", "[INFO] BUILD FAILURE", "[INFO] BUILD SUCCESS"),
        (
            "mypy",
            "Found 1 error in 1 file (checked 2 source files)",
            "Success: no issues found in 2 source files",
        ),
        ("pyright", "1 error, 0 warnings, 0 informations", "0 errors, 0 warnings, 0 informations"),
        ("ruff", "a.py:1:8: F401 `os` imported but unused", "All checks passed!"),
        (
            "coloured",
            "\x1b[31m1 failed\x1b[0m in 1s",
            "\x1b[32m\x1b[1m3 passed\x1b[0m\x1b[32m in 1s\x1b[0m",
        ),
    ],
)
def test_closing_lines_of_runners_are_known(runner: str, failing: str, passing: str) -> None:
    runs = [run_check("make test | tail", output) for output in (failing, passing)]
    assert [(run.failed, run.passed) for run in runs] == [(True, False), (False, True)], runner


@pytest.mark.parametrize(
    ("command", "passed"),
    [
        *(
            ("pytest | tail", False),
            ("pytest || true", False),
            ("pytest; echo", False),
            ("pytest\ngit status", False),
        ),
        *(
            ("cd a; pytest", True),
            ("git status | head && pytest;", True),
            ("set -o pipefail; pytest | tail", True),
        ),
    ],
)
def test_a_check_without_a_known_line_passed_only_by_its_exit_code(
    command: str, *, passed: bool
) -> None:
    run = run_check(command, "an unknown line")
    assert (run.failed, run.passed) == (False, passed)


async def test_a_check_that_never_passed_is_told_three_times_while_calls_are_made(
    tmp_path: Path,
) -> None:
    hidden = make_answer(make_call("bash", command="sh test.sh | tail"))
    async with open_scripted_project(
        tmp_path, [hidden, DONE, FAILS, DONE, FAILS, DONE, FAILS, DONE, DONE]
    ) as it:
        (tmp_path / "work" / "test.sh").write_text("exit 3\n")
        await it.prompt(limits=RunLimits(attended=False))
        words = reminders(it)
    assert ["its exit code counts" in each for each in words] == [True, False, False]
    assert ["the last check failed" in each for each in words] == [False, True, True]


@pytest.mark.parametrize(("file", "is_valid"), [("a.py", False), ("README.md", True)])
async def test_what_a_command_changed_after_a_check_counts_in_the_result(
    tmp_path: Path, file: str, *, is_valid: bool
) -> None:
    steps = [
        make_answer(make_call("bash", command=command))
        for command in ("sh test.sh", f"echo x > {file}")
    ]
    async with open_scripted_project(tmp_path, [*steps, DONE]) as it:
        (tmp_path / "work" / "test.sh").write_text("exit 0\n")
        await it.prompt(limits=RunLimits(attended=False))
        parts = [part for entry in it.view().entries for part in entry.parts]
        assert not reminders(it)
    checks = list_checks(parts)
    assert [each.after_last_edit for each in checks] == [is_valid]
    assert find_check_problem(checks) == (
        None if is_valid else ("files changed after the last check", "sh test.sh")
    )


async def test_a_line_in_a_changelog_leaves_the_last_check_valid(tmp_path: Path) -> None:
    steps = [FAILS, make_answer(make_call("write", filePath="CHANGELOG.md", content="x"))]
    async with open_scripted_project(tmp_path, [*steps, DONE]) as it:
        await it.prompt()
        parts: list[ToolPart] = it.calls()
    assert [each.after_last_edit for each in list_checks(parts)] == [True]
