"""Checks out the submodules of a linked work tree from local clones,
and finds unsaved work in repositories inside.

Each becomes a linked work tree of the submodule's own repository, so nothing is fetched, and
removing it loses no commit.
"""

import asyncio
import os
from pathlib import Path

from msgspec import Struct

from codeloop.kit.git import find_common_folder, find_git_folder
from codeloop.schema.limits import WORKTREE_TIME
from codeloop.workspace.git.linked_trees import forget_linked_tree, make_linked_tree
from codeloop.workspace.git.repository import Git, GitFailed
from codeloop.workspace.git.working_diff import list_changes

# The start of a submodule's row in `git ls-files --stage`.
_SUBMODULE_MODE = "160000 "
_LISTING_BYTES = 1 << 24


class Submodule(Struct, frozen=True):
    """A submodule: its path in the work tree, the repository with its objects,
    and the commit that the index names.
    """

    path: str
    repository: Path
    commit: str


async def list_submodules(git: Git) -> list[Submodule]:
    """Return the submodules of a work tree's index whose repository is on this machine.
    Raises GitFailed.
    """
    folder = find_git_folder(git.root)
    if folder is None or not (git.root / ".gitmodules").is_file():
        return []
    output = await git.run(
        "config", "-f", ".gitmodules", "--null", "--get-regexp", r"^submodule\..*\.path$"
    )
    rows = [row.partition("\n") for row in os.fsdecode(output.data).split("\0") if row]
    names = {path: key.removeprefix("submodule.").removesuffix(".path") for key, _, path in rows}
    index = await git.run("ls-files", "--stage", "-z", max_bytes=_LISTING_BYTES)
    modules = find_common_folder(folder).resolve() / "modules"
    submodules: list[Submodule] = []
    for row in os.fsdecode(index.data).split("\0"):
        if not row.startswith(_SUBMODULE_MODE):
            continue
        columns, _, path = row.partition("\t")
        name = names.get(path)
        if name is None:
            # `.gitmodules` does not name this path, so its repository is unknown.
            continue
        # `.gitmodules` is a file of the project: neither a name nor a path in it may lead out.
        repository = Path(os.path.normpath(modules / name))
        is_inside = Path(os.path.realpath(git.root / path)).is_relative_to(git.root)
        if is_inside and repository.is_relative_to(modules) and (repository / "HEAD").is_file():
            # Before the path: mode, object id, stage.
            submodules.append(Submodule(path, repository, columns.split()[1]))
    return submodules


async def check_out_submodules(git: Git) -> list[str]:
    """Check out the submodules of a new work tree; return the paths of those that could not be.
    Raises GitFailed.
    """
    missing: list[str] = []
    for submodule in await list_submodules(git):
        tree = Git(git.root / submodule.path, git.environment)
        try:
            await make_linked_tree(submodule.repository, tree, submodule.commit)
            output = await tree.run(
                "reset",
                "--quiet",
                "--hard",
                "--no-recurse-submodules",
                seconds=WORKTREE_TIME.seconds,
            )
            is_there = output.code == 0
        except (OSError, GitFailed):
            is_there = False
        if not is_there:
            missing.append(submodule.path)
    return missing


async def forget_submodules(submodules: list[Submodule], folder: Path) -> None:
    """Have the submodules' repositories forget their work trees in a folder that is gone."""
    for submodule in submodules:
        await asyncio.to_thread(forget_linked_tree, submodule.repository, folder / submodule.path)


async def list_unsaved_repositories(git: Git) -> list[str]:
    """Return the repositories in a work tree (relative paths) with changes or commits
    that exist nowhere else.

    A clone that the work tree does not track is always one of them. Raises GitFailed.
    """
    untracked = await git.run(
        "ls-files", "--others", "--exclude-standard", "-z", max_bytes=_LISTING_BYTES
    )
    # git lists a nested repository as one name with a slash.
    paths = [name for name in os.fsdecode(untracked.data).split("\0") if name.endswith("/")]
    for submodule in await list_submodules(git):
        if find_git_folder(git.root / submodule.path) is None:
            continue
        submodule_git = Git(git.root / submodule.path, git.environment)
        try:
            head = await submodule_git.resolve_commit("HEAD")
            changes = await list_changes(submodule_git, head, None)
            unshared = await submodule_git.run(
                "rev-list", "-n", "1", "HEAD", "--not", "--branches", "--tags", "--remotes"
            )
        except GitFailed:
            paths.append(submodule.path)  # unknown counts as unsaved
            continue
        if changes or unshared.code != 0 or unshared.data:
            paths.append(submodule.path)
    return paths
