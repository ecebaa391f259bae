"""Options and targets that all check programs share, names of the same check,
and the names of tasks that check. Which program checks: `shell`.
"""

from typing import Literal

CheckKind = Literal["test", "lint", "types", "format", "build", "all"]
"""What a check checks; `all`: a task such as `check`, whose content only the project knows."""

INFORMATION_OPTIONS = frozenset(
    (
        "--version",
        "-V",
        "--help",
        "-h",
        "--collect-only",
        "--collectonly",
        "--co",
        "--list",
        "--listTests",
        "--list-tests",
        "--fixtures",
    )
)
"""Options with which a program only prints something about itself or its tests,
and checks nothing.
"""
FILTER_OPTIONS = frozenset(
    (
        *(
            "-k",
            "-m",
            "-t",
            "-g",
            "-e",
            "--grep",
            "-run",
            "--run",
            "--testNamePattern",
            "--filter",
            "--only",
        ),
        *(
            "--select",
            "--deselect",
            "--ignore",
            "--exclude",
            "--test",
            "--example",
            "--package",
            "--tests",
            "-Dtest",
            "--test-filter",
            "--test_filter",
            "--testsuite",
        ),
        *(
            "--testPathPattern",
            "--testPathPatterns",
            "--shard",
            "--test-name-pattern",
            "--env",
            "--example-matches",
        ),
        *("--ignore-glob", "--testPathIgnorePatterns", "--findRelatedTests", "--exclude-task"),
    )
)
"""Options that narrow what is checked by their value, the word after them."""
NAME_FILTERS = frozenset(
    (
        *(
            "-k",
            "-t",
            "-g",
            "--grep",
            "-run",
            "--run",
            "--testNamePattern",
            "--filter",
            "--tests",
            "-Dtest",
            "-R",
        ),
        *(
            "--test-name-pattern",
            "--example",
            "-e",
            "--test-filter",
            "--test_filter",
            "--testsuite",
        ),
    )
)
"""Options of these whose value is a part of the names of tests."""
NARROWING_FLAGS = frozenset(
    ("--lf", "--last-failed", "--changed", "--onlyChanged", "--only-failures", "--lib", "--bins")
)
"""Options without a value that narrow what is checked."""
VALUE_OPTIONS = frozenset(
    (
        *(
            "-n",
            "-c",
            "-o",
            "-W",
            "-p",
            "-r",
            "-j",
            "-C",
            "-f",
            "-R",
            "-D",
            "-S",
            "--tb",
            "--cov",
            "--cov-report",
            "--color",
        ),
        *(
            "--reporter",
            "--config",
            "--rootdir",
            "--jobs",
            "--maxfail",
            "--log-level",
            "--project",
            "--format",
        ),
        *("--timeout", "--durations", "--mode", "--target"),
    )
)
"""Options whose next word is neither a target nor a filter."""
WHOLE_PROJECT_TARGETS = frozenset(
    (
        ".",
        "./...",
        "...",
        "test",
        "tests",
        "spec",
        "specs",
        "t",
        "src",
        "all",
        "//...",
        "--all",
        "--workspace",
    )
)
"""Targets that stand for all of a project: with one of them a check counts as one of everything."""
CANONICAL_NAMES = {
    f"{manager} {word}": "npm test"
    for manager in ("npm", "pnpm", "yarn")
    for word in ("test", "t", "tst")
} | {
    "py.test": "pytest",
    **dict.fromkeys(("biome ci", "biome lint"), "biome check"),
    **dict.fromkeys(("bazelisk test", "buck2 test"), "bazel test"),
    **dict.fromkeys(("cargo t", "cargo nextest run"), "cargo test"),
    **dict.fromkeys(("cargo b", "cargo c", "cargo check"), "cargo build"),
}
"""Commands that are the same check under another name."""
TASK_PROGRAMS = frozenset(("npm test", "tox", "nox", "hatch test", "composer test"))
"""Programs in the table that run whatever the project's settings name, like a task of its own."""
TASK_NAME = (
    r"(?:[\w./+-]+:)??(?:(?P<test>tests?|specs?|unit|e2e|integration)"
    r"|(?P<format>(?:format|fmt|prettier)(?=[:._/-](?:check|format|prettier))|lint(?=[:._/-](?:format|prettier)))"
    r"|(?P<lint>lint|style)"
    r"|(?P<types>types?|typecheck|type-check|typing|mypy|pyright|tsc)|(?P<build>build|compile|package)"
    r"|(?P<all>checks?|verify|validate|ci|qa|preflight|presubmit))(?P<rest>(?:[:._/-][\w:./-]*)?)"
)
"""Matches the name of a task that checks, after an optional prefix: `test`, `unit-tests`,
`web:lint`, `check/all`.
"""
OTHER_TASK_PART = (
    r"(?:^|[:._/-])(?:deps|install|setup|serve|server|watch|data|clean|images?|docs?|fixtures?|update|deploy|release"
    r"|publish|start|stop|dev|env|up|down)(?:$|[:._/-])"
)
"""Parts of names of tasks that only prepare something (`test-deps`) or never end (`test:watch`)."""
WHOLE_PARTS = frozenset(("all", "ci", "fix", "check", "run", "once", "full", "quiet", "verbose"))
"""Ends of names of tasks with which they check as much as without."""
JVM_TASK = (
    r":?(?:[\w.-]+:)*(?:(?P<test>test\w*|\w*Test|integrationTest)|(?P<all>check|verify)"
    r"|(?P<lint>lint\w*|\w+[lL]int\w*|detekt\w*|spotlessCheck|checkstyle\w+)"
    r"|(?P<build>build|assemble|package|install|compile\w*))"
)
"""Matches a task of Gradle or a phase of Maven: `test`, `:app:integrationTest`, `verify`."""
TESTING_BUILDS = frozenset(("build", "package", "install"))
NO_TESTS = r"-DskipTests\b|-Dmaven\.test\.skip\b|(?:-x|--exclude-task)[ =]\S*(?:test|check)"
"""Tasks of Gradle and phases of Maven that test before they build, and what leaves that out."""
SCRIPT_NAME = (
    r"(?i)(?:run[_-]?|all[_-]?)?(?:(?:unit|integration|e2e|smoke)[_-]?)?(?:(?P<test>tests?|specs?)|(?P<lint>lint)"
    r"|(?P<all>checks?|verify|ci))(?:[_-][\w-]+)?(?:\.(?:sh|bash|zsh|py|js|mjs|cjs|ts|rb|pl|php|lua|jl|r|hs))?"
)
"""Matches the name of a script that checks: `test.sh`, `run_tests.py`, `lint`."""
TEST_FILE = (
    r"(?:test_[\w-]+|[\w-]+[_.-](?:test|spec)|runtests|testthat|run|all|index|main)\.\w+|[\w-]+\.t"
)
"""Matches the name of a file that may run tests when it is run itself: `test_a.py`, `a.spec.js`,
`runtests.rb`, `a.t`.
"""
TEST_PROGRAM = r"[\w-]+[_-]tests?"
"""Matches the name of a compiled program that runs tests: `cart_test`."""
TEST_MODULE = r"test_\w+\.(?:py|rb|php|[mc]?[jt]s)"
"""What a runner of tests would take for a file of tests, rather than for one that runs them."""
TEST_FOLDERS = frozenset(("test", "tests", "spec", "specs", "__tests__", "t"))
"""With `t`, the folder of Perl's tests, which those of `file_kinds.py` are without."""
CODE_RUN = (
    r"\b(?P<runner>(?P<test>(?:pytest|unittest)\.main|Pkg\.test|(?:devtools|testthat|tinytest)::\w*test\w*)"
    r"|(?P<all>devtools::check|rcmdcheck::\w+)|(?P<lint>lintr::lint\w*))\((?P<arguments>[^)]*)"
)
"""Matches code that checks: `python -c "import pytest; pytest.main()"`,
`Rscript -e 'devtools::test()'`.
"""
CODE_OPTIONS = frozenset(("-c", "-e", "-E", "--eval"))
CODE_WITHOUT_EXIT = frozenset(
    ("pytest.main", "unittest.main", "devtools::test", "testthat::test_file")
)
"""Code after which the program ends with 0, whatever it found."""
QUOTED_TEXT = r"['\"]([^'\"]+)['\"]"
