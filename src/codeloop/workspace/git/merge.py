"""Commits, merges and rebases the work of a linked work tree.

A merge is computed without touching files, and then the branch is moved to it: no work tree ever holds half a merge.
"""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from codeloop.kit import fault_injection
from codeloop.kit.remove_tree import temporary_folder
from codeloop.workspace.git.repository import Git
from codeloop.workspace.git.submodules import list_unsaved_repositories
from codeloop.workspace.git.worktrees import WorktreeRefused, Worktrees, describe_failure, read_line

# The largest file whose conflicts are shown.
_CONFLICT_BYTES = 256 * 1024
# A command line has a limit: git is asked about this many files, and the others are taken to have no filter.
_MAX_NAMED_FILES = 1000
_HEADS = "refs/heads/"


class ConflictedFile(Struct, frozen=True):
    """A file that both sides changed. `text`: its content with the conflicts marked; None: binary or too long.

    Of a long file of a rebase, `text` is the start.
    """

    file: str
    text: str | None


class MergeResult(Struct, frozen=True):
    """The result of a merge: the branch's new commit, or the conflicts, for which nothing was changed."""

    commit: str | None
    conflicts: tuple[ConflictedFile, ...] = ()


class BranchMerger(Struct, frozen=True):
    """Merges and rebases branches of the repository of `worktrees`."""

    worktrees: Worktrees

    async def commit_all(self, tree: Git, message: str, *, is_rescue: bool = False) -> list[str]:
        """Commit all uncommitted files of a work tree; return their paths. Hooks are not run.

        `is_rescue`: the work is saved before a removal, so files in conflict, or with a filter, are committed as they
        are. Raises WorktreeRefused, GitFailed.
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
        if not self.worktrees.is_trusted and not is_rescue and (filtered := await _list_filtered(tree, files)):
            raise WorktreeRefused(
                f"{', '.join(filtered[:3])} in {tree.root} would be committed by a filter, which is run only for a "
                "trusted project. Commit it there yourself, or trust the project: codeloop trust"
            )
        await fault_injection.pass_point_async("worktree.commit")
        read_line(await self.worktrees.run(tree, "add", "--all"), f"add the changes in {tree.root}")
        arguments = ("commit", "--quiet", "--no-verify", "--message", message)
        read_line(
            await self.worktrees.run(tree, *await read_identity_options(tree), *arguments), f"commit in {tree.root}"
        )
        return files

    async def merge(self, branch: str, into: str, message: str, files: Sequence[str] | None = None) -> MergeResult:
        """Merge a branch into another one, wherever that is checked out. `files`: take over only these.

        Raises WorktreeRefused: no such branch, or its work tree has changes of its own in the way. Raises GitFailed.
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
            output = await self.worktrees.run(git, "merge-tree", "--write-tree", "--name-only", "-z", ours, theirs)
            tree_id, *conflicted_names = os.fsdecode(output.data).partition("\0\0")[0].split("\0")
            if output.code == 1:
                conflicts = [name for name in conflicted_names if files is None or name in files]
                if conflicts:
                    labels = {f"<<<<<<< {ours}\n": f"<<<<<<< {into}\n", f">>>>>>> {theirs}\n": f">>>>>>> {branch}\n"}
                    # git names a file once for each kind of conflict in it.
                    names = dict.fromkeys(conflicts)
                    conflicted_files = [await self._read_marked_file(tree_id, name, labels) for name in names]
                    return MergeResult(None, tuple(conflicted_files))
            elif output.code != 0:
                raise WorktreeRefused(
                    f"git can't merge {branch} into {into}: {describe_failure(output)} (It takes git 2.38.)"
                )
            # When only some files are taken, the other branch does not become a parent: its other files would count as
            # merged, and no later merge would bring them.
            parents = ("-p", ours) if files is not None else ("-p", ours, "-p", theirs)
            tree_id = tree_id if files is None else await self._build_tree(ours, tree_id, files)
            arguments = ("commit-tree", tree_id, *parents, "-m", message)
            new = read_line(
                await self.worktrees.run(git, *await read_identity_options(git), *arguments), "commit the merge"
            )
        await fault_injection.pass_point_async("worktree.merge")
        await self._move_branch(into, ours, new)
        return MergeResult(new)

    async def rebase(self, tree: Git, onto: str) -> MergeResult:
        """Replay a work tree's commits onto a branch; with conflicts the work tree stays as it is.

        Raises WorktreeRefused.
        """
        await self._find_commit(onto)
        changed = await self.worktrees.list_changed_files(tree)
        if changed:
            raise WorktreeRefused(f"{tree.root} has uncommitted changes ({', '.join(changed[:3])}). Commit them first.")
        arguments = ("rebase", "--quiet", "--no-autostash", _HEADS + onto)
        output = await self.worktrees.run(tree, *await read_identity_options(tree), *arguments)
        if output.code == 0:
            return MergeResult(await tree.resolve_commit("HEAD"))
        conflicts = tuple(ConflictedFile(name, _read_text(tree.root / name)) for name in await _list_conflicted(tree))
        await self.worktrees.run(tree, "rebase", "--abort")
        if not conflicts:
            raise WorktreeRefused(f"git can't rebase {tree.root}: {describe_failure(output)}")
        return MergeResult(None, conflicts)

    async def _find_commit(self, branch: str) -> str:
        """Return the commit of a branch. Raises WorktreeRefused when there is no such branch."""
        commit = await self.worktrees.git.resolve_commit(_HEADS + branch)
        if commit is None:
            raise WorktreeRefused(f"There is no branch {branch}. `git branch` lists them.")
        return commit

    async def _read_marked_file(self, tree_id: str, name: str, labels: Mapping[str, str]) -> ConflictedFile:
        """Read a file of the merge's tree. `labels`: marks with commits, as git wrote them -> those with branches."""
        data = await self.worktrees.git.read_blob(tree_id, name, _CONFLICT_BYTES)
        if data is None or b"\0" in data:
            return ConflictedFile(name, None)
        text = data.decode("utf-8", "replace")
        for written, label in labels.items():
            text = text.replace(written, label)
        return ConflictedFile(name, text)

    async def _build_tree(self, ours: str, merged: str, files: Sequence[str]) -> str:
        """Return the id of a tree: that of commit `ours`, with these files taken from the tree `merged`."""
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
            output = await self.worktrees.git.run("update-ref", "-m", "codeloop: merge", _HEADS + branch, new, old)
        else:
            output = await self.worktrees.run(
                Git(folder, self.worktrees.environment), "merge", "--ff-only", "--quiet", new
            )
        read_line(output, f"bring {branch} forward{f' in {folder}' if folder else ''}")

    async def _find_checkout(self, branch: str) -> Path | None:
        """Return the work tree in which a branch is checked out, if any."""
        output = await self.worktrees.git.run("worktree", "list", "--porcelain", "-z")
        folder = None
        for row in os.fsdecode(output.data).split("\0"):
            if row.startswith("worktree "):
                folder = Path(row.removeprefix("worktree "))
            elif row == f"branch {_HEADS}{branch}":
                return folder
        return None


async def read_identity_options(git: Git) -> list[str]:
    """Return git options that set the user's name and email: `Git.run` does not read the user's configuration."""
    # Signing would start a program, which may ask for a passphrase.
    options = ["-c", "commit.gpgsign=false"]
    for name, default in (("user.name", "codeloop"), ("user.email", "codeloop@localhost")):
        output = await git.run_config("--get", name)
        options += ("-c", f"{name}={''.join(output.lines[:1]) or default}")
    return options


async def _list_conflicted(git: Git) -> list[str]:
    """Return the files of a work tree whose conflicts nobody has solved yet. Raises GitFailed."""
    output = await git.run("diff", "--name-only", "--diff-filter=U", "-z")
    return [name for name in os.fsdecode(output.data).split("\0") if name]


async def _list_filtered(git: Git, files: Sequence[str]) -> list[str]:
    """Return those of these files that git would put through a filter."""
    output = await git.run("check-attr", "-z", "filter", "--", *files[:_MAX_NAMED_FILES])
    # Path, attribute, value; again for each file.
    fields = os.fsdecode(output.data).split("\0")
    values = zip(fields[::3], fields[2::3], strict=False)
    return [name for name, value in values if value not in {"unspecified", "unset"}]


def _read_text(path: Path) -> str | None:
    """Return the start of a text file; None: it can't be read, or is binary."""
    try:
        with path.open("rb") as file:
            data = file.read(_CONFLICT_BYTES)
    except OSError:
        return None
    return None if b"\0" in data else data.decode("utf-8", "replace")
