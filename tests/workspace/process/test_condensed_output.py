"""What is dropped of a long output: lines that passed, and runs that stand above."""

import pytest

from codeloop.workspace.process.condensed_output import condense_output

FAILURE = "".join(f"    at step {n} (src/deep/folder/module-{n}.js:{n}:7)\n" for n in range(12))
NAME = "  \u25cf sum \u203a adds"
SUM = f"{NAME}\n\n    Expected: 3\n    Received: 4\n\n{FAILURE}\n"
JEST = (
    "FAIL test/sum.test.js\n"
    + "".join(f"  \u2713 adds {n} and {n} (2 ms)\n" for n in range(40))
    + f"{SUM}\nSummary of all failing tests\nFAIL test/sum.test.js\n{SUM}\n"
    + "Tests:       1 failed, 40 passed, 41 total\n"
)


def test_a_failure_is_shown_once_and_what_passed_is_counted() -> None:
    text, has_gaps = condense_output(JEST)
    assert has_gaps
    assert len(text) < len(JEST) / 2
    assert text.split("\n")[:3] == [
        "FAIL test/sum.test.js",
        "... 40 lines of what passed or was skipped",
        "  \u25cf sum \u203a adds",
    ]
    assert text.count("module-3.js") == 1
    assert f"FAIL test/sum.test.js\n{NAME}\n... 18 lines as above, from: Expected: 3\n" in text
    assert text.endswith("Tests:       1 failed, 40 passed, 41 total\n")


def test_stack_frames_in_nodes_own_code_are_left_out() -> None:
    own = "      at WebSocket.close (lib/websocket.js:12:7)\n      at Test.<anonymous> (test/a.test.js:4:3)\n"
    node = (
        "      at emitErrorNT (node:internal/streams/destroy:169:8)\n"
        "      at process.processTicksAndRejections (node:internal/process/task_queues:82:21)\n"
        "      at node:events:524:28\n"
    )
    failures = "".join(
        f"  {n}) closes {n}\n\n      Error: code {n}\n{own}{node}\n" for n in range(30)
    )
    text, _ = condense_output(f"{failures}  12 passing (31ms)\n  30 failing\n")
    assert "node:" not in text
    assert text.count("lib/websocket.js:12:7") == 30
    said = "reads node:fs at node:events:524:28 here\n" * 60
    assert "node:events:524:28" in condense_output(said)[0]


def test_rows_of_passed_tests_between_failed_ones_are_counted_once() -> None:
    names = [f"adds {n} and {n} and gives twice as much" for n in range(40)]
    rows = [
        f"    {n // 3}) {name}" if n % 3 == 2 else f"    \u2714 {name}"
        for n, name in enumerate(names)
    ]
    stack = "".join(f"      at step {n} (test/a.js:{n}:7)\n" for n in range(40))
    printed = "\n".join(["", "  sums", *rows, "", "  27 passing (31ms)", "  13 failing", "", stack])
    text, has_gaps = condense_output(printed)
    failed = [row for n, row in enumerate(rows) if n % 3 == 2]
    note = "... 27 lines in between of what passed or was skipped"
    assert text.split("\n")[2:19] == [*failed, note, "", "  27 passing (31ms)", "  13 failing"]
    assert not has_gaps


def test_what_a_test_of_go_prints_stays_below_its_name() -> None:
    tests = "".join(
        f"=== RUN   Test{n}\n    a_test.go:{n}: {'x' * 60}\n--- PASS: Test{n} (0.00s)\n"
        for n in range(20)
    )
    printed = f"{tests}FAIL\texample.com/shop\t0.004s\n"
    assert condense_output(printed) == (printed, False)


def test_the_names_of_failed_tests_are_no_part_of_what_is_left_out_as_said_above() -> None:
    names = [f"  {n}) Cart\n       totals\n         adds {n}:\n" for n in range(1, 6)]
    failures = "".join(f"{name}\n      AssertionError: 1 == 2\n{FAILURE}\n" for name in names)
    text, has_gaps = condense_output(
        f"  0 passing (3ms)\n  5 failing\n\n{failures}and once more\n{failures}"
    )
    assert has_gaps
    assert [text.count(name) for name in names] == [2] * 5
    assert text.count("module-3.js") == 1


RUNS = {
    "pytest": (
        "tests/a.py::test_{n}[x y] PASSED  [ 1%]",
        "=========== 1 failed, 90 passed in 2.1s ===========",
    ),
    "pytest progress": ("." * 67 + " [ 1%]", "=========== 1 failed, 90 passed in 2.1s ==========="),
    "xdist": ("[gw1] [ 40%] PASSED tests/a.py::test_{n}", "==== 1 failed, 90 passed in 2.1s ===="),
    "unittest": ("test_{n} (tests.test_a.Case.test_{n}) ... ok", "Ran 91 tests in 0.2s"),
    "vitest": (
        " \u2713 src/part-{n}.test.ts (3 tests) 4ms",
        "      Tests  1 failed | 90 passed (91)",
    ),
    "mocha": ("    \u2714 parses the number {n}", "  90 passing (31ms)"),
    "go test": ("--- PASS: TestPart{n} (0.00s)", "FAIL\texample.com/shop\t0.004s"),
    "cargo test": (
        "test parser::tests::part_{n} ... ok",
        "test result: FAILED. 90 passed; 1 failed; 0 ignored",
    ),
    "tap": ("ok {n} - parses the number", "# pass 90"),
    "node": ("\u2714 parses the number {n} (0.05ms)", "\u2139 tests 181"),
    "phpunit": (" \u2714 Parses the number {n}", "Tests: 91, Assertions: 200, Failures: 1."),
}


@pytest.mark.parametrize("name", RUNS)
def test_each_known_runner_gives_failures_and_counts_passes(name: str) -> None:
    passed, end = RUNS[name]
    before, after = (
        [passed.format(n=n) for n in numbers] for numbers in (range(100), range(100, 180))
    )
    text, has_gaps = condense_output(
        "\n".join([*before, "FAILED the one that matters", *after, end])
    )
    assert not has_gaps, "nobody needs the file for what passed"
    assert text.split("\n") == [
        "... 100 lines of what passed or was skipped",
        "FAILED the one that matters",
        "... 80 lines of what passed or was skipped",
        end,
    ]


NODE_PASSES = "".join(
    f"# Subtest: adds {n}\nok {n} - adds {n}\n  ---\n  duration_ms: 0.08{n}\n  ...\n"
    for n in range(1, 33)
)
NODE_NESTED = "".join(
    f"    # Subtest: does {n}\n    ok {n} - does {n}\n"
    f"      ---\n      duration_ms: 0.0{n}\n      type: 'test'\n      ...\n"
    for n in range(1, 7)
)
NODE_FAILED = """\
not ok 14 - bad
  ---
  duration_ms: 2.354527
  location: '/app/a.test.js:4:1'
  failureType: 'testCodeFailure'
  error: |-
    Expected values to be loosely deep-equal:

    {
      a: 1
    }
  code: 'ERR_ASSERTION'
  stack: |-
    TestContext.<anonymous> (/app/a.test.js:4:50)
  ...
"""
NODE_SUITE = "ok 15 - suite\n  ---\n  duration_ms: 5.04\n  type: 'suite'\n  ...\n"
NPM_UPDATE = """\
npm notice
npm notice New major version of npm available! 10.8.2 -> 11.6.0
npm notice Changelog: https://github.com/npm/cli/releases/tag/v11.6.0
npm notice To update run: npm install -g npm@11.6.0
npm notice
"""


def test_of_the_tap_that_node_20_prints_failures_stay_whole() -> None:
    passes = f"{NODE_PASSES}# Subtest: bad\n"
    suite = f"# Subtest: suite\n{NODE_NESTED}    1..6\n{NODE_SUITE}"
    printed = f"TAP version 13\n# it prints\n{passes}{NODE_FAILED}{suite}1..15\n# tests 20\n# pass 19\n{NPM_UPDATE}"
    text, has_gaps = condense_output(printed)
    assert not has_gaps
    counts = [
        f"... {part.count(chr(10))} lines of what passed or was skipped\n"
        for part in (passes, suite)
    ]
    assert text == (
        f"TAP version 13\n# it prints\n{counts[0]}{NODE_FAILED}{counts[1]}1..15\n# tests 20\n# pass 19\n"
    )


def test_what_npm_would_publish_is_shown() -> None:
    text = "".join(f"npm notice {n}.2kB dist/part-{n}.js\n" for n in range(100))
    assert condense_output(text) == (text, False)


def test_what_npm_and_pip_print_about_themselves_is_left_out_of_a_short_output_too() -> None:
    deprecated = "".join(f"npm warn deprecated part-{n}@1.0.{n}: use another\n" for n in range(7))
    fund = "12 packages are looking for funding\n  run `npm fund` for details\n"
    text, has_gaps = condense_output(
        f"{deprecated}\nadded 300 packages in 4s\n\n{fund}{NPM_UPDATE}"
    )
    assert text == "npm warn deprecated: 7 packages\n\nadded 300 packages in 4s\n\n"
    assert not has_gaps
    pip = "Installed x\n\n[notice] A new release of pip is available: 1 -> 2\n[notice] To update, run: pip install x\n"
    assert condense_output(pip)[0] == "Installed x\n\n"
    one = "npm warn deprecated part@1: use another\nnpm error code E404\n"
    assert condense_output(one)[0] == one


FAILED = """\
___________________ test_adds[{n}] ____________________

n = {n}

    def test_adds(n):
>       assert add(n) == n

tests/test_sum.py:7:
_ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _

    def add(n):
>       raise KeyError(n)
E       KeyError: {n}

src/sum.py:3: KeyError
"""


def test_of_alike_failures_at_one_place_headings_and_messages_remain() -> None:
    start = "=========== FAILURES ===========\n"
    other = FAILED.format(n="other").replace("src/sum.py:3", "src/other.py:9")
    end = "=========== 21 failed in 2.1s ==========="
    text, has_gaps = condense_output(
        start + "".join(FAILED.format(n=n) for n in range(20)) + other + end
    )
    assert has_gaps, "the whole is in a file"
    assert text.count("src/sum.py:3: KeyError") == 2
    assert [f"E       KeyError: {n}\n" in text for n in range(20)] == [True] * 20
    assert "___ test_adds[19] ___\nE       KeyError: 19\n" in text
    assert "src/other.py:9: KeyError" in text
    assert text.endswith("KeyError\n=== 21 failed in 2.1s ===")


@pytest.mark.parametrize(
    "text",
    [
        "\n".join(f"row {n}" for n in range(1000)),
        "\n".join(f"test part_{n} ... ok" for n in range(200)),  # no runner says so
        "\n".join(f"  {{\n    a: 1\n  }},\n  // {n}" for n in range(300)),
        "\n" * 3000,
        "same\n" * 3,
        "",
    ],
    ids=["rows", "no runner", "short repeats", "blank", "short", "empty"],
)
def test_other_output_stays_as_it_is(text: str) -> None:
    assert condense_output(text) == (text, False)


SETUP = "".join(f"        part_{n} = prepare(items, {n})\n" for n in range(30))
LONG_TEST = f"""\
_________________________________ test_total _________________________________

items = [1, 2, 3]

    @pytest.mark.parametrize(
        "items",
        [[1, 2, 3]],
    )
    def test_total(
        items,
    ):
        '''What the test is about.

        At length.
        '''
{SETUP}>       assert compute(items) == [1, 2]
E       assert [1, 3] == [1, 2]
E         At index 1 diff: 3 != 2

tests/test_sum.py:7: AssertionError
"""
PYTEST = f"""\
============================= test session starts ==============================
platform linux -- Python 3.11.7, pytest-9.0.2, pluggy-1.6.0
rootdir: /home/me/shop
configfile: pyproject.toml
plugins: asyncio-1.3.0, xdist-3.8.0
bringing up nodes...

.F...                                                                    [100%]
=================================== FAILURES ===================================
{LONG_TEST}=========================== short test summary info ============================
FAILED tests/test_sum.py::test_total - assert [1, 3] == [1, 2]
========================= 1 failed, 4 passed in 0.52s ==========================
"""


def test_a_failure_of_pytest_keeps_what_was_asserted_and_where_without_the_set_up() -> None:
    text, has_gaps = condense_output(PYTEST)
    assert has_gaps
    assert text.split("\n") == [
        "=== test session starts ===",
        *(
            "rootdir: /home/me/shop",
            "configfile: pyproject.toml",
            "",
            "=== FAILURES ===",
            "___ test_total ___",
            "",
        ),
        *(
            "items = [1, 2, 3]",
            "",
            "    def test_total(",
            "        items,",
            "    ):",
            "        ...",
        ),
        *(f"        part_{n} = prepare(items, {n})" for n in range(24, 30)),
        *(">       assert compute(items) == [1, 2]", "E       assert [1, 3] == [1, 2]"),
        *("E         At index 1 diff: 3 != 2", "", "tests/test_sum.py:7: AssertionError"),
        *(
            "=== short test summary info ===",
            "FAILED tests/test_sum.py::test_total - assert [1, 3] == [1, 2]",
        ),
        *("=== 1 failed, 4 passed in 0.52s ===", ""),
    ]


def make_vitest_failure(name: str, message: str, line: int) -> str:
    code = "".join(
        f"     {each}|       const part{each} = prepare(items)\n"
        for each in range(line - 2, line + 1)
    )
    after = f"       |            ^\n     {line + 1}|     }})\n     {line + 2}|   }}\n"
    difference = "- Expected\n+ Received\n\n- 2\n+ 1\n"
    place = f" \u276f src/sum.test.ts:{line}:12\n"
    return f" FAIL  src/sum.test.ts > {name}\n{message}\n\n{difference}\n{place}{code}{after}\n"


def test_of_vitests_failures_one_that_differs_stays_and_alike_ones_are_named() -> None:
    rule = "\u23af" * 24
    alike = [
        make_vitest_failure(f"adds {n}", f"AssertionError: expected {n} to be {n + 1}", 20)
        for n in range(20)
    ]
    odd = make_vitest_failure("throws", "TypeError: items is not iterable", 50)
    failures = [
        f"{each}{rule}[{n}/21]\u23af\n\n"
        for n, each in enumerate([*alike[:10], odd, *alike[10:]], 1)
    ]
    rows = "".join(f"     \u00d7 adds {n} 1ms\n" for n in range(20))
    head = f" \u276f src/sum.test.ts (22 tests | 21 failed) 9ms\n{rows}     \u00d7 throws 2ms\n     \u2713 passes 0ms\n"
    end = "\n Test Files  1 failed (1)\n      Tests  21 failed | 1 passed (22)\n"
    printed = f"{head}\n{rule} Failed Tests 21 {rule}\n\n{''.join(failures)}{end}"
    text, has_gaps = condense_output(printed)
    assert has_gaps
    assert len(text) < len(printed) / 2.5
    assert all(
        text.count(f" > adds {n}\nAssertionError: expected {n} to be {n + 1}\n") == 1
        for n in range(20)
    )
    assert text.count(" \u276f src/sum.test.ts:20:12") == 20, "each place stays"
    assert "TypeError: items is not iterable\n\n- Expected\n+ Received\n\n- 2\n+ 1\n\n" in text
    assert (
        "src/sum.test.ts:50:12\n     49|       const part49 = prepare(items)\n     50|       const part50"
        in text
    )
    assert "48|" not in text
    assert text.endswith(end)
