"""Handlers that remove and reset work trees. No uncommitted or unmerged change is lost."""

import asyncio
from pathlib import Path

from codeloop.app.handlers.worktrees.folder import find_tree_folder
from codeloop.app.handlers.worktrees.open_worktrees import open_worktrees
from codeloop.app.handlers.worktrees.records import (
    WorktreeRecord,
    delete_record,
    find_record,
    write_record,
)
from codeloop.app.handlers.worktrees.running_sessions import check_idle
from codeloop.app.project import Project
from codeloop.config.trust.store import distrust_directory, find_trust_record
from codeloop.kit import fault_injection
from codeloop.schema.api.worktrees import (
    RemoveWorktree,
    ResetWorktree,
)
from codeloop.schema.errors import ErrorKind, OperationError
from codeloop.schema.wire import replace
from codeloop.workspace.git.linked_trees import remove_linked_tree
from codeloop.workspace.git.merge import BranchMerger
from codeloop.workspace.git.repository import Git, GitFailed
from codeloop.workspace.git.working_diff import list_changes
from codeloop.workspace.git.worktrees import WorktreeRefused, Worktrees


async def remove_worktree(project: Project, args: RemoveWorktree) -> bool:
    """Remove a work tree. Raises OperationError if it does not exist, a turn runs in it,
    or changes would be lost.
    """
    record = await _find_record(project, args.directory, "WorktreeRemoveFailedError")
    folder = find_tree_folder(project, record.name)
    if project.settings.project_root.root.is_relative_to(folder):
        raise OperationError(
            "WorktreeRemoveFailedError", f"You are in {folder}. Go somewhere else, then remove it."
        )
    check_idle(project, folder)
    trees = open_worktrees(project, "WorktreeNotGitError")
    try:
        await _remove_with_record(project, trees, record, force=args.force)
    except (WorktreeRefused, GitFailed, OSError) as error:
        raise OperationError("WorktreeRemoveFailedError", str(error)) from error
    # A new work tree in this folder must not be trusted for the old one.
    if find_trust_record(project.settings.paths, folder) is not None:
        await asyncio.to_thread(distrust_directory, project.settings.paths, folder)
    return True


async def reset_worktree(project: Project, args: ResetWorktree) -> bool:
    """Set a work tree back to the default branch.
    Raises OperationError as `remove_worktree` does.
    """
    record = await _find_record(project, args.directory, "WorktreeResetFailedError")
    folder = find_tree_folder(project, record.name)
    check_idle(project, folder)
    try:
        await open_worktrees(project, "WorktreeNotGitError").reset(folder)
    except (WorktreeRefused, GitFailed) as error:
        raise OperationError("WorktreeResetFailedError", str(error)) from error
    return True


async def _find_record(project: Project, name: str, kind: ErrorKind) -> WorktreeRecord:
    try:
        return await asyncio.to_thread(find_record, project, name)
    except OperationError as error:
        raise OperationError(
            kind, f"{name} is not a work tree that was made for this project."
        ) from error


async def _remove_with_record(
    project: Project, trees: Worktrees, record: WorktreeRecord, *, force: bool
) -> None:
    """Remove a work tree, or what is left of it, and then its record.
    Raises WorktreeRefused, GitFailed, OSError.
    """
    folder = find_tree_folder(project, record.name)
    if not folder.is_dir() or not (folder / ".git").exists():
        await _remove_remains(trees, folder, record)
    # Force is safe here: the tree was never ready for work,
    # or its removal had begun after the check below.
    elif record.state == "making" or (
        record.state == "removing" and await _has_only_deletions(Git(folder, trees.environment))
    ):
        await trees.remove(folder, force=True)
    else:
        if force:
            tree = await trees.open_tree(folder)
            await BranchMerger(trees).commit_all(
                tree, f"What was uncommitted in {record.name}", is_rescue=True
            )
        else:
            await trees.check_removable(folder)
        await asyncio.to_thread(write_record, project, replace(record, state="removing"))
        await fault_injection.pass_point_async("worktree.remove")
        try:
            await trees.remove(folder)
        except WorktreeRefused:
            if folder.is_dir():
                await asyncio.to_thread(write_record, project, replace(record, state="ready"))
            raise
    await fault_injection.pass_point_async("worktree.removed")
    await asyncio.to_thread(delete_record, project, record.name)


async def _remove_remains(trees: Worktrees, folder: Path, record: WorktreeRecord) -> None:
    """Remove the remains of a work tree without files;
    its branch stays if it has commits of its own.
    """
    # Before the branch: one that a work tree has checked out is kept,
    # until the repository has forgotten that tree.
    await remove_linked_tree(trees.git.open_folder().common, folder)
    await trees.drop_branch(record.branch)


async def _has_only_deletions(tree: Git) -> bool:
    """Return whether a work tree differs from its commit only by deleted files,
    as after a removal that was cut off.
    """
    return all(
        each.status == "deleted"
        for each in await list_changes(tree, await tree.resolve_commit("HEAD"), None)
    )
