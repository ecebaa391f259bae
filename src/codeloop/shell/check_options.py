"""Options and targets that all check programs share, and names of the same check.
Which program checks: `shell`.
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
        *("--test-name-pattern", "--example", "-e"),
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
        *("--timeout", "--durations", "--mode"),
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
    **dict.fromkeys(("py.test",), "pytest"),
    **dict.fromkeys(("cargo t", "cargo nextest run"), "cargo test"),
    **dict.fromkeys(("cargo b", "cargo c", "cargo check"), "cargo build"),
}
"""Commands that are the same check under another name."""
TASK_PROGRAMS = frozenset(("npm test", "tox", "nox", "hatch test", "composer test"))
"""Programs in the table that run whatever the project's settings name, like a task of its own."""
