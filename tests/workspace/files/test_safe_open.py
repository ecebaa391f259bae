"""Files are opened never through a link that came in the meantime, and only regular ones."""

import itertools
import os
import socket
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from codeloop.workspace.files.atomic_write import Replacement, replace_file
from codeloop.workspace.files.safe_open import FileRefused, read_file
from codeloop.workspace.workspace import Workspace
from tests.support.audit_hook import add_audit


def test_pipes_sockets_devices_and_directories_are_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "socket"))
        for path in (tmp_path / "pipe", tmp_path / "socket", tmp_path, Path("/dev/null")):
            with pytest.raises(FileRefused):
                read_file(path)


def test_a_link_is_never_followed_by_its_resolved_path(tmp_path: Path) -> None:
    (tmp_path / "inside").mkdir()
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "f").write_bytes(b"secret")
    (tmp_path / "inside" / "link").symlink_to(tmp_path / "outside")
    (tmp_path / "inside" / "file").symlink_to(tmp_path / "outside" / "f")
    for path in (tmp_path / "inside" / "link" / "f", tmp_path / "inside" / "file"):
        with pytest.raises(FileRefused):
            read_file(path)
    with pytest.raises(FileRefused):
        replace_file(Replacement(tmp_path / "inside" / "link" / "new", None, b"x"))
    assert [each.name for each in (tmp_path / "outside").iterdir()] == ["f"]


class Flipping:
    """A folder that becomes a link to one outside, and a folder again,
    between two operations on files.
    """

    def __init__(self, place: Path, flips: Sequence[int]) -> None:
        """`flips`: it flips just before the operations of these numbers."""
        self.outside, self.folder, self._aside = (
            place / "outside",
            place / "folder",
            place / "aside",
        )
        self._flips = flips
        self._above = place.parts
        self.operations = 0
        self.outside.mkdir(parents=True)

    def audit(self, event: str, arguments: tuple[Any, ...]) -> None:
        """Count an operation that can meet the folder, and flip when its number is one of ours."""
        if not event.startswith("os.") and (event != "open" or arguments[0] in self._above):
            return
        if self.operations in self._flips:
            self._flip()
        self.operations += 1

    def _flip(self) -> None:
        if self.folder.is_symlink():
            self.folder.unlink()
            if self._aside.exists():
                self._aside.rename(self.folder)
            return
        if self.folder.exists():
            self.folder.rename(self._aside)
        self.folder.symlink_to(self.outside)

    def kept(self) -> dict[str, bytes]:
        """Return what is in the folder itself, wherever it is now; empty when there is none."""
        real = self._aside if self._aside.exists() else self.folder
        return (
            {} if real.is_symlink() else {each.name: each.read_bytes() for each in real.glob("*")}
        )


def replaced(place: Path, kind: str, flips: Sequence[int]) -> tuple[bool, Flipping]:
    """Replace a file while its folder flips; returns whether it was not refused."""
    it = Flipping(place, flips)
    before = None
    if kind != "new folder":
        it.folder.mkdir()
    if kind in {"change", "delete"}:
        (it.folder / "f").write_bytes(b"old")
        (it.outside / "f").write_bytes(b"old")
        before = read_file(it.folder / "f")
    change = Replacement(it.folder / "f", before, None if kind == "delete" else b"new")
    try:
        with add_audit(it.audit):
            replace_file(change)
    except (FileRefused, OSError):
        return False, it
    return True, it


@pytest.mark.parametrize("kind", ["new", "new folder", "change", "delete"])
def test_a_folder_that_flips_to_a_link_lets_no_byte_out(tmp_path: Path, kind: str) -> None:
    old = {"f": b"old"} if kind in {"change", "delete"} else {}
    new = {} if kind == "delete" else {"f": b"new"}
    done, still = replaced(tmp_path / "still", kind, ())
    assert done
    assert still.kept() == new
    assert not replaced(tmp_path / "at-once", kind, (0,))[0]
    numbers = range(still.operations)
    for flips in [*itertools.combinations(numbers, 1), *itertools.combinations(numbers, 2)]:
        done, it = replaced(tmp_path / str(flips), kind, flips)
        assert {each.name: each.read_bytes() for each in it.outside.iterdir()} == old, flips
        assert it.kept() == (new if done else old), flips


def test_a_file_over_the_cap_is_refused(tmp_path: Path) -> None:
    (tmp_path / "big").write_bytes(b"x" * 101)
    with pytest.raises(FileRefused, match="101 bytes"):
        read_file(tmp_path / "big", 100)


def test_a_work_tree_that_is_replaced_by_a_link_is_left_by_every_path(tmp_path: Path) -> None:
    work, elsewhere = tmp_path / "work", tmp_path / "elsewhere"
    work.mkdir()
    elsewhere.mkdir()
    workspace = Workspace(work, work, tmp_path / "scratch", {})
    assert not workspace.resolve("a.txt").is_outside
    work.rmdir()
    work.symlink_to(elsewhere)
    assert workspace.resolve("a.txt").is_outside
