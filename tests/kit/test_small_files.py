"""Private folders, and paths as people write them."""

import os
from pathlib import Path

import pytest

from codeloop.kit.small_files import expand_user_path, make_private, remove_tree


def test_every_folder_that_was_missing_is_private_and_others_stay(tmp_path: Path) -> None:
    there = tmp_path / "there"
    there.mkdir(mode=0o755)
    make_private(there / "a" / "b")
    make_private(there / "a" / "b")
    assert [path.stat().st_mode & 0o777 for path in (there, there / "a", there / "a" / "b")] == [0o755, 0o700, 0o700]


@pytest.mark.parametrize("name", ["~/a", "~nobody-is-called-so/a", "~a\0b", "a/~", ""])
def test_a_path_from_a_home_that_nobody_has_stays_as_it_is(name: str) -> None:
    known = Path.home() / "a" if name == "~/a" else Path(name)
    assert expand_user_path(name) == known


@pytest.mark.slow
def test_a_folder_of_any_depth_is_removed_and_nothing_that_links_lead_to(tmp_path: Path) -> None:
    mine, folder = tmp_path / "mine", tmp_path / "folder"
    mine.mkdir()
    (mine / "note").write_text("mine")
    at = os.open(tmp_path, os.O_RDONLY)
    for name in ("folder", *("abc" for _ in range(1_400))):  # a path of more than 4,096 characters
        os.mkdir(name, dir_fd=at)
        below = os.open(name, os.O_RDONLY, dir_fd=at)
        os.close(at)
        at = below
    os.symlink(mine, "link", dir_fd=at)
    os.close(at)
    (folder / "closed/inside").mkdir(parents=True)
    (folder / "closed").chmod(0o500)
    (folder / "file").write_text("")
    (folder / "link").symlink_to(mine)
    (tmp_path / "away").symlink_to(mine)
    for path in (folder, tmp_path / "away", tmp_path / "none"):
        remove_tree(path)
    assert [each.name for each in tmp_path.iterdir()] == ["mine"]
    assert (mine / "note").read_text() == "mine"
