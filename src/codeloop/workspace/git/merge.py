"""Commits, merges and rebases the work of a linked work tree.

A merge is computed without touching files, and then the branch is moved to it: no work
tree ever holds half a merge.
"""

import asyncio
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from codeloop.kit import fault_injection
from codeloop.kit.git.user_filters import list_filter_names
from codeloop.kit.remove_tree import temporary_folder
from codeloop.workspace.git.linked_trees import (
    find_branch,
    list_all_trees,
    make_linked_tree,
    remove_linked_tree,
)
from codeloop.workspace.git.repository import Git
from codeloop.workspace.git.submodules import list_unsaved_repositories
from codeloop.workspace.git.worktrees import WorktreeRefused, Worktrees, describe_failure, read_line

# The largest file whose conflicts are shown.
_CONFLICT_BYTES = 256 * 1024
# A command line has a limit: git is asked about this many files,
# and the others are taken to have no filter.
_MAX_NAMED_FILES = 1000
_HEADS = "refs/heads/"
# With patterns that match nothing, git writes no file of the commit.
_NO_FILES = ("-c", "core.sparseCheckout=true", "-c", "core.sparseCheckoutCone=false")


class ConflictedFile(Struct, frozen=True):
    """A file that both sides changed. `text`: its content with the conflicts marked;
    None: binary or too long.

    Of a long file of a rebase, `text` is the start.
    """

    file: str
    text: str | None


class MergeResult(Struct, frozen=True):
    """The result of a merge: the branch's new commit, or the conflicts,
    for which nothing was changed.
    """

    commit: str | None
    conflicts: tuple[ConflictedFile, ...] = ()


class BranchMerger(Struct, frozen=True):
    """Merges and rebases branches of the repository of `worktrees`."""

    worktrees: Worktrees

    async def commit_all(self, tree: Git, message: str, *, is_rescue: bool = False) -> list[str]:
        """Commit all uncommitted files of a work tree; return their paths. Hooks are not run.

        `is_rescue`: the work is saved before a removal, so files in conflict, or with a filter, are
        committed as they are. Raises WorktreeRefused, GitFailed.
        """
        if unsaved_repositories := await list_unsaved_repositories(tree):
            raise WorktreeRefused(
                f"{', '.join(unsaved_repositories[:3])} in {tree.root} is a repository of its own, "
                "with changes that a commit here would not hold. "
                "Commit and push them there, or move it out of the work tree.",
                is_unsaved=True,
            )
        files = await self.worktrees.list_changed_files(tree)
        if not files:
            return []
        if not is_rescue and (conflicted := await _list_conflicted(tree)):
            raise WorktreeRefused(
                f"{', '.join(conflicted[:3])} in {tree.root} is in conflict. Have that solved there, and commit."
            )
        if not is_rescue:
            await self._check_filters(tree, files)
        await fault_injection.pass_point_async("worktree.commit")
        read_line(await self.worktrees.run(tree, "add", "--all"), f"add the changes in {tree.root}")
        arguments = ("commit", "--quiet", "--no-verify", "--message", message)
        read_line(
            await self.worktrees.run(tree, *read_identity_options(tree), *arguments),
            f"commit in {tree.root}",
        )
        return files

    async def _check_filters(self, tree: Git, files: Sequence[str]) -> None:
        """Raise WorktreeRefused for a file that would be committed without the filter
        that its attributes name.
        """
        real = tree.open_folder()
        known = (
            list_filter_names(real, tree.environment)
            if self.worktrees.is_trusted
            else frozenset[str]()
        )
        rows = [
            (name, each) for name, each in await _list_filtered(tree, files) if each not in known
        ]
        if not rows:
            return
        names = ", ".join(name for name, _ in rows[:3])
        how = "trust the project: codeloop trust"
        if self.worktrees.is_trusted:
            # A repository's settings are read as data, whoever trusts it.
            how = (
                f"name it in your own settings: git config --global filter.{rows[0][1]}.clean '...'"
            )
        raise WorktreeRefused(
            f"{names} in {tree.root} would be committed by a filter ({rows[0][1]}), which is run only for a trusted "
            f"project, and if your own settings name it. Commit it there yourself, or {how}"
        )

    async def merge(
        self, branch: str, into: str, message: str, files: Sequence[str] | None = None
    ) -> MergeResult:
        """Merge a branch into another one, wherever that is checked out.
        `files`: take over only these.

        Raises WorktreeRefused: no such branch, or its work tree has changes of its own in the way.
        Raises GitFailed.
        """
        git = self.worktrees.git
        ours, theirs = await self._find_commit(into), await self._find_commit(branch)
        base = await git.find_merge_base(ours, theirs)
        if base == theirs:
            return MergeResult(ours)
        if base == ours and files is None:
            new = theirs  # a fast-forward: no merge commit is needed
        else:
            # Prints the tree's id, then the files in conflict; the code is 1 if there are any.
            output = await self.worktrees.run(
                git, "merge-tree", "--write-tree", "--name-only", "-z", ours, theirs
            )
            tree_id, *conflicted_names = os.fsdecode(output.data).partition("\0\0")[0].split("\0")
            if output.code == 1:
                conflicts = [name for name in conflicted_names if files is None or name in files]
                if conflicts:
                    labels = {
                        f"<<<<<<< {ours}\n": f"<<<<<<< {into}\n",
                        f">>>>>>> {theirs}\n": f">>>>>>> {branch}\n",
                    }
                    # git names a file once for each kind of conflict in it.
                    names = dict.fromkeys(conflicts)
                    conflicted_files = [
                        await self._read_marked_file(tree_id, name, labels) for name in names
                    ]
                    return MergeResult(None, tuple(conflicted_files))
            elif output.code != 0:
                raise WorktreeRefused(
                    f"git can't merge {branch} into {into}: {describe_failure(output)} (It takes git 2.38.)"
                )
            # When only some files are taken, the other branch does not become a parent: its other
            # files would count as merged, and no later merge would bring them.
            parents = ("-p", ours) if files is not None else ("-p", ours, "-p", theirs)
            tree_id = tree_id if files is None else await self._build_tree(ours, tree_id, files)
            arguments = ("commit-tree", tree_id, *parents, "-m", message)
            new = read_line(
                await self.worktrees.run(git, *read_identity_options(git), *arguments),
                "commit the merge",
            )
        await fault_injection.pass_point_async("worktree.merge")
        await self._move_branch(into, ours, new)
        return MergeResult(new)

    async def rebase(self, tree: Git, onto: str) -> MergeResult:
        """Replay a work tree's commits onto a branch; with conflicts the work tree stays as it is.

        Raises WorktreeRefused.
        """
        onto_commit = await self._find_commit(onto)
        changed = await self.worktrees.list_changed_files(tree)
        if changed:
            raise WorktreeRefused(
                f"{tree.root} has uncommitted changes ({', '.join(changed[:3])}). Commit them first."
            )
        old = await tree.resolve_commit("HEAD")
        if old is None:
            raise WorktreeRefused(f"{tree.root} has no commit yet. Commit something first.")
        # In a work tree without files, where git writes only those in conflict: neither a conflict
        # nor a crash leaves half a rebase in the user's.
        with temporary_folder("codeloop-git-") as folder:
            scratch, common = Git(folder / "tree", tree.environment), tree.open_folder().common
            try:
                await make_linked_tree(common, scratch, old)
                result = await self._rebase_apart(scratch, onto_commit, read_identity_options(tree))
            finally:
                await remove_linked_tree(common, scratch.root)
        if result.commit is None or result.commit == old:
            return result
        if await tree.resolve_commit("HEAD") != old:
            raise WorktreeRefused(f"{tree.root} has changed meanwhile. Try again.")
        output = await self.worktrees.run(
            tree, "reset", "--quiet", "--keep", "--no-recurse-submodules", result.commit
        )
        read_line(output, f"bring {tree.root} to its rebased commits")
        return result

    async def _rebase_apart(self, scratch: Git, onto: str, options: Sequence[str]) -> MergeResult:
        """Replay the commits of a work tree without files.
        Raises WorktreeRefused, GitFailed, OSError.
        """
        patterns = scratch.open_folder().folder / "info" / "sparse-checkout"
        await asyncio.to_thread(patterns.parent.mkdir)
        await asyncio.to_thread(patterns.write_text, "!/*\n")
        read_line(
            await scratch.run(*_NO_FILES, "read-tree", "-m", "-u", "HEAD"), "read the commits"
        )
        arguments = (*_NO_FILES, *options, "rebase", "--quiet", "--no-autostash", onto)
        output = await self.worktrees.run(scratch, *arguments)
        if output.code == 0:
            return MergeResult(await scratch.resolve_commit("HEAD"))
        conflicts = tuple(
            ConflictedFile(name, _read_text(scratch.root / name))
            for name in await _list_conflicted(scratch)
        )
        if not conflicts:
            raise WorktreeRefused(f"git can't rebase onto {onto}: {describe_failure(output)}")
        return MergeResult(None, conflicts)

    async def _find_commit(self, branch: str) -> str:
        """Return the commit of a branch. Raises WorktreeRefused when there is no such branch."""
        commit = await self.worktrees.git.resolve_commit(_HEADS + branch)
        if commit is None:
            raise WorktreeRefused(f"There is no branch {branch}. `git branch` lists them.")
        return commit

    async def _read_marked_file(
        self, tree_id: str, name: str, labels: Mapping[str, str]
    ) -> ConflictedFile:
        """Read a file of the merge's tree. `labels`: marks with commits,
        as git wrote them -> those with branches.
        """
        data = await self.worktrees.git.read_blob(tree_id, name, _CONFLICT_BYTES)
        if data is None or b"\0" in data:
            return ConflictedFile(name, None)
        text = data.decode("utf-8", "replace")
        for written, label in labels.items():
            text = text.replace(written, label)
        return ConflictedFile(name, text)

    async def _build_tree(self, ours: str, merged: str, files: Sequence[str]) -> str:
        """Return the id of a tree: that of commit `ours`,
        with these files taken from the tree `merged`.
        """
        git = self.worktrees.git
        with temporary_folder("codeloop-git-") as folder:
            index = folder / "index"
            read_line(await git.run("read-tree", ours, index=index), "read the branch")
            for name in files:
                row = os.fsdecode((await git.run("ls-tree", "-z", merged, "--", name)).data)
                arguments = ("--force-remove", "--", name)
                if row:
                    # Before a tab and the name: mode, kind, id.
                    mode, _, blob = row.partition("\t")[0].split(" ")
                    arguments = ("--add", "--cacheinfo", f"{mode},{blob},{name}")
                read_line(await git.run("update-index", *arguments, index=index), f"take {name}")
            return read_line(await git.run("write-tree", index=index), "write the files")

    async def _move_branch(self, branch: str, old: str, new: str) -> None:
        """Move a branch forward, with the files of the work tree in which it is checked out."""
        folder = await self._find_checkout(branch)
        if folder is None:
            # `old` makes git refuse when the branch has moved since the merge was computed.
            output = await self.worktrees.git.run(
                "update-ref", "-m", "codeloop: merge", _HEADS + branch, new, old
            )
        else:
            output = await self.worktrees.run(
                Git(folder, self.worktrees.environment), "merge", "--ff-only", "--quiet", new
            )
        read_line(output, f"bring {branch} forward{f' in {folder}' if folder else ''}")

    async def _find_checkout(self, branch: str) -> Path | None:
        """Return the work tree in which a branch is checked out, if any."""
        trees = await asyncio.to_thread(list_all_trees, self.worktrees.git.open_folder().common)
        for tree in trees:
            if await find_branch(tree, self.worktrees.environment) == branch:
                return tree.folder
        return None


def read_identity_options(git: Git) -> list[str]:
    """Return git options that set the user's name and email. Raises GitFailed."""
    real = git.open_folder()
    options: list[str] = []
    for name, default in (("user.name", "codeloop"), ("user.email", "codeloop@localhost")):
        options += ("-c", f"{name}={real.get(name) or default}")
    return options


async def _list_conflicted(git: Git) -> list[str]:
    """Return the files of a work tree whose conflicts nobody has solved yet. Raises GitFailed."""
    output = await git.run(
        "diff", "--name-only", "--diff-filter=U", "--ignore-submodules=dirty", "-z"
    )
    return [name for name in os.fsdecode(output.data).split("\0") if name]


async def _list_filtered(git: Git, files: Sequence[str]) -> list[tuple[str, str]]:
    """Return those of these files whose attributes name a filter, each with its name."""
    output = await git.run("check-attr", "-z", "filter", "--", *files[:_MAX_NAMED_FILES])
    # Path, attribute, value; again for each file.
    fields = os.fsdecode(output.data).split("\0")
    values = zip(fields[::3], fields[2::3], strict=False)
    return [(name, value) for name, value in values if value not in {"unspecified", "unset"}]


def _read_text(path: Path) -> str | None:
    """Return the start of a text file; None: it can't be read, or is binary."""
    try:
        with path.open("rb") as file:
            data = file.read(_CONFLICT_BYTES)
    except OSError:
        return None
    return None if b"\0" in data else data.decode("utf-8", "replace")
