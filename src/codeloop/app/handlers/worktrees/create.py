"""Handlers that create work trees with a branch of their own, and list them.

A new work tree gets ignored files such as `.env`, its submodules, the project's trust,
and a run of setup commands.
"""

import asyncio
import os
import time
from collections.abc import Sequence
from pathlib import Path

from codeloop.app.handlers.worktrees.fill import fill_worktree
from codeloop.app.handlers.worktrees.folder import (
    find_tree_folder,
    list_worktrees,
    list_worktrees_folders,
    make_worktrees_folder,
)
from codeloop.app.handlers.worktrees.names import MAX_NAME_CHARS, MAX_NAME_TRIES, to_name
from codeloop.app.handlers.worktrees.open_worktrees import open_worktrees
from codeloop.app.handlers.worktrees.records import WorktreeRecord, delete_record, write_record
from codeloop.app.handlers.worktrees.setup_lines import explain_skipped_setup, run_setup_lines
from codeloop.app.project import Project
from codeloop.config.trust.contents import TooManyFiles, read_contents
from codeloop.config.trust.store import find_trust_record, trust_directory
from codeloop.kit import fault_injection
from codeloop.schema.api.worktrees import CreateWorktree
from codeloop.schema.bounds.session import SLOW_CHECKOUT_TIME
from codeloop.schema.errors import CodeloopError, OperationError
from codeloop.schema.ids import make_slug
from codeloop.schema.live_events import WorktreeReady
from codeloop.schema.operation import NoArguments
from codeloop.schema.resources import Worktree
from codeloop.schema.wire import replace
from codeloop.workspace.git.repository import Git, GitFailed
from codeloop.workspace.git.worktrees import WorktreeRefused, Worktrees

_SLUG_CHARS = 16
"""The characters of a name that are kept free for a hyphen and the random words after it."""


async def list_worktree_folders(project: Project, _args: NoArguments) -> list[str]:
    """Return the folders of the work trees that were made for the project."""
    return await asyncio.to_thread(
        list_worktrees, project.settings.paths, project.settings.project_root.project_id
    )


async def create_worktree(project: Project, args: CreateWorktree) -> Worktree:
    """Make a work tree with a new branch, and run its setup commands. Raises OperationError."""
    trees = open_worktrees(project, "WorktreeNotGitError")
    name = await _choose_tree_name(trees, list_worktrees_folders(project), args.name)
    try:
        record = await _make_record(trees, name, args.base)
        await asyncio.to_thread(make_worktrees_folder, project)
        # Before git starts, so that a work tree that is cut off half-way is found and cleared away.
        await asyncio.to_thread(write_record, project, record)
        await fault_injection.pass_point_async("worktree.record")
        sparse = args.sparse if args.sparse is not None else project.settings.config.worktree.sparse
        notes = await _check_out(project, trees, record, sparse)
        await fault_injection.pass_point_async("worktree.checkout")
        folder = find_tree_folder(project, name)
        files_to_ask_about, more_notes = await fill_worktree(
            project, trees.git, Git(folder, trees.environment)
        )
        await fault_injection.pass_point_async("worktree.ready")
        await asyncio.to_thread(write_record, project, replace(record, state="ready"))
    except (WorktreeRefused, GitFailed, OSError) as error:
        raise OperationError("WorktreeCreateFailedError", str(error)) from error
    is_trusted = await asyncio.to_thread(_extend_trust, project, folder)
    worktree = Worktree(
        name=name,
        branch=record.branch,
        directory=str(folder),
        base=record.base,
        asks=files_to_ask_about,
        notes=[*notes, *more_notes, *explain_skipped_setup(project, is_trusted=is_trusted)],
    )
    await run_setup_lines(project, folder, args.start_command, is_trusted=is_trusted)
    project.publish_live(WorktreeReady(properties=worktree))
    return worktree


async def _make_record(trees: Worktrees, name: str, base: str | None) -> WorktreeRecord:
    """Return the record of a new work tree, which starts at `base`,
    or else at the branch that is checked out.

    Raises WorktreeRefused, GitFailed.
    """
    branch = await trees.git.read_branch() if base is None else base
    is_branch = (
        branch is not None and await trees.git.resolve_commit(f"refs/heads/{branch}") is not None
    )
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


async def _check_out(
    project: Project, trees: Worktrees, record: WorktreeRecord, sparse: list[str]
) -> list[str]:
    """Have git make the work tree; return notes for the user.
    On WorktreeRefused or GitFailed nothing is left of it.
    """
    folder, started_at = find_tree_folder(project, record.name), time.monotonic()
    try:
        try:
            await trees.add(folder, record.branch, record.start, sparse)
        except WorktreeRefused as error:
            if not trees.is_trusted or os.path.lexists(folder):
                raise
            # A trusted project's filters (such as git-lfs) run at checkout,
            # and may not be installed here.
            await Worktrees(trees.git).add(folder, record.branch, record.start, sparse)
            return [
                f"Files are as they are stored, without filters, because git failed with them: {error}"
            ]
    except (WorktreeRefused, GitFailed):
        # If git left something, the record stays: by it `codeloop worktree remove` clears it away.
        if not os.path.lexists(folder):
            await asyncio.to_thread(delete_record, project, record.name)
        raise
    seconds = time.monotonic() - started_at
    notes: list[str] = []
    if trees.is_trusted and (missing := trees.list_missing_filters(folder)):
        notes.append(
            f"Files are as they are stored, without filters ({', '.join(missing)}): those that your own git settings "
            f"name are run, and git-lfs if it is installed. git config --global filter.{missing[0]}.smudge '...'"
        )
    if sparse or seconds < SLOW_CHECKOUT_TIME.seconds:
        return notes
    how = "`worktree.sparse` in the configuration, or `codeloop worktree create --sparse DIR`"
    return [
        *notes,
        f"Checking out all files took {seconds:.0f} s. {how}, checks out only the folders that you name.",
    ]


async def _choose_tree_name(trees: Worktrees, folders: Sequence[Path], wanted: str | None) -> str:
    """Return a name that no work tree, record or branch has;
    after MAX_NAME_TRIES taken ones, the next one unchecked.

    Raises OperationError.
    """
    name = to_name(wanted or "") or make_slug()
    for _ in range(MAX_NAME_TRIES):
        is_taken = any(
            os.path.lexists(each / name) or os.path.lexists(each / f"{name}.json")
            for each in folders
        )
        try:
            if (
                not is_taken
                and await trees.git.resolve_commit(f"refs/heads/codeloop/{name}") is None
            ):
                return name
        except GitFailed as error:
            raise OperationError("WorktreeCreateFailedError", str(error)) from error
        # A wanted name keeps room for the random words after it.
        name = f"{to_name(wanted or '')[: MAX_NAME_CHARS - _SLUG_CHARS]}-{make_slug()}".strip("-")
    return name


def _extend_trust(project: Project, folder: Path) -> bool:
    """Trust a new work tree if all its files that need trust are trusted in the project, too;
    return whether it is.

    Blocks.
    """
    settings = project.settings
    if settings.startup.trust:
        # `--trust` is for this run alone, so nothing is recorded.
        return True
    record = find_trust_record(settings.paths, settings.project_root.root)
    if not settings.trusted or record is None or record.files is None:
        return False
    try:
        # The commit may be another one than what the user looked at when they trusted the project.
        digests = read_contents(settings.paths, folder, folder).compute_digests()
        if not digests.items() <= record.files.items():
            return False
        trust_directory(settings.paths, folder)
    except (TooManyFiles, CodeloopError):
        return False
    return True
