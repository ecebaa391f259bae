"""Creates linked work trees of a repository; removes (unless forced) and resets them only where nothing is lost.

No hook that the repository configures is run, and its filter programs only for a trusted project: elsewhere a file that
a filter would convert is checked out as it is stored.
"""

import asyncio
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from codeloop.kit.git import find_common_folder, find_git_folder
from codeloop.kit.remove_tree import remove_tree
from codeloop.schema.errors import CodeloopError
from codeloop.schema.limits import WORKTREE_TIME
from codeloop.workspace.git.repository import Git, GitOutput
from codeloop.workspace.git.submodules import list_submodules, list_unsaved_repositories, prune_submodule_worktrees
from codeloop.workspace.git.working_diff import list_changes

# Settings that name a filter or merge program, and `filter.x.required`, which makes a missing filter an error.
_PROGRAM_SETTINGS = r"^(filter\..*\.(smudge|clean|process|required)|merge\..*\.driver)$"
# The last word of a setting -> the value that switches its program off; any other is set to "". For a merge driver,
# `false` is the program of that name: it fails, which leaves a conflict.
_REPLACEMENTS = {"required": "false", "driver": "false"}
_FILES_SHOWN = 3
# Below the threshold, starting processes would cost more than writing in parallel saves.
_PARALLEL_CHECKOUT = ("-c", f"checkout.workers={os.cpu_count() or 1}", "-c", "checkout.thresholdForParallelism=1000")


class WorktreeRefused(CodeloopError):
    """A work tree can't be made or changed, or removing it would lose something; the message says what to do.

    `is_unsaved`: it has changes or commits that are nowhere else.
    """

    def __init__(self, message: str, *, is_unsaved: bool = False) -> None:
        super().__init__(message)
        self.is_unsaved = is_unsaved


class Worktrees(Struct, frozen=True):
    """The linked work trees of the repository of `git`.

    `is_trusted`: filters that the user and the repository configure are run (git-lfs, for example).
    """

    git: Git
    is_trusted: bool = False

    @property
    def environment(self) -> Mapping[str, str]:
        """The variables that git is run with."""
        return self.git.environment

    async def list_folders(self) -> list[Path]:
        """Return the existing folders of all work trees but the repository's own. Raises GitFailed."""
        output = await self.git.run("worktree", "list", "--porcelain", "-z")
        rows = os.fsdecode(output.data).split("\0")
        paths = [Path(row.removeprefix("worktree ")) for row in rows if row.startswith("worktree ")]
        # git lists the repository's own work tree first.
        return [folder for folder in paths[1:] if folder.is_dir()]

    async def add(self, folder: Path, branch: str | None, start: str = "HEAD", sparse: Sequence[str] = ()) -> None:
        """Make a work tree of a commit, with a new branch, or without one. `sparse`: the only folders in it; none: all.

        Raises WorktreeRefused, GitFailed; nothing is left of one that could not be made.
        """
        if await self.git.resolve_commit(start) is None:
            raise WorktreeRefused(
                f"{self.git.root} has no commit yet. Commit something, then make a work tree."
                if start == "HEAD"
                else f"There is no branch or commit {start}. Name one that `git log` shows."
            )
        if os.path.lexists(folder):
            raise WorktreeRefused(f"{folder} exists already. Choose another name.")
        is_new_branch = branch is None or await self.git.resolve_commit(f"refs/heads/{branch}") is None
        branch_options = ("--detach",) if branch is None else ("-b", branch)
        checkout_options = ("--no-checkout",) if sparse else ()
        arguments = ("worktree", "add", "--quiet", *checkout_options, *branch_options, "--", str(folder), start)
        output = await self.run(self.git, *_PARALLEL_CHECKOUT, *arguments)
        if output.code == 0 and sparse:
            tree = Git(folder, self.environment)
            output = await self.run(tree, "sparse-checkout", "set", "--cone", "--end-of-options", *sparse)
            if output.code == 0:
                output = await self.run(tree, *_PARALLEL_CHECKOUT, "read-tree", "-m", "-u", "HEAD")
        if output.code == 0:
            return
        # A checkout that failed half-way leaves the folder and the branch.
        if folder.is_dir():
            await run_unfiltered(self.git, "worktree", "remove", "--force", "--", str(folder))
        if branch is not None and is_new_branch:
            await self.git.run("branch", "--quiet", "-D", "--", branch)
        raise WorktreeRefused(f"git can't make the work tree {folder}: {describe_failure(output)}")

    async def remove(self, folder: Path, *, force: bool = False) -> None:
        """Remove a work tree, and its branch when its commits are in another one.

        Raises WorktreeRefused: it has what would be lost (unless `force`), or it is not a work tree. Raises GitFailed.
        """
        if not force:
            await self.check_removable(folder)
        tree = await self.open_tree(folder)
        branch = await tree.read_branch()
        submodules = await list_submodules(tree)
        # git removes no work tree with submodules unless it is forced; that nothing is lost has been checked above.
        needs_force = force or bool(submodules)
        arguments = ("worktree", "remove", *(("--force",) if needs_force else ()), "--", str(folder))
        output = await self._run_with_working_filters(self.git, *arguments)
        if output.code != 0:
            raise WorktreeRefused(f"git can't remove the work tree {folder}: {describe_failure(output)}")
        # Some versions of git leave ignored files behind.
        if folder.exists():
            await asyncio.to_thread(remove_tree, folder)
        await prune_submodule_worktrees(self.git, submodules)
        await self.drop_branch(branch)

    async def check_removable(self, folder: Path) -> None:
        """Raise WorktreeRefused when removing a work tree would lose something, or it is not one. Raises GitFailed."""
        await self._check_saved(await self.open_tree(folder), "removed", is_branch_kept=True)

    async def drop_branch(self, branch: str | None) -> bool:
        """Delete a branch when its commits are in another one; return whether it is gone. Raises GitFailed."""
        if branch is None or await self.git.resolve_commit(f"refs/heads/{branch}") is None:
            return True
        if await count_unshared_commits(self.git, f"refs/heads/{branch}"):
            return False
        return (await self.git.run("branch", "--quiet", "-D", "--", branch)).code == 0

    async def run(self, git: Git, *arguments: str, index: Path | None = None) -> GitOutput:
        """Run git for one of the work trees, with filters where they are trusted. Raises GitFailed."""
        if self.is_trusted:
            return await git.run_trusting(*arguments, index=index, seconds=WORKTREE_TIME.seconds)
        return await run_unfiltered(git, *arguments, index=index)

    async def _run_with_working_filters(self, git: Git, *arguments: str) -> GitOutput:
        """Run git as `run` does, and if that fails without filters: a program of theirs may be missing here."""
        output = await self.run(git, *arguments)
        if output.code != 0 and self.is_trusted:
            return await run_unfiltered(git, *arguments)
        return output

    async def list_changed_files(self, tree: Git) -> list[str]:
        """Return the files of a work tree that differ from its last commit, untracked ones too. Raises GitFailed.

        Where filters are trusted they are run: without them each file of git-lfs might look changed.
        """
        arguments = (
            "status",
            "--porcelain",
            "-z",
            "--no-renames",
            "--untracked-files=all",
            "--ignore-submodules=dirty",
        )
        output = await tree.run_trusting(*arguments) if self.is_trusted else None
        # A filter's program may be missing.
        if output is None or output.code != 0 or not output.is_complete:
            return [each.file for each in await list_changes(tree, await tree.resolve_commit("HEAD"), None)]
        # Each row: two letters of status, a blank, the path. One with a slash at its end is a nested repository.
        rows = os.fsdecode(output.data).split("\0")
        return [row[3:] for row in rows if row and not row.endswith("/")]

    async def reset(self, folder: Path) -> None:
        """Set a work tree's branch and files back to the default branch.

        Raises WorktreeRefused: it has what would be lost, it is not a work tree, or there is no default branch. Raises
        GitFailed.
        """
        tree = await self.open_tree(folder)
        default = await self.git.find_default_branch()
        if default is None:
            raise WorktreeRefused("There is no default branch: no remote's HEAD, no main, no master.")
        await self._check_saved(tree, "reset", is_branch_kept=False)
        arguments = ("reset", "--quiet", "--hard", default.ref)
        output = await self._run_with_working_filters(tree, *arguments)
        if output.code != 0:
            raise WorktreeRefused(f"git can't reset {folder}: {describe_failure(output)}")

    async def open_tree(self, folder: Path) -> Git:
        """Return the Git of a linked work tree. Raises WorktreeRefused: the folder is not one of this repository's."""
        if folder not in await self.list_folders():
            raise WorktreeRefused(f"{folder} is no work tree of {self.git.root}.")
        # The folder's `.git` file may have been changed since, and every command here follows it.
        folders = [find_git_folder(self.git.root), find_git_folder(folder)]
        common_folders = {find_common_folder(each).resolve() for each in folders if each is not None}
        if None in folders or len(common_folders) != 1:
            raise WorktreeRefused(f"{folder} is no work tree of {self.git.root}.")
        return Git(folder, self.environment)

    async def _check_saved(self, tree: Git, action: str, *, is_branch_kept: bool) -> None:
        """Raise WorktreeRefused when a work tree has changes, or commits that no other reference holds.

        `action`: the participle for the message, such as "removed".
        """
        changed = await self.list_changed_files(tree)
        changed += [name for name in await list_unsaved_repositories(tree) if name not in changed]
        if changed:
            rest = f" and {len(changed) - _FILES_SHOWN} more" if len(changed) > _FILES_SHOWN else ""
            raise WorktreeRefused(
                f"{tree.root} is not {action}: {', '.join(changed[:_FILES_SHOWN])}{rest} would be lost. "
                "Commit or discard that first.",
                is_unsaved=True,
            )
        branch = await tree.read_branch()
        if is_branch_kept and branch is not None:
            return
        count = await count_unshared_commits(tree, "HEAD" if branch is None else f"refs/heads/{branch}")
        if count:
            raise WorktreeRefused(
                f"{tree.root} is not {action}: {count} commits are in no other branch. Merge or branch them first.",
                is_unsaved=True,
            )


async def count_unshared_commits(git: Git, ref: str) -> int:
    """Return how many commits are reachable from this reference alone: HEAD, or a branch (`refs/heads/x`)."""
    # `--exclude` applies to the `--branches` that follows, and takes a name without `refs/heads/`.
    excluded = () if ref == "HEAD" else (f"--exclude={ref.removeprefix('refs/heads/')}",)
    output = await git.run("rev-list", "--count", ref, "--not", *excluded, "--branches", "--tags", "--remotes")
    text = "".join(output.lines[:1])
    # An unknown count is taken for 1, so that nothing is lost.
    return int(text) if output.code == 0 and text.isdecimal() else 1


async def run_unfiltered(git: Git, *arguments: str, index: Path | None = None) -> GitOutput:
    """Run git so that it starts none of the filter programs that the repository configures. Raises GitFailed."""
    output = await git.run("config", "--null", "--get-regexp", _PROGRAM_SETTINGS)
    names = [row.partition("\n")[0] for row in os.fsdecode(output.data).split("\0") if row]
    settings = [f"{name}={_REPLACEMENTS.get(name.rpartition('.')[2], '')}" for name in names]
    options = [word for setting in settings for word in ("-c", setting)]
    return await git.run(*options, *arguments, index=index, seconds=WORKTREE_TIME.seconds)


def read_line(output: GitOutput, action: str) -> str:
    """Return the first line that git printed. Raises WorktreeRefused when git failed to do `action` ("merge")."""
    if output.code != 0:
        raise WorktreeRefused(f"git can't {action}: {describe_failure(output)}")
    return "".join(output.lines[:1])


def describe_failure(output: GitOutput) -> str:
    """Return git's error message on one line, or its exit code."""
    return " ".join(output.stderr.split()) or f"code {output.code}."
