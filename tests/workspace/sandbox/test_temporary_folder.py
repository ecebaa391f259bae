"""The folder that sandboxes have as /tmp goes with its process, also with one that is killed."""

import subprocess
import sys
from pathlib import Path

import pytest

from codeloop.workspace.sandbox.temporary_folder import make_temporary_folder

HELD = """
import sys
from codeloop.workspace.sandbox.temporary_folder import make_temporary_folder
folder = make_temporary_folder()
(folder.path / "left").mkdir()
print(folder.path, flush=True)
sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def parent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    return tmp_path


def test_the_folder_of_a_running_process_stays_and_that_of_a_killed_one_is_removed(
    parent: Path,
) -> None:
    (parent / "codeloop-other").mkdir()
    (parent / "codeloop-sandboxes-file").touch()
    kept = {"codeloop-other", "codeloop-sandboxes-file"}
    pipe = subprocess.PIPE
    with subprocess.Popen(
        [sys.executable, "-c", HELD], stdin=pipe, stdout=pipe, text=True
    ) as other:
        assert other.stdout is not None
        its_folder = Path(other.stdout.readline().strip())
        first = make_temporary_folder()
        assert {each.name for each in parent.iterdir()} == {
            *kept,
            its_folder.parent.name,
            first.path.parent.name,
        }
        other.kill()
        other.wait()
        second = make_temporary_folder()
    assert {each.name for each in parent.iterdir()} == {
        *kept,
        first.path.parent.name,
        second.path.parent.name,
    }
    for each in (first, second):
        each.path.chmod(0o1777)  # a command can do so
        assert each.path.parent.stat().st_mode & 0o777 == 0o700
        each.remove()
    assert {each.name for each in parent.iterdir()} == kept
