"""Further work trees of a repository: made, and removed or set back only where nothing is lost.

No hook and no filter program that the repository configures is run:
files that a filter would make stay as they are stored.
"""

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct

from codeloop.kit.git import common_folder, git_folder
from codeloop.schema.errors import CodeloopError
from codeloop.workspace.git.repository import Git, GitOutput
from codeloop.workspace.git.working_diff import list_changes

_FILTERS = r"^filter\..*\.(smudge|clean|process|required)$"
_SHOWN = 3


class WorktreeRefused(CodeloopError):
    """A work tree can't be made, or removing it would lose something; the message says what to do.

    `is_unsaved`: it has changes or commits that are nowhere else.
    """

    def __init__(self, message: str, *, is_unsaved: bool = False) -> None:
        super().__init__(message)
        self.is_unsaved = is_unsaved


class Worktrees(Struct, frozen=True):
    """The further work trees of the repository that `git` asks."""

    git: Git

    @property
    def environment(self) -> Mapping[str, str]:
        """The variables that git is run with."""
        return self.git.environment

    async def list_folders(self) -> list[Path]:
        """Return the folders of all work trees that are there but the repository's own. Raises GitFailed."""
        printed = await self.git.ask("worktree", "list", "--porcelain", "-z")
        rows = os.fsdecode(printed.data).split("\0")
        found = [Path(row.removeprefix("worktree ")) for row in rows if row.startswith("worktree ")]
        return [folder for folder in found[1:] if folder.is_dir()]

    async def add(self, folder: Path, branch: str | None) -> None:
        """Make a work tree of the commit that is checked out, with a new branch, or without one.

        Raises WorktreeRefused, GitFailed; nothing is left of one that could not be made.
        """
        if await self.git.commit("HEAD") is None:
            raise WorktreeRefused(f"{self.git.root} has no commit yet. Commit something, then make a work tree.")
        if os.path.lexists(folder):
            raise WorktreeRefused(f"{folder} exists already. Choose another name.")
        named = ("--detach",) if branch is None else ("-b", branch)
        printed = await self._run("worktree", "add", "--quiet", *named, "--", str(folder), "HEAD")
        if printed.code == 0:
            return
        if folder.is_dir():
            await self._run("worktree", "remove", "--force", "--", str(folder))
        raise WorktreeRefused(f"git can't make the work tree {folder}: {_words(printed)}")

    async def remove(self, folder: Path, *, force: bool = False) -> None:
        """Remove a work tree, and its branch when its commits are in another one.

        Raises WorktreeRefused: it has what would be lost (unless `force`), or is none. Raises GitFailed.
        """
        tree = await self._tree(folder)
        if not force:
            await self._check_saved(tree, "removed", is_branch_kept=True)
        branch = await tree.branch()
        printed = await self._run("worktree", "remove", *(("--force",) if force else ()), "--", str(folder))
        if printed.code != 0:
            raise WorktreeRefused(f"git can't remove the work tree {folder}: {_words(printed)}")
        if folder.exists():  # git leaves what it ignores in some versions
            shutil.rmtree(folder, ignore_errors=True)
        if branch is not None and not await self._lone_commits(self.git, f"refs/heads/{branch}"):
            await self.git.ask("branch", "--quiet", "-D", "--", branch)

    async def reset(self, folder: Path) -> None:
        """Set a work tree's branch and files back to the default branch.

        Raises WorktreeRefused: it has what would be lost, is none, or there is no default branch. Raises GitFailed.
        """
        tree = await self._tree(folder)
        default = await self.git.default_branch()
        if default is None:
            raise WorktreeRefused("There is no default branch: no remote's HEAD, no main, no master.")
        await self._check_saved(tree, "reset", is_branch_kept=False)
        printed = await _run_in(tree, "reset", "--quiet", "--hard", default.ref)
        if printed.code != 0:
            raise WorktreeRefused(f"git can't reset {folder}: {_words(printed)}")

    async def _tree(self, folder: Path) -> Git:
        """Return git for one of the work trees. Raises WorktreeRefused: it is not one of this repository."""
        if folder not in await self.list_folders():
            raise WorktreeRefused(f"{folder} is no work tree of {self.git.root}.")
        own, other = git_folder(self.git.root), git_folder(folder)
        if own is None or other is None or common_folder(own).resolve() != common_folder(other).resolve():
            raise WorktreeRefused(f"{folder} is no work tree of {self.git.root}.")
        return Git(folder, self.environment)

    async def _check_saved(self, tree: Git, what: str, *, is_branch_kept: bool) -> None:
        """Raise WorktreeRefused when a work tree has changes, or commits that no other reference holds."""
        changed = [each.file for each in await list_changes(tree, await tree.commit("HEAD"), None)]
        if changed:
            more = f" and {len(changed) - _SHOWN} more" if len(changed) > _SHOWN else ""
            raise WorktreeRefused(
                f"{tree.root} is not {what}: {', '.join(changed[:_SHOWN])}{more} would be lost. "
                "Commit or discard that first.",
                is_unsaved=True,
            )
        branch = await tree.branch()
        if is_branch_kept and branch is not None:
            return
        count = await self._lone_commits(tree, "HEAD" if branch is None else f"refs/heads/{branch}")
        if count:
            raise WorktreeRefused(
                f"{tree.root} is not {what}: {count} commits are in no other branch. Merge or branch them first.",
                is_unsaved=True,
            )

    async def _lone_commits(self, git: Git, ref: str) -> int:
        """Return how many commits are reachable from this reference alone."""
        others = () if ref == "HEAD" else (f"--exclude={ref.removeprefix('refs/heads/')}",)  # as --branches wants it
        printed = await git.ask("rev-list", "--count", ref, "--not", *others, "--branches", "--tags", "--remotes")
        counted = "".join(printed.lines[:1])
        return int(counted) if printed.code == 0 and counted.isdecimal() else 1

    async def _run(self, *arguments: str) -> GitOutput:
        return await _run_in(self.git, *arguments)


async def _run_in(git: Git, *arguments: str) -> GitOutput:
    """Run git so that it starts none of the filter programs that the repository configures."""
    printed = await git.ask("config", "--null", "--get-regexp", _FILTERS)
    names = [row.partition("\n")[0] for row in os.fsdecode(printed.data).split("\0") if row]
    off = [f"{name}={'false' if name.endswith('.required') else ''}" for name in names]
    return await git.ask(*(word for setting in off for word in ("-c", setting)), *arguments)


def _words(printed: GitOutput) -> str:
    return " ".join(printed.errors.split()) or f"code {printed.code}."
