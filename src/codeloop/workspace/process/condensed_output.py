"""Shortens a program's output for the model: passed tests are counted, repeated blocks are left out. Pure.

`output_buffer.py` uses it. The model must find every failure, so names of failed tests always stay.
"""

import re
from collections.abc import Sequence

from msgspec import Struct

# Fewer consecutive lines are shown, not counted.
_MIN_RUN_LINES = 4
# A shorter repetition would not be longer than the line that replaces it.
_MIN_REPEATED_CHARS = 160
# Shorter outputs stay as they are.
_MIN_OUTPUT_CHARS = 2_000
# The most earlier positions of the same lines that are compared: the time stays linear for monotonous output.
_MAX_POSITIONS = 8
# The characters of a repeated block's first line that are shown.
_SHOWN_CHARS = 60


class TestRunner(Struct, frozen=True):
    """A test runner. `marker` matches a line that identifies its output, `passed` the lines that report a passed test.

    `are_separate`: these lines stand for themselves; if not, the output of a test is between the lines about it.
    """

    marker: re.Pattern[str]
    passed: re.Pattern[str]
    are_separate: bool = True


def _make_runner(marker: str, passed: str, *, are_separate: bool = True) -> TestRunner:
    return TestRunner(re.compile(marker, re.MULTILINE), re.compile(rf"(?:{passed})$", re.MULTILINE), are_separate)


RUNNERS = {
    "pytest": _make_runner(
        r"^=+ test session starts =+$|^=+ .*\b(?:passed|failed|error)\b.* =+$",
        r"\S+(?:::\S.*)? (?:PASSED|SKIPPED|XFAIL)\b.*|\[gw\d+\] \[ *\d+%\] (?:PASSED|SKIPPED) .*"
        r"|(?:\S+\.py )?[.sx]+ +\[ *\d+%\]",
    ),
    "unittest": _make_runner(r"^Ran \d+ tests? in ", r".*\.\.\. (?:ok|skipped\b.*)"),
    "jest": _make_runner(r"^Tests: +\d+ (?:failed|passed|skipped|todo)", r"[ \t]+(?:\u2713|\u221a|\u25cb) .*|PASS .*"),
    "vitest": _make_runner(r"^ +Tests +\d", r"[ \t]*(?:\u2713|\u221a|\u2193) .*"),
    "mocha": _make_runner(r"^ +\d+ passing\b", r"[ \t]+(?:\u2713|\u2714|\u221a) .*"),
    "go test": _make_runner(
        r"^(?:ok  |FAIL)\t\S+",
        r"=== (?:RUN|PAUSE|CONT|NAME) .*|[ \t]*--- (?:PASS|SKIP): .*|ok  \t.*|\?   \t.*",
        are_separate=False,
    ),
    "cargo test": _make_runner(r"^test result: ", r"test .* \.\.\. (?:ok|ignored.*)"),
    "tap": _make_runner(
        r"^# (?:pass|tests) +\d",
        # Node's names come before their results, and a block of details after them; suites have indented plans.
        r" *# Subtest: .*| +1\.\.\d+|( *)ok \d+\b.*(?:\n\1  ---(?:\n\1  (?!\.\.\.$).*)*\n\1  \.\.\.$)?",
        are_separate=False,
    ),
    "node": _make_runner(r"^\u2139 tests \d", r"[ \t]*(?:\u2714|\ufe63) .*"),
    "ctest": _make_runner(r"^\d+% tests passed", r"[ \t]*\d+/\d+ Test +#\d+: .* Passed +.*|[ \t]+Start +\d+: .*"),
    "gradle": _make_runner(r"^BUILD (?:SUCCESSFUL|FAILED)", r".* > .* PASSED"),
    "dotnet": _make_runner(r"^(?:Passed|Failed)! +- Failed:", r"[ \t]+Passed .* \[.*\]"),
    "phpunit": _make_runner(r"^(?:OK \(|Tests: \d+, Assertions)", r"[ \t]+\u2714 .*"),
}
"""Test runners that print a line for each passed test.

Output of tools that list problems only (tsc, ruff) stays whole.
"""

_PACKAGE_NOTICES = re.compile(
    r"^(?:npm notice *(?:New \w+ version of npm available!.*|Changelog: .*|To update run: .*)?"
    r"|\d+ packages? (?:is|are) looking for funding| +run `npm fund` for details"
    r"|\[notice\] (?:A new release of pip is available.*|To update, run: .*))(?:\n|\Z)",
    re.MULTILINE,
)
"""Advertisements of package managers: new versions of themselves, and funding."""
_DEPRECATION_WARNINGS = re.compile(r"^(?:npm (?:warn|WARN) deprecated .*(?:\n|\Z)){2,}", re.MULTILINE)
_NODE_FRAME = re.compile(r"^ +at (?:.* \()?node:[\w/.-]+:\d+:\d+\)?\n", re.MULTILINE)
"""A line of a stack trace in Node's own code, which no project can change."""
_FAILURE_HEADING = re.compile(r"_{2,} .+ _{2,}$")
_SECTION_RULE = re.compile(r"=+ .+ =+$")
_LOCATION = re.compile(r"\S+:\d+: \w+")
_NUMBERED_NAME = re.compile(r" {2,}\d+\) \S")
_FAILED_NAME = re.compile(
    r"_{3,} \S.* _{3,}$|(?:FAILED|ERROR) \S+|(?:FAIL|ERROR): \S+ \(|\s*(?:FAIL|\u25cf|\u2715|\u2716|\u2717|\u00d7) \S"
    r"|\s*--- FAIL: |\s*not ok \d|\s*\d+\) \S|---- \S+ stdout ----$|test \S+ \.\.\. FAILED|.* > .* FAILED$"
    r"|\s+Failed \S+ \["
)
"""A line with the name of a failed test, as the known runners print it."""
# Mocha prints a failed test's name after a line for each suite around it; at most this many lines after the first.
_MAX_NAME_LINES = 5
# The number of pytest's failures at one location that are shown whole.
_MAX_WHOLE_FAILURES = 5
# The lines of the message of each further failure there.
_MESSAGE_LINES = 6


def condense_output(text: str) -> tuple[str, bool]:
    """Return the text without lines of passed tests and without repeated blocks, and whether a block was left out."""
    # Plain searches first: most outputs contain none of these words, and the patterns are slow.
    if "\nnpm " in text or "npm fund" in text or text.startswith("npm ") or "[notice] " in text:
        text = _DEPRECATION_WARNINGS.sub(lambda run: f"npm warn deprecated: {run[0].count(chr(10))} packages\n", text)
        text = _PACKAGE_NOTICES.sub("", text)
    if len(text) < _MIN_OUTPUT_CHARS:
        return text, False
    if "node:" in text:
        text = _NODE_FRAME.sub("", text)
    runner = next((each for each in RUNNERS.values() if each.marker.search(text)), None)
    counted = _count_passes(text, runner) if runner is not None else text.split("\n")
    shorter = _shorten_alike(counted) if runner is RUNNERS["pytest"] else counted
    lines_left = _drop_repeats(shorter)
    return "\n".join(lines_left), len(lines_left) < len(counted)


def _shorten_alike(lines: Sequence[str]) -> list[str]:
    """Shorten pytest's failures at the same location to heading and message, after the first five."""
    kept: list[str] = []
    section: list[str] = []
    counts = dict[str, int]()
    for line in (*lines, "= end ="):
        if not _FAILURE_HEADING.match(line) and not _SECTION_RULE.match(line):
            section.append(line)
            continue
        location = next((each for each in reversed(section) if _LOCATION.match(each)), "")
        counts[location] = counts.get(location, 0) + 1
        if location and counts[location] > _MAX_WHOLE_FAILURES and _FAILURE_HEADING.match(section[0]):
            message = [each for each in section if each.startswith("E ")]
            section = [section[0], *message[:_MESSAGE_LINES], *(["E   ..."] if len(message) > _MESSAGE_LINES else [])]
        kept += section
        section = [line]
    return kept


def _count_passes(text: str, runner: TestRunner) -> list[str]:
    """Replace each longer run of lines about passed tests by one line.

    Shorter runs are replaced together, by a line after the last one, if they have at least four lines in all.
    """
    lines = text.split("\n")
    kept: list[str] = []
    run: list[str] = []
    # The indexes in `kept` of the lines of shorter runs.
    short: list[int] = []
    at = start = 0
    while at <= len(lines):
        found = runner.passed.match(text, start) if at < len(lines) else None
        if found is None and len(run) >= _MIN_RUN_LINES:
            kept.append(f"... {len(run)} lines of what passed or was skipped")
        elif found is None:
            short += range(len(kept), len(kept) + len(run))
            kept += run
        if found is None:
            run = []
        if at == len(lines):
            break
        count = found[0].count("\n") + 1 if found is not None else 1
        (kept if found is None else run).extend(lines[at : at + count])
        start += sum(len(line) + 1 for line in lines[at : at + count])
        at += count
    note = f"... {len(short)} lines in between of what passed or was skipped"
    if not runner.are_separate or len(short) < _MIN_RUN_LINES or sum(len(kept[each]) for each in short) <= len(note):
        return kept
    rows = {**dict.fromkeys(short, ""), short[-1]: note}
    return [row for index, line in enumerate(kept) if (row := rows.get(index, line)) or index not in rows]


def _drop_repeats(lines: Sequence[str]) -> list[str]:
    """Replace each run of four or more lines that occurred before by one line. Names of failed tests always stay."""
    kept: list[str] = []
    seen: dict[tuple[str, ...], list[int]] = {}
    names = _find_names(lines)
    at = 0
    while at < len(lines):
        window = tuple(lines[at : at + _MIN_RUN_LINES])
        positions = seen.get(window, ()) if len(window) == _MIN_RUN_LINES and at not in names else ()
        length = max((_count_repeated(lines, start, at) for start in positions), default=0)
        length = next((each - at for each in range(at, at + length) if each in names), length)
        if length >= _MIN_RUN_LINES and sum(map(len, lines[at : at + length])) >= _MIN_REPEATED_CHARS:
            first = next((line.strip() for line in lines[at : at + length] if line.strip()), "")
            kept.append(f"... {length} lines as above, from: {first[:_SHOWN_CHARS]}")
            at += length
            continue
        if len(window) == _MIN_RUN_LINES and any(window):
            where = seen.setdefault(window, [])
            where += [at] if len(where) < _MAX_POSITIONS else []
        kept.append(lines[at])
        at += 1
    return kept


def _find_names(lines: Sequence[str]) -> set[int]:
    """Return the indexes of the lines with names of failed tests."""
    names: set[int] = set()
    # A name of mocha goes on until a line ends with a colon.
    for index, line in enumerate(lines):
        if not _FAILED_NAME.match(line):
            continue
        names.add(index)
        if _NUMBERED_NAME.match(line) and not line.endswith(":"):
            below = range(index + 1, min(index + 1 + _MAX_NAME_LINES, len(lines)))
            end = next((each for each in below if lines[each].endswith(":")), index)
            names.update(range(index + 1, end + 1))
    return names


def _count_repeated(lines: Sequence[str], start: int, at: int) -> int:
    """Return the number of lines from `at` on that equal those from `start` on, which end before `at`."""
    length = 0
    while at + length < len(lines) and start + length < at and lines[start + length] == lines[at + length]:
        length += 1
    return length
