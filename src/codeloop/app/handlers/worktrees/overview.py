"""Handlers that show the states of work trees, and their changes since they left their base."""

import asyncio
from pathlib import Path
from typing import Literal

from codeloop.app.handlers.workspace.vcs import DIFF_CONTEXT_LINES, list_file_diffs
from codeloop.app.handlers.worktrees.folder import find_tree_folder
from codeloop.app.handlers.worktrees.open_worktrees import open_worktrees
from codeloop.app.handlers.worktrees.records import WorktreeRecord, find_record, read_records
from codeloop.app.handlers.worktrees.running_sessions import list_running_sessions
from codeloop.app.project import Project
from codeloop.kit.git import find_git_folder
from codeloop.kit.text.undecodable import replace_undecodable
from codeloop.schema.api.worktrees import WorktreeDiff, WorktreeName, WorktreeOverview
from codeloop.schema.errors import OperationError
from codeloop.schema.operation import NoArguments
from codeloop.schema.wire import replace
from codeloop.workspace.git.repository import Git, GitFailed
from codeloop.workspace.git.submodules import list_unsaved_repositories
from codeloop.workspace.git.worktrees import count_unshared_commits

_UNFINISHED_FILES = ("rebase-merge", "rebase-apply", "MERGE_HEAD", "CHERRY_PICK_HEAD")
"""Files that git keeps in a work tree's git folder until a merge,
rebase or cherry-pick is finished.
"""

_STATES: dict[str, Literal["ready", "unfinished", "removing"]] = {
    "making": "unfinished",
    "removing": "removing",
    "ready": "ready",
}
"""The states in the form of the API, by those of records."""


async def describe_worktrees(project: Project, _args: NoArguments) -> list[WorktreeOverview]:
    """Return the work trees of the project, each with its uncommitted and unmerged changes."""
    records = await asyncio.to_thread(read_records, project)
    return [await _describe_worktree(project, record) for record in records]


async def diff_worktree(project: Project, args: WorktreeName) -> WorktreeDiff:
    """Compare a work tree with the commit at which it left its base.
    Raises OperationError, GitFailed.
    """
    record = await asyncio.to_thread(find_record, project, args.name)
    tree = Git(find_tree_folder(project, record.name), project.workspace.environment)
    if find_git_folder(tree.root) is None:
        raise OperationError(
            "BadRequest",
            f"The folder of {record.name} is gone. `codeloop worktree remove` forgets it.",
        )
    base = await find_branch_point(tree, record)
    return WorktreeDiff(
        base=replace_undecodable(record.base or base),
        commit=base,
        files=await list_file_diffs(tree, base, DIFF_CONTEXT_LINES),
    )


async def find_branch_point(tree: Git, record: WorktreeRecord) -> str:
    """Return the last common commit of a work tree and its base;
    if the base is gone, the commit it began at.

    Raises OperationError, GitFailed.
    """
    head = await tree.resolve_commit("HEAD")
    base = f"refs/heads/{record.base}" if record.is_branch and record.base else record.base
    base_commit = await tree.resolve_commit(base) if base is not None else None
    commit = (
        await tree.find_merge_base(head, base_commit)
        if head is not None and base_commit is not None
        else None
    )
    branch_point = commit or record.start or head
    if branch_point is None:
        raise OperationError("BadRequest", f"{record.name} has no commit to compare with.")
    return branch_point


async def _describe_worktree(project: Project, record: WorktreeRecord) -> WorktreeOverview:
    """Return the state of a work tree. If git fails, `error` has its message."""
    folder = find_tree_folder(project, record.name)
    row = WorktreeOverview(
        name=record.name,
        directory=str(folder),
        state=_STATES[record.state] if folder.is_dir() else "gone",
        branch=record.branch,
        base=record.base,
        running=list_running_sessions(project, folder),
        created=record.created,
    )
    if row.state == "gone" or record.state == "making":
        return row
    error = None
    if (unfinished_file := _find_unfinished_file(folder)) is not None:
        error = f"{unfinished_file}: something is half done there; see `git status`."
    tree = Git(folder, project.workspace.environment)
    try:
        changed = await open_worktrees(project, "BadRequest").list_changed_files(tree)
        branch = await tree.read_branch()
        ahead, behind = await _count_commits(tree, record)
        return replace(
            row,
            branch=branch or row.branch,
            changed=[
                replace_undecodable(name)
                for name in (*changed, *await list_unsaved_repositories(tree))
            ],
            ahead=ahead,
            behind=behind,
            unmerged=await count_unshared_commits(
                tree, "HEAD" if branch is None else f"refs/heads/{branch}"
            ),
            error=error,
        )
    except GitFailed as failure:
        return replace(row, error=str(failure))


def _find_unfinished_file(folder: Path) -> str | None:
    """Return the name of a file by which git marks an unfinished merge,
    rebase or cherry-pick in a work tree.
    """
    git_folder = find_git_folder(folder)
    if git_folder is None:
        return None
    return next((name for name in _UNFINISHED_FILES if (git_folder / name).exists()), None)


async def _count_commits(tree: Git, record: WorktreeRecord) -> tuple[int, int]:
    """Return the number of commits that only the work tree has, and that only its base has.
    Raises GitFailed.
    """
    base = f"refs/heads/{record.base}" if record.is_branch and record.base else record.base
    if base is None:
        return 0, 0
    output = await tree.run("rev-list", "--left-right", "--count", f"HEAD...{base}")
    counts = "".join(output.lines[:1]).split()
    return (int(counts[0]), int(counts[1])) if output.code == 0 and len(counts) == 2 else (0, 0)
