"""Runs the tests that a change touches: `make quick`. Further arguments go to pytest.

What has changed: the commits since the branch left `main` (on `main` itself, those that are not
pushed), what is not committed, and new, renamed and deleted files. A changed test file is run
whole; of each other file the tests that reach it, through any number of imports: the one of its
name first, then the nearest. No test starts after `SECONDS`, and what is left is named. A changed
file that no test reaches is an error.
"""

import subprocess
import sys
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

import pytest

from scripts.file_graph import FileGraph
from tests.docs.pages import blocks
from tests.support.quick_run import LEFT

ROOT = Path(__file__).parents[1]
# With the start and the collection, that is less than half a minute on two cores.
SECONDS = 15
MAX_TEST_FILES = 24
OTHER_TARGETS = {
    folder: f"make {folder}" for folder in ("faults", "e2e", "interop", "everyday")
} | {"web": "make web-e2e"}
"""The folders of tests that other targets run, since they take longer or need more."""
SELECTION = "not e2e and not interop and not lsp and not registries"
HOUSE_TESTS = "tests/test_house.py"
STORIES = "tests/docs/test_stories.py"


def run_git(*words: str) -> str:
    """Return the output of git, "" where it fails."""
    return subprocess.run(
        ["git", *words], cwd=ROOT, capture_output=True, text=True, check=False
    ).stdout


def explain_no_history() -> str:
    """Return why git can't tell what has changed here, such as in what an archive held;
    "" if it can.
    """
    command = ["git", "rev-parse", "--show-toplevel", "HEAD"]
    try:
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    except OSError as error:
        return f"git does not start ({error.strerror})"
    if done.returncode:
        return f"git says: {done.stderr.strip().splitlines()[0]}"
    top = done.stdout.splitlines()[0]
    return (
        ""
        if Path(top).samefile(ROOT)
        else f"this folder is in the repository {top}, and no clone itself"
    )


def list_changed_files() -> list[str]:
    """Return the paths that differ from the commit at which this branch left `main`,
    with deleted and new ones.
    """
    is_main = run_git("branch", "--show-current").strip() == "main"
    bases = ("origin/main",) if is_main else ("main", "origin/main")
    base = next(
        (found for name in bases if (found := run_git("merge-base", name, "HEAD").strip())), "HEAD"
    )
    changed = run_git("diff", "-z", "--name-only", "--no-renames", base)
    new = run_git("ls-files", "-z", "--others", "--exclude-standard")
    return sorted({name for name in (changed + new).split("\0") if name})


def is_test(path: str) -> bool:
    """Return whether a file has tests, which its name says."""
    return path.startswith("tests/") and PurePosixPath(path).match("test_*.py")


def find_target(test: str) -> str | None:
    """Return the command that runs a test file, or what belongs to one,
    which `make quick` does not.
    """
    return OTHER_TARGETS.get(test.split("/")[1]) if test.startswith("tests/") else None


def find_tests(path: str, graph: FileGraph, root: Path = ROOT) -> list[str]:
    """Return the tests that reach a file, nearest first: itself, the one of its name,
    then by steps and by folder.
    """
    distances = graph.measure_distances(path)
    place = path.replace("automation/src/codeloop_automation/", "src/codeloop/automation/")
    parts = PurePosixPath(place.removeprefix("src/codeloop/")).parts

    def rank(test: str) -> tuple[bool, bool, int, str]:
        own = PurePosixPath(test).parts[1:]
        shared = next(
            (at for at, pair in enumerate(zip(parts, own, strict=False)) if pair[0] != pair[1]), 0
        )
        is_named = own[0] == parts[0] and own[-1] == f"test_{PurePosixPath(path).stem}.py"
        # A folder that both are in is worth two steps.
        return (
            not is_named and test != path,
            distances[test] > 1,
            distances[test] - 2 * shared,
            test,
        )

    # The house's tests, which name many files, are run by the gate.
    found = {
        each
        for each in distances
        if is_test(each) and each != HOUSE_TESTS and (root / each).exists()
    }
    tests = sorted(found, key=rank)
    if (
        path.endswith(".md")
        and (root / path).exists()
        and (path == "README.md" or path.startswith("docs/"))
    ):
        story = [f"{STORIES}::test_a_page_does_what_it_says[{path}]"] if blocks(root / path) else []
        return [*story, *(test for test in tests if test != STORIES)]
    return tests


@dataclass
class Choice:
    """Which tests are to run for which changed files, and what else there is to say."""

    tests: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    """Test files of each changed file that has some, nearest first."""
    gate: list[str] = field(default_factory=list[str])
    """Files that are no code, or deleted, and belong to no test: the house's tests read them."""
    failures: list[str] = field(default_factory=list[str])
    """Sentences about files that nothing here tests."""

    def list_nearest(self) -> list[str]:
        """Return all test files: the nearest of each changed file, then the second of each."""
        rows = list(self.tests.values())
        longest = max(map(len, rows), default=0)
        alternating = [row[at] for at in range(longest) for row in rows if at < len(row)]
        return list(dict.fromkeys(alternating)) or ([HOUSE_TESTS] if self.gate else [])


def choose_tests(changed: list[str], graph: FileGraph) -> Choice:
    """Find the tests of each changed file."""
    choice = Choice()
    for path in changed:
        reached = find_tests(path, graph) or [path]
        if here := [
            test for test in reached if is_test(test.split("::")[0]) and find_target(test) is None
        ]:
            choice.tests[path] = here
        elif targets := sorted({target for test in reached if (target := find_target(test))}):
            choice.failures.append(f"{path}: only other targets test it: {', '.join(targets)}")
        elif path.endswith(".py") and (ROOT / path).exists() and not path.endswith("/__init__.py"):
            choice.failures.append(f"{path}: no test reaches it, not even through other modules")
        else:
            choice.gate.append(path)
    return choice


class Outcome:
    """A plugin of pytest that notes of which files tests ran,
    and of which some were left for time.
    """

    def __init__(self) -> None:
        """Begin before the first test."""
        self.ran: set[str] = set()
        self.left: Counter[str] = Counter()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note the file of a test."""
        file = report.nodeid.split("::")[0]
        if self.is_left(report):
            self.left[file] += 1
        else:
            self.ran.add(file)

    @pytest.hookimpl(tryfirst=True)
    def pytest_report_teststatus(
        self, report: pytest.TestReport | pytest.CollectReport
    ) -> tuple[str, str, str] | None:
        """Print nothing for a test that was left, and count it as that."""
        return ("left for time", "", "") if self.is_left(report) else None

    def is_left(self, report: pytest.TestReport | pytest.CollectReport) -> bool:
        """Return whether a test was passed over; in a report of another process
        its properties are lists.
        """
        return isinstance(report, pytest.TestReport) and LEFT in [
            tuple(each) for each in report.user_properties
        ]


def run_tests(names: list[str], whole: list[str]) -> tuple[int, Outcome]:
    """Run test files in this order, with the slow tests of `whole`;
    return pytest's exit code and what it ran.
    """
    outcome = Outcome()
    options = [
        "-p",
        "tests.support.quick_run",
        f"--quick-seconds={SECONDS}",
        f"--quick-whole={' '.join(whole)}",
    ]
    # Small chunks, so that what is first is run first.
    workers = ["-n", "2", "--maxschedchunk", "2", "--continue-on-collection-errors"]
    code = pytest.main(
        ["-m", SELECTION, *options, *workers, *names, *sys.argv[1:]], plugins=[outcome]
    )
    return int(code), outcome


def describe_rest(
    choice: Choice, names: list[str], outcome: Outcome
) -> tuple[list[str], list[str]]:
    """Return lines about what was not run, and about the changed files of which
    all near tests are slow.
    """
    lines = [f"Not run, for time: {file} ({count} tests)" for file, count in outcome.left.items()]
    further = [test for test in choice.list_nearest() if test not in names]
    rooms = Counter("/".join(test.split("/")[:2]) for test in further)
    if further:
        counts = ", ".join(f"{room} ({count})" for room, count in sorted(rooms.items()))
        lines.append(
            f"Not run, since they are further away: {len(further)} files of {counts}. All: make test"
        )
    failures: list[str] = []
    for path, tests in choice.tests.items():
        files = {test.split("::")[0] for test in tests if test in names}
        if files and not files & (outcome.ran | set(outcome.left)):
            failures.append(
                f"{path}: all tests near it are slow: make slow ARGS='{' '.join(sorted(files))}'"
            )
    return lines, failures


def main() -> int:
    """Run the tests that the changes touch; without a change there is nothing to run."""
    if reason := explain_no_history():
        sys.stderr.write(
            f"What has changed is not known here: {reason}. Run all tests: make test\n"
        )
        return 2
    changed = list_changed_files()
    if not changed:
        sys.stdout.write("Nothing has changed since main.\n")
        return 0
    choice = choose_tests(changed, FileGraph(ROOT, changed))
    names = choice.list_nearest()[:MAX_TEST_FILES]
    sys.stdout.write("".join(f"{name}\n" for name in names))
    if choice.gate:
        reader = f"{HOUSE_TESTS} is run, which" if names == [HOUSE_TESTS] else "make check"
        sys.stdout.write(
            f"No test belongs to {', '.join(choice.gate)}: {reader} reads every file.\n"
        )
    sys.stdout.flush()
    code, lines, failures = 0, [], choice.failures
    if names:
        whole = [name for name in names if name in changed or "::" in name or name == HOUSE_TESTS]
        code, outcome = run_tests(names, whole)
        lines, more = describe_rest(choice, names, outcome)
        failures = failures + more
        # Without a test to run, pytest ends with 5: the sentences say why.
        code = 0 if code == pytest.ExitCode.NO_TESTS_COLLECTED and more else code
    for line in (*lines, *failures):
        sys.stdout.write(f"{line}\n")
    return code or (1 if failures else 0)


if __name__ == "__main__":
    sys.exit(main())
