"""Shortens a program's output for the model: passed tests are counted, repetitions and
advertisements left out. Pure.

`output_buffer.py` uses it. The model must find every failure, so names of failed tests always stay.
"""

from collections.abc import Sequence

from msgspec import Struct

from codeloop.kit.text.patterns import compile_once
from codeloop.kit.text.truncate import cut_line
from codeloop.workspace.process.alike_messages import shorten_alike
from codeloop.workspace.process.failed_tests import shorten_pytest, shorten_vitest

# Fewer consecutive lines are shown, not counted.
_MIN_RUN_LINES = 4
# A shorter repetition would not be longer than the line that replaces it.
_MIN_REPEATED_CHARS = 160
# Shorter outputs stay as they are.
_MIN_OUTPUT_CHARS = 2_000
# The most earlier positions of the same lines that are compared: the time stays
# linear for monotonous output.
_MAX_POSITIONS = 8
# The characters of a repeated block's first line that are shown.
_SHOWN_CHARS = 60


class TestRunner(Struct, frozen=True):
    """A test runner. `marker` matches a line that identifies its output,
    `passed` the lines that report a passed test.

    `are_separate`: these lines stand for themselves;
    if not, the output of a test is between the lines about it.
    """

    marker: str
    passed: str
    are_separate: bool = True


def _make_runner(marker: str, passed: str, *, are_separate: bool = True) -> TestRunner:
    return TestRunner(f"(?m){marker}", rf"(?m)(?:{passed})$", are_separate)


RUNNERS = {
    "pytest": _make_runner(
        r"^=+ (?:test session starts|FAILURES|ERRORS|short test summary info) =+$"
        r"|^=+ .*\b(?:passed|failed|error)\b.* =+$",
        r"\S+(?:::\S.*)? (?:PASSED|SKIPPED|XFAIL)\b.*|\[gw\d+\] \[ *\d+%\] (?:PASSED|SKIPPED) .*"
        r"|(?:\S+\.py )?[.sx]+ +\[ *\d+%\]",
    ),
    "unittest": _make_runner(r"^Ran \d+ tests? in ", r".*\.\.\. (?:ok|skipped\b.*)"),
    "jest": _make_runner(
        r"^Tests: +\d+ (?:failed|passed|skipped|todo)", r"[ \t]+(?:\u2713|\u221a|\u25cb) .*|PASS .*"
    ),
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
        # Node's names come before their results, and a block of details after them;
        # suites have indented plans.
        r" *# Subtest: .*| +1\.\.\d+|( *)ok \d+\b.*(?:\n\1  ---(?:\n\1  (?!\.\.\.$).*)*\n\1  \.\.\.$)?",
        are_separate=False,
    ),
    "node": _make_runner(r"^\u2139 tests \d", r"[ \t]*(?:\u2714|\ufe63) .*"),
    "ctest": _make_runner(
        r"^\d+% tests passed", r"[ \t]*\d+/\d+ Test +#\d+: .* Passed +.*|[ \t]+Start +\d+: .*"
    ),
    "gradle": _make_runner(r"^BUILD (?:SUCCESSFUL|FAILED)", r".* > .* PASSED"),
    "dotnet": _make_runner(r"^(?:Passed|Failed)! +- Failed:", r"[ \t]+Passed .* \[.*\]"),
    "phpunit": _make_runner(r"^(?:OK \(|Tests: \d+, Assertions)", r"[ \t]+\u2714 .*"),
}
"""Test runners that print a line for each passed test.

Of tools that list problems only (tsc, ruff) no line is counted.
"""

_PACKAGE_NOTICES = (
    r"(?m)^(?:npm notice *(?:New \w+ version of npm available!.*|Changelog: .*|To update run: .*)?"
    r"|\d+ packages? (?:is|are) looking for funding| +run `npm fund` for details"
    r"|\[notice\] (?:A new release of pip is available.*|To update, run: .*))(?:\n|\Z)"
)
"""Advertisements of package managers: new versions of themselves, and funding."""
_DEPRECATION_WARNINGS = r"(?m)^(?:npm (?:warn|WARN) deprecated .*(?:\n|\Z)){2,}"
_NODE_FRAME = r"(?m)^ +at (?:.* \()?node:[\w/.-]+:\d+:\d+\)?\n"
"""A line of a stack trace in Node's own code, which no project can change."""
# Of mocha's output: `  1) Suite`.
_NUMBERED_NAME = r" {2,}\d+\) \S"
_FAILED_NAME = (
    r"_{3,} \S.* _{3,}$|(?:FAILED|ERROR) \S+|(?:FAIL|ERROR): \S+ \(|\s*(?:FAIL|\u25cf|\u2715|\u2716|\u2717|\u00d7) \S"
    r"|\s*--- FAIL: |\s*not ok \d|\s*\d+\) \S|---- \S+ stdout ----$|test \S+ \.\.\. FAILED|.* > .* FAILED$"
    r"|\s+Failed \S+ \["
)
"""A line with the name of a failed test, as the known runners print it."""
# Mocha prints a failed test's name after a line for each suite around it;
# at most this many lines after the first.
_MAX_NAME_LINES = 5


def condense_output(text: str) -> tuple[str, bool]:
    """Return the shortened text, and whether a repeated block or a part of a failure was left out.

    Lines of passed tests, advertisements and frames of Node itself do not
    count: nobody looks them up.
    """
    # Plain searches first: most outputs contain none of these words, and the patterns are slow.
    if "\nnpm " in text or "npm fund" in text or text.startswith("npm ") or "[notice] " in text:
        text = compile_once(_DEPRECATION_WARNINGS).sub(
            lambda run: f"npm warn deprecated: {run[0].count(chr(10))} packages\n", text
        )
        text = compile_once(_PACKAGE_NOTICES).sub("", text)
    if len(text) < _MIN_OUTPUT_CHARS:
        return text, False
    if "node:" in text:
        text = compile_once(_NODE_FRAME).sub("", text)
    runner = next(
        (each for each in RUNNERS.values() if compile_once(each.marker).search(text)), None
    )
    lines = _count_passes(text, runner) if runner is not None else text.split("\n")
    shorter = lines
    if runner is RUNNERS["pytest"]:
        shorter = shorten_pytest(lines)
    elif runner is RUNNERS["vitest"]:
        shorter = shorten_vitest(lines)
    whole_lines = _drop_repeats(shorten_alike(shorter))
    lines_left = [*map(cut_line, whole_lines)]
    return "\n".join(lines_left), len(lines_left) < len(lines) or lines_left != whole_lines


def _count_passes(text: str, runner: TestRunner) -> list[str]:
    """Replace each longer run of lines about passed tests by one line.

    Shorter runs are replaced together, by a line after the last one,
    if they have at least four lines in all.
    """
    lines = text.split("\n")
    kept: list[str] = []
    run: list[str] = []
    # The indexes in `kept` of the lines of shorter runs.
    short_runs: list[int] = []
    # The index of the next line, and its offset in the text: a match may take several lines.
    index = offset = 0
    while index <= len(lines):
        passed = compile_once(runner.passed).match(text, offset) if index < len(lines) else None
        if passed is not None:
            line_count = passed[0].count("\n") + 1
            run += lines[index : index + line_count]
        else:
            # The run, if there is one, ends before this line, or at the end of the text.
            if len(run) >= _MIN_RUN_LINES:
                kept.append(f"... {len(run)} lines of what passed or was skipped")
            else:
                short_runs += range(len(kept), len(kept) + len(run))
                kept += run
            run = []
            if index == len(lines):
                break
            line_count = 1
            kept.append(lines[index])
        offset += sum(len(line) + 1 for line in lines[index : index + line_count])
        index += line_count
    return _replace_short_runs(kept, short_runs) if runner.are_separate else kept


def _replace_short_runs(lines: list[str], passed: Sequence[int]) -> list[str]:
    """Replace the lines with the indexes `passed` by one after the last of them,
    if that makes the text shorter.
    """
    note = f"... {len(passed)} lines in between of what passed or was skipped"
    if len(passed) < _MIN_RUN_LINES or sum(len(lines[each]) for each in passed) <= len(note):
        return lines
    last = passed[-1]
    dropped = set(passed)
    shown = [*lines[:last], note, *lines[last + 1 :]]
    dropped.discard(last)
    return [line for index, line in enumerate(shown) if index not in dropped]


def _drop_repeats(lines: Sequence[str]) -> list[str]:
    """Replace each run of four or more lines that occurred before by one line.
    Names of failed tests always stay.
    """
    kept: list[str] = []
    # Each four lines that were kept -> the indexes at which they begin.
    seen: dict[tuple[str, ...], list[int]] = {}
    names = _find_failed_names(lines)
    index = 0
    while index < len(lines):
        window = tuple(lines[index : index + _MIN_RUN_LINES])
        is_full = len(window) == _MIN_RUN_LINES
        positions = seen.get(window, ()) if is_full and index not in names else ()
        length = max((_count_repeated(lines, start, index) for start in positions), default=0)
        # The run ends before the name of a failed test.
        length = next(
            (each - index for each in range(index, index + length) if each in names), length
        )
        repeated = lines[index : index + length]
        if length >= _MIN_RUN_LINES and sum(map(len, repeated)) >= _MIN_REPEATED_CHARS:
            first_text = next((line.strip() for line in repeated if line.strip()), "")
            kept.append(f"... {length} lines as above, from: {first_text[:_SHOWN_CHARS]}")
            index += length
            continue
        if is_full and any(window):
            window_positions = seen.setdefault(window, [])
            if len(window_positions) < _MAX_POSITIONS:
                window_positions.append(index)
        kept.append(lines[index])
        index += 1
    return kept


def _find_failed_names(lines: Sequence[str]) -> set[int]:
    """Return the indexes of the lines with names of failed tests."""
    names: set[int] = set()
    # A name of mocha goes on until a line ends with a colon.
    for index, line in enumerate(lines):
        if not compile_once(_FAILED_NAME).match(line):
            continue
        names.add(index)
        if compile_once(_NUMBERED_NAME).match(line) and not line.endswith(":"):
            below = range(index + 1, min(index + 1 + _MAX_NAME_LINES, len(lines)))
            end = next((each for each in below if lines[each].endswith(":")), index)
            names.update(range(index + 1, end + 1))
    return names


def _count_repeated(lines: Sequence[str], first: int, second: int) -> int:
    """Return the number of lines from `second` on that equal those from `first` on,
    which end before `second`.
    """
    length = 0
    while (
        second + length < len(lines)
        and first + length < second
        and lines[first + length] == lines[second + length]
    ):
        length += 1
    return length
