"""Handlers of project copies: work trees without a branch, in any folder,
as OpenCode's API knows them.

Unlike the work trees of `create.py`, codeloop keeps no records of copies: git's own list has them.
"""

import asyncio
import os
from pathlib import Path

from codeloop.app.handlers.workspace.vcs import COPY_STRATEGY
from codeloop.app.handlers.worktrees.folder import list_project_folders
from codeloop.app.handlers.worktrees.names import choose_free_name, make_name_from_text, to_name
from codeloop.app.handlers.worktrees.open_worktrees import open_worktrees
from codeloop.app.handlers.worktrees.running_sessions import check_idle
from codeloop.app.project import Project
from codeloop.schema.api.worktrees import (
    CopyName,
    CreateProjectCopy,
    GenerateCopyName,
    ProjectCopy,
    RefreshProjectCopies,
    RemoveProjectCopy,
)
from codeloop.schema.errors import OperationError
from codeloop.schema.ids import make_slug
from codeloop.workspace.git.repository import GitFailed
from codeloop.workspace.git.worktrees import WorktreeRefused


async def create_copy(project: Project, args: CreateProjectCopy) -> ProjectCopy:
    """Make a work tree without a branch in a new folder. Raises OperationError."""
    if args.strategy != COPY_STRATEGY:
        raise _make_copy_error(f"There is no strategy {args.strategy}. Use {COPY_STRATEGY}.")
    parent = Path(args.directory)
    if not parent.is_absolute() or "\0" in args.directory:
        raise _make_copy_error(f"{args.directory!r} is not an absolute path.")
    folder = Path(os.path.normpath(parent)) / choose_free_name(
        to_name(args.name or "") or make_slug(), parent
    )
    try:
        await asyncio.to_thread(folder.parent.mkdir, parents=True, exist_ok=True)
        await open_worktrees(project, "ProjectCopyError").add(folder.resolve(), None)
    except (WorktreeRefused, GitFailed, OSError) as error:
        raise _make_copy_error(str(error)) from error
    return ProjectCopy(directory=str(folder.resolve()))


async def remove_copy(project: Project, args: RemoveProjectCopy) -> None:
    """Remove a copy. Raises OperationError; with `forceRequired` when something would be lost."""
    folder = Path(os.path.normpath(args.directory))
    check_idle(project, folder)
    try:
        await open_worktrees(project, "ProjectCopyError").remove(folder, force=args.force)
    except WorktreeRefused as error:
        raise _make_copy_error(str(error), is_force_needed=error.is_unsaved) from error
    except GitFailed as error:
        raise _make_copy_error(str(error)) from error


async def refresh_copies(_project: Project, _args: RefreshProjectCopies) -> None:
    """Do nothing: the list of copies is read anew for each request."""


async def name_copy(project: Project, args: GenerateCopyName) -> CopyName:
    """Return a free name for a copy, made from the first meaningful words of the context,
    or random; asks no model.
    """
    name = make_name_from_text(args.context or "") or make_slug()
    return CopyName(
        name=choose_free_name(name, *list_project_folders(project.settings.paths, args.project_id))
    )


def _make_copy_error(message: str, *, is_force_needed: bool = False) -> OperationError:
    return OperationError(
        "ProjectCopyError", message, **({"forceRequired": True} if is_force_needed else {})
    )
