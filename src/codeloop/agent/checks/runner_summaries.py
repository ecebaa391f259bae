"""Reads the numbers of tests from the summaries that test runners print,
and compares those of two runs. Pure.
"""

import re

from msgspec import Struct

# === 3 passed, 1 failed in 0.12s ===
_PYTEST = r"(?m)^=*\s*(\d+ \w+(?:, \d+ \w+)*)\s.*\bin \d[\d.:]*\s?(?:s\b|ms\b|\()"
_COUNT_AND_WORD = r"(\d+) (\w+)"
# Ran 3 tests in 0.001s
_UNITTEST = r"(?m)^Ran (\d+) tests? in"
# OK (skipped=1)
_UNITTEST_SKIPPED = r"(?m)^(?:OK|FAILED) \(.*?skipped=(\d+)"
# Tests:       1 failed, 3 passed, 4 total (vitest: without the colon)
_JEST = r"(?m)^\s*Tests:?\s+(.*\d+ (?:passed|failed|skipped|todo|total).*)$"
# test result: ok. 3 passed; 0 failed; 1 ignored; ...
_CARGO = r"(?m)^test result: \w+\. (\d+) passed; (\d+) failed; (\d+) ignored"
# ok   example.com/package 0.012s
_GO = r"(?m)^(?:ok|FAIL)\s+\S+\s+(?:\(cached\)|[\d.]+s)(.*)$"
_GO_SKIPPED = r"(?m)^\s*--- SKIP:"
# The number of all tests, and of those among them that were left out. The last line of a program
# sums up the others.
_TOTALS = (
    # 3 examples, 1 failure, 1 pending (rspec, mix, minitest)
    (
        r"(?m)^(?:\d+ (?:doctests?|propert\w+), )*(\d+) (?:examples?|tests?|runs"
        r"|specs?), .*?\d+ failures?(?:, \d+ errors?)?(?:, (\d+) \w+)?"
    ),
    # OK (3 tests, 5 assertions); Tests: 3, Assertions: 5, Failures: 1. (PHPUnit)
    r"(?m)^(?:OK \(|Tests: )(\d+)(?: tests?)?, (?:Assertions: )?\d+(?:.*Skipped: (\d+))?",
    # Executed 3 tests, with 1 test skipped and 0 failures (XCTest)
    r"(?m)^\s*Executed (\d+) tests?, with (?:(\d+) tests? skipped)?",
    # Tests run: 3, Failures: 1, Errors: 0, Skipped: 0 (Maven); 3 tests completed, 1 failed (Gradle)
    r"\bTests run: (\d+), Failures: \d+, Errors: \d+, Skipped: (\d+)",
    r"(?m)^(\d+) tests? completed, \d+ failed(?:, (\d+) skipped)?",
    # GoogleTest, prove, ctest, Swift Testing, dotnet
    r"\[=+\] Running (\d+) tests? from",
    r"(?m)^Files=\d+, Tests=(\d+)",
    r"tests failed out of (\d+)",
    r"\bTest run with (\d+) tests?\b",
    r"\bSkipped: +\d+, Total: +(\d+)",
)
# # pass 3 (node --test; its spec reporter prints an info sign)
_TAP = r"(?m)^[#\u2139] (pass|fail|skipped|todo) (\d+)$"
# [ FAIL 0 | WARN 0 | SKIP 1 | PASS 3 ]: testthat
_TESTTHAT = r"\[ FAIL (\d+) \| WARN \d+ \| SKIP (\d+) \| PASS (\d+) \](?!.*\[ FAIL )"
#   3 passing (5ms)
_MOCHA = r"(?m)^\s+(\d+) (passing|failing|pending)\b"
_RAN_WORDS = frozenset(
    (
        "passed",
        "failed",
        "error",
        "errors",
        "xfailed",
        "xpassed",
        "pass",
        "fail",
        "passing",
        "failing",
        "all",
    )
)
_SKIPPED_WORDS = frozenset(("skipped", "deselected", "todo", "pending"))


class TestCounts(Struct, frozen=True):
    """The number of tests that ran (passed or failed), and of those that were skipped."""

    __test__ = False
    ran: int
    skipped: int


def read_test_counts(output: str) -> TestCounts | None:
    """Return the sums of the test runners' summaries in an output; None: there is none."""
    ran = skipped = 0
    counts: list[tuple[int, str]] = []
    for line in (*re.findall(_PYTEST, output), *re.findall(_JEST, output)):
        counts += [(int(number), word) for number, word in re.findall(_COUNT_AND_WORD, line)]
    counts += [(int(number), word) for word, number in re.findall(_TAP, output)]
    counts += [(int(number), word) for number, word in re.findall(_MOCHA, output)]
    for pattern in _TOTALS:
        for match in [*re.finditer(pattern, output)][-1:]:
            left_out = int(match[match.lastindex or 1]) if match.lastindex == 2 else 0
            counts += [(int(match[1]) - left_out, "all"), (left_out, "skipped")]
    for failed, ignored, passed in re.findall(_TESTTHAT, output, re.DOTALL)[-1:]:
        counts += [(int(passed) + int(failed), "passed"), (int(ignored), "skipped")]
    for passed, failed, ignored in re.findall(_CARGO, output):
        counts += [(int(passed), "passed"), (int(failed), "failed"), (int(ignored), "skipped")]
    counts += [
        (0 if "no tests to run" in rest else 1, "passed") for rest in re.findall(_GO, output)
    ]
    counts += [(1, "skipped") for _ in re.findall(_GO_SKIPPED, output)]
    counts += [(int(number), "passed") for number in re.findall(_UNITTEST, output)]
    for number in re.findall(_UNITTEST_SKIPPED, output):
        # unittest counts the skipped tests among those that it ran.
        counts += [(int(number), "skipped"), (-int(number), "passed")]
    if "no tests ran" in output:
        counts.append((0, "passed"))
    for number, word in counts:
        ran += number if word in _RAN_WORDS else 0
        skipped += number if word in _SKIPPED_WORDS else 0
    return TestCounts(ran, skipped) if counts else None


def describe_lost_tests(before: TestCounts | None, now: TestCounts | None) -> str:
    """Return why a run that exits with 0 does not count, because fewer tests ran than before;
    "": it counts.

    `before`: of the run before the work began; None: it printed no results, or there was none.
    """
    if now is None:
        return "" if before is None else "it prints no test results any more"
    if now.ran == 0:
        return "it ran no test"
    if before is not None and now.ran < before.ran:
        return f"it ran {_format_test_count(now.ran)}, and {before.ran} before the work began"
    if before is not None and now.skipped > before.skipped:
        return f"it left out {_format_test_count(now.skipped)}, and {before.skipped} before the work began"
    return ""


def _format_test_count(number: int) -> str:
    return "1 test" if number == 1 else f"{number} tests"
