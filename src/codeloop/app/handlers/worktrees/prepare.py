"""Prepares a new work tree: copies ignored files, fills submodules, extends trust and runs setup commands."""

import asyncio
import os
import shutil
from collections.abc import Sequence
from pathlib import Path

from codeloop.app.project import Project
from codeloop.config.trust.contents import TooManyFiles, read_contents
from codeloop.config.trust.store import find_trust_record, trust_directory
from codeloop.kit.wildcard import matches
from codeloop.schema.errors import CodeloopError, OperationError
from codeloop.schema.limits import SHELL_TIMEOUT_MAX
from codeloop.schema.wire import replace
from codeloop.workspace.git.repository import Git
from codeloop.workspace.git.submodules import check_out_submodules
from codeloop.workspace.process.sandboxed_program import enter_sandbox, make_policy
from codeloop.workspace.process.shells import ShellCommand, ShellContext
from codeloop.workspace.workspace import Workspace

_DEFAULT_RULES = {".env": "ask", ".env.*": "ask"}
"""The rules for copying ignored files, before those of the configuration: ask about secrets, copy no others."""
_MAX_LIST_BYTES = 1 << 22
"""How much of git's list of ignored files is read."""


async def prepare(project: Project, git: Git, tree: Git) -> tuple[list[str], list[str]]:
    """Copy ignored files, and fill submodules; return the files to ask about, and notes. Raises GitFailed."""
    allowed, asks = await find_files_to_copy(project, git)
    await asyncio.to_thread(copy_files, git.root, tree.root, allowed)
    missing = await check_out_submodules(tree)
    notes = [f"The submodule {path} could not be checked out." for path in missing]
    return asks, notes


async def find_files_to_copy(project: Project, git: Git) -> tuple[list[str], list[str]]:
    """Return the ignored files and folders that rules allow to be copied, and those to ask about. Raises GitFailed."""
    rules = _DEFAULT_RULES | project.settings.config.worktree.copy
    arguments = ("ls-files", "--others", "--ignored", "--exclude-standard", "--directory", "-z")
    output = await git.run(*arguments, cap=_MAX_LIST_BYTES)
    by_action: dict[str, list[str]] = {"allow": [], "ask": [], "deny": []}
    for name in os.fsdecode(output.data).split("\0"):
        path = name.rstrip("/")
        action = "deny"
        for pattern, rule_action in rules.items():
            if path and (matches(path, pattern) or ("/" not in pattern and matches(path.rpartition("/")[2], pattern))):
                action = rule_action
        by_action[action].append(path)
    return by_action["allow"], by_action["ask"]


def copy_files(root: Path, tree: Path, files: Sequence[str]) -> None:
    """Copy files and folders, given relative to the project's top; links stay links. Blocks. Raises OSError."""
    for name in files:
        source, target = root / name, tree / name
        if os.path.lexists(target) or not Path(os.path.realpath(target.parent)).is_relative_to(tree):
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir() and not source.is_symlink():
            shutil.copytree(source, target, symlinks=True)
        else:
            shutil.copy2(source, target, follow_symlinks=False)


def extend_trust(project: Project, folder: Path) -> bool:
    """Trust a new work tree if all its files that need trust are trusted in the project, too; return whether it is.

    Blocks.
    """
    settings = project.settings
    if settings.startup.trust:
        return True
    record = find_trust_record(settings.paths, settings.project_root.root)
    if not settings.trusted or record is None or record.files is None:
        return False
    try:
        digests = read_contents(settings.paths, folder, folder).compute_digests()
        if not digests.items() <= record.files.items():
            return False
        trust_directory(settings.paths, folder)
    except (TooManyFiles, CodeloopError):
        return False
    return True


async def run_setup(project: Project, folder: Path, line: str) -> None:
    """Run a setup command in a new work tree, in the sandbox for commands of that tree.

    A command like `npm ci` runs what files of the commit say, which the agent or a stranger may have written. On a
    machine without a sandbox it runs without one. Raises OperationError when it fails.
    """
    workspace, project_root = project.workspace, project.settings.project_root
    scratch = replace(project_root, root=folder, directory=folder).get_scratch_folder(project.settings.home)
    tree = Workspace(folder, folder, scratch, workspace.environment, workspace.sandbox, workspace.own)
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
        output = " ".join(program.recent.split())[-1000:]
        ending = f"code {program.code}" if program.signal is None else program.signal
        what = f"was ended after {seconds:g} s" if program.timed_out else f"ended with {ending}"
        notes = " ".join(program.notes)
        raise OperationError(
            "WorktreeStartCommandFailedError",
            f"The work tree {folder} is made, but `{line}` {what}: {output} {notes}".rstrip(),
        )
