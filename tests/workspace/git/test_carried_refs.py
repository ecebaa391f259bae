"""No commit of a command is lost where its reference can't be carried over."""

import os
import subprocess
from pathlib import Path

import pytest

from codeloop.workspace.git.private.open_folder import OpenFolder
from codeloop.workspace.git.private.own_git import OwnGit
from codeloop.workspace.git.private.refs import (
    KEPT_PREFIX,
    ReadRefs,
    RefCarrier,
    read_refs,
    write_private_refs,
)


def git(folder: Path, *arguments: str) -> str:
    """Run git, without the settings of this machine."""
    environment = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "GIT_CONFIG_NOSYSTEM": "1"}
    names = {
        f"GIT_{role}_{part}": "a" for role in ("AUTHOR", "COMMITTER") for part in ("NAME", "EMAIL")
    }
    command = ["git", *arguments]
    ended = subprocess.run(
        command, cwd=folder, env=environment | names, capture_output=True, text=True, check=True
    )
    return ended.stdout.strip()


def make_repository(folder: Path) -> list[str]:
    """Make a repository with `main` at the first of three commits, which are returned."""
    git(folder, "init", "-q", "-b", "main", ".")
    tree = git(folder, "write-tree")
    first = git(folder, "commit-tree", "-m", "0", tree)
    others = [git(folder, "commit-tree", "-m", str(number), "-p", first, tree) for number in (1, 2)]
    git(folder, "update-ref", "refs/heads/main", first)
    return [first, *others]


def list_kept(folder: Path) -> list[str]:
    """Return the commits that are kept."""
    return git(folder, "for-each-ref", "--format=%(objectname)", KEPT_PREFIX).split()


def test_a_commit_is_kept_when_another_program_was_faster(tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    first, theirs, commands = make_repository(work)
    refs = RefCarrier(OwnGit(work / ".git", tmp_path / "own"), {}, frozenset())
    seen = {"refs/heads/main": first}
    # After the references were read, and before they are changed.
    git(work, "update-ref", "refs/heads/main", theirs)
    assert refs.carry(seen, {"refs/heads/main": commands}, seen) == []
    assert git(work, "rev-parse", "main") == theirs
    assert list_kept(work) == [commands]
    assert f"the commit of the command is {KEPT_PREFIX}" in refs.notes[0]


def test_a_commit_is_kept_while_git_holds_the_reference(tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    first, _, commands = make_repository(work)
    refs = RefCarrier(OwnGit(work / ".git", tmp_path / "own"), {}, frozenset())
    (work / ".git/refs/heads/main.lock").touch()
    seen = {"refs/heads/main": first}
    assert refs.carry(seen, {"refs/heads/main": commands, "refs/heads/new": commands}, seen) != []
    assert list_kept(work) == [commands]
    assert git(work, "rev-parse", "new") == commands


def test_a_commit_on_the_branch_of_another_work_tree_is_kept(tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    first, _, commands = make_repository(work)
    closed = frozenset({"refs/heads/main"})
    refs = RefCarrier(OwnGit(work / ".git", tmp_path / "own"), {}, closed)
    seen = {"refs/heads/main": first}
    assert refs.carry(seen, {"refs/heads/main": commands}, seen) == []
    assert git(work, "rev-parse", "main") == first
    assert list_kept(work) == [commands]


def test_nothing_is_kept_of_a_commit_that_lacks_objects(tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    first, _, _ = make_repository(work)
    refs = RefCarrier(OwnGit(work / ".git", tmp_path / "own"), {}, frozenset())
    seen = {"refs/heads/main": first}
    assert refs.carry(seen, {"refs/heads/main": "1" * 40}, seen) == []
    assert list_kept(work) == []
    assert "objects are missing" in refs.notes[0]
    assert KEPT_PREFIX not in refs.notes[0]


def open_private(folder: Path, packed: str) -> OpenFolder:
    """Make the references of a private git folder."""
    (folder / "refs/heads").mkdir(parents=True)
    (folder / "packed-refs").write_text(f"{packed} refs/heads/main\n")
    return OpenFolder(folder)


@pytest.mark.parametrize("was_loose", [False, True])
def test_what_a_command_writes_meanwhile_counts_as_its_change(
    tmp_path: Path, *, was_loose: bool
) -> None:
    base, loose, users, commands = (letter * 40 for letter in "abcd")
    top = open_private(tmp_path / "private", base)
    file = tmp_path / "private/refs/heads/main"
    if was_loose:
        file.write_text(f"{loose}\n")
    current = read_refs(top, "")
    file.write_text(f"{commands}\n")
    real = ReadRefs({"refs/heads/main": users, "refs/heads/new": users}, {}, {}, None)
    seen = write_private_refs(top, "", current, real)
    # Not what the user has: else the command's would look like the later one.
    assert seen == {"refs/heads/main": loose if was_loose else base, "refs/heads/new": users}
    assert read_refs(top, "").refs == {"refs/heads/main": commands, "refs/heads/new": users}
    top.close()


def test_what_a_command_is_about_to_write_counts_as_its_change(tmp_path: Path) -> None:
    base, users = "a" * 40, "c" * 40
    top = open_private(tmp_path / "private", base)
    current = read_refs(top, "")
    (tmp_path / "private/refs/heads/main.lock").touch()
    real = ReadRefs({"refs/heads/main": users}, {}, {}, None)
    assert write_private_refs(top, "", current, real) == {"refs/heads/main": base}
    (tmp_path / "private/refs/heads/main.lock").unlink()
    current = read_refs(top, "")
    assert write_private_refs(top, "", current, real) == {"refs/heads/main": users}
    assert [*(tmp_path / "private/refs/heads").iterdir()] == []
    top.close()


@pytest.mark.parametrize("name", ["../../out/sub/x", "heads/../../../out/sub/x", "./x", "/x"])
def test_no_name_in_a_private_git_folder_leads_out_of_it(tmp_path: Path, name: str) -> None:
    commit = "a" * 40
    top = open_private(tmp_path / "private", commit)
    (tmp_path / "private/packed-refs").write_text(f"{commit} refs/{name}\n")
    current = read_refs(top, "")
    assert current.refs == {}
    with pytest.raises(OSError, match="not a path below"):
        top.make_folder(f"refs/{name}")
    write_private_refs(top, "", current, ReadRefs({}, {}, {}, None))
    assert [path.name for path in tmp_path.iterdir()] == ["private"]
    top.close()
