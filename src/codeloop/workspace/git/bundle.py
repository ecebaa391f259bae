"""A work tree as one file, with what is uncommitted and untracked in it, and back again on another machine."""

import os
import shutil
import tempfile
from pathlib import Path

from codeloop.schema.limits import WORKTREE_TIME
from codeloop.schema.wire import Wire
from codeloop.workspace.git.merge import find_identity
from codeloop.workspace.git.repository import Git, GitOutput
from codeloop.workspace.git.submodules import list_unsaved_below
from codeloop.workspace.git.worktrees import WorktreeRefused, describe_failure, run_unfiltered

_REF = "refs/codeloop/move"


class PackedWork(Wire):
    """The contents of a bundle: `head` is the commit that was checked out, `state` a commit on top with all files.

    `branch`: the one that was checked out.
    """

    head: str
    state: str
    branch: str | None = None


async def pack_work(git: Git, file: Path) -> PackedWork:
    """Write a bundle of a work tree: the commits that no remote has, and its files. Nothing in it changes.

    Raises WorktreeRefused: there is no commit, or the bundle would lack work of a repository inside. Raises GitFailed.
    """
    head = await git.commit("HEAD")
    if head is None:
        raise WorktreeRefused(f"{git.root} has no commit yet. Commit something first.")
    if below := await list_unsaved_below(git):
        raise WorktreeRefused(
            f"{', '.join(below[:3])} in {git.root} has work that would not be moved. Commit and push that first."
        )
    with tempfile.TemporaryDirectory(prefix="codeloop-git-") as folder:
        index = Path(folder, "index")
        own = git.root / _read_line(await git.ask("rev-parse", "--git-path", "index"), "find the index")
        if own.is_file():
            shutil.copyfile(own, index)  # with the stats in it git reads only the files that have changed
        _read_line(await run_unfiltered(git, "add", "--all", index=index), "read the files")
        tree = _read_line(await git.ask("write-tree", index=index), "store the files")
    words = (*await find_identity(git), "commit-tree", tree, "-p", head, "-m", "What was uncommitted")
    state = _read_line(await git.ask(*words), "store the files")
    ref = f"{_REF}/{state}"  # a bundle holds references, not commits alone
    try:
        _read_line(await git.ask("update-ref", ref, state), "name the files")
        words = ("bundle", "create", "--quiet", str(file), ref, "--not", "--remotes")
        _read_line(await git.ask(*words, seconds=WORKTREE_TIME.seconds), "write the bundle")
    finally:
        await git.ask("update-ref", "-d", ref)
    return PackedWork(head=head, state=state, branch=await git.branch())


async def take_bundle(git: Git, file: Path, work: PackedWork) -> None:
    """Take the commits of a bundle into a repository. Raises WorktreeRefused, also when earlier ones are missing."""
    output = await git.ask("bundle", "unbundle", str(file), seconds=WORKTREE_TIME.seconds)
    if output.code != 0:
        raise WorktreeRefused(
            f"git can't read the bundle: {describe_failure(output)} "
            "In a clone of the same repository, `git fetch` first."
        )
    for commit in (work.head, work.state):
        if await git.commit(commit) is None:
            raise WorktreeRefused(f"The bundle lacks the commit {commit}.")


async def unpack_files(tree: Git, work: PackedWork) -> None:
    """Write the files as they were into a new work tree at `head`; what was uncommitted is so again."""
    _read_line(await run_unfiltered(tree, "read-tree", "--reset", "-u", work.state), "write the files")
    # Without `-u` the files stay, and differ from the index again.
    _read_line(await run_unfiltered(tree, "read-tree", "--reset", work.head), "reset the index")


def _read_line(output: GitOutput, what: str) -> str:
    if output.code != 0:
        raise WorktreeRefused(f"git can't {what}: {describe_failure(output)}")
    return os.fsdecode(output.data).partition("\n")[0]
