"""Submodules of a linked work tree: checked out from local clones, and checked for unsaved work before removal.

Each is a linked work tree of the submodule's own repository, so nothing is fetched, and removing it loses no commit.
"""

import os
from pathlib import Path

from msgspec import Struct

from codeloop.kit.git import find_common_folder, find_git_folder
from codeloop.workspace.git.repository import Git, GitFailed
from codeloop.workspace.git.working_diff import list_changes

_SUBMODULE_MODE = "160000 "
_LISTING_BYTES = 1 << 24


class Submodule(Struct, frozen=True):
    """A submodule: its path in the work tree, the repository that holds its objects, the commit that is wanted."""

    path: str
    repository: Path
    commit: str


async def list_submodules(git: Git) -> list[Submodule]:
    """Return the submodules of a work tree's index whose repository is on this machine. Raises GitFailed."""
    folder = find_git_folder(git.root)
    if folder is None or not (git.root / ".gitmodules").is_file():
        return []
    output = await git.ask("config", "-f", ".gitmodules", "--null", "--get-regexp", r"^submodule\..*\.path$")
    rows = [row.partition("\n") for row in os.fsdecode(output.data).split("\0") if row]
    names = {path: key.removeprefix("submodule.").removesuffix(".path") for key, _, path in rows}
    index = await git.ask("ls-files", "--stage", "-z", cap=_LISTING_BYTES)
    modules = find_common_folder(folder).resolve() / "modules"
    submodules: list[Submodule] = []
    for row in os.fsdecode(index.data).split("\0"):
        if not row.startswith(_SUBMODULE_MODE):
            continue
        facts, _, path = row.partition("\t")
        # `.gitmodules` is a file of the project: neither a name nor a path in it may lead out.
        repository = Path(os.path.normpath(modules / names.get(path, "..")))
        inside = Path(os.path.realpath(git.root / path)).is_relative_to(git.root)
        if inside and repository.is_relative_to(modules) and (repository / "HEAD").is_file():
            submodules.append(Submodule(path, repository, facts.split()[1]))
    return submodules


async def fill_submodules(git: Git) -> list[str]:
    """Check out the submodules of a new work tree; return the paths of those that could not be. Raises GitFailed."""
    missing: list[str] = []
    for each in await list_submodules(git):
        words = ("worktree", "add", "--quiet", "--detach", "--force", "--", str(git.root / each.path), each.commit)
        output = await git.ask_for_other_folder(each.repository, (), words, 1 << 16)
        if output.code != 0:
            missing.append(each.path)
    return missing


async def prune_submodules(git: Git, submodules: list[Submodule]) -> None:
    """Forget the work trees of submodules whose folders are gone. Raises GitFailed."""
    for each in submodules:
        await git.ask_for_other_folder(each.repository, (), ("worktree", "prune"), 1 << 16)


async def list_unsaved_below(git: Git) -> list[str]:
    """Return the repositories in a work tree (relative paths) that hold changes or commits that are nowhere else.

    Raises GitFailed. A clone that the work tree does not track is always one of them.
    """
    git_output = await git.ask("ls-files", "--others", "--exclude-standard", "-z", cap=_LISTING_BYTES)
    paths = [name for name in os.fsdecode(git_output.data).split("\0") if name.endswith("/")]
    for each in await list_submodules(git):
        if find_git_folder(git.root / each.path) is None:
            continue
        below = Git(git.root / each.path, git.environment)
        try:
            head = await below.commit("HEAD")
            changes = await list_changes(below, head, None)
            lone = await below.ask("rev-list", "-n", "1", "HEAD", "--not", "--branches", "--tags", "--remotes")
        except GitFailed:
            paths.append(each.path)  # unknown counts as unsaved
            continue
        if changes or lone.code != 0 or lone.data:
            paths.append(each.path)
    return paths
