"""Who besides this user and root could fill a folder, or put another one in its place."""

import os
import struct
from pathlib import Path

import pytest

from codeloop.workspace.process.search_path import SearchPath, find_foreign_writer

OTHER = 54_321
is_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")


@pytest.fixture
def sticky(tmp_path: Path) -> Path:
    folder = tmp_path / "tmp"
    folder.mkdir()
    folder.chmod(0o1777)
    return folder


def test_a_folder_of_ours_in_a_sticky_one_is_ours(sticky: Path) -> None:
    (sticky / "bin").mkdir(mode=0o755)
    assert find_foreign_writer(str(sticky / "bin")) == ""
    assert SearchPath({"PATH": f"{sticky}/bin:/usr/bin:/bin"}, ["/project"]).find("sh").doubt == ""
    sticky.chmod(0o777)
    assert find_foreign_writer(str(sticky / "bin")) == "anybody"
    assert (
        "anybody can write"
        in SearchPath({"PATH": f"{sticky}/bin:/usr/bin"}, ["/project"]).find("sh").doubt
    )


def test_anybody_can_add_to_a_sticky_folder(sticky: Path) -> None:
    assert find_foreign_writer(str(sticky)) == "anybody"
    assert find_foreign_writer(str(sticky / "absent")) == "anybody"
    (sticky / "bin").mkdir()
    assert find_foreign_writer(str(sticky / "bin" / "absent")) == ""
    (sticky / "bin").chmod(0o777)
    assert find_foreign_writer(str(sticky / "bin")) == "anybody"


def test_each_link_on_the_way_counts(tmp_path: Path, sticky: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o777)
    (tmp_path / "open" / "hop").symlink_to(tmp_path / "real")
    (sticky / "link").symlink_to("../real")
    (tmp_path / "far").symlink_to("open/hop")
    (tmp_path / "round").symlink_to("round")
    assert find_foreign_writer(str(sticky / "link")) == ""
    assert find_foreign_writer(str(tmp_path / "far")) == "anybody"
    assert find_foreign_writer(str(tmp_path / "round")) == ""


@is_root
@pytest.mark.parametrize("which", ["tmp", "tmp/bin"])
def test_the_owner_of_a_folder_can_fill_it_whatever_its_mode(
    tmp_path: Path, sticky: Path, which: str
) -> None:
    (sticky / "bin").mkdir()
    os.chown(tmp_path / which, OTHER, -1)
    assert find_foreign_writer(str(sticky / "bin")) == f"the user {OTHER}"


@is_root
def test_the_owner_of_a_link_in_a_sticky_folder_can_lead_it_elsewhere(
    tmp_path: Path, sticky: Path
) -> None:
    (tmp_path / "real").mkdir()
    (sticky / "link").symlink_to(tmp_path / "real")
    os.chown(sticky / "link", OTHER, -1, follow_symlinks=False)
    assert find_foreign_writer(str(sticky / "link")) == f"the user {OTHER}"


@is_root
def test_a_group_counts_when_another_user_is_in_it(tmp_path: Path) -> None:
    folder = tmp_path / "bin"
    folder.mkdir()
    folder.chmod(0o775)
    assert find_foreign_writer(str(folder)) == ""  # the group of root has no other member
    os.chown(folder, -1, 1)
    assert find_foreign_writer(str(folder)) == "the group daemon"
    folder.chmod(0o755)
    assert find_foreign_writer(str(folder)) == ""


@is_root
def test_an_access_list_counts_as_far_as_its_mask_goes(tmp_path: Path) -> None:
    folder = tmp_path / "bin"
    folder.mkdir()

    def allow(mask: int) -> None:
        rows = (
            (1, 7, 2**32 - 1),
            (2, 7, OTHER),
            (4, 5, 2**32 - 1),
            (16, mask, 2**32 - 1),
            (32, 5, 2**32 - 1),
        )
        os.setxattr(
            folder,
            "system.posix_acl_access",
            struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *r) for r in rows),
        )

    try:
        allow(7)
    except OSError:
        pytest.skip("this file system has no access lists")
    assert find_foreign_writer(str(folder)) == f"the user {OTHER}"
    allow(5)
    assert find_foreign_writer(str(folder)) == ""
