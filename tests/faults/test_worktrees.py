"""Work trees whose making, merging or removal is killed at each named point: named afterwards,
and nothing is lost.
"""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.cli.program import Desk

MAKING = ("worktree.record", "worktree.checkout", "worktree.ready")
MERGING = ("worktree.commit", "worktree.merge")
REMOVING = ("worktree.remove", "worktree.removed")


def prepare(folder: Path) -> Desk:
    desk = Desk(folder)
    desk.git("init", "-q", "-b", "main")
    (desk.work / "a.txt").write_text("one\n")
    desk.git("add", "-A")
    desk.git("commit", "-q", "-m", "first")
    return desk


def work_trees(desk: Desk) -> list[dict[str, Any]]:
    done = desk.run("worktree", "list", "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def left(desk: Desk) -> tuple[list[str], list[str], list[str]]:
    """Return the facts on work trees: as git lists them, their branches,
    and what lies in their folder.
    """
    listed = desk.git("worktree", "list", "--porcelain").split("\n\n")[1:-1]
    branches = desk.git("branch", "--list", "--format=%(refname:short)", "codeloop/*").split()
    homes = [
        each
        for each in desk.folder.glob("**/codeloop-worktrees/*/*")
        if each.parent.name != ".projects" and each.parent.parent.name != ".git"
    ]
    return listed, branches, [each.name for each in homes]


def kill(desk: Desk, point: str, *words: str) -> None:
    done = subprocess.run(
        [*desk.command, "worktree", *words],
        **desk.options(CODELOOP_FAULT=f"{point}:1:kill"),
        capture_output=True,
        check=False,
    )
    assert done.returncode == -9, done


@pytest.mark.parametrize("point", MAKING)
def test_a_tree_that_was_half_made_is_named_and_cleared_away(tmp_path: Path, point: str) -> None:
    desk = prepare(tmp_path)
    kill(desk, point, "create", "one")
    (row,) = work_trees(desk)
    assert (row["name"], row["state"]) == (
        "one",
        "gone" if point == "worktree.record" else "unfinished",
    )
    refused = desk.run("run", "--worktree", "one", "hello")
    assert (refused.returncode, "is not whole" in refused.stderr) == (2, True), refused.stderr
    assert desk.run("worktree", "remove", "one").returncode == 0
    assert left(desk) == ([], [], [])
    assert desk.run("worktree", "create", "one").returncode == 0
    assert [each["state"] for each in work_trees(desk)] == ["ready"]


@pytest.mark.parametrize("point", [*MERGING, *REMOVING])
def test_what_was_done_in_a_tree_outlives_a_kill(tmp_path: Path, point: str) -> None:
    desk = prepare(tmp_path)
    made = json.loads(desk.run("worktree", "create", "one", "--json").stdout)
    tree = Path(made["directory"])
    (tree / "new.txt").write_text("new\n")
    desk.git("-C", os.fspath(tree), "config", "user.email", "a@example.com")
    if point in MERGING:
        kill(desk, point, "merge", "one")
        assert (tree / "new.txt").read_text() == "new\n"
        assert desk.git("status", "--porcelain") == ""
        assert desk.run("worktree", "merge", "one").returncode == 0
        assert (desk.work / "new.txt").read_text() == "new\n"
    else:
        kill(desk, point, "remove", "one", "--force")
        assert desk.git("show", "codeloop/one:new.txt") == "new\n"
        (row,) = work_trees(desk)
        assert row["state"] == ("removing" if point == "worktree.remove" else "gone")
    assert desk.run("worktree", "remove", "one").returncode == 0
    listed, branches, files = left(desk)
    assert (listed, files) == ([], [])
    assert branches == ([] if point in MERGING else ["codeloop/one"])


def test_a_removal_that_was_cut_off_does_not_take_what_came_later(tmp_path: Path) -> None:
    desk = prepare(tmp_path)
    tree = Path(json.loads(desk.run("worktree", "create", "one", "--json").stdout)["directory"])
    kill(desk, "worktree.remove", "remove", "one")
    (tree / "later.txt").write_text("later\n")
    refused = desk.run("worktree", "remove", "one")
    assert refused.returncode == 1
    assert (tree / "later.txt").read_text() == "later\n"
    (tree / "later.txt").unlink()
    (tree / "a.txt").unlink()  # as git had got so far
    assert desk.run("worktree", "remove", "one").returncode == 0
    assert left(desk) == ([], [], [])
