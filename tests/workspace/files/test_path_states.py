"""Whether folders and files are said to be as they were only when they are."""

import os
import time
from pathlib import Path

from codeloop.workspace.files.path_states import PathStates


def settled(*paths: Path) -> PathStates:
    """Return the states of paths whose last change is long enough ago."""
    while not (states := PathStates(map(str, paths))).are_unchanged():
        time.sleep(0.01)
    return states


def test_a_folder_is_the_same_until_something_is_added_removed_or_renamed(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    states = settled(tmp_path)
    (tmp_path / "file").write_text("other")
    assert states.are_unchanged()
    (tmp_path / "file").rename(tmp_path / "renamed")
    assert not states.are_unchanged()


def test_a_file_is_the_same_until_it_is_written_whatever_its_times_are_set_to(
    tmp_path: Path,
) -> None:
    file = tmp_path / "file"
    file.write_text("one")
    states, before = settled(file), file.stat()
    file.write_text("two")
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert not states.are_unchanged()


def test_what_is_absent_is_the_same_until_it_is_there(tmp_path: Path) -> None:
    states = settled(tmp_path / "later")
    (tmp_path / "later").mkdir()
    assert not states.are_unchanged()


def test_what_changed_just_now_may_change_again_with_the_same_time(tmp_path: Path) -> None:
    states = settled(tmp_path)
    for _ in range(50):
        (tmp_path / "file").touch()
        (tmp_path / "file").unlink()
        assert not states.are_unchanged()
        states = PathStates([str(tmp_path)])
