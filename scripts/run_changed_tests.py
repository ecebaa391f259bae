"""Runs the tests that a change touches: `make quick`. Further arguments go to pytest.

What has changed: the commits since the branch left `main`, what is not committed, and new files. A changed test file is
run; of a changed module, the test file of its name, then those that import it, or else those of its folder;
`MAX_TEST_FILES` files in all.
"""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
# On two cores, twelve files take less than half a minute.
MAX_TEST_FILES = 12
SKIPPED_FOLDERS = ("faults", "e2e", "interop", "everyday", "support", "docs")
"""Folders of tests that take longer, or hold no tests."""
FAST_TESTS = "not slow and not e2e and not interop and not lsp and not registries"


def run_git(*words: str) -> str:
    """Return the output of git, "" where it fails."""
    return subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=False).stdout


def explain_no_history() -> str:
    """Return why git can't tell what has changed here, such as in what an archive held; "" if it can."""
    command = ["git", "rev-parse", "--show-toplevel", "HEAD"]
    try:
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    except OSError as error:
        return f"git does not start ({error.strerror})"
    if done.returncode:
        return f"git says: {done.stderr.strip().splitlines()[0]}"
    top = done.stdout.splitlines()[0]
    return "" if Path(top).samefile(ROOT) else f"this folder is in the repository {top}, and no clone itself"


def list_changed_files() -> list[str]:
    """Return the paths that differ from the commit at which this branch left `main`, and the new ones."""
    base = next(
        (found for name in ("main", "origin/main") if (found := run_git("merge-base", name, "HEAD").strip())), "HEAD"
    )
    output = run_git("diff", "--name-only", "--diff-filter=d", base) + run_git(
        "ls-files", "--others", "--exclude-standard"
    )
    return sorted({line for line in output.splitlines() if line.endswith(".py")})


def list_tests() -> dict[Path, str]:
    """Return the test files that are fast enough, with their text."""
    files = ROOT.glob("tests/*/**/test_*.py")
    return {
        path: path.read_text() for path in files if path.relative_to(ROOT / "tests").parts[0] not in SKIPPED_FOLDERS
    }


def find_tests(module: str, tests: dict[Path, str]) -> list[Path]:
    """Return the tests of a module of `src/codeloop`: of its name and those that import it, or else of its folder."""
    module_path = Path(module).relative_to("src/codeloop")
    folder = ROOT / "tests" / module_path.parent
    named = [path for path in (folder / f"test_{module_path.stem}.py",) if path in tests]
    dotted = re.escape(".".join(("codeloop", *module_path.with_suffix("").parts)).removesuffix(".__init__"))
    parent, _, name = dotted.rpartition(r"\.")
    pattern = re.compile(rf"(from|import) {dotted}\b|from {parent} import [^\n]*\b{name}\b")
    importers = sorted(path for path, text in tests.items() if pattern.search(text))
    return named + importers or sorted(path for path in tests if path.parent == folder)


def choose_tests(changed: list[str], tests: dict[Path, str]) -> list[Path]:
    """Return at most `MAX_TEST_FILES` test files: changed ones first, then the nearest of each module in turn."""
    rows = [[ROOT / path] for path in changed if ROOT / path in tests]
    rows += [find_tests(path, tests) for path in changed if path.startswith("src/codeloop/")]
    longest = max(map(len, rows), default=0)
    alternating = [row[at] for at in range(longest) for row in rows if at < len(row)]
    return list(dict.fromkeys(alternating))[:MAX_TEST_FILES]


def main() -> int:
    """Run the tests that the changes touch; without a change there is nothing to run."""
    if reason := explain_no_history():
        sys.stderr.write(f"What has changed is not known here: {reason}. Run all tests: make test\n")
        return 2
    changed = list_changed_files()
    chosen = choose_tests(changed, list_tests())
    if not chosen:
        sys.stdout.write("No test belongs to what has changed.\n" if changed else "Nothing has changed since main.\n")
        return 0
    names = [str(path.relative_to(ROOT)) for path in chosen]
    sys.stdout.write("\n".join((*names, "")))
    sys.stdout.flush()
    command = [sys.executable, "-m", "pytest", "-n", "2", "-m", FAST_TESTS, *names, *sys.argv[1:]]
    return subprocess.run(command, cwd=ROOT, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
