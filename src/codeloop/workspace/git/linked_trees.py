"""The linked work trees of a repository, read and made without git.

`git worktree` starts further gits, which read the repository's own configuration.
"""

import asyncio
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from codeloop.kit.git import find_common_folder, find_git_folder
from codeloop.kit.git.own_folder import read_head
from codeloop.kit.remove_tree import remove_tree
from codeloop.kit.small_files import read_start_or_empty, write_atomically
from codeloop.workspace.git.repository import Git

_POINTER_BYTES = 4096
_BRANCH_PREFIX = "ref: refs/heads/"
# Files that name the branch of a rebase that is under way; HEAD names none then.
_REBASED_BRANCH_FILES = ("rebase-merge/head-name", "rebase-apply/head-name")
_UNUSUAL = r"(?a)[^\w.-]+|^[.-]+|\.lock$"
_MAX_NAME_CHARS = 60
# The folder with the references, and HEAD, of a repository that keeps them in git's newer format.
_REFTABLE = "reftable"


class LinkedTree(NamedTuple):
    """A work tree: its top folder, and its git directory."""

    folder: Path
    git_folder: Path

    @property
    def branch(self) -> str | None:
        """The branch that is checked out; None: a commit is, or a rebase is under way."""
        head = read_head(self.git_folder)
        return head.removeprefix(_BRANCH_PREFIX) if head.startswith(_BRANCH_PREFIX) else None

    @property
    def used_branches(self) -> set[str]:
        """The branches that must not be deleted because of this work tree."""
        names = {self.branch} if self.branch is not None else set[str]()
        for file in _REBASED_BRANCH_FILES:
            name = os.fsdecode(read_start_or_empty(self.git_folder / file, _POINTER_BYTES)).strip()
            names.add(name.removeprefix("refs/heads/"))
        return names - {""}


def list_linked_trees(common: Path) -> list[LinkedTree]:
    """Return the linked work trees of a repository by its git directory,
    also those whose folder is gone.
    """
    return sorted(_read_linked_trees(common))


def list_all_trees(common: Path) -> list[LinkedTree]:
    """Return all work trees: the main one first, unless the repository is bare."""
    main = [LinkedTree(common.parent, common)] if find_git_folder(common.parent) is not None else []
    return [*main, *list_linked_trees(common)]


async def make_linked_tree(common: Path, tree: Git, head: str) -> None:
    """Make a work tree without files. Its folder does not exist, or is empty;
    `head`: the text of its HEAD.

    Raises OSError, GitFailed.
    """
    await asyncio.to_thread(_make_linked_tree, common, tree.root, head)
    if (common / _REFTABLE).exists():
        branch = head.removeprefix("ref: ")
        words = (
            ("symbolic-ref", "HEAD", branch)
            if branch != head
            else ("update-ref", "--no-deref", "HEAD", head)
        )
        await tree.run(*words)


async def find_branch(tree: LinkedTree, environment: Mapping[str, str]) -> str | None:
    """Return the branch that is checked out in a work tree, however it is stored.
    Raises GitFailed.
    """
    return (
        await Git(tree.folder, environment).read_branch()
        if (tree.git_folder / _REFTABLE).exists()
        else tree.branch
    )


def _make_linked_tree(common: Path, folder: Path, head: str) -> None:
    git_folder = _make_git_folder(common, folder.name)
    try:
        # git forgets no work tree that is locked, and this one is not whole yet.
        (git_folder / "locked").write_text("initializing\n", encoding="utf-8")
        (git_folder / "logs").mkdir()
        if (common / _REFTABLE).exists():
            # As git does, so that a version which knows no reftables takes it for no repository.
            head = "ref: refs/heads/.invalid"
            for name in ("refs", _REFTABLE):
                (git_folder / name).mkdir()
            (git_folder / "refs" / "heads").write_text(
                "this repository uses the reftable format\n", encoding="utf-8"
            )
            (git_folder / _REFTABLE / "tables.list").touch()
        (git_folder / "HEAD").write_text(f"{head}\n", encoding="utf-8", errors="surrogateescape")
        (git_folder / "commondir").write_text("../..\n", encoding="utf-8")
        folder.mkdir(exist_ok=True)
        (git_folder / "gitdir").write_bytes(os.fsencode(os.path.realpath(folder)) + b"/.git\n")
        # Not through a link or into a file that lies there.
        with (folder / ".git").open("xb") as file:
            file.write(b"gitdir: " + os.fsencode(git_folder) + b"\n")
        (git_folder / "locked").unlink()
    except OSError:
        remove_tree(git_folder)
        raise


def forget_linked_tree(common: Path, folder: Path) -> None:
    """Remove what a repository holds of a work tree, whose folder is gone. Blocks."""
    real = Path(os.path.realpath(folder))
    for tree in list_linked_trees(common):
        if tree.folder == real and not os.path.lexists(folder / ".git"):
            remove_tree(tree.git_folder)


def repair_links(common: Path, folders: Iterable[Path]) -> None:
    """Join work trees and their repository again after one of them was renamed or moved, as
    `git worktree repair` does. Blocks. Raises OSError.

    `folders`: of work trees, which only name each other's place. Where the repository that a tree
    names is still there, or its tree, nothing is changed.
    """
    trees = list_linked_trees(common)
    for folder in folders:
        pointer, real = folder / ".git", Path(os.path.realpath(folder))
        if pointer.is_symlink() or not pointer.is_file():
            continue
        text = os.fsdecode(read_start_or_empty(pointer, _POINTER_BYTES)).strip()
        target = Path(os.path.realpath(folder / text.removeprefix("gitdir: ")))
        for tree in trees:
            if tree.folder == real and not target.exists():
                write_atomically(pointer, b"gitdir: " + os.fsencode(tree.git_folder) + b"\n")
            elif tree.git_folder == target and not os.path.lexists(tree.folder):
                write_atomically(target / "gitdir", os.fsencode(real) + b"/.git\n")


def is_locked(folder: Path) -> bool:
    """Return whether the user has locked a linked work tree (`git worktree lock`),
    so that it must not be removed.
    """
    git_folder = find_git_folder(folder)
    return git_folder is not None and os.path.lexists(git_folder / "locked")


async def remove_linked_tree(common: Path, folder: Path) -> None:
    """Remove a work tree with its files, and what the repository holds of it."""
    await asyncio.to_thread(remove_tree, folder)
    await asyncio.to_thread(forget_linked_tree, common, folder)


def find_common(top: Path) -> Path | None:
    """Return the git directory that the work trees of a repository share, by the top of one;
    None: there is none.
    """
    folder = find_git_folder(top)
    return None if folder is None else Path(os.path.realpath(find_common_folder(folder)))


def _read_linked_trees(common: Path) -> Iterator[LinkedTree]:
    with suppress(OSError), os.scandir(common / "worktrees") as entries:
        for entry in entries:
            git_folder = Path(entry.path)
            pointer = os.fsdecode(
                read_start_or_empty(git_folder / "gitdir", _POINTER_BYTES)
            ).strip()
            if entry.is_dir(follow_symlinks=False) and pointer and "\0" not in pointer:
                # Newer versions of git may write a relative path.
                file = git_folder / pointer
                yield LinkedTree(Path(os.path.realpath(file.parent)), git_folder)


def _make_git_folder(common: Path, name: str) -> Path:
    """Make the folder of a work tree in a git directory, under a name that is free.
    Raises OSError.
    """
    (common / "worktrees").mkdir(exist_ok=True)
    plain = re.sub(_UNUSUAL, "-", name)[:_MAX_NAME_CHARS] or "tree"
    number = 0
    while True:
        folder = common / "worktrees" / f"{plain}{number or ''}"
        try:
            folder.mkdir()
        except FileExistsError:
            number += 1
        else:
            return folder
