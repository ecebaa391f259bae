"""Folders that are removed whatever is in them."""

import os
from pathlib import Path

import pytest

from codeloop.kit.remove_tree import remove_tree, temporary_folder


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


def test_a_temporary_folder_goes_with_what_is_in_it(tmp_path: Path) -> None:
    with temporary_folder("mine-", tmp_path) as folder:
        assert (folder.name[:5], folder.parent, folder.stat().st_mode & 0o777) == (
            "mine-",
            tmp_path,
            0o700,
        )
        (folder / "closed/inside").mkdir(parents=True)
        (folder / "closed").chmod(0)
    assert list(tmp_path.iterdir()) == []
