"""Repositories of the user below the project have private git folders, too."""

import subprocess

import pytest

from codeloop.schema.config import SandboxConfig
from tests.workspace.sandbox.conftest import Attacked
from tests.workspace.sandbox.test_git_folders import DELETIONS, git

pytestmark = pytest.mark.slow


@pytest.fixture
async def nested(it: Attacked) -> Attacked:
    """A project with a repository of the user in `vendor/lib`."""
    if it.backend == "landlock":
        pytest.skip("Landlock mounts nothing")
    folder = it.root / "vendor/lib"
    folder.mkdir(parents=True)
    subprocess.run(["cp", "-a", it.root / ".git", folder / ".git"], check=True)
    for name in ("one", "two"):
        (folder / "a.txt").write_text(f"{name}\n")
        git(folder, "add", "-A")
        git(folder, "commit", "-qm", name)
    git(folder, "tag", "v1")
    git(folder, "branch", "side", "HEAD~1")
    (folder / "a.txt").write_text("stashed\n")
    git(folder, "stash", "-q")
    await it.shells.scan_work_tree(it.place, SandboxConfig(network="off"))
    return it


async def test_no_command_takes_anything_from_a_nested_repository(nested: Attacked) -> None:
    folder = nested.root / "vendor/lib"
    names = ("refs/heads/master", "refs/heads/side", "refs/stash")
    commits = {name: git(folder, "rev-parse", name) for name in names}
    for line in ("rm -rf vendor", *(f"cd vendor/lib; {line}" for line in DELETIONS)):
        result = await nested.run(line)
        git(folder, "fsck", "--no-progress")
        everything = git(folder, "for-each-ref", "--format=%(objectname)").split()
        everything += git(folder, "reflog", "--all", "--format=%H").split()
        assert set(commits.values()) <= set(everything), (line, result)
        await nested.shells.scan_work_tree(nested.place, SandboxConfig(network="off"))


async def test_everyday_git_works_in_a_nested_repository(nested: Attacked) -> None:
    folder = nested.root / "vendor/lib"
    line = "cd vendor/lib; echo three > a.txt; git commit -qam three; git checkout -qb topic; git stash list"
    result = await nested.run(line)
    assert result.code == 0
    assert "stash@{0}" in result.output
    assert git(folder, "log", "-1", "--format=%s", "topic") == "three"
    assert git(folder, "status", "--porcelain") == ""
    await nested.run(
        "cd vendor/lib; printf '[core]\\n\\tfsmonitor = touch planted\\n' >> .git/config; echo > .git/commondir"
    )
    assert not (folder / ".git/commondir").exists()
    assert "fsmonitor" not in (folder / ".git/config").read_text()
