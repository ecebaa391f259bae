"""Handlers that merge work trees into the branches that they were made from,
and rebase them onto these.
"""

import asyncio

from codeloop.app.handlers.worktrees.folder import find_tree_folder
from codeloop.app.handlers.worktrees.open_worktrees import open_worktrees
from codeloop.app.handlers.worktrees.records import WorktreeRecord, find_record
from codeloop.app.handlers.worktrees.running_sessions import check_idle
from codeloop.app.project import Project
from codeloop.kit.text.undecodable import replace_undecodable
from codeloop.schema.api.worktrees import (
    MergeConflict,
    MergeWorktree,
    WorktreeMerge,
    WorktreeName,
)
from codeloop.schema.errors import OperationError
from codeloop.workspace.git.merge import BranchMerger, MergeResult
from codeloop.workspace.git.repository import Git, GitFailed
from codeloop.workspace.git.worktrees import WorktreeRefused

_MAX_MESSAGE_CHARS = 200
"""The length of the message of a merge that names its files."""


async def merge_worktree(project: Project, args: MergeWorktree) -> WorktreeMerge:
    """Merge a work tree's branch into the branch that it was made from. Raises OperationError."""
    record, tree = await _find_ready_worktree(project, args.name)
    into = args.into or (record.base if record.is_branch else None)
    if into is None:
        raise OperationError(
            "BadRequest",
            f"{record.name} was made from a commit, not from a branch. Name the branch to merge into, with --into.",
        )
    # Not the one of the record: a session may have switched to a branch of its own.
    branch = await tree.read_branch()
    if branch is None:
        raise OperationError(
            "BadRequest",
            f"No branch is checked out in {tree.root}. Finish or abort what is under way there (`git status`), or "
            f"`git switch {record.branch or 'BRANCH'}`.",
        )
    merger = BranchMerger(open_worktrees(project, "WorktreeNotGitError"))
    message = args.message or f"Changes of {record.name}"
    try:
        committed = await merger.commit_all(tree, message)
        merge_message = (
            message
            if args.files is None
            else f"{message}: {', '.join(args.files)}"[:_MAX_MESSAGE_CHARS]
        )
        merged = await merger.merge(branch, into, merge_message, args.files)
    except (WorktreeRefused, GitFailed) as error:
        raise OperationError("BadRequest", str(error)) from error
    return _describe_merge(into, merged, committed)


async def rebase_worktree(project: Project, args: WorktreeName) -> WorktreeMerge:
    """Replay a work tree's commits onto the branch that it was made from, as it is now.
    Raises OperationError.
    """
    record, tree = await _find_ready_worktree(project, args.name)
    if record.base is None or not record.is_branch:
        raise OperationError(
            "BadRequest", f"{record.name} was made from a commit, which does not move."
        )
    try:
        merged = await BranchMerger(open_worktrees(project, "WorktreeNotGitError")).rebase(
            tree, record.base
        )
    except (WorktreeRefused, GitFailed) as error:
        raise OperationError("BadRequest", str(error)) from error
    return _describe_merge(record.base, merged, [])


def _describe_merge(into: str, merged: MergeResult, committed: list[str]) -> WorktreeMerge:
    return WorktreeMerge(
        into=replace_undecodable(into),
        commit=merged.commit,
        conflicts=[
            MergeConflict(file=replace_undecodable(each.file), text=each.text)
            for each in merged.conflicts
        ],
        committed=[replace_undecodable(name) for name in committed],
    )


async def _find_ready_worktree(project: Project, name: str) -> tuple[WorktreeRecord, Git]:
    """Return the record and git of a ready work tree in which no turn runs.
    Raises OperationError.
    """
    record = await asyncio.to_thread(find_record, project, name)
    folder = find_tree_folder(project, record.name)
    if record.state != "ready" or not folder.is_dir():
        raise OperationError(
            "BadRequest", f"{record.name} is not whole. `codeloop worktree remove` clears it away."
        )
    check_idle(project, folder)
    return record, Git(folder, project.workspace.environment)
