"""Files for whole outputs are private, and old ones go away by themselves."""

import os
import stat
import time
from pathlib import Path

import pytest

from codeloop.workspace.files.saved_outputs import prune_all_outputs, prune_outputs, save_output

DAY = 86_400.0


def old(folder: Path, days: float, data: bytes = b"x") -> Path:
    path = save_output(folder, data)
    then = time.time() - days * DAY
    os.utime(path, (then, then))
    return path


def test_a_file_is_only_its_owners(tmp_path: Path) -> None:
    path = save_output(tmp_path / "new", b"secret")
    assert path.read_bytes() == b"secret"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_what_is_too_old_is_removed(tmp_path: Path) -> None:
    stays, goes = old(tmp_path, 6), old(tmp_path, 8)
    assert prune_outputs(tmp_path) == [goes]
    assert list(tmp_path.iterdir()) == [stays]


def test_the_oldest_are_removed_when_there_is_too_much(tmp_path: Path) -> None:
    files = [old(tmp_path, days, b"x" * 100) for days in (1, 2, 3, 4)]
    assert set(prune_outputs(tmp_path, size=250)) == set(files[2:])
    assert prune_outputs(tmp_path, size=250) == []


def test_what_was_written_just_now_stays_however_large(tmp_path: Path) -> None:
    path = save_output(tmp_path, b"x" * 1000)
    assert prune_outputs(tmp_path, age=0, size=0) == []
    assert path.exists()


def test_only_files_of_outputs_are_touched(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.write_text("mine")
    folder = tmp_path / "scratch"
    goes = old(folder, 30)
    (folder / "tool_link").symlink_to(outside)
    (folder / "tool_folder").mkdir()
    (folder / "notes.txt").touch()
    for name in ("tool_link", "tool_folder", "notes.txt"):
        os.utime(folder / name, (0, 0), follow_symlinks=False)
    assert prune_outputs(folder) == [goes]
    assert sorted(path.name for path in folder.iterdir()) == [
        "notes.txt",
        "tool_folder",
        "tool_link",
    ]
    assert outside.read_text() == "mine"


@pytest.mark.parametrize("name", ["missing", "file"])
async def test_a_folder_that_is_none_is_no_error(tmp_path: Path, name: str) -> None:
    (tmp_path / "file").touch()
    await prune_all_outputs(tmp_path / name)
    assert prune_outputs(tmp_path / name) == []


@pytest.mark.slow
async def test_it_happens_in_the_background(tmp_path: Path) -> None:
    goes = old(tmp_path, 30)
    await prune_all_outputs(tmp_path)
    assert not goes.exists()
