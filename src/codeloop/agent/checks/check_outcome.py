"""Judges a run of a check by its command, exit code and output: did it fail or pass,
and with which error? Pure.
"""

import re
from collections import Counter
from collections.abc import Sequence

from msgspec import Struct

from codeloop.agent.checks.nothing_run import has_run_nothing
from codeloop.agent.checks.runner_summaries import TestCounts, read_test_counts
from codeloop.schema.part import SHELL_NOTES_SEPARATOR
from codeloop.shell.check_commands import hides_exit_code, inverts_check, runs_check
from codeloop.shell.check_scope import CheckCommand
from codeloop.shell.line_steps import split_line

# A line by which a known program says that something failed,
# or by which it is known that it didn't start.
_FAILURE_LINE = (
    r"(?m)^=+ .*\b[1-9]\d* (?:failed|errors?)\b.* =+$|^[1-9]\d* failed\b|^(?:FAILED|ERROR) \S+\.py"
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
    # testthat
    r"|\[ FAIL [1-9]"
    # linters and types
    r"|\berror TS\d+:|^Found [1-9]\d* (?:errors?|problems?)\b|^[1-9]\d* errors?,|\b\d+ problems? \([1-9]"
    r"|^\S+:\d+(?::\d+)?: (?:fatal )?error: |^\S+\.py:\d+:\d+: [A-Z]+\d+\b|^[1-9]\d* issues:"
    # it didn't start
    r"|^\S*sh: .*(?:not found|No such file or directory)|^\S*python[\d.]*(?:\.exe)?: No module named "
)
# A line that says what failed, not only that or how often.
_ERROR_LINE = (
    r"(?m)^E {3,}\S|^(?:FAILED|ERROR|FAIL:|ERROR:) \S|^\s*(?:[\w.]+\.)?\w*(?:Error|Exception)\b(?: \[\w+\])?: \S"
    r"|^error(?:\[E\d+\])?: |\b(?:fatal )?error: |: error |\berror [A-Z]+\d+: |^\S+\.\w+:\d+:\d+: \S"
    r"|^ *--- FAIL: |^ *not ok\b|^\s*[\u2716\u2717\u00d7\u25cf] \S|^npm (?:ERR!|error) \S|\bpanicked at\b"
    r"|^make(?:\[\d+\])?: \*\*\* "
)
# A run broke off here, so that not all tests ran that it has.
_BROKEN_OFF = (
    r"(?m)\bInterrupted: |stopping after \d|errors? during collection|\b[1-9]\d* errors? in [\d.]+s"
    r"|\[(?:setup|build) failed\]|^Bail out!|^error: could not compile|No module named "
)
# The last line of a traceback. Tests that pass may print one, too.
_CRASH_LINE = r"(?m)^(?:\w+\.)*(?:\w+(?:Error|Exception)|Error(?: \[\w+\])?)(?:: |$)"
# A line by which a known program says that all passed.
_SUCCESS_LINE = (
    r"(?m)^(?:=+ )?(?:\d+ \w+, )*[1-9]\d* passed\b.* in [\d.]+s|^OK(?: \(.*\))?$"
    r"|^ *Tests:? .*\b[1-9]\d* passed|^ +[1-9]\d* passing\b|^ +[1-9]\d* tests? passed|^ +[1-9]\d* passed \("
    r"|^Ran [1-9]\d* tests? in |^[#\u2139] fail 0$|^ *0 fail$|^ok \| [1-9]\d* passed"
    r"|^[1-9]\d* (?:examples?|specs?|tests?|runs|doctests?|properties)\b.*, 0 failures\b"
    r"|^[ \t]*Executed [1-9]\d* tests?, with 0 failures|^100% tests passed"
    r"|^ok\s+\S+\s+(?:[\d.]+s|\(cached\))|^PASS$|^test result: ok\.|^ +Finished .*\Z"
    r"|^ *Summary .*\b[1-9]\d* passed"
    r"|^Passed! +-|^Test Run Successful|^Build succeeded|\bBUILD SUCCESS(?:FUL)?\b"
    r"|^All checks passed!|^Success: no issues found|^0 errors, |^Found 0 errors|^Checked [1-9]\d* files?\b"
    r"|^0 issues\.|\[ FAIL 0 \|.* PASS [1-9]"
    r"|\brated at 10\.00/10|\[OK\] No errors"
)
# Characters kept of the line that says what failed.
_MAX_ERROR_CHARS = 200
_COLOUR_ESCAPE = r"\x1b\[[\d;]*m"
# A line in the output of a failed check that may name a test.
_FAILED_TEST_LINE = (
    r"(?m)FAIL|ERROR|Failure|^_{3,} |^\s*(?:\u25cf|\u2715|\u2716|\u2717|\u00d7) "
    r"|\bnot ok\b|^\s+\d+\) |^\d+\) "
)

# A place in a file: `a.py:3`, `a.ts(3,4)`, `--> src/a.rs:3:1`.
_PLACE = r"[\w./@+-]+\.\w+(?::\d+|\(\d+,\d+\))"
_MESSAGE_PATTERNS = (_ERROR_LINE, _FAILED_TEST_LINE, _PLACE, r"^\d+:\d+ +(?:error|warning) ")
# A line that only says how much failed, not what.
_TOTAL_LINE = r"^=+ .* =+$|^Found \d+ |^\d+ (?:errors?|failed|passed)\b|^(?:FAILED|OK) \(|^Tests?:? |\b\d+ problems? \("
# `src/a.py:3:1: E501`, and a file alone on a line above its messages, as eslint prints it.
_NAMED_FILE = (
    r"(?m)([\w./@+-]+\.[A-Za-z]\w*)(?::\d|\(\d+,\d)|^((?:/|\.\.?/)?[\w./@+-]+\.[A-Za-z]\w*)$"
)


class CheckOutcome(Struct, frozen=True):
    """The outcome of a check. It may have neither failed nor passed: then nothing
    shows which of the two it did.

    `started`: false where the program, the task or what it was to check is not there: it ran
    nothing. `error`: the last line of the output that says what failed; empty where it passed.
    `tests`: how many ran; None: it is not known, or the run broke off.
    """

    failed: bool
    passed: bool
    started: bool = True
    error: str = ""
    tests: int | None = None


def judge_outcome(
    command: str, code: int | None, output: str, checks: Sequence[CheckCommand]
) -> CheckOutcome:
    """Judge a run of a command line with these checks. `code`: its exit code;
    None: it was ended, or still runs.
    """
    if code is None:
        return CheckOutcome(failed=False, passed=False)
    text = _remove_colours(output.partition(SHELL_NOTES_SEPARATOR)[0])
    counts = read_test_counts(text)
    failed, passed = _judge_result(command, code, text.rstrip(), counts, checks)
    if not passed and has_run_nothing(checks, code, text, counts):
        return CheckOutcome(failed=False, passed=False, started=False, error=_find_error_line(text))
    tests = (
        counts.ran if counts is not None and (passed or not re.search(_BROKEN_OFF, text)) else None
    )
    return CheckOutcome(failed, passed, error=_find_error_line(text) if failed else "", tests=tests)


def pick_failure_lines(output: str) -> str:
    """Return the lines of a failed check's output that may name the tests that failed."""
    return "\n".join(
        line for line in _remove_colours(output).splitlines() if re.search(_FAILED_TEST_LINE, line)
    )


def count_messages(output: str) -> Counter[str]:
    """Return the messages about failures in an output, without their numbers,
    and how often each occurs.
    """
    text = _remove_colours(output.partition(SHELL_NOTES_SEPARATOR)[0])
    lines = (line.strip() for line in text.splitlines())
    found = (line for line in lines if any(re.search(each, line) for each in _MESSAGE_PATTERNS))
    # With numbers, a line that an edit moved would be another message,
    # and so would a total with one more in it.
    return Counter(
        re.sub(r"\d+(?:\.\d+)?", "#", line) for line in found if not re.search(_TOTAL_LINE, line)
    )


def list_named_files(output: str) -> set[str]:
    """Return the files that a linter's output names."""
    text = _remove_colours(output.partition(SHELL_NOTES_SEPARATOR)[0])
    return {next(filter(None, groups)) for groups in re.findall(_NAMED_FILE, text)}


def _remove_colours(output: str) -> str:
    return re.sub(_COLOUR_ESCAPE, "", output)


def _find_error_line(output: str) -> str:
    """Return the last line that says what failed, else the last one that says that something did,
    else the last.
    """
    text = output.strip().removeprefix("(no output)")
    for pattern in (_ERROR_LINE, _FAILURE_LINE):
        if matches := [*re.finditer(pattern, text)]:
            start = text.rfind("\n", 0, matches[-1].start() + 1) + 1
            return text[start:].partition("\n")[0].strip()[:_MAX_ERROR_CHARS]
    return text.rpartition("\n")[2].strip()[:_MAX_ERROR_CHARS]


def _judge_result(
    command: str, code: int, text: str, counts: TestCounts | None, checks: Sequence[CheckCommand]
) -> tuple[bool, bool]:
    """Return whether a check failed, and whether it passed; neither where nothing shows it."""
    if "!" in command and inverts_check(command):
        return False, False
    if code != 0:
        return True, False
    if not hides_exit_code(command):
        # `cargo build && cargo test` has built, even where there is no test yet.
        runs_only_tests = bool(checks) and all(each.kind == "test" for each in checks)
        is_empty = counts is not None and counts.ran == 0
        return False, not (
            runs_only_tests
            and (is_empty or (counts is None and has_run_nothing(checks, code, text)))
        )
    has_pass_line = re.search(_SUCCESS_LINE, text) is not None
    failed = re.search(_FAILURE_LINE, text) is not None or (
        not has_pass_line and re.search(_CRASH_LINE, text) is not None
    )
    return failed, has_pass_line and not failed and not _may_print_pass(command)


def _may_print_pass(command: str) -> bool:
    """Return whether a line may print that all passed although its checks did not.

    It may print that itself (`pytest; echo "3 passed in 1s"`),
    or filter the failures out (`pytest | grep passed`).
    """
    has_check = False
    previous_operator = ""
    for words, operator in split_line(command):
        is_filter = has_check and previous_operator == "|" and bool(words)
        texts = [word.replace("\\n", "\n") for word in (*words[1:], " ".join(words[1:]))]
        prints_pass = any(re.search(_SUCCESS_LINE, text) for text in texts)
        if runs_check(words):
            has_check = True
        elif prints_pass or (is_filter and not _lets_failures_through(words)):
            return True
        previous_operator = operator
    return False


def _lets_failures_through(words: Sequence[str]) -> bool:
    """Return whether a command after a pipe lets lines about failures through."""
    program = words[0].rpartition("/")[2]
    if program in {"grep", "egrep", "rg"}:
        options = "".join(
            word for word in words[1:] if word.startswith("-") and not word.startswith("--")
        )
        shows_lines = not {"o", "v", "c", "q"} & set(options) and not {
            "--only-matching",
            "--count",
        } & set(words)
        return shows_lines and any(
            re.search("fail|error", word, re.IGNORECASE) for word in words[1:]
        )
    return program in {"tail", "tee", "cat", "less", "more", "ts", "sort", "uniq"}
