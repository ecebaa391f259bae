"""Prepares a new work tree: copies ignored files by rule, submodules, trust, and runs set-up commands."""

import asyncio
import os
import shutil
from collections.abc import Sequence
from pathlib import Path

from codeloop.app.project import Project
from codeloop.config.trust.contents import TooManyFiles, read_contents
from codeloop.config.trust.store import record_of, trust
from codeloop.kit.wildcard import matches
from codeloop.schema.errors import CodeloopError, OperationError
from codeloop.schema.limits import SHELL_TIMEOUT_MAX
from codeloop.schema.wire import replace
from codeloop.workspace.git.repository import Git
from codeloop.workspace.git.submodules import fill_submodules
from codeloop.workspace.process.sandboxed_program import enter_sandbox, make_policy
from codeloop.workspace.process.shells import ShellCommand, ShellContext
from codeloop.workspace.workspace import Workspace

_RULES = {".env": "ask", ".env.*": "ask"}
"""Which ignored files go along, unless the configuration says otherwise: none, and secrets are asked about."""
_LISTED = 1 << 22  # bytes of names


async def prepare(project: Project, git: Git, tree: Git) -> tuple[list[str], list[str]]:
    """Copy ignored files into a new work tree; return those that rules ask about, and notes. Raises GitFailed."""
    allowed, asks = await find_wanted(project, git)
    await asyncio.to_thread(copy_files, git.root, tree.root, allowed)
    missing = await fill_submodules(tree)
    notes = [f"The submodule {path} could not be checked out." for path in missing]
    return asks, notes


async def find_wanted(project: Project, git: Git) -> tuple[list[str], list[str]]:
    """Return the ignored files and folders that rules copy, and those that are asked about. Raises GitFailed."""
    rules = _RULES | project.settings.config.worktree.copy
    words = ("ls-files", "--others", "--ignored", "--exclude-standard", "--directory", "-z")
    output = await git.ask(*words, cap=_LISTED)
    found: dict[str, list[str]] = {"allow": [], "ask": [], "deny": []}
    for name in os.fsdecode(output.data).split("\0"):
        path = name.rstrip("/")
        verdict = "deny"
        for pattern, says in rules.items():
            if path and (matches(path, pattern) or ("/" not in pattern and matches(path.rpartition("/")[2], pattern))):
                verdict = says
        found[verdict].append(path)
    return found["allow"], found["ask"]


def copy_files(root: Path, tree: Path, files: Sequence[str]) -> None:
    """Copy files and folders (paths relative to the project's top), links as links. Blocks. Raises OSError."""
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
    """Trust a new work tree when all that has effect in it was trusted in the project; return whether it is. Blocks."""
    settings = project.settings
    if settings.startup.trust:
        return True
    record = record_of(settings.paths, settings.project_root.root)
    if not settings.trusted or record is None or record.files is None:
        return False
    try:
        digests = read_contents(settings.paths, folder, folder).digests()
        if not digests.items() <= record.files.items():
            return False
        trust(settings.paths, folder)
    except (TooManyFiles, CodeloopError):
        return False
    return True


async def run_setup(project: Project, folder: Path, line: str) -> None:
    """Run a shell line that a user wants in a new work tree, in the sandbox of that tree's commands.

    What it runs (`npm ci`, say) does what the files of the commit say, which the agent or a stranger may have written.
    Where no sandbox can be had it runs without one. Raises OperationError when it fails.
    """
    given, place = project.workspace, project.settings.project_root
    scratch = replace(place, root=folder, directory=folder).scratch(project.settings.home)
    tree = Workspace(folder, folder, scratch, given.environment, given.sandbox, given.own)
    context = ShellContext("setup", folder, given.environment, scratch)
    seconds = SHELL_TIMEOUT_MAX.seconds
    try:
        policy = make_policy(tree) if await enter_sandbox(tree) is not None else None
        program = await tree.shells.run(context, ShellCommand(line, seconds, policy=policy), lambda _output: None)
    except (OSError, ValueError) as error:
        raise OperationError("WorktreeStartCommandFailedError", f"{line}: {error}") from error
    finally:
        await tree.close()
    if program.code != 0:
        words = " ".join(program.recent.split())[-1000:]
        how = f"code {program.code}" if program.signal is None else program.signal
        what = f"was ended after {seconds:g} s" if program.timed_out else f"ended with {how}"
        notes = " ".join(program.notes)
        raise OperationError(
            "WorktreeStartCommandFailedError",
            f"The work tree {folder} is made, but `{line}` {what}: {words} {notes}".rstrip(),
        )
