"""Handlers that create, list and name work trees."""

import asyncio
import os
import re
import time
from pathlib import Path

from codeloop.app.handlers import handles
from codeloop.app.handlers.project.details import list_worktrees, read_details, worktree_folder
from codeloop.app.handlers.workspace.vcs import COPY_STRATEGY
from codeloop.app.handlers.worktrees.prepare import copy_files, extend_trust, find_files_to_copy, prepare, run_setup
from codeloop.app.handlers.worktrees.records import (
    WorktreeRecord,
    check_idle,
    delete_record,
    find_record,
    find_worktrees_folder,
    open_worktrees,
    write_record,
)
from codeloop.app.project import Project
from codeloop.kit import fault_injection
from codeloop.kit.slugs import make_slug
from codeloop.schema import server_operation as operation
from codeloop.schema.api.project import Worktree
from codeloop.schema.api.worktrees import (
    CopyName,
    CopyToWorktree,
    CreateProjectCopy,
    CreateWorktree,
    GenerateCopyName,
    ProjectCopy,
    RefreshProjectCopies,
    RemoveProjectCopy,
)
from codeloop.schema.bounds.session import SLOW_CHECKOUT_TIME
from codeloop.schema.errors import OperationError
from codeloop.schema.live_events import WorktreeReady
from codeloop.schema.operation import NoArguments
from codeloop.schema.wire import replace
from codeloop.workspace.git.repository import Git, GitFailed
from codeloop.workspace.git.worktrees import WorktreeRefused, Worktrees

_MAX_NAME_CHARACTERS = 48
_MAX_TRIES = 20
_NOT_ALLOWED = re.compile(r"[^a-z0-9]+")
_FILLER_WORDS = frozenset(("a", "an", "and", "for", "in", "of", "on", "please", "the", "to", "with"))
_MAX_WORDS = 5


@handles(operation.WORKTREE_LIST)
async def list_all(project: Project, _args: NoArguments) -> list[str]:
    """Return the folders of the work trees that were made for the project."""
    return await asyncio.to_thread(list_worktrees, project.settings.paths, project.settings.project_root.project_id)


@handles(operation.WORKTREE_CREATE)
async def create(project: Project, args: CreateWorktree) -> Worktree:
    """Make a work tree with a new branch, and run its setup commands. Raises OperationError."""
    trees, home = open_worktrees(project, "WorktreeNotGitError"), find_worktrees_folder(project)
    name = await _choose_tree_name(trees, home, args.name)
    try:
        record = await _begin_record(trees, name, args.base)
        await asyncio.to_thread(write_record, project, record)
        await fault_injection.reach("worktree.record")
        sparse = args.sparse if args.sparse is not None else project.settings.config.worktree.sparse
        notes = await _check_out(project, trees, record, sparse)
        await fault_injection.reach("worktree.checkout")
        folder = home / name
        asks, more = await prepare(project, trees.git, Git(folder, trees.environment))
        await fault_injection.reach("worktree.ready")
        await asyncio.to_thread(write_record, project, replace(record, state="ready"))
    except (WorktreeRefused, GitFailed, OSError) as error:
        raise OperationError("WorktreeCreateFailedError", str(error)) from error
    is_trusted = await asyncio.to_thread(extend_trust, project, folder)
    worktree = Worktree(
        name=name,
        branch=record.branch,
        directory=str(folder),
        base=record.base,
        asks=asks,
        notes=[*notes, *more, *_explain_skipped(project, is_trusted=is_trusted)],
    )
    await _run_setup_lines(project, folder, args.start_command, is_trusted=is_trusted)
    project.publish_live(WorktreeReady(properties=worktree))
    return worktree


@handles(operation.WORKTREE_COPY)
async def copy(project: Project, args: CopyToWorktree) -> list[str]:
    """Copy ignored files into a work tree. Raises OperationError for files that `worktree.copy` does not name."""
    record = await asyncio.to_thread(find_record, project, args.name)
    trees = open_worktrees(project, "WorktreeNotGitError")
    allowed, asks = await find_files_to_copy(project, trees.git)
    for name in args.files:
        if name not in (*allowed, *asks):
            raise OperationError(
                "BadRequest",
                f"{name} is no ignored file that `worktree.copy` in your configuration names. Add it there: "
                f'"worktree": {{"copy": {{"{name}": "allow"}}}}',
            )
    await asyncio.to_thread(copy_files, trees.git.root, find_worktrees_folder(project) / record.name, args.files)
    return args.files


@handles(operation.COPY_CREATE)
async def create_copy(project: Project, args: CreateProjectCopy) -> ProjectCopy:
    """Make a work tree without a branch in a new folder. Raises OperationError."""
    if args.strategy != COPY_STRATEGY:
        raise _make_copy_error(f"There is no strategy {args.strategy}. Use {COPY_STRATEGY}.")
    parent = Path(args.directory)
    if not parent.is_absolute() or "\0" in args.directory:
        raise _make_copy_error(f"{args.directory!r} is not an absolute path.")
    folder = Path(os.path.normpath(parent)) / _choose_name(parent, shorten(args.name or "") or make_slug())
    try:
        await asyncio.to_thread(folder.parent.mkdir, parents=True, exist_ok=True)
        await open_worktrees(project, "ProjectCopyError").add(folder.resolve(), None)
    except (WorktreeRefused, GitFailed, OSError) as error:
        raise _make_copy_error(str(error)) from error
    return ProjectCopy(directory=str(folder.resolve()))


@handles(operation.COPY_REMOVE)
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


@handles(operation.COPY_REFRESH)
async def refresh_copies(_project: Project, _args: RefreshProjectCopies) -> None:
    """Do nothing: the list of copies is read anew for each request."""


@handles(operation.COPY_NAME)
async def name_copy(project: Project, args: GenerateCopyName) -> CopyName:
    """Return a free name for a copy, made from the first meaningful words of the context, or random; asks no model."""
    name = name_from_words(args.context or "") or make_slug()
    return CopyName(name=_choose_name(worktree_folder(project.settings.paths, args.project_id), name))


def name_from_words(text: str) -> str:
    """Return a short name made from the first words of a text that are no filler words; "" if there are none."""
    words = [word for word in _NOT_ALLOWED.split(text[:1000].lower()) if word and word not in _FILLER_WORDS]
    return shorten(" ".join(words[:_MAX_WORDS]))


def shorten(text: str) -> str:
    """Return a text as a name of lower-case letters, digits and hyphens, cut to _MAX_NAME_CHARACTERS."""
    return _NOT_ALLOWED.sub("-", text.lower())[:_MAX_NAME_CHARACTERS].strip("-")


async def _begin_record(trees: Worktrees, name: str, base: str | None) -> WorktreeRecord:
    """Return the record of a new work tree, which starts at `base`, or else at the branch that is checked out.

    Raises WorktreeRefused, GitFailed.
    """
    branch = await trees.git.read_branch() if base is None else base
    is_branch = branch is not None and await trees.git.resolve_commit(f"refs/heads/{branch}") is not None
    start = await trees.git.resolve_commit(f"refs/heads/{branch}" if is_branch else base or "HEAD")
    if start is None:
        raise WorktreeRefused(
            f"{trees.git.root} has no commit yet. Commit something, then make a work tree."
            if base is None
            else f"There is no branch or commit {base}. `git branch --all` lists branches."
        )
    return WorktreeRecord(
        name=name,
        state="making",
        branch=f"codeloop/{name}",
        base=branch if is_branch else start,
        is_branch=is_branch,
        start=start,
        created=time.time_ns() // 1_000_000,
    )


async def _check_out(project: Project, trees: Worktrees, record: WorktreeRecord, sparse: list[str]) -> list[str]:
    """Have git make the work tree; return notes for the user. On WorktreeRefused or GitFailed nothing is left of it."""
    folder, began = find_worktrees_folder(project) / record.name, time.monotonic()
    try:
        try:
            await trees.add(folder, record.branch, record.start, sparse)
        except WorktreeRefused as error:
            if not trees.is_trusted or os.path.lexists(folder):
                raise
            await Worktrees(trees.git).add(folder, record.branch, record.start, sparse)
            return [f"Files are as they are stored, without filters, because git failed with them: {error}"]
    except (WorktreeRefused, GitFailed):
        if not os.path.lexists(folder):
            await asyncio.to_thread(delete_record, project, record.name)
        raise
    took = time.monotonic() - began
    if sparse or took < SLOW_CHECKOUT_TIME.seconds:
        return []
    how = "`worktree.sparse` in the configuration, or `codeloop worktree create --sparse DIR`"
    return [f"Checking out all files took {took:.0f} s. {how}, checks out only the folders that you name."]


async def _run_setup_lines(project: Project, folder: Path, name: str | None, *, is_trusted: bool) -> None:
    """Run the setup commands of a work tree: the project's, the configuration's, and the request's (`name`)."""
    about = await asyncio.to_thread(read_details, project.settings.home)
    configured = project.settings.config.worktree.setup if is_trusted else ()
    for line in (about.commands.start if about.commands else None, *configured, name):
        if line is not None and line.strip():
            await run_setup(project, folder, line)


def _explain_skipped(project: Project, *, is_trusted: bool) -> list[str]:
    """Return a note when the configuration's setup commands are not run, and why."""
    if is_trusted or not project.settings.config.worktree.setup:
        return []
    return ["The commands of `worktree.setup` were not run: the work tree is not trusted (`codeloop trust` there)."]


async def _choose_tree_name(trees: Worktrees, home: Path, wanted: str | None) -> str:
    """Return a name that no work tree, record or branch has. Raises OperationError."""
    name = shorten(wanted or "") or make_slug()
    for _ in range(_MAX_TRIES):
        is_taken = os.path.lexists(home / name) or os.path.lexists(home / f"{name}.json")
        try:
            if not is_taken and await trees.git.resolve_commit(f"refs/heads/codeloop/{name}") is None:
                return name
        except GitFailed as error:
            raise OperationError("WorktreeCreateFailedError", str(error)) from error
        name = f"{shorten(wanted or '')[: _MAX_NAME_CHARACTERS - 16]}-{make_slug()}".strip("-")
    return name


def _choose_name(folder: Path, name: str) -> str:
    """Return a name that no entry of a folder has: the given one, or the given one with random words appended."""
    for _ in range(_MAX_TRIES):
        if not os.path.lexists(folder / name):
            return name
        name = f"{name[:_MAX_NAME_CHARACTERS]}-{make_slug()}"
    return name


def _make_copy_error(message: str, *, is_force_needed: bool = False) -> OperationError:
    return OperationError("ProjectCopyError", message, **({"forceRequired": True} if is_force_needed else {}))
