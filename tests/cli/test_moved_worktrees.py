"""Work trees stay usable when their repository, or codeloop's own folder, is renamed."""

import shutil
from pathlib import Path

import pytest

from tests.cli.program import Desk
from tests.workspace.snapshot.trees_on_disk import git, repository


def make_tree(folder: Path, home: Path) -> Path:
    """Make a repository in `folder/work`, and a work tree of it with a new file."""
    folder.mkdir()
    repository(folder / "work", {"a.txt": "1\n"})
    made = Desk(folder, {"CODELOOP_HOME": str(home)}).run("worktree", "create", "c1")
    assert made.returncode == 0, made.stderr
    (tree,) = home.glob("codeloop-worktrees/*/c1")
    (tree / "new.txt").write_text("x\n")
    return tree


@pytest.mark.parametrize("moved", ["one", "home"])
def test_a_work_tree_follows_what_was_renamed(tmp_path: Path, moved: str) -> None:
    places = {"one": tmp_path / "one", "home": tmp_path / "home"}
    make_tree(places["one"], places["home"])
    places[moved] = places[moved].rename(tmp_path / "renamed")
    desk = Desk(places["one"], {"CODELOOP_HOME": str(places["home"])})
    assert "1 changed" in desk.run("worktree", "list").stdout
    merged = desk.run("worktree", "merge", "c1")
    assert merged.returncode == 0, merged.stderr
    assert (desk.work / "new.txt").read_text() == "x\n"
    removed = desk.run("worktree", "remove", "c1")
    assert removed.returncode == 0, removed.stderr
    assert git(desk.work, "worktree", "list").count("\n") == 1


def test_a_copy_of_a_repository_takes_no_work_tree_away_from_it(tmp_path: Path) -> None:
    tree = make_tree(tmp_path / "one", tmp_path / "home")
    before = (tree / ".git").read_text()
    shutil.copytree(tmp_path / "one", tmp_path / "copy", symlinks=True)
    desk = Desk(tmp_path / "copy", {"CODELOOP_HOME": str(tmp_path / "home")})
    assert desk.run("worktree", "list").returncode == 0
    assert (tree / ".git").read_text() == before
    assert git(tree, "rev-parse", "--show-toplevel").strip() == str(tree)
