"""The checks that a turn has run (tests, linters, types, builds), and whether files changed after them. Pure."""

import re
from collections.abc import Iterable, Sequence

from codeloop.agent.answer.changed_tests import ChangedTests
from codeloop.agent.answer.check_commands import CheckCommand, find_checks, is_check
from codeloop.schema.part import CHECK, Part, PatchPart, ToolPart, ToolStateCompleted
from codeloop.schema.wire import Wire, replace

_EDITS = frozenset({"edit", "multiedit", "write", "apply_patch"})
_PROSE = (".md", ".rst", ".adoc")
"""Suffixes of files that checks ignore: a line in a changelog leaves the last check valid."""
_FAILURE = re.compile(
    # pytest and unittest
    r"^=+ .*\b[1-9]\d* (?:failed|errors?)\b.* =+$|^[1-9]\d* failed\b|^(?:FAILED|ERROR) \S+\.py"
    r"|^(?:\d+ \w+, )*[1-9]\d* errors? in [\d.]+s|\bInterrupted: \d+ error|^ERROR: .*not found|^E {3,}\S"
    r"|^(?:=+ )?no tests ran|^NO TESTS RAN|^FAILED \("
    # jest, vitest, mocha, ava, node (TAP, spec, dot), bun, deno, playwright
    r"|^ *Tests:? +(?:.*\b)?[1-9]\d* failed|^ *Test (?:Suites:|Files) +[1-9]\d* failed"
    r"|^No tests? (?:files )?found\b"
    r"|^ +[1-9]\d* failing\b|^ +[1-9]\d* (?:tests? )?failed$|^ +[1-9]\d* uncaught exceptions?"
    r"|^[#\u2139] (?:fail|cancelled) [1-9]|^\u2716 failing tests:|^Failed tests:|^# Error \["
    r"|^ *not ok\b(?!.*# (?:TODO|SKIP))|^ *[1-9]\d* fail$|^FAILED \|"
    # rspec, jasmine, mix, minitest, bats, phpunit, swift, ctest
    r"|^(?:\d+ \w+, )+[1-9]\d* (?:failures?|errors?)\b|\b[1-9]\d* errors? occurred outside of examples"
    r"|^Tests: \d+, .*(?:Failures|Errors): [1-9]|^(?:FAILURES|ERRORS)!|^[ \t]*Executed \d+ tests?, with [1-9]"
    r"|\b[1-9]\d* tests? failed out of \d"
    # go, cargo, dotnet, gradle, maven, make, npm
    r"|^FAIL(?:\s|$)|^ *--- FAIL|^\S+\.go:\d+:\d+: |^test result: FAILED|^error(?:\[E\d+\])?: "
    r"|^ *Summary .*\b[1-9]\d* failed"
    r"|^Failed! +-|^Test Run Failed|: error [A-Z]+\d+: |\bBUILD FAIL(?:URE|ED)\b|^Build FAILED"
    r"|^ *\[ERROR\] (?:Tests run:|Failed|COMPIL|Found)"
    r"|^make(?:\[\d+\])?: \*\*\* |^npm (?:ERR!|error)|\bELIFECYCLE\b|^error Command failed|^\[!\] "
    # linters and types
    r"|\berror TS\d+:|^Found [1-9]\d* (?:errors?|problems?)\b|^[1-9]\d* errors?,|\b\d+ problems? \([1-9]"
    r"|^\S+:\d+(?::\d+)?: (?:fatal )?error: |^\S+\.py:\d+:\d+: [A-Z]+\d+\b|^[1-9]\d* issues:"
    # it didn't start
    r"|^\S*sh: .*(?:not found|No such file or directory)|^\S*python[\d.]*(?:\.exe)?: No module named ",
    re.MULTILINE,
)
"""A line by which a known program says that something failed, or by which it is known that it didn't start."""
_CRASH = re.compile(r"^(?:\w+\.)*(?:\w+(?:Error|Exception)|Error(?: \[\w+\])?)(?:: |$)", re.MULTILINE)
"""The last line of a traceback. Tests that pass may print one, too."""
_PASS = re.compile(
    r"^(?:=+ )?(?:\d+ \w+, )*[1-9]\d* passed\b.* in [\d.]+s|^OK(?: \(.*\))?$"
    r"|^ *Tests:? .*\b[1-9]\d* passed|^ +[1-9]\d* passing\b|^ +[1-9]\d* tests? passed|^ +[1-9]\d* passed \("
    r"|^[#\u2139] fail 0$|^ *0 fail$|^ok \| [1-9]\d* passed"
    r"|^[1-9]\d* (?:examples?|specs?|tests?|runs|doctests?|properties)\b.*, 0 failures\b"
    r"|^[ \t]*Executed [1-9]\d* tests?, with 0 failures|^100% tests passed"
    r"|^ok\s+\S+\s+(?:[\d.]+s|\(cached\))|^PASS$|^test result: ok\.|^ +Finished .*\Z"
    r"|^ *Summary .*\b[1-9]\d* passed"
    r"|^Passed! +-|^Test Run Successful|^Build succeeded|\bBUILD SUCCESS(?:FUL)?\b"
    r"|^All checks passed!|^Success: no issues found|^0 errors, |^Found 0 errors|^Checked [1-9]\d* files?\b"
    r"|^0 issues\."
    r"|\brated at 10\.00/10|\[OK\] No errors",
    re.MULTILINE,
)
"""A line by which a known program says that all passed."""
_NOT_STARTED = re.compile(
    r"^\S*sh: .*(?:not found|No such file or directory)|^\S*python[\d.]*(?:\.exe)?: No module named |: not found$"
    r"|Missing script:|No rule to make target|could not determine executable|unrecognized (?:arguments|option)"
    r"|No such option|[Uu]nknown (?:option|command)|no such (?:command|subcommand)|does not contain recipe",
    re.MULTILINE,
)
"""A line by which it is known that a check didn't start: the next one is another try at the same."""
_COLOUR = re.compile(r"\x1b\[[\d;]*m")

NOT_SHOWN = "nothing shows that the last check passed"
FAILED_BEFORE = "a check failed and has not passed since"
TESTS_CHANGED = "tests changed since a check failed"
FILES_CHANGED = "files changed after the last check"


class CheckRun(Wire):
    """A check: its command, its exit code (None: it was ended), and whether no file was edited after it.

    A line that ends with another command (`pytest | tail`) exits with 0 whatever the check found: there its own closing
    line counts. Without one that is known, it neither `failed` nor `passed`.

    `started`: false where its output says that the program or the task is not there, or was called wrongly.
    `test_changes`, of the last check where it passed: how tests changed since the first one that failed, a phrase each
    (`tests/test_a.py::test_b removed`).
    """

    command: str
    exit_code: int | None
    after_last_edit: bool
    failed: bool
    passed: bool
    started: bool = True
    test_changes: list[str] = []


def is_own_check(part: ToolPart) -> bool:
    """Return whether a call is a check of a goal that codeloop ran itself."""
    return isinstance(part.state, ToolStateCompleted) and bool(part.state.metadata.get(CHECK))


def list_checks(parts: Iterable[Part]) -> list[CheckRun]:
    """Return the checks among the calls of a turn, oldest first."""
    rows: list[tuple[str, CheckRun]] = []  # each with the message of its step
    changes = ChangedTests()
    for part in parts:
        if isinstance(part, PatchPart) and not all(file.lower().endswith(_PROSE) for file in part.files):
            # A command may have changed them. Within a step it is not known whether that was before the check.
            rows = [row if row[0] == part.message_id else _outdate(row) for row in rows]
        if not isinstance(part, ToolPart) or not isinstance(part.state, ToolStateCompleted):
            continue
        command = str(part.state.input.get("command"))
        if part.tool in _EDITS:
            changes.take_call(part, part.state)
            if not str(part.state.input.get("filePath")).lower().endswith(_PROSE):
                rows = [_outdate(row) for row in rows]
        elif part.tool == "bash" and part.state.input.get("unchanged"):
            continue  # it says nothing about the files as they are
        elif part.tool == "bash" and "id" not in part.state.metadata:
            changes.take_call(part, part.state)
            if is_check(command) or is_own_check(part):
                run = _read_run(command, part.state)
                rows.append((part.message_id, run))
                if run.failed:
                    changes.take_failure(_COLOUR.sub("", part.state.output))
    check_runs = [run for _, run in rows]
    if check_runs and check_runs[-1].passed:
        check_runs[-1] = replace(check_runs[-1], test_changes=changes.list_all())
    return check_runs


def _outdate(row: tuple[str, CheckRun]) -> tuple[str, CheckRun]:
    return row[0], replace(row[1], after_last_edit=False)


def find_failure(check_runs: Sequence[CheckRun]) -> CheckRun | None:
    """Return the newest check that failed, unless a later one that covers it passed; None: there is none.

    A part of it that passes (`pytest tests/test_a.py` after `pytest`) does not hide that the whole failed. Of a line of
    several checks it is not known which one failed: it counts as passed when its tests are.
    """
    failures: list[tuple[CheckRun, list[CheckCommand]]] = []
    for run in check_runs:
        commands = find_checks(run.command) or [CheckCommand(run.command, "all", filters=(run.command,))]
        if run.passed or run.failed:  # what a later run covers is judged by that one
            still = [(earlier, left, _list_uncovered(left, commands)) for earlier, left in failures]
            failures = [(earlier, remaining) for earlier, left, remaining in still if _counts(remaining, left)]
        if run.failed and run.started:
            failures.append((run, commands))
    return failures[-1][0] if failures else None


def _list_uncovered(commands: Sequence[CheckCommand], by: Sequence[CheckCommand]) -> list[CheckCommand]:
    return [each for each in commands if not any(mine.covers(each) for mine in by)]


def _counts(remaining: Sequence[CheckCommand], before: Sequence[CheckCommand]) -> bool:
    return len(remaining) == len(before) or any(each.kind in {"test", "all"} for each in remaining)


def describe_problem(check_runs: Sequence[CheckRun]) -> tuple[str, str] | None:
    """Return why a turn's checks don't show that all is well, as a phrase and a detail; None: they do."""
    if not check_runs:
        return None
    last = check_runs[-1]
    if last.failed:
        return "the last check failed", last.command
    if not last.passed:
        return NOT_SHOWN, last.command
    if not last.after_last_edit:
        return FILES_CHANGED, last.command
    if (failure := find_failure(check_runs)) is not None:
        return FAILED_BEFORE, failure.command
    return (TESTS_CHANGED, "; ".join(last.test_changes)) if last.test_changes else None


def _read_run(command: str, state: ToolStateCompleted) -> CheckRun:
    code = state.metadata.get("exit")
    failed, passed = _judge(command, code, state.output)
    started = not failed or (code not in {126, 127} and not _NOT_STARTED.search(state.output))
    return CheckRun(
        command=command, exit_code=code, after_last_edit=True, failed=failed, passed=passed, started=started
    )


def _judge(command: str, code: object, output: str) -> tuple[bool, bool]:
    """Return whether a check failed, and whether it passed; neither where nothing tells."""
    if code != 0 or not _hides_exit_code(command):
        return code != 0, code == 0
    text = _COLOUR.sub("", output).rstrip()
    has_pass = _PASS.search(text) is not None
    failed = _FAILURE.search(text) is not None or (not has_pass and _CRASH.search(text) is not None)
    return failed, has_pass and not failed


def _hides_exit_code(command: str) -> bool:
    """Return whether a line exits with 0 although a check in it failed."""
    ends = r"\|\||[;\n]" if "pipefail" in command else r"[|;\n]"
    *earlier, _last = re.split(ends, command.rstrip("; \t\n"))
    return any(is_check(each) for each in earlier)
