"""Work trees and project ids, in real git repositories."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from codeloop.config.paths import Paths, find_paths
from codeloop.config.project_root import ProjectRoot, find_project_root
from codeloop.schema.errors import CodeloopError

NO_GIT = {"PATH": "/nonexistent"}


@pytest.fixture
def paths(tmp_path: Path) -> Paths:
    return find_paths({"CODELOOP_HOME": str(tmp_path / "home")})


def git(folder: Path, *arguments: str) -> str:
    identity = ("-c", "user.name=t", "-c", "user.email=t@t", "-c", "init.defaultBranch=main")
    more = ("-c", "protocol.file.allow=always")
    environment = {**os.environ, "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null"}
    command = ["git", *identity, *more, *arguments]
    return subprocess.run(
        command, cwd=folder, env=environment, check=True, capture_output=True, text=True
    ).stdout


def repository(folder: Path, *, commit: str | None = "first") -> str:
    folder.mkdir(parents=True)
    git(folder, "init", "-q")
    if commit is None:
        return ""
    git(folder, "commit", "-q", "--allow-empty", "-m", commit)
    return git(folder, "rev-list", "--max-parents=0", "HEAD").strip()


def place(folder: Path, paths: Paths) -> ProjectRoot:
    return find_project_root(folder, paths, os.environ)


def test_the_root_commit_names_the_project_from_any_folder_of_it(
    tmp_path: Path, paths: Paths
) -> None:
    root = repository(tmp_path / "repo")
    git(tmp_path / "repo", "commit", "-q", "--allow-empty", "-m", "second")
    inner = tmp_path / "repo" / "a" / "b"
    inner.mkdir(parents=True)
    assert place(inner, paths) == ProjectRoot(tmp_path / "repo", inner, root, "git")


def test_a_known_repository_needs_no_process(tmp_path: Path, paths: Paths) -> None:
    root = repository(tmp_path / "repo")
    place(tmp_path / "repo", paths)
    assert find_project_root(tmp_path / "repo", paths, NO_GIT).project_id == root


def test_a_repository_made_anew_gets_its_own_id(tmp_path: Path, paths: Paths) -> None:
    first = repository(tmp_path / "repo")
    assert place(tmp_path / "repo", paths).project_id == first
    shutil.rmtree(tmp_path / "repo")
    second = repository(tmp_path / "repo", commit="another")
    assert place(tmp_path / "repo", paths).project_id == second != first


def test_of_several_root_commits_the_first_in_order_counts(tmp_path: Path, paths: Paths) -> None:
    folder = tmp_path / "repo"
    repository(folder)
    git(folder, "checkout", "-q", "--orphan", "other")
    git(folder, "commit", "-q", "--allow-empty", "-m", "second root")
    git(folder, "merge", "-q", "--allow-unrelated-histories", "-m", "both", "main")
    roots = git(folder, "rev-list", "--max-parents=0", "HEAD").split()
    assert len(roots) == 2
    assert place(folder, paths).project_id == min(roots)


def test_outside_a_repository_the_directory_is_its_own_root(tmp_path: Path, paths: Paths) -> None:
    assert place(tmp_path, paths) == ProjectRoot(tmp_path, tmp_path, "global", None)


def test_a_repository_without_commits_is_global_until_its_first_one(
    tmp_path: Path, paths: Paths
) -> None:
    folder = tmp_path / "repo"
    repository(folder, commit=None)
    assert find_project_root(folder, paths, NO_GIT) == ProjectRoot(folder, folder, "global", "git")
    git(folder, "commit", "-q", "--allow-empty", "-m", "first")
    assert place(folder, paths).project_id == git(folder, "rev-parse", "HEAD").strip()


def test_a_linked_work_tree_is_the_same_project_at_its_own_root(
    tmp_path: Path, paths: Paths
) -> None:
    root = repository(tmp_path / "repo")
    git(tmp_path / "repo", "worktree", "add", "-q", str(tmp_path / "linked"))
    assert place(tmp_path / "linked", paths) == ProjectRoot(
        tmp_path / "linked", tmp_path / "linked", root, "git"
    )


def test_a_submodule_is_a_project_of_its_own(tmp_path: Path, paths: Paths) -> None:
    inner = repository(tmp_path / "library", commit="library")
    outer = repository(tmp_path / "repo", commit="outer")
    git(tmp_path / "repo", "submodule", "add", "-q", str(tmp_path / "library"), "lib")
    assert place(tmp_path / "repo" / "lib", paths) == ProjectRoot(
        tmp_path / "repo" / "lib", tmp_path / "repo" / "lib", inner, "git"
    )
    assert place(tmp_path / "repo", paths).project_id == outer


def test_an_embedded_bare_repository_is_only_a_folder(tmp_path: Path, paths: Paths) -> None:
    outer = repository(tmp_path / "repo")
    bare = tmp_path / "repo" / "fixtures" / "bare"
    bare.mkdir(parents=True)
    git(bare, "init", "-q", "--bare")
    assert place(bare, paths) == ProjectRoot(tmp_path / "repo", bare, outer, "git")


def test_git_runs_nothing_that_the_repository_configures(tmp_path: Path, paths: Paths) -> None:
    folder = tmp_path / "repo"
    root = repository(folder)
    trap = tmp_path / "trap"
    trap.write_text(f"#!/bin/sh\ntouch {tmp_path}/sprung\n")
    trap.chmod(0o755)
    for key in ("core.fsmonitor", "core.sshCommand", "core.pager", "core.editor", "alias.rev-list"):
        git(folder, "config", key, f"!{trap}" if key.startswith("alias") else str(trap))
    (folder / ".git" / "hooks" / "reference-transaction").symlink_to(trap)
    assert place(folder, paths).project_id == root
    assert not (tmp_path / "sprung").exists()


def test_variables_of_git_do_not_lead_elsewhere(tmp_path: Path, paths: Paths) -> None:
    root = repository(tmp_path / "repo")
    repository(tmp_path / "other", commit="other")
    environment = {
        **os.environ,
        "GIT_DIR": str(tmp_path / "other" / ".git"),
        "GIT_CONFIG_COUNT": "x",
    }
    assert find_project_root(tmp_path / "repo", paths, environment).project_id == root


def test_without_git_the_path_names_the_project_for_now(tmp_path: Path, paths: Paths) -> None:
    root = repository(tmp_path / "repo")
    first = find_project_root(tmp_path / "repo", paths, NO_GIT)
    assert first == find_project_root(tmp_path / "repo", paths, NO_GIT)
    assert first.vcs == "git"
    assert first.project_id not in {"global", root}
    assert place(tmp_path / "repo", paths).project_id == root


def test_a_git_that_hangs_is_given_up(
    tmp_path: Path, paths: Paths, monkeypatch: pytest.MonkeyPatch
) -> None:
    from codeloop.config import project_root

    repository(tmp_path / "repo")
    slow = tmp_path / "bin" / "git"
    slow.parent.mkdir()
    slow.write_text("#!/bin/sh\nexec sleep 30\n")
    slow.chmod(0o755)
    limit = type(project_root.PROJECT_ID_TIME)("config.project_id", 50, "ms", "")
    monkeypatch.setattr(project_root, "PROJECT_ID_TIME", limit)
    found = find_project_root(tmp_path / "repo", paths, {"PATH": f"{slow.parent}:/bin:/usr/bin"})
    assert len(found.project_id) == 40
    assert find_project_root(tmp_path / "repo", paths, NO_GIT) == found


def test_a_broken_or_read_only_cache_costs_only_time(tmp_path: Path, paths: Paths) -> None:
    root = repository(tmp_path / "repo")
    place(tmp_path / "repo", paths)
    (entry,) = (paths.cache / "repository").iterdir()
    entry.write_text("{broken")
    assert place(tmp_path / "repo", paths).project_id == root
    shutil.rmtree(paths.cache)
    paths.cache.parent.mkdir(exist_ok=True)
    paths.cache.write_text("a file where the folder should be")
    assert place(tmp_path / "repo", paths).project_id == root


@pytest.mark.parametrize("content", ["", "gitdir: /nonexistent", "nonsense", "gitdir: \0"])
def test_a_git_file_that_leads_nowhere_is_no_repository(
    tmp_path: Path, paths: Paths, content: str
) -> None:
    (tmp_path / ".git").write_text(content)
    assert place(tmp_path, paths).vcs is None


def test_a_link_to_a_directory_is_followed(tmp_path: Path, paths: Paths) -> None:
    root = repository(tmp_path / "repo")
    (tmp_path / "link").symlink_to(tmp_path / "repo")
    assert place(tmp_path / "link", paths) == ProjectRoot(
        tmp_path / "repo", tmp_path / "repo", root, "git"
    )


def test_a_directory_that_can_not_be_used_is_a_clear_error(tmp_path: Path, paths: Paths) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    for name in ("missing", "file", "loop"):
        with pytest.raises(
            CodeloopError, match=f"The directory .*{name} can't be used: .*Choose another"
        ):
            place(tmp_path / name, paths)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_directory_without_permission_is_a_clear_error(tmp_path: Path, paths: Paths) -> None:
    locked = tmp_path / "locked"
    locked.mkdir(mode=0)
    with pytest.raises(CodeloopError, match="Permission denied"):
        place(locked, paths)


def test_work_trees_of_one_project_share_no_folder_for_outputs(
    tmp_path: Path, paths: Paths
) -> None:
    repository(tmp_path / "a")
    git(tmp_path, "clone", "-q", str(tmp_path / "a"), "b")
    (tmp_path / "c").mkdir()
    (tmp_path / "d").mkdir()
    places = [place(tmp_path / name, paths) for name in "abcd"]
    assert places[0].project_id == places[1].project_id
    assert places[2].project_id == places[3].project_id == "global"
    assert len({each.get_scratch_folder(tmp_path / "home") for each in places}) == 4
    long = ProjectRoot(Path("/" + "ü/" * 300 + "x"), Path("/"), "global", None)
    assert len(os.fsencode(long.get_scratch_folder(tmp_path).name)) <= 255
