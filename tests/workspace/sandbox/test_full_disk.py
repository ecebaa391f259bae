"""A commit that could not be carried over for lack of space is there as soon as there is room."""

import os
import subprocess
from pathlib import Path

import pytest

from codeloop.schema.config import SandboxConfig
from codeloop.workspace.process.shells import CommandResult, ShellCommand, ShellContext, Shells
from codeloop.workspace.sandbox.policy import PolicyInput
from codeloop.workspace.sandbox.sandbox import SandboxUnavailable
from tests.workspace.sandbox.test_git_folders import git

CONFIG = SandboxConfig(network="off")
FILL = "head -c 30000000 /dev/urandom > fill; git add fill; true"


@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount")
async def test_a_commit_made_on_a_full_disk_is_not_lost(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    root, own = disk / "work", disk / "home/data"
    disk.mkdir()
    if subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=12m", "tmpfs", disk], check=False
    ).returncode:
        pytest.skip("nothing can be mounted here")
    shells = Shells()
    try:
        root.mkdir()
        (own / "tool-output").mkdir(parents=True)
        for words in (
            ["init", "-q"],
            ["config", "user.email", "a@b"],
            ["config", "user.name", "A"],
        ):
            git(root, *words)
        git(root, "commit", "-qm", "one", "--allow-empty")
        environment = {"PATH": os.defpath, "HOME": str(disk / "home")}
        place = PolicyInput(root, root, own / "tool-output", environment, (own,))

        async def run(text: str) -> CommandResult:
            policy = shells.make_policy(place, CONFIG)
            context = ShellContext("ses_1", root, environment, own / "tool-output")
            return await shells.run(context, ShellCommand(text, 120, None, policy), lambda _: None)

        try:
            first = await run("true")
        except SandboxUnavailable as error:
            pytest.skip(str(error))
        assert first.code == 0
        await run(f"echo 2 > g; git add g; git commit -qm two; {FILL}")
        (root / "fill").unlink()
        result = await run("git log --format=%s")
        assert result.output.split() == git(root, "log", "--format=%s").split() == ["two", "one"]
        git(root, "fsck", "--no-progress")
    finally:
        await shells.close()
        subprocess.run(["umount", "-l", disk], check=True)
