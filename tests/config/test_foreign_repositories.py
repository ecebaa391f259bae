"""A repository counts only where it is the user's own and names the work tree: `safe.directory`,
links, pointers.
"""

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from codeloop.config.paths import find_paths
from codeloop.config.project_root import ProjectRoot, find_project_root
from codeloop.kit.git import find_git_folder
from codeloop.schema.errors import CodeloopError
from codeloop.workspace.git.discovery import find_repository
from codeloop.workspace.git.planted.layout import find_git_folders
from codeloop.workspace.git.private.units import is_supported
from codeloop.workspace.git.repository import Git
from codeloop.workspace.git.worktrees import Worktrees
from tests.workspace.snapshot.trees_on_disk import git, repository, write

NOBODY = 65_534


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "home"
    folder.mkdir()
    monkeypatch.setenv("HOME", str(folder))
    return folder


def find(directory: Path) -> ProjectRoot:
    home = os.environ["HOME"]
    environment = {"PATH": os.environ["PATH"], "HOME": home}
    return find_project_root(
        directory, find_paths({"CODELOOP_HOME": f"{home}/codeloop"}), environment
    )


def list_as_safe(home: Path, folder: str | Path) -> None:
    git(home, "config", "--file", str(home / ".gitconfig"), "--add", "safe.directory", str(folder))


def by_link(other: Path, evil: Path) -> None:
    (evil / ".git").symlink_to(other / ".git")


def by_relative_link(other: Path, evil: Path) -> None:
    (evil / ".git").symlink_to(os.path.relpath(other / ".git", evil))


def by_link_to_a_link(other: Path, evil: Path) -> None:
    (evil / "link").symlink_to(other)
    (evil / ".git").symlink_to("link/.git")


def by_file(other: Path, evil: Path) -> None:
    (evil / ".git").write_text(f"gitdir: {other / '.git'}\n")


def by_file_to_a_folder_that_looks_like_one(other: Path, evil: Path) -> None:
    shutil.copytree(other / ".git", other / "files")
    (evil / ".git").write_text("gitdir: ../other/files\n")


def by_file_to_a_bare_repository(other: Path, evil: Path) -> None:
    git(other, "clone", "-q", "--bare", str(other), str(other.parent / "bare.git"))
    (evil / ".git").write_text("gitdir: ../bare.git\n")


def by_link_to_the_file_of_a_linked_work_tree(other: Path, evil: Path) -> None:
    git(other, "worktree", "add", "-q", str(other.parent / "linked"))
    (evil / ".git").symlink_to(other.parent / "linked/.git")


def by_copy_of_the_file_of_a_linked_work_tree(other: Path, evil: Path) -> None:
    git(other, "worktree", "add", "-q", str(other.parent / "linked"))
    shutil.copy(other.parent / "linked/.git", evil / ".git")


def by_own_folder_with_a_common_one_elsewhere(other: Path, evil: Path) -> None:
    (evil / "own").mkdir()
    write(evil / "own", {"HEAD": "ref: refs/heads/main\n", "commondir": f"{other / '.git'}\n"})
    (evil / "own/gitdir").write_text(f"{evil / '.git'}\n")
    (evil / ".git").write_text("gitdir: own\n")


def by_links_in_a_folder(other: Path, evil: Path) -> None:
    (evil / ".git").mkdir()
    (evil / ".git/HEAD").write_text("ref: refs/heads/main\n")
    for name in ("objects", "refs"):
        (evil / ".git" / name).symlink_to(other / ".git" / name)


LINKS = (
    *(
        by_link,
        by_relative_link,
        by_link_to_a_link,
        by_file,
        by_file_to_a_folder_that_looks_like_one,
    ),
    *(by_file_to_a_bare_repository, by_link_to_the_file_of_a_linked_work_tree),
    by_copy_of_the_file_of_a_linked_work_tree,
)


@pytest.mark.parametrize("lead", LINKS)
async def test_a_git_entry_that_leads_to_another_repository_is_none(
    tmp_path: Path, home: Path, lead: Callable[[Path, Path], None]
) -> None:
    other = repository(tmp_path / "other", {"a.txt": "secret\n"})
    evil = tmp_path / "evil"
    evil.mkdir()
    lead(other, evil)
    found = find(evil)
    assert (found.vcs, found.root) == (None, evil)
    assert f"git config --global --add safe.directory {evil}" in found.warning
    assert list(find_git_folders(evil)) == []
    assert "elsewhere" in find_repository(str(evil), evil, {}).foreign_reason
    with pytest.raises(CodeloopError, match=r"safe\.directory"):
        await Git(evil, dict(os.environ)).resolve_commit("HEAD")
    list_as_safe(home, "*")
    assert find(evil).vcs is None, "`*` is about owners"
    list_as_safe(home, evil)
    assert (find(evil).vcs, find(evil).warning) == ("git", "")
    assert await Git(evil, dict(os.environ)).resolve_commit("HEAD") is not None


@pytest.mark.parametrize(
    "name",
    ["refs/heads", "refs/tags", "logs/refs/heads", "logs/HEAD", "objects/pack", "objects/0a"],
)
async def test_nothing_is_written_through_a_link_deep_in_a_git_folder(
    tmp_path: Path, name: str
) -> None:
    other = repository(tmp_path / "other", {"a.txt": "secret\n"})
    evil = repository(tmp_path / "evil", {"b.txt": "b\n"})
    if name != "logs/HEAD":
        (other / ".git" / name).mkdir(parents=True, exist_ok=True)
    subprocess.run(["rm", "-rf", evil / ".git" / name], check=True)
    (evil / ".git" / name).symlink_to(other / ".git" / name)
    before = sorted((str(path), path.stat().st_size) for path in other.rglob("*"))
    with pytest.raises(CodeloopError, match="is a link to another repository"):
        await Worktrees(Git(evil, dict(os.environ))).add(tmp_path / "tree", "made")
    assert sorted((str(path), path.stat().st_size) for path in other.rglob("*")) == before
    assert not is_supported(evil / ".git"), "sandboxed commands only read it"


@pytest.mark.parametrize("lead", [by_own_folder_with_a_common_one_elsewhere, by_links_in_a_folder])
async def test_no_object_of_another_repository_is_read(
    tmp_path: Path, lead: Callable[[Path, Path], None]
) -> None:
    other = repository(tmp_path / "other", {"a.txt": "secret\n"})
    evil = tmp_path / "evil"
    evil.mkdir()
    lead(other, evil)
    find(evil)
    with pytest.raises(CodeloopError):
        await Git(evil, dict(os.environ)).resolve_commit("HEAD")


def test_what_leads_back_is_a_repository(tmp_path: Path) -> None:
    root = repository(tmp_path / "work", {"a.txt": "a\n"})
    git(root, "worktree", "add", "-q", str(tmp_path / "linked"))
    git(
        root,
        "submodule",
        "--quiet",
        "add",
        str(repository(tmp_path / "module", {"m.txt": "m\n"})),
        "sub",
    )
    git(
        root,
        "init",
        "-q",
        "--separate-git-dir",
        str(tmp_path / "apart.git"),
        str(tmp_path / "apart"),
    )
    assert find(tmp_path / "apart").vcs is None
    git(
        root,
        "--git-dir",
        str(tmp_path / "apart.git"),
        "config",
        "core.worktree",
        str(tmp_path / "apart"),
    )
    inside = tmp_path / "inside"
    git(root, "init", "-q", "--separate-git-dir", str(inside / "data.git"), str(inside))
    for top in (root, tmp_path / "linked", root / "sub", tmp_path / "apart", inside):
        assert (find(top).vcs, find(top).root, find(top).warning) == ("git", top, "")
    (tmp_path / "alias").symlink_to(tmp_path / "linked")
    assert find_git_folder(tmp_path / "alias") is not None


def test_what_is_around_a_refused_folder_counts(tmp_path: Path) -> None:
    other = repository(tmp_path / "other", {"a.txt": "a\n"})
    root = repository(tmp_path / "work", {"vendor/a.txt": "a\n"})
    by_link(other, root / "vendor")
    found = find(root / "vendor")
    assert (found.vcs, found.root) == ("git", root)
    assert "safe.directory" in found.warning


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file to another user")
@pytest.mark.parametrize("name", [".git", "."])
def test_the_repository_of_another_user_is_none(
    tmp_path: Path, home: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    shared = repository(tmp_path / "shared", {"a.txt": "a\n"})
    (shared / "mine").mkdir()
    os.chown(shared / name, NOBODY, -1)
    found = find(shared / "mine")
    assert (found.vcs, found.root, found.project_id) == (None, shared / "mine", "global")
    assert f"git config --global --add safe.directory {shared}" in found.warning
    assert (
        "another repository"
        in find_repository(str(shared / "mine"), shared / "mine", {}).foreign_reason
    )
    monkeypatch.setenv("SUDO_UID", str(NOBODY))
    assert find_project_root(shared, find_paths(os.environ), os.environ).vcs == "git", (
        "whoever called sudo"
    )
    monkeypatch.delenv("SUDO_UID")
    with (shared / ".git/config").open("a") as config:
        config.write("[safe]\n\tdirectory = *\n")
    assert find(shared).vcs is None, "the repository's own word counts for nothing"
    for value, is_safe in (
        ("*", True),
        ("", False),
        (shared, True),
        ("", False),
        (f"{tmp_path}/*", True),
    ):
        list_as_safe(home, value)
        assert (find(shared).vcs == "git") is is_safe
