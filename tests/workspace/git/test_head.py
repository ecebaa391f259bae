"""Which branch is checked out, without a process."""

import os
import subprocess
from pathlib import Path

from codeloop.workspace.git.head import Head


def git(folder: Path, *words: str) -> None:
    own = ("-c", "user.name=t", "-c", "user.email=t@localhost", "-c", "init.defaultBranch=main")
    subprocess.run(["git", "-C", str(folder), *own, *words], check=True, capture_output=True)


def repository(folder: Path) -> Path:
    folder.mkdir()
    git(folder, "init")
    git(folder, "commit", "--allow-empty", "-m", "first")
    return folder


def test_another_branch_and_a_single_commit_are_seen_once(tmp_path: Path) -> None:
    work = repository(tmp_path / "work")
    head = Head(work)
    assert (head.branch, head.refresh()) == ("main", False)
    git(work, "checkout", "-b", "feature/x")
    assert (head.refresh(), head.branch, head.refresh()) == (True, "feature/x", False)
    git(work, "checkout", "--detach")
    assert (head.refresh(), head.branch) == (True, None)


def test_a_further_work_tree_has_a_branch_of_its_own(tmp_path: Path) -> None:
    work = repository(tmp_path / "work")
    git(work, "worktree", "add", "-b", "second", str(tmp_path / "second"))
    assert Head(tmp_path / "second").branch == "second"


def test_outside_of_a_repository_there_is_none_and_nothing_waits(tmp_path: Path) -> None:
    assert Head(tmp_path).branch is None
    (tmp_path / ".git").mkdir()
    os.mkfifo(tmp_path / ".git" / "HEAD")
    assert Head(tmp_path).branch is None


def test_a_git_file_that_names_no_path_is_no_repository(tmp_path: Path) -> None:
    (tmp_path / ".git").write_bytes(b"gitdir: a\0b")
    assert Head(tmp_path).branch is None
