"""Further work trees of the project, and the reference's other name for them: copies."""

import asyncio
import os
import re
from pathlib import Path

from codeloop.app.handlers import handles
from codeloop.app.handlers.project.details import list_worktrees, read_details, worktree_folder
from codeloop.app.handlers.workspace.vcs import COPY_STRATEGY, git_of
from codeloop.app.project import Project
from codeloop.app.slugs import slug
from codeloop.schema import server_operation as operation
from codeloop.schema.api.project import Worktree
from codeloop.schema.api.worktrees import (
    CopyName,
    CreateProjectCopy,
    CreateWorktree,
    GenerateCopyName,
    ProjectCopy,
    RefreshProjectCopies,
    RemoveProjectCopy,
    RemoveWorktree,
    ResetWorktree,
)
from codeloop.schema.errors import Kind, OperationError
from codeloop.schema.limits import SHELL_TIMEOUT_MAX
from codeloop.schema.live_events import WorktreeReady
from codeloop.schema.operation import NoArguments
from codeloop.store.queries import ALL, SessionFilter
from codeloop.workspace.git.repository import GitFailed
from codeloop.workspace.git.worktrees import WorktreeRefused, Worktrees
from codeloop.workspace.process.run_program import run_program

_LONGEST = 48
_TRIES = 20
_UNFIT = re.compile(r"[^a-z0-9]+")
_FILLERS = frozenset(("a", "an", "and", "for", "in", "of", "on", "please", "the", "to", "with"))
_WORDS = 5


@handles(operation.WORKTREE_LIST)
async def find_all(project: Project, _args: NoArguments) -> list[str]:
    """Return the folders of the work trees that were made for the project."""
    return await asyncio.to_thread(list_worktrees, project.settings.paths, project.settings.place.project_id)


@handles(operation.WORKTREE_CREATE)
async def create(project: Project, args: CreateWorktree) -> Worktree:
    """Make a work tree with a branch, and run the start commands there. Raises OperationError; see the contract."""
    trees = _trees(project, "WorktreeNotGitError")
    folder = worktree_folder(project.settings.paths, project.settings.place.project_id)
    name = _free_name(folder, _shorten(args.name or "") or slug())
    made = Worktree(name=name, branch=f"codeloop/{name}", directory=str(folder / name))
    try:
        await asyncio.to_thread(folder.mkdir, parents=True, exist_ok=True)
        await trees.add(folder / name, made.branch)
    except (WorktreeRefused, GitFailed, OSError) as error:
        raise OperationError("WorktreeCreateFailedError", str(error)) from error
    about = await asyncio.to_thread(read_details, project.settings.home)
    for line in (about.commands.start if about.commands else None, args.start_command):
        if line is not None and line.strip():
            await _start(project, folder / name, line)
    project.tell(WorktreeReady(properties=made))
    return made


@handles(operation.WORKTREE_REMOVE)
async def remove(project: Project, args: RemoveWorktree) -> bool:
    """Remove a work tree. Raises OperationError: it is none, a session works in it, something would be lost."""
    folder = _own(project, args.directory, "WorktreeRemoveFailedError")
    _check_idle(project, folder)
    try:
        await _trees(project, "WorktreeNotGitError").remove(folder)
    except (WorktreeRefused, GitFailed) as error:
        raise OperationError("WorktreeRemoveFailedError", str(error)) from error
    return True


@handles(operation.WORKTREE_RESET)
async def reset(project: Project, args: ResetWorktree) -> bool:
    """Set a work tree back to the default branch. Raises OperationError as `remove` does."""
    folder = _own(project, args.directory, "WorktreeResetFailedError")
    _check_idle(project, folder)
    try:
        await _trees(project, "WorktreeNotGitError").reset(folder)
    except (WorktreeRefused, GitFailed) as error:
        raise OperationError("WorktreeResetFailedError", str(error)) from error
    return True


@handles(operation.COPY_CREATE)
async def create_copy(project: Project, args: CreateProjectCopy) -> ProjectCopy:
    """Make a work tree without a branch in a new folder. Raises OperationError."""
    if args.strategy != COPY_STRATEGY:
        raise _copy_error(f"There is no strategy {args.strategy}. Use {COPY_STRATEGY}.")
    parent = Path(args.directory)
    if not parent.is_absolute() or "\0" in args.directory:
        raise _copy_error(f"{args.directory!r} is not an absolute path.")
    folder = Path(os.path.normpath(parent)) / _free_name(parent, _shorten(args.name or "") or slug())
    try:
        await asyncio.to_thread(folder.parent.mkdir, parents=True, exist_ok=True)
        await _trees(project, "ProjectCopyError").add(folder.resolve(), None)
    except (WorktreeRefused, GitFailed, OSError) as error:
        raise _copy_error(str(error)) from error
    return ProjectCopy(directory=str(folder.resolve()))


@handles(operation.COPY_REMOVE)
async def remove_copy(project: Project, args: RemoveProjectCopy) -> None:
    """Remove a copy. Raises OperationError; with `forceRequired` when something would be lost."""
    folder = Path(os.path.normpath(args.directory))
    _check_idle(project, folder)
    try:
        await _trees(project, "ProjectCopyError").remove(folder, force=args.force)
    except WorktreeRefused as error:
        raise _copy_error(str(error), is_force_needed=error.is_unsaved) from error
    except GitFailed as error:
        raise _copy_error(str(error)) from error


@handles(operation.COPY_REFRESH)
async def refresh_copies(_project: Project, _args: RefreshProjectCopies) -> None:
    """Do nothing: copies are looked for whenever they are asked for."""


@handles(operation.COPY_NAME)
async def name_copy(project: Project, args: GenerateCopyName) -> CopyName:
    """Return a name made of the first words of the context that say something, else two words; no model is asked."""
    words = [word for word in _UNFIT.split((args.context or "")[:1000].lower()) if word and word not in _FILLERS]
    name = _shorten(" ".join(words[:_WORDS])) or slug()
    return CopyName(name=_free_name(worktree_folder(project.settings.paths, args.project_id), name))


def _trees(project: Project, kind: Kind) -> Worktrees:
    git = git_of(project)
    if git is None:
        raise OperationError(kind, f"{project.settings.place.root} is in no git repository; `git init` makes one.")
    return Worktrees(git)


def _own(project: Project, directory: str, kind: Kind) -> Path:
    """Return the folder of a work tree that was made here. Raises OperationError for any other."""
    paths, place = project.settings.paths, project.settings.place
    if directory not in list_worktrees(paths, place.project_id):
        raise OperationError(kind, f"{directory} is no work tree that was made for this project.")
    return Path(directory)


def _check_idle(project: Project, folder: Path) -> None:
    """Raise OperationError when a turn of a session runs in a folder."""
    store = project.store
    for session in store.queries.sessions(SessionFilter(directory=str(folder), limit=ALL)):
        if store.leases.is_held(session.id):
            raise OperationError("SessionBusyError", f"The session {session.id} works in {folder}. Abort it first.")


def _shorten(text: str) -> str:
    return _UNFIT.sub("-", text.lower())[:_LONGEST].strip("-")


def _free_name(folder: Path, name: str) -> str:
    """Return a name that nothing in a folder has: this one, or this one with two words."""
    for _ in range(_TRIES):
        if not os.path.lexists(folder / name):
            return name
        name = f"{name[:_LONGEST]}-{slug()}"
    return name


async def _start(project: Project, folder: Path, line: str) -> None:
    """Run a shell line that a user wants in a new work tree. Raises OperationError when it fails."""
    said = bytearray()

    def feed(chunk: bytes) -> bool:
        said.extend(chunk[:4096])
        del said[:-4096]
        return False

    shell = project.settings.environment.get("SHELL") or "/bin/sh"
    seconds = SHELL_TIMEOUT_MAX.seconds
    try:
        ended = await run_program([shell, "-c", line], folder, project.workspace.environment, feed, seconds)
    except (OSError, ValueError) as error:
        raise OperationError("WorktreeStartCommandFailedError", f"{line}: {error}") from error
    if ended.code != 0 or ended.stopped:
        words = " ".join((ended.errors or said.decode("utf-8", "replace")).split())[-1000:]
        what = f"was ended after {seconds:g} s" if ended.stopped else f"ended with code {ended.code}"
        raise OperationError(
            "WorktreeStartCommandFailedError", f"The work tree {folder} is made, but `{line}` {what}: {words}"
        )


def _copy_error(message: str, *, is_force_needed: bool = False) -> OperationError:
    return OperationError("ProjectCopyError", message, **({"forceRequired": True} if is_force_needed else {}))
