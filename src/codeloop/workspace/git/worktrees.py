"""Creates linked work trees of a repository; removes (unless forced) and resets them
only where nothing is lost.

No hook is run, and filters only for a trusted project, if the user's own settings name them
(`user_filters.py`): otherwise a file that a filter would convert is checked out as it is stored.
"""

import asyncio
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from codeloop.kit.git.own_folder import RealFolder
from codeloop.kit.git.user_filters import list_filter_names
from codeloop.kit.small_files import read_start_or_empty
from codeloop.schema.errors import CodeloopError
from codeloop.schema.limits import WORKTREE_TIME
from codeloop.workspace.git.linked_trees import (
    find_common,
    is_locked,
    list_all_trees,
    list_linked_trees,
    make_linked_tree,
    remove_linked_tree,
)
from codeloop.workspace.git.repository import Git, GitOutput
from codeloop.workspace.git.submodules import (
    forget_submodules,
    list_submodules,
    list_unsaved_repositories,
)
from codeloop.workspace.git.working_diff import list_changes

_FILES_SHOWN = 3
_ATTRIBUTES_BYTES = 64 * 1024
_FILTER_ATTRIBUTE = r"(?m)^[^#\s].*?\sfilter=(\S+)"
# Below the threshold, starting processes would cost more than writing in parallel saves.
_PARALLEL_CHECKOUT = (
    "-c",
    f"checkout.workers={os.cpu_count() or 1}",
    "-c",
    "checkout.thresholdForParallelism=1000",
)


class WorktreeRefused(CodeloopError):
    """A work tree can't be made or changed, or removing it would lose something;
    the message says what to do.

    `is_unsaved`: it has changes or commits that are nowhere else.
    """

    def __init__(self, message: str, *, is_unsaved: bool = False) -> None:
        super().__init__(message)
        self.is_unsaved = is_unsaved


class Worktrees(Struct, frozen=True):
    """The linked work trees of the repository of `git`.

    `is_trusted`: filters that the user's own settings name are run (git-lfs, for example).
    """

    git: Git
    is_trusted: bool = False

    @property
    def environment(self) -> Mapping[str, str]:
        """The variables that git is run with."""
        return self.git.environment

    async def list_folders(self) -> list[Path]:
        """Return the existing folders of all work trees but the repository's own.
        Raises GitFailed.
        """
        common = self.git.open_folder().common
        trees = await asyncio.to_thread(list_linked_trees, common)
        return [tree.folder for tree in trees if tree.folder.is_dir()]

    async def add(
        self, folder: Path, branch: str | None, start: str = "HEAD", sparse: Sequence[str] = ()
    ) -> None:
        """Make a work tree of a commit, with a new branch, or without one. `sparse`: the only
        folders in it; none: all.

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
        common, commit = self.git.open_folder().common, await self.git.resolve_commit(start) or ""
        if branch is not None:
            output = await self.git.run("branch", "--quiet", "--no-track", "--", branch, commit)
            if output.code != 0:
                raise WorktreeRefused(
                    f"git can't make the branch {branch}: {describe_failure(output)}"
                )
        try:
            head = commit if branch is None else f"ref: refs/heads/{branch}"
            tree = Git(folder, self.environment)
            await make_linked_tree(common, tree, head)
            output = await self._fill(tree, sparse)
            failure = "" if output.code == 0 else describe_failure(output)
        except OSError as error:
            failure = f"{error}."
        if not failure:
            return
        await remove_linked_tree(common, folder)
        if branch is not None:
            await self.git.run("branch", "--quiet", "-D", "--", branch)
        raise WorktreeRefused(f"git can't make the work tree {folder}: {failure}")

    async def _fill(self, tree: Git, sparse: Sequence[str]) -> GitOutput:
        """Check the files of a new work tree out. Raises OSError, GitFailed."""
        if sparse:
            real = tree.open_folder()
            await asyncio.to_thread((real.folder / "info").mkdir, exist_ok=True)
            await asyncio.to_thread((real.folder / "info" / "sparse-checkout").touch)
            await self._store_sparse_settings(real)
            output = await tree.run("sparse-checkout", "set", "--cone", "--end-of-options", *sparse)
            if output.code != 0:
                return output
        return await self.run(
            tree, *_PARALLEL_CHECKOUT, "reset", "--quiet", "--hard", "--no-recurse-submodules"
        )

    async def _store_sparse_settings(self, real: RealFolder) -> None:
        """Have the user's git know that the work tree is sparse.
        Raises WorktreeRefused, GitFailed.
        """
        # As `git sparse-checkout` does: what would hold for all work trees from now on
        # is moved to the main one.
        own, main = str(real.folder / "config.worktree"), str(real.common / "config.worktree")
        shared = str(real.common / "config")
        rows = [(own, "core.sparseCheckout", "true"), (own, "core.sparseCheckoutCone", "true")]
        for name in ("core.bare", "core.worktree"):
            value = real.get(name)
            if value and value != "false" and not (real.common / "config.worktree").exists():
                rows += [(main, name, value), (shared, name, "")]
        for file, name, value in (*rows, (shared, "extensions.worktreeConfig", "true")):
            words = (name, value) if value else ("--unset", name)
            read_line(
                await self.git.run("config", "--file", file, *words),
                "store that the work tree is sparse",
            )

    async def remove(self, folder: Path, *, force: bool = False) -> None:
        """Remove a work tree, and its branch when its commits are in another one.

        Raises WorktreeRefused: it has what would be lost (unless `force`),
        or it is not a work tree. Raises GitFailed.
        """
        if not force:
            await self.check_removable(folder)
        tree = await self.open_tree(folder)
        branch = await tree.read_branch()
        submodules = await list_submodules(tree)
        if is_locked(folder):
            raise WorktreeRefused(
                f"{folder} is locked. To remove it all the same: git worktree unlock {folder}"
            )
        await remove_linked_tree(self.git.open_folder().common, folder)
        if os.path.lexists(folder):
            raise WorktreeRefused(
                f"Not all of {folder} can be removed. Look at who owns what is left, then try again."
            )
        await forget_submodules(submodules, folder)
        await self.drop_branch(branch)

    def list_missing_filters(self, folder: Path) -> list[str]:
        """Return the filters that a work tree's top `.gitattributes` names, and that don't run.
        Raises GitFailed.
        """
        attributes = read_start_or_empty(folder / ".gitattributes", _ATTRIBUTES_BYTES).decode(
            "utf-8", "replace"
        )
        names = dict.fromkeys(re.findall(_FILTER_ATTRIBUTE, attributes))
        known = (
            list_filter_names(self.git.open_folder(), self.environment) if self.is_trusted else ()
        )
        return [name for name in names if name not in known]

    async def check_removable(self, folder: Path) -> None:
        """Raise WorktreeRefused when removing a work tree would lose something, or it is not one.
        Raises GitFailed.
        """
        await self._check_saved(await self.open_tree(folder), "removed", is_branch_kept=True)

    async def drop_branch(self, branch: str | None) -> bool:
        """Delete a branch when its commits are in another one; return whether it is gone.
        Raises GitFailed.
        """
        if branch is None or await self.git.resolve_commit(f"refs/heads/{branch}") is None:
            return True
        trees = await asyncio.to_thread(list_all_trees, self.git.open_folder().common)
        # git itself knows those that are checked out, wherever that is stored.
        if any(branch in tree.used_branches for tree in trees):
            return False
        if await count_unshared_commits(self.git, f"refs/heads/{branch}"):
            return False
        return (await self.git.run("branch", "--quiet", "-D", "--", branch)).code == 0

    async def run(self, git: Git, *arguments: str, index: Path | None = None) -> GitOutput:
        """Run git for one of the work trees, with filters where they are trusted.
        Raises GitFailed.
        """
        run = git.run_trusting if self.is_trusted else git.run
        return await run(*arguments, index=index, seconds=WORKTREE_TIME.seconds)

    async def _run_with_working_filters(self, git: Git, *arguments: str) -> GitOutput:
        """Run git as `run` does, and if that fails without filters: a program of
        theirs may be missing here.
        """
        output = await self.run(git, *arguments)
        if output.code != 0 and self.is_trusted:
            return await git.run(*arguments, seconds=WORKTREE_TIME.seconds)
        return output

    async def list_changed_files(self, tree: Git) -> list[str]:
        """Return the files of a work tree that differ from its last commit, untracked ones too.
        Raises GitFailed.

        Where filters are trusted they are run: without them each file of
        git-lfs might look changed.
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
            return [
                each.file
                for each in await list_changes(tree, await tree.resolve_commit("HEAD"), None)
            ]
        # Each row: two letters of status, a blank, the path.
        # One with a slash at its end is a nested repository.
        rows = os.fsdecode(output.data).split("\0")
        return [row[3:] for row in rows if row and not row.endswith("/")]

    async def reset(self, folder: Path) -> None:
        """Set a work tree's branch and files back to the default branch.

        Raises WorktreeRefused: it has what would be lost, it is not a work tree, or there is no
        default branch. Raises GitFailed.
        """
        tree = await self.open_tree(folder)
        default = await self.git.find_default_branch()
        if default is None:
            raise WorktreeRefused(
                "There is no default branch: no remote's HEAD, no main, no master."
            )
        await self._check_saved(tree, "reset", is_branch_kept=False)
        arguments = ("reset", "--quiet", "--hard", default.ref)
        output = await self._run_with_working_filters(tree, *arguments)
        if output.code != 0:
            raise WorktreeRefused(f"git can't reset {folder}: {describe_failure(output)}")

    async def open_tree(self, folder: Path) -> Git:
        """Return the Git of a linked work tree. Raises WorktreeRefused: the folder is not
        one of this repository's.
        """
        # The folder's `.git` file may have been changed since, and every command here follows it.
        common = await asyncio.to_thread(find_common, folder)
        is_linked = Path(os.path.realpath(folder)) in await self.list_folders()
        if not is_linked or common != find_common(self.git.root):
            raise WorktreeRefused(f"{folder} is not a work tree of {self.git.root}.")
        return Git(folder, self.environment)

    async def _check_saved(self, tree: Git, action: str, *, is_branch_kept: bool) -> None:
        """Raise WorktreeRefused when a work tree has changes,
        or commits that no other reference holds.

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
        count = await count_unshared_commits(
            tree, "HEAD" if branch is None else f"refs/heads/{branch}"
        )
        if count:
            raise WorktreeRefused(
                f"{tree.root} is not {action}: {count} commits are in no other branch. Merge or branch them first.",
                is_unsaved=True,
            )


async def count_unshared_commits(git: Git, ref: str) -> int:
    """Return how many commits are reachable from this reference alone: HEAD,
    or a branch (`refs/heads/x`).
    """
    # `--exclude` applies to the `--branches` that follows, and takes a name without `refs/heads/`.
    excluded = () if ref == "HEAD" else (f"--exclude={ref.removeprefix('refs/heads/')}",)
    output = await git.run(
        "rev-list", "--count", ref, "--not", *excluded, "--branches", "--tags", "--remotes"
    )
    text = "".join(output.lines[:1])
    # An unknown count is taken for 1, so that nothing is lost.
    return int(text) if output.code == 0 and text.isdecimal() else 1


def read_line(output: GitOutput, action: str) -> str:
    """Return the first line that git printed. Raises WorktreeRefused when git failed
    to do `action` ("merge").
    """
    if output.code != 0:
        raise WorktreeRefused(f"git can't {action}: {describe_failure(output)}")
    return "".join(output.lines[:1])


def describe_failure(output: GitOutput) -> str:
    """Return git's error message on one line, or its exit code."""
    return " ".join(output.stderr.split()) or f"code {output.code}."
