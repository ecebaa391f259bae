"""Handlers of version control: branches, changed files and diffs of the work tree."""

import asyncio

from codeloop.app.project import Project
from codeloop.kit.text.undecodable import replace_undecodable
from codeloop.schema.api.files import VcsDiffQuery, VcsFileDiff, VcsFileStatus, VcsInfo
from codeloop.schema.api.project import ProjectDirectory
from codeloop.schema.errors import OperationError
from codeloop.schema.limits import VCS_CONTEXT
from codeloop.schema.operation import NoArguments
from codeloop.workspace.git.repository import Git, GitFailed
from codeloop.workspace.git.working_diff import list_changes

DIFF_CONTEXT_LINES = 3
"""The lines around a change, unless a client requests another number."""
COPY_STRATEGY = "git_worktree"
"""The API's name for copying a project by `git worktree`."""


async def get_branches(project: Project, _args: NoArguments) -> VcsInfo:
    """Return the checked out branch and the default branch; None for one that does not exist."""
    git = open_git(project)
    if git is None:
        return VcsInfo()
    try:
        branch, default = await asyncio.gather(git.read_branch(), git.find_default_branch())
    except GitFailed:
        return VcsInfo()
    return VcsInfo(
        branch=None if branch is None else replace_undecodable(branch),
        default_branch=None if default is None else replace_undecodable(default.name),
    )


async def list_changed_files(project: Project, _args: NoArguments) -> list[VcsFileStatus]:
    """Return the files that differ from the last commit. Raises GitFailed."""
    git = open_git(project)
    if git is None:
        return []
    return [
        VcsFileStatus(
            file=replace_undecodable(each.file),
            additions=each.additions,
            deletions=each.deletions,
            status=each.status,
        )
        for each in await list_changes(git, await git.resolve_commit("HEAD"), None)
    ]


async def diff_work_tree(project: Project, args: VcsDiffQuery) -> list[VcsFileDiff]:
    """Return the files that differ from the last commit,
    or from the last commit in common with the default branch.

    Raises OperationError for too many lines of context, or without a default branch; GitFailed.
    """
    context = DIFF_CONTEXT_LINES if args.context is None else args.context
    if not 0 <= context <= VCS_CONTEXT.value:
        raise OperationError(
            "BadRequest", f"context is {context}; it must be 0 to {VCS_CONTEXT.value}."
        )
    git = open_git(project)
    if git is None:
        return []
    head = await git.resolve_commit("HEAD")
    base = head if args.mode == "git" or head is None else await _find_branch_point(git, head)
    return await list_file_diffs(git, base, context)


async def list_file_diffs(git: Git, base: str | None, context: int) -> list[VcsFileDiff]:
    """Return the files of a work tree that differ from a commit,
    with `context` lines around each change.
    """
    return [
        VcsFileDiff(
            file=replace_undecodable(each.file),
            additions=each.additions,
            deletions=each.deletions,
            patch=None if each.patch is None else replace_undecodable(each.patch),
            status=each.status,
        )
        for each in await list_changes(git, base, context)
    ]


async def list_work_trees(project: Project) -> list[ProjectDirectory]:
    """Return all further work trees of the project's repository,
    including those that codeloop has not made.
    """
    git = open_git(project)
    if git is None:
        return []
    # Imported late, since most requests of this module need no work trees.
    from codeloop.workspace.git.worktrees import Worktrees

    try:
        folders = await Worktrees(git).list_folders()
    except GitFailed:
        return []
    return [ProjectDirectory(directory=str(folder), strategy=COPY_STRATEGY) for folder in folders]


def open_git(project: Project) -> Git | None:
    """Return git for the project's work tree; None outside a repository."""
    project_root = project.settings.project_root
    return (
        Git(project_root.root, project.workspace.environment) if project_root.vcs == "git" else None
    )


async def _find_branch_point(git: Git, head: str) -> str:
    """Return the last common commit of this branch and the default one.
    Raises OperationError when there is none.
    """
    default = await git.find_default_branch()
    if default is None:
        raise OperationError(
            "BadRequest",
            "There is no default branch to compare with: no remote's HEAD, no main, no master. Use mode=git.",
        )
    base = await git.find_merge_base(head, default.ref)
    if base is None:
        raise OperationError(
            "BadRequest", f"This branch and {default.name} have no commit in common. Use mode=git."
        )
    return base
