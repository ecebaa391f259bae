"""Packs a work tree into a git bundle, with uncommitted and untracked files,
and unpacks it on another machine.

`codeloop session move` uses it.
"""

import shutil
from pathlib import Path

from codeloop.kit.remove_tree import temporary_folder
from codeloop.schema.limits import WORKTREE_TIME
from codeloop.schema.wire import Wire
from codeloop.workspace.git.merge import read_identity_options
from codeloop.workspace.git.repository import Git
from codeloop.workspace.git.submodules import list_unsaved_repositories
from codeloop.workspace.git.worktrees import WorktreeRefused, describe_failure, read_line

_REF_PREFIX = "refs/codeloop/move"


class PackedWork(Wire):
    """The contents of a bundle.

    `head`: the commit that was checked out; `state`: a commit on top of it with all files;
    `branch`: the branch that was checked out, if any.
    """

    head: str
    state: str
    branch: str | None = None


async def pack_work(git: Git, file: Path) -> PackedWork:
    """Write a bundle of a work tree: the commits that no remote has, and its files.
    The work tree stays as it is.

    Raises WorktreeRefused: there is no commit, or the bundle would lack work of a repository
    inside. Raises GitFailed.
    """
    head = await git.resolve_commit("HEAD")
    if head is None:
        raise WorktreeRefused(f"{git.root} has no commit yet. Commit something first.")
    if unsaved_repositories := await list_unsaved_repositories(git):
        raise WorktreeRefused(
            f"{', '.join(unsaved_repositories[:3])} in {git.root} has work that would not be moved. "
            "Commit and push that first."
        )
    with temporary_folder("codeloop-git-") as folder:
        # In an index of its own, so that the user's stays as it is.
        index = folder / "index"
        user_index = git.open_folder().folder / "index"
        if user_index.is_file():
            # With the stats in the copy, git reads only the files that have changed.
            shutil.copyfile(user_index, index)
        read_line(
            await git.run("add", "--all", index=index, seconds=WORKTREE_TIME.seconds),
            "read the files",
        )
        tree_id = read_line(await git.run("write-tree", index=index), "store the files")
    arguments = (
        *read_identity_options(git),
        "commit-tree",
        tree_id,
        "-p",
        head,
        "-m",
        "What was uncommitted",
    )
    state = read_line(await git.run(*arguments), "store the files")
    # A bundle needs a reference to hold a commit.
    ref = f"{_REF_PREFIX}/{state}"
    try:
        read_line(await git.run("update-ref", ref, state), "name the files")
        arguments = ("bundle", "create", "--quiet", str(file), ref, "--not", "--remotes")
        read_line(await git.run(*arguments, seconds=WORKTREE_TIME.seconds), "write the bundle")
    finally:
        await git.run("update-ref", "-d", ref)
    return PackedWork(head=head, state=state, branch=await git.read_branch())


async def import_bundle(git: Git, file: Path, work: PackedWork) -> None:
    """Add the commits of a bundle to a repository. Raises WorktreeRefused,
    such as when earlier ones are missing.
    """
    output = await git.run("bundle", "unbundle", str(file), seconds=WORKTREE_TIME.seconds)
    if output.code != 0:
        raise WorktreeRefused(
            f"git can't read the bundle: {describe_failure(output)} "
            "In a clone of the same repository, `git fetch` first."
        )
    for commit in (work.head, work.state):
        if await git.resolve_commit(commit) is None:
            raise WorktreeRefused(f"The bundle lacks the commit {commit}.")


async def unpack_files(tree: Git, work: PackedWork) -> None:
    """Write the packed files into a new work tree at `head`;
    what was uncommitted is uncommitted again.
    """
    read_line(
        await tree.run("read-tree", "--reset", "-u", work.state, seconds=WORKTREE_TIME.seconds),
        "write the files",
    )
    # Without `-u`, git resets the index alone, so the files differ from it as before.
    read_line(await tree.run("read-tree", "--reset", work.head), "reset the index")
