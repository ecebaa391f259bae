"""The user and a second codeloop commit while a command commits: no commit is lost, and the user's
git always finds what it needs.
"""

import asyncio

import pytest

from codeloop.schema.config import SandboxConfig
from codeloop.workspace.process.shells import CommandResult, ShellCommand, Shells
from codeloop.workspace.sandbox.sandboxes import Sandboxes
from tests.workspace.sandbox.conftest import Attacked
from tests.workspace.sandbox.test_git_folders import git

pytestmark = pytest.mark.slow
# The pause is longer than the time between two looks at what a command has changed, altogether.
COMMITTING = 'for i in $(seq 40); do echo $i > "{0}$i"; git add "{0}$i" && git commit -qm "{0}$i"; sleep 0.05; done'


@pytest.fixture
async def repo(it: Attacked) -> Attacked:
    """A repository with one commit."""
    if it.backend == "landlock":
        pytest.skip("Landlock mounts nothing")
    (it.root / "a.txt").write_text("1")
    git(it.root, "add", "-A")
    git(it.root, "commit", "-qm", "first")
    return it


def list_subjects(repo: Attacked) -> set[str]:
    """Return the subjects of all commits that a reference leads to."""
    return set(git(repo.root, "log", "--all", "--format=%s").split("\n"))


async def test_no_commit_of_the_user_or_of_a_command_is_lost(repo: Attacked) -> None:
    command = asyncio.create_task(repo.run(COMMITTING.format("m")))
    made: set[str] = set()
    number = 0
    while not command.done():
        number += 1
        words = ["commit", "-q", "--allow-empty", "-m", f"user{number}"]
        # Only while the command's changes are carried over, git may find a lock.
        ended = await asyncio.create_subprocess_exec(
            "git", *words, cwd=repo.root, env=dict(repo.context.environment), stderr=-1
        )
        _, errors = await ended.communicate()
        assert ended.returncode == 0 or b".lock" in errors or b"is at " in errors, errors
        made |= {f"user{number}"} if ended.returncode == 0 else set()
    result = await command
    subjects = list_subjects(repo)
    assert made <= subjects, (made - subjects, result)
    wanted = {f"m{number}" for number in range(1, 41)}
    lost = wanted - subjects
    # A commit that the user's git was faster than fails in the command itself, which says so.
    assert len(lost) <= result.output.count("cannot lock ref"), (lost, result)
    git(repo.root, "fsck", "--no-progress")


async def test_no_commit_of_two_codeloops_is_lost(repo: Attacked) -> None:
    other = Shells()
    other.sandboxes = Sandboxes(other.launcher, (repo.backend,))

    async def run_other(text: str) -> CommandResult:
        policy = other.make_policy(repo.place, SandboxConfig(network="off"))
        return await other.run(repo.context, ShellCommand(text, 120, None, policy), lambda _: None)

    line = "for i in $(seq 15); do git commit -q --allow-empty -m {}$i; done"
    try:
        for turn in "abcd":
            first, second = await asyncio.gather(
                repo.run(line.format(f"first-{turn}")), run_other(line.format(f"second-{turn}"))
            )
            wanted = {
                f"{who}-{turn}{number}" for who in ("first", "second") for number in range(1, 16)
            }
            lost = wanted - list_subjects(repo)
            assert not lost, (lost, first, second)
    finally:
        await other.close()
    git(repo.root, "fsck", "--no-progress")
