"""Handlers that create work trees with a branch of their own, fill them, and list them.

A new work tree gets ignored files such as `.env`, its submodules, the project's trust, and a run of setup commands.
"""

import asyncio
import os
import shutil
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from codeloop.app.handlers import handles
from codeloop.app.handlers.project.details import read_details
from codeloop.app.handlers.worktrees.folder import find_worktrees_folder, list_worktrees
from codeloop.app.handlers.worktrees.names import MAX_NAME_CHARS, MAX_NAME_TRIES, to_name
from codeloop.app.handlers.worktrees.records import (
    WorktreeRecord,
    delete_record,
    find_record,
    open_worktrees,
    write_record,
)
from codeloop.app.project import Project
from codeloop.config.trust.contents import TooManyFiles, read_contents
from codeloop.config.trust.store import find_trust_record, trust_directory
from codeloop.kit import fault_injection
from codeloop.kit.text.slugs import make_slug
from codeloop.kit.wildcard import matches
from codeloop.schema import server_operation as operation
from codeloop.schema.api.project import Worktree
from codeloop.schema.api.worktrees import CopyToWorktree, CreateWorktree
from codeloop.schema.bounds.session import SLOW_CHECKOUT_TIME
from codeloop.schema.errors import CodeloopError, OperationError
from codeloop.schema.limits import SHELL_TIMEOUT_MAX
from codeloop.schema.live_events import WorktreeReady
from codeloop.schema.operation import NoArguments
from codeloop.schema.wire import replace
from codeloop.workspace.git.repository import Git, GitFailed
from codeloop.workspace.git.submodules import check_out_submodules
from codeloop.workspace.git.worktrees import WorktreeRefused, Worktrees
from codeloop.workspace.process.sandboxed_program import enter_sandbox, make_policy
from codeloop.workspace.process.shells import ShellCommand, ShellContext
from codeloop.workspace.workspace import Workspace

_DEFAULT_COPY_RULES = {".env": "ask", ".env.*": "ask"}
"""The rules for copying ignored files, before those of the configuration: ask about secrets, copy no others."""
# A list of 4 MB names some ten thousand files; folders that are ignored as a whole are one entry each.
_MAX_LIST_BYTES = 4 * 1024 * 1024

_MAX_OUTPUT_CHARS = 1_000
"""The end of a failed setup command's output that its error quotes."""
_SLUG_CHARS = 16
"""The characters of a name that are kept free for a hyphen and the random words after it."""


@handles(operation.WORKTREE_LIST)
async def list_worktree_folders(project: Project, _args: NoArguments) -> list[str]:
    """Return the folders of the work trees that were made for the project."""
    return await asyncio.to_thread(list_worktrees, project.settings.paths, project.settings.project_root.project_id)


@handles(operation.WORKTREE_CREATE)
async def create_worktree(project: Project, args: CreateWorktree) -> Worktree:
    """Make a work tree with a new branch, and run its setup commands. Raises OperationError."""
    trees, home = open_worktrees(project, "WorktreeNotGitError"), find_worktrees_folder(project)
    name = await _choose_tree_name(trees, home, args.name)
    try:
        record = await _make_record(trees, name, args.base)
        # Before git starts, so that a work tree that is cut off half-way is found and cleared away.
        await asyncio.to_thread(write_record, project, record)
        await fault_injection.pass_point_async("worktree.record")
        sparse = args.sparse if args.sparse is not None else project.settings.config.worktree.sparse
        notes = await _check_out(project, trees, record, sparse)
        await fault_injection.pass_point_async("worktree.checkout")
        folder = home / name
        files_to_ask_about, more_notes = await _fill_worktree(project, trees.git, Git(folder, trees.environment))
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
        notes=[*notes, *more_notes, *_explain_skipped(project, is_trusted=is_trusted)],
    )
    await _run_setup_lines(project, folder, args.start_command, is_trusted=is_trusted)
    project.publish_live(WorktreeReady(properties=worktree))
    return worktree


@handles(operation.WORKTREE_COPY)
async def copy_ignored_files(project: Project, args: CopyToWorktree) -> list[str]:
    """Copy ignored files into a work tree. Raises OperationError for files that `worktree.copy` does not name."""
    record = await asyncio.to_thread(find_record, project, args.name)
    trees = open_worktrees(project, "WorktreeNotGitError")
    allowed, files_to_ask_about = await _find_files_to_copy(project, trees.git)
    for name in args.files:
        if name not in (*allowed, *files_to_ask_about):
            raise OperationError(
                "BadRequest",
                f"{name} is no ignored file that `worktree.copy` in your configuration names. Add it there: "
                f'"worktree": {{"copy": {{"{name}": "allow"}}}}',
            )
    await asyncio.to_thread(_copy_files, trees.git.root, find_worktrees_folder(project) / record.name, args.files)
    return args.files


async def _make_record(trees: Worktrees, name: str, base: str | None) -> WorktreeRecord:
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
    folder, started_at = find_worktrees_folder(project) / record.name, time.monotonic()
    try:
        try:
            await trees.add(folder, record.branch, record.start, sparse)
        except WorktreeRefused as error:
            if not trees.is_trusted or os.path.lexists(folder):
                raise
            # A trusted project's filters (such as git-lfs) run at checkout, and may not be installed here.
            await Worktrees(trees.git).add(folder, record.branch, record.start, sparse)
            return [f"Files are as they are stored, without filters, because git failed with them: {error}"]
    except (WorktreeRefused, GitFailed):
        # If git left something, the record stays: by it `codeloop worktree remove` clears it away.
        if not os.path.lexists(folder):
            await asyncio.to_thread(delete_record, project, record.name)
        raise
    seconds = time.monotonic() - started_at
    if sparse or seconds < SLOW_CHECKOUT_TIME.seconds:
        return []
    how = "`worktree.sparse` in the configuration, or `codeloop worktree create --sparse DIR`"
    return [f"Checking out all files took {seconds:.0f} s. {how}, checks out only the folders that you name."]


async def _run_setup_lines(project: Project, folder: Path, requested_line: str | None, *, is_trusted: bool) -> None:
    """Run the setup commands of a work tree: the project's, the configuration's, and the `requested_line`."""
    details = await asyncio.to_thread(read_details, project.settings.home)
    configured = project.settings.config.worktree.setup if is_trusted else ()
    for line in (details.commands.start if details.commands else None, *configured, requested_line):
        if line is not None and line.strip():
            await _run_setup_line(project, folder, line)


def _explain_skipped(project: Project, *, is_trusted: bool) -> list[str]:
    """Return a note when the configuration's setup commands are not run, and why."""
    if is_trusted or not project.settings.config.worktree.setup:
        return []
    return ["The commands of `worktree.setup` were not run: the work tree is not trusted (`codeloop trust` there)."]


async def _choose_tree_name(trees: Worktrees, home: Path, wanted: str | None) -> str:
    """Return a name that no work tree, record or branch has. Raises OperationError."""
    name = to_name(wanted or "") or make_slug()
    for _ in range(MAX_NAME_TRIES):
        is_taken = os.path.lexists(home / name) or os.path.lexists(home / f"{name}.json")
        try:
            if not is_taken and await trees.git.resolve_commit(f"refs/heads/codeloop/{name}") is None:
                return name
        except GitFailed as error:
            raise OperationError("WorktreeCreateFailedError", str(error)) from error
        # A wanted name keeps room for the random words after it.
        name = f"{to_name(wanted or '')[: MAX_NAME_CHARS - _SLUG_CHARS]}-{make_slug()}".strip("-")
    return name


async def _fill_worktree(project: Project, git: Git, tree: Git) -> tuple[list[str], list[str]]:
    """Copy ignored files, and fill submodules; return the files to ask about, and notes. Raises GitFailed."""
    allowed, files_to_ask_about = await _find_files_to_copy(project, git)
    await asyncio.to_thread(_copy_files, git.root, tree.root, allowed)
    missing = await check_out_submodules(tree)
    notes = [f"The submodule {path} could not be checked out." for path in missing]
    return files_to_ask_about, notes


async def _find_files_to_copy(project: Project, git: Git) -> tuple[list[str], list[str]]:
    """Return the ignored files and folders that rules allow to be copied, and those to ask about. Raises GitFailed."""
    rules = _DEFAULT_COPY_RULES | project.settings.config.worktree.copy
    arguments = ("ls-files", "--others", "--ignored", "--exclude-standard", "--directory", "-z")
    output = await git.run(*arguments, cap=_MAX_LIST_BYTES)
    by_action: dict[str, list[str]] = {"allow": [], "ask": [], "deny": []}
    for name in os.fsdecode(output.data).split("\0"):
        path = name.rstrip("/")
        if path:
            by_action[_find_copy_action(path, rules)].append(path)
    return by_action["allow"], by_action["ask"]


def _find_copy_action(path: str, rules: Mapping[str, str]) -> str:
    """Return the action of the last rule that matches a path, or its last name if the pattern has no slash; or deny."""
    name = path.rpartition("/")[2]
    action = "deny"
    for pattern, rule_action in rules.items():
        if matches(path, pattern) or ("/" not in pattern and matches(name, pattern)):
            action = rule_action
    return action


def _copy_files(root: Path, tree: Path, files: Sequence[str]) -> None:
    """Copy files and folders, given relative to the project's top; links stay links. Blocks. Raises OSError."""
    for name in files:
        source, target = root / name, tree / name
        # Files of the commit stay as they are, and a link in it must not lead the copy out of the work tree.
        if os.path.lexists(target) or not Path(os.path.realpath(target.parent)).is_relative_to(tree):
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir() and not source.is_symlink():
            shutil.copytree(source, target, symlinks=True)
        else:
            shutil.copy2(source, target, follow_symlinks=False)


def _extend_trust(project: Project, folder: Path) -> bool:
    """Trust a new work tree if all its files that need trust are trusted in the project, too; return whether it is.

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


async def _run_setup_line(project: Project, folder: Path, line: str) -> None:
    """Run a setup command in a new work tree, in the sandbox for commands of that tree.

    A command like `npm ci` runs what files of the commit say, which the agent or a stranger may have written. On a
    machine without a sandbox it runs without one. Raises OperationError when it fails.
    """
    workspace, project_root = project.workspace, project.settings.project_root
    scratch = replace(project_root, root=folder, directory=folder).get_scratch_folder(project.settings.home)
    tree = Workspace(folder, folder, scratch, workspace.environment, workspace.sandbox, workspace.own_folders)
    context = ShellContext("setup", folder, workspace.environment, scratch)
    seconds = SHELL_TIMEOUT_MAX.seconds
    try:
        policy = make_policy(tree) if await enter_sandbox(tree) is not None else None
        program = await tree.shells.run(context, ShellCommand(line, seconds, policy=policy), lambda _output: None)
    except (OSError, ValueError) as error:
        raise OperationError("WorktreeStartCommandFailedError", f"{line}: {error}") from error
    finally:
        await tree.close()
    if program.code != 0:
        output = " ".join(program.screen_text.split())[-_MAX_OUTPUT_CHARS:]
        ending = f"code {program.code}" if program.signal is None else program.signal
        what = f"was ended after {seconds:g} s" if program.timed_out else f"ended with {ending}"
        notes = " ".join(program.notes)
        raise OperationError(
            "WorktreeStartCommandFailedError",
            f"The work tree {folder} is made, but `{line}` {what}: {output} {notes}".rstrip(),
        )
