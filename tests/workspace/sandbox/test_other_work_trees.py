"""What commands in one work tree can do to the others: in each kind of sandbox."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import NamedTuple

import pytest

from codeloop.workspace.process.shells import ShellContext, Shells
from codeloop.workspace.sandbox.policy import PolicyInput
from codeloop.workspace.sandbox.sandboxes import Sandboxes
from tests.workspace.sandbox.conftest import Attacked
from tests.workspace.sandbox.test_planted import git


class Trees(NamedTuple):
    """Two further work trees beside the main one, and commands in the first."""

    first: Path
    second: Path
    inside: Attacked


@pytest.fixture
async def trees(it: Attacked) -> AsyncIterator[Trees]:
    (it.root / "a.txt").write_text("one\n")
    git(it, it.root, "add", "-A")
    git(it, it.root, "commit", "-qm", "first")
    first, second = it.home.parent / "first", it.home.parent / "second"
    for tree in (first, second):
        git(it, it.root, "worktree", "add", "-q", "-b", tree.name, str(tree))
    place = PolicyInput(first, first, it.place.scratch, it.place.environment, it.place.own_folders)
    context = ShellContext("ses_1", first, it.place.environment, it.place.scratch)
    shells = Shells()
    shells.sandboxes = Sandboxes(shells.launcher, (it.backend,))
    yield Trees(first, second, it._replace(root=first, shells=shells, place=place, context=context))
    await shells.close()


@pytest.mark.slow
async def test_a_tree_commits_to_its_own_branch_and_writes_nothing_into_the_others(
    it: Attacked, trees: Trees
) -> None:
    main, (_, second, inside) = it.root, trees
    for folder in (main, second):
        for line in (
            f"echo leak > {folder}/a.txt",
            f"echo leak > {folder}/new",
            f"rm -f {folder}/a.txt",
        ):
            await inside.run(line)
        assert (folder / "a.txt").read_text() == "one\n"
        assert not (folder / "new").exists()
    own = await inside.run(
        "echo two > a.txt && git add -A && git commit -qm mine && git log --oneline | wc -l"
    )
    assert own.output.strip() == "2", own.output
    if it.backend == "landlock":
        pytest.skip("Landlock knows no exceptions below a folder that may be written")
    shared, branch = main / ".git", git(it, main, "branch", "--show-current").strip()
    before = {path: path.read_bytes() for path in (shared / "HEAD", shared / "index")}
    commit = git(it, second, "rev-parse", "HEAD")
    lines = (
        f"echo 'ref: refs/heads/first' > {shared}/HEAD",
        f"rm -f {shared}/index",
        f"rm -rf {shared}/worktrees/second",
        f"git --git-dir={shared} --work-tree={main} checkout -f first",
        f"git update-ref refs/heads/{branch} HEAD",
        "git update-ref refs/heads/second HEAD",
        "git worktree remove --force " + str(second),
    )
    for line in lines:
        await inside.run(line)
    assert {path: path.read_bytes() for path in before} == before
    assert git(it, main, "status", "--porcelain") == git(it, second, "status", "--porcelain") == ""
    assert git(it, second, "rev-parse", "HEAD") == commit
    assert git(it, main, "rev-parse", "HEAD") == commit


@pytest.mark.slow
async def test_a_branch_of_another_tree_stays_where_it_is_when_git_has_packed_it(
    it: Attacked, trees: Trees
) -> None:
    if it.backend == "landlock":
        pytest.skip("Landlock knows no exceptions below a folder that may be written")
    main, (_, second, inside) = it.root, trees
    commit, branch = (
        git(it, main, "rev-parse", "HEAD"),
        git(it, main, "branch", "--show-current").strip(),
    )
    git(it, main, "pack-refs", "--all", "--prune")
    own = await inside.run(
        "echo two > a.txt && git add -A && git commit -qm mine && git log --oneline | wc -l"
    )
    assert own.output.strip() == "2", own.output
    for name in (branch, "second"):
        for line in ("git update-ref refs/heads/{0} HEAD", "echo {1} > {2}/.git/refs/heads/{0}"):
            await inside.run(line.format(name, "0" * 40, main))
    await inside.run(f"sed -i 's/^[0-9a-f]\\{{40\\}}/{'0' * 40}/' {main}/.git/packed-refs")
    assert git(it, main, "rev-parse", "HEAD") == git(it, second, "rev-parse", "HEAD") == commit
    assert git(it, main, "status", "--porcelain") == git(it, second, "status", "--porcelain") == ""
    assert not list((main / ".git/refs").rglob("*.lock"))


@pytest.mark.slow
async def test_what_another_tree_does_meanwhile_stays(it: Attacked, trees: Trees) -> None:
    _, second, inside = trees
    await inside.run("true")
    (second / "b.txt").write_text("b\n")
    git(it, second, "add", "-A")
    git(it, second, "commit", "-qm", "second")
    commit = git(it, second, "rev-parse", "HEAD")
    outcome = await inside.run("git rev-parse second")
    assert outcome.output.strip() == commit.strip()
    assert git(it, second, "rev-parse", "HEAD") == commit
    assert git(it, second, "status", "--porcelain") == ""
