"""Which repository git would find, and what of it would run: compared with what git itself does."""

import os
import subprocess
from pathlib import Path

import pytest

from codeloop.workspace.git.discovery import find_repository

ENVIRONMENT = {"PATH": os.environ["PATH"], "HOME": "/nowhere", "GIT_CONFIG_NOSYSTEM": "1"}


def git(folder: Path, *words: str) -> str:
    run = subprocess.run(
        ["git", *words], cwd=folder, env=ENVIRONMENT, capture_output=True, text=True, check=False
    )
    return run.stdout.strip()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    top = tmp_path / "work"
    (top / "src" / "deep").mkdir(parents=True)
    git(top, "init", "-q")
    return top


def test_the_projects_own_repository_is_found_from_everywhere_below(root: Path) -> None:
    for folder in (root, root / "src", root / "src" / "deep"):
        found = find_repository(str(folder), root, {})
        assert (found.foreign_reason, found.program_reason, found.is_below_top) == (
            "",
            "",
            folder != root,
        )


def test_a_bare_repository_among_the_files_is_another_one(root: Path) -> None:
    evil = root / "vendor" / "evil"
    evil.mkdir(parents=True)
    git(root, "init", "-q", "--bare", str(evil))
    assert git(evil, "rev-parse", "--absolute-git-dir") == os.path.realpath(evil), (
        "git itself would take it"
    )
    assert "bare" in find_repository(str(evil), root, {}).foreign_reason
    assert "bare" in find_repository(str(evil / "objects"), root, {}).foreign_reason
    assert find_repository(str(root / "vendor"), root, {}).foreign_reason == ""


def test_a_repository_that_keeps_its_objects_elsewhere_is_another_one_too(root: Path) -> None:
    evil = root / "src"
    (evil / "HEAD").write_text("ref: refs/heads/main\n")
    (evil / "commondir").write_text("../elsewhere\n")
    assert find_repository(str(evil), root, {}).foreign_reason


def test_a_pointer_of_the_project_to_another_repository_may_run_programs(root: Path) -> None:
    git(root, "init", "-q", "--bare", str(root / "evil"))
    (root / ".git/commondir").write_text("../evil\n")
    assert git(root, "rev-parse", "--git-common-dir").endswith("evil"), "git itself follows it"
    assert "commondir" in find_repository(str(root), root, {}).program_reason


def test_nested_outside_and_inside_are_not_the_projects(root: Path, tmp_path: Path) -> None:
    git(root / "src", "init", "-q")
    (root / "link").symlink_to(tmp_path)
    assert (
        "another repository" in find_repository(str(root / "src" / "deep"), root, {}).foreign_reason
    )
    assert (
        find_repository(str(tmp_path), root, {}).foreign_reason
        == "git would run outside the project"
    )
    assert (
        find_repository(str(root / "link"), root, {}).foreign_reason
        == "git would run outside the project"
    )
    assert (
        find_repository(str(root / ".git" / "hooks"), root, {}).foreign_reason
        == "git would run inside .git"
    )
    assert (
        find_repository(str(root), root, {"GIT_DIR": "x"}).foreign_reason
        == "the environment sets GIT_DIR"
    )


def test_a_repository_above_a_project_that_has_none_is_not_the_projects(root: Path) -> None:
    assert (
        "another repository" in find_repository(str(root / "src"), root / "src", {}).foreign_reason
    )


def test_a_pointer_to_a_repository_among_the_files_is_not_the_projects(tmp_path: Path) -> None:
    top = tmp_path / "work"
    git(tmp_path, "init", "-q", "--bare", str(top / "vendor"))
    (top / ".git").write_text("gitdir: vendor\n")
    assert find_repository(str(top), top, {}).foreign_reason


@pytest.mark.parametrize(
    "setting",
    [
        "core.fsmonitor=./x", "diff.external=./x", "diff.a.textconv=./x", "diff.a.command=./x", "filter.a.clean=./x",
        "include.path=x", "includeIf.gitdir:/.path=x", "alias.log=!x", "gpg.program=./x", "core.sshCommand=x",
        "credential.helper=x", "extensions.partialClone=origin", "remote.origin.promisor=true", "core.worktree=..",
        "core.attributesFile=x", "made.up=x", "log.showSignature=true", "format.pretty=%G?",
    ],
)  # fmt: skip
def test_a_setting_that_may_run_something_is_named(root: Path, setting: str) -> None:
    name, _, value = setting.partition("=")
    git(root, "config", name, value)
    assert name.lower() in find_repository(str(root), root, {}).program_reason.lower()


def test_usual_settings_run_nothing(root: Path) -> None:
    for setting in (
        "user.name=x",
        "remote.origin.url=x",
        "branch.main.merge=refs/heads/main",
        "core.fsmonitor=false",
        "pull.rebase=true",
        "diff.algorithm=patience",
        "core.autocrlf=input",
        "lfs.url=x",
    ):
        git(root, "config", *setting.split("=", 1))
    assert find_repository(str(root), root, {}).program_reason == ""


def test_a_hook_that_looking_would_run_is_named(root: Path) -> None:
    git(root, "config", "core.hooksPath", ".husky/_")
    assert find_repository(str(root), root, {}).program_reason == ""
    (root / ".husky" / "_").mkdir(parents=True)
    (root / ".husky" / "_" / "post-index-change").write_text("#!/bin/sh\n")
    assert "post-index-change" in find_repository(str(root), root, {}).program_reason


@pytest.mark.parametrize(
    "text", ["[core\n", "[core]\nx = a \\\n b\n", "= x\n", "[core] fsmonitor = ./x\n"]
)
def test_what_is_not_understood_may_run_anything(root: Path, text: str) -> None:
    with (root / ".git" / "config").open("a") as config:
        config.write(text)
    assert find_repository(str(root), root, {}).program_reason


def test_submodules_are_read_by_git_too(root: Path) -> None:
    git(root, "update-index", "--add", "--cacheinfo", f"160000,{'1' * 40},sub")
    assert "submodules" in find_repository(str(root), root, {}).program_reason
