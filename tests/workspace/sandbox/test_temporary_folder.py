"""The folder that sandboxes have as /tmp goes with its process, also with one that is killed."""

import subprocess
import sys
from pathlib import Path

import pytest

from codeloop.kit.remove_tree import remove_tree
from codeloop.workspace.sandbox.temporary_folder import make_temporary_folder
from tests.workspace.sandbox.conftest import Attacked

HELD = """
import sys
from codeloop.kit.remove_tree import remove_tree
from codeloop.workspace.sandbox.temporary_folder import make_temporary_folder
from tests.workspace.sandbox.conftest import Attacked
folder = make_temporary_folder()
(folder.path / "left").mkdir()
print(folder.path, flush=True)
sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def parent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
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


def test_a_folder_for_temporary_files_that_is_gone_is_chosen_anew(parent: Path) -> None:
    first = make_temporary_folder()
    moved = parent.with_name("moved")
    parent.rename(moved)
    second = make_temporary_folder()
    try:
        assert second.path.is_dir()
        assert not second.path.is_relative_to(parent)
    finally:
        second.remove()
        moved.rename(parent)
        first.remove()


async def test_a_sandbox_is_made_anew_when_its_temporary_folder_is_gone(
    it: Attacked, parent: Path
) -> None:
    kept = await it.run('cd "${TMPDIR:-/tmp}"; echo kept > x; cat x')
    assert kept.output == "kept\n"
    for each in parent.glob("codeloop-sandboxes-*"):
        remove_tree(each)
    after = await it.run('cd "${TMPDIR:-/tmp}" && echo new > y && cat y; ls x')
    assert after.output.startswith("new\n"), after
    assert "No such file" in after.output
