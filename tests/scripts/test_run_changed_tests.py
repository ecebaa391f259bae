"""`make quick` where git can't tell what has changed."""

import shutil
import subprocess
import sys
from pathlib import Path

from tests.docs.pages import ROOT


def run(folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, folder / "scripts/run_changed_tests.py"]
    # As `make` does: the path of a clone may have umlauts.
    environment = {"PATH": "/usr/bin:/bin", "LC_ALL": "C", "PYTHONUTF8": "1", **environment}
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def test_it_says_so_and_does_not_end_as_if_all_were_well(tmp_path: Path) -> None:
    unpacked = tmp_path / "outer" / "codeloop"
    (unpacked / "scripts").mkdir(parents=True)
    shutil.copy(ROOT / "scripts/run_changed_tests.py", unpacked / "scripts")
    done = run(unpacked, GIT_CEILING_DIRECTORIES=str(tmp_path))
    assert (done.returncode, done.stdout) == (2, "")
    assert "not a git repository" in done.stderr
    assert done.stderr.endswith("Run all tests: make test\n")
    assert "git does not start" in run(unpacked, PATH="/nonexistent").stderr

    git = ("git", "-c", "user.name=A", "-c", "user.email=a@example.com")
    subprocess.run([*git, "init", "-q"], cwd=unpacked.parent, check=True)
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "One"], cwd=unpacked.parent, check=True)
    assert "no clone itself" in run(unpacked).stderr
