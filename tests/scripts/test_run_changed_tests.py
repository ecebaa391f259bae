"""`make quick`: which tests it finds for what has changed, and what it says about the rest."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from scripts.file_graph import FileGraph
from scripts.run_changed_tests import choose_tests, find_tests
from tests.docs.pages import ROOT

GIT = (
    "git",
    "-c",
    "user.name=A",
    "-c",
    "user.email=a@example.com",
    "-c",
    "init.defaultBranch=main",
)
PROJECT = {
    "pyproject.toml": '[tool.pytest.ini_options]\npythonpath = ["."]\naddopts = "--import-mode=importlib"\n'
    'markers = ["slow", "e2e", "interop", "lsp", "registries"]\n',
    ".gitignore": "__pycache__\n.pytest_cache\n",
    "src/codeloop/__init__.py": "",
    "src/codeloop/kit/deep.py": "DEEP = 1\n",
    "src/codeloop/kit/middle.py": "def take():\n    from codeloop.kit import (\n        deep,  # late (see\n    )\n"
    "    return deep.DEEP\n",
    "src/codeloop/tui/table.py": 'ROWS = ["actions.shown:show"]\n',
    "src/codeloop/tui/actions/shown.py": "def show():\n    return 1\n",
    "src/codeloop/tool/read.py": "NAME = 'read'\n",
    "src/codeloop/tool/read.md": "What read does.\n",
    "src/codeloop/tool/themes/dark.json": "{}\n",
    "src/codeloop/lonely.py": "ALONE = 1\n",
    "src/codeloop/sluggish.py": "SLOW = 1\n",
    "tests/conftest.py": "",
    "tests/test_house.py": "def test_every_file():\n    pass\n",
    "tests/kit/test_middle.py": "from codeloop.kit.middle import take\n\ndef test_take():\n    assert take() == 1\n",
    "tests/tui/test_table.py": "from codeloop.tui.table import ROWS\n\ndef test_rows():\n    assert ROWS\n",
    "tests/tool/conftest.py": "",
    "tests/tool/helpers.py": "HELP = 1\n",
    "tests/tool/test_read.py": "from codeloop.tool.read import NAME\nfrom tests.tool.helpers import HELP\n\n"
    "def test_name():\n    assert NAME == 'read' and HELP\n",
    "tests/faults/test_points.py": "from codeloop.sluggish import SLOW\n\ndef test_points():\n    assert SLOW\n",
    "tests/test_sluggish.py": "import pytest\nfrom codeloop.sluggish import SLOW\n\n"
    "@pytest.mark.slow\ndef test_slow():\n    assert SLOW\n",
    "docs/page.md": "# A page\n",
    "tests/docs/test_pages.py": "def test_pages():\n    pass\n",
}


def run(folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "scripts.run_changed_tests"]
    # As `make` does: the path of a clone may have umlauts.
    environment = {
        "PATH": "/usr/bin:/bin",
        "LC_ALL": "C",
        "PYTHONUTF8": "1",
        "PYTHONPATH": "src",
        **environment,
    }
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )


def git(folder: Path, *words: str) -> None:
    subprocess.run([*GIT, *words], cwd=folder, check=True, capture_output=True)


def copy_script(folder: Path) -> None:
    for name in ("scripts/run_changed_tests.py", "scripts/file_graph.py", "tests/docs/pages.py"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, folder / name)
    (folder / "tests/support").mkdir(exist_ok=True)
    shutil.copy(ROOT / "tests/support/quick_run.py", folder / "tests/support")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A small repository with the script; the branch `work` is where `main` is."""
    for name, text in PROJECT.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    copy_script(tmp_path)
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", "-A")
    git(tmp_path, "commit", "-qm", "One")
    git(tmp_path, "checkout", "-qb", "work")
    return tmp_path


@pytest.mark.parametrize(
    ("changed", "tests"),
    [
        # Reached through another module that imports it in a function,
        # in several lines with a comment.
        ("src/codeloop/kit/deep.py", ["tests/kit/test_middle.py"]),
        # Named by a row of a table.
        ("src/codeloop/tui/actions/shown.py", ["tests/tui/test_table.py"]),
        # No code names them: the module of the same name, and those of the folder around.
        ("src/codeloop/tool/read.md", ["tests/tool/test_read.py"]),
        ("src/codeloop/tool/themes/dark.json", ["tests/tool/test_read.py"]),
        ("docs/page.md", ["tests/docs/test_pages.py"]),
        ("tests/tool/test_read.py", ["tests/tool/test_read.py"]),
        ("tests/tool/helpers.py", ["tests/tool/test_read.py"]),
        ("tests/tool/conftest.py", ["tests/tool/test_read.py"]),
        # A deleted module that is still imported, and one that nothing names any more.
        ("tests/tool/gone.py", []),
        ("src/codeloop/lonely.py", []),
    ],
)
def test_the_tests_that_reach_a_changed_file_are_found(
    project: Path, changed: str, tests: list[str]
) -> None:
    found = find_tests(changed, FileGraph(project, [changed]), project)
    assert found == tests


def test_a_deleted_module_is_found_by_what_still_imports_it(project: Path) -> None:
    deleted = "src/codeloop/kit/deep.py"
    (project / deleted).unlink()
    assert find_tests(deleted, FileGraph(project, [deleted]), project) == [
        "tests/kit/test_middle.py"
    ]


def test_the_test_of_its_name_comes_first_then_the_nearest(project: Path) -> None:
    near = "from codeloop.tool.read import NAME\n\ndef test_near():\n    assert NAME\n"
    (project / "tests/kit/test_near.py").write_text(near)
    (project / "tests/tool/test_beside.py").write_text(near)
    (project / "src/codeloop/kit/user.py").write_text("from codeloop.tool import read\n")
    (project / "tests/kit/test_far.py").write_text("from codeloop.kit import user\n")
    assert find_tests("src/codeloop/tool/read.py", FileGraph(project), project) == [
        "tests/tool/test_read.py",
        "tests/tool/test_beside.py",
        "tests/kit/test_near.py",
        "tests/kit/test_far.py",
    ]


@pytest.mark.slow
def test_it_says_so_and_does_not_end_as_if_all_were_well(tmp_path: Path) -> None:
    unpacked = tmp_path / "outer" / "codeloop"
    unpacked.mkdir(parents=True)
    copy_script(unpacked)
    done = run(unpacked, GIT_CEILING_DIRECTORIES=str(tmp_path))
    assert (done.returncode, done.stdout) == (2, "")
    assert "not a git repository" in done.stderr
    assert done.stderr.endswith("Run all tests: make test\n")
    assert "git does not start" in run(unpacked, PATH="/nonexistent").stderr

    git(unpacked.parent, "init", "-q")
    git(unpacked.parent, "commit", "-q", "--allow-empty", "-m", "One")
    assert "no clone itself" in run(unpacked).stderr


@pytest.mark.slow
def test_what_is_committed_staged_or_not_is_tested_and_a_failure_is_one(project: Path) -> None:
    unchanged = run(project)
    assert (unchanged.returncode, unchanged.stdout) == (0, "Nothing has changed since main.\n")

    (project / "src/codeloop/kit/deep.py").write_text("DEEP = 2\n")
    git(project, "commit", "-qam", "Two")
    (project / "src/codeloop/tool/read.md").write_text("Other words.\n")
    git(project, "add", "-A")
    (project / "src/codeloop/tui/table.py").write_text("ROWS = [1]\n")
    git(project, "mv", "tests/tool/helpers.py", "tests/tool/support.py")
    done = run(project)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "1 passed" in done.stdout
    assert "1 failed" in done.stdout
    assert "No module named 'tests.tool.helpers'" in done.stdout


@pytest.mark.slow
def test_a_module_without_a_test_and_one_with_slow_tests_alone_are_failures(project: Path) -> None:
    (project / "src/codeloop/lonely.py").write_text("ALONE = 2\n")
    (project / "src/codeloop/sluggish.py").write_text("SLOW = 2\n")
    (project / "tests/faults/test_points.py").write_text("def test_points():\n    pass\n")
    done = run(project)
    assert done.returncode == 1
    assert "src/codeloop/lonely.py: no test reaches it" in done.stdout
    assert "make slow ARGS='tests/test_sluggish.py'" in done.stdout
    assert "tests/faults/test_points.py: only other targets test it: make faults" in done.stdout

    # A changed test is run, slow or not; what is not code is read by the house's tests.
    git(project, "checkout", "-q", ".")
    (project / "tests/test_sluggish.py").write_text(PROJECT["tests/test_sluggish.py"] + "\n")
    done = run(project)
    assert (done.returncode, "1 passed" in done.stdout) == (0, True), done.stdout
    git(project, "checkout", "-q", ".")
    (project / "Makefile").write_text("all:\n")
    done = run(project)
    assert (done.returncode, "1 passed" in done.stdout) == (0, True), done.stdout
    assert "No test belongs to Makefile: tests/test_house.py is run" in done.stdout


@pytest.mark.slow
def test_no_test_starts_after_the_time_and_those_left_are_named(project: Path) -> None:
    (project / "tests/kit/test_middle.py").write_text(
        "import time\n\ndef test_a():\n    time.sleep(1)\n\ndef test_b():\n    pass\n\ndef test_c():\n    pass\n"
    )
    options = ("-p", "tests.support.quick_run", "--quick-seconds=0.5", "tests/kit")
    command = [sys.executable, "-m", "pytest", *options]
    done = subprocess.run(command, cwd=project, capture_output=True, text=True, check=False)
    assert "1 passed" in done.stdout, done.stdout
    assert "2 skipped" in done.stdout


@pytest.mark.slow
def test_every_module_of_the_program_is_reached_by_a_test() -> None:
    graph = FileGraph(ROOT)
    modules = [
        name
        for name in graph.texts
        if name.startswith(("src/codeloop/", "automation/src/")) and "/data/" not in name
    ]
    assert (
        choose_tests(
            [name for name in modules if not name.endswith("/__init__.py")], graph
        ).failures
        == []
    )
