"""Fills new work trees with what git leaves out: ignored files such as `.env`, as rules allow,
and submodules.
"""

import asyncio
import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

from codeloop.app.handlers.worktrees.folder import find_tree_folder
from codeloop.app.handlers.worktrees.open_worktrees import open_worktrees
from codeloop.app.handlers.worktrees.records import find_record
from codeloop.app.project import Project
from codeloop.kit.wildcard import matches
from codeloop.schema.api.worktrees import CopyToWorktree
from codeloop.schema.errors import OperationError
from codeloop.workspace.git.repository import Git
from codeloop.workspace.git.submodules import check_out_submodules

_DEFAULT_COPY_RULES = {".env": "ask", ".env.*": "ask"}
"""The rules for copying ignored files, before those of the configuration: ask about secrets,
copy no others.
"""
# A list of 4 MB names some ten thousand files;
# folders that are ignored as a whole are one entry each.
_MAX_LIST_BYTES = 4 * 1024 * 1024


async def copy_ignored_files(project: Project, args: CopyToWorktree) -> list[str]:
    """Copy ignored files into a work tree. Raises OperationError for files that
    `worktree.copy` does not name.
    """
    record = await asyncio.to_thread(find_record, project, args.name)
    trees = open_worktrees(project, "WorktreeNotGitError")
    allowed, files_to_ask_about = await _find_files_to_copy(project, trees.git)
    for name in args.files:
        if name not in (*allowed, *files_to_ask_about):
            raise OperationError(
                "BadRequest",
                f"{name} is not an ignored file that `worktree.copy` in your configuration names. Add it there: "
                f'"worktree": {{"copy": {{"{name}": "allow"}}}}',
            )
    await asyncio.to_thread(
        _copy_files, trees.git.root, find_tree_folder(project, record.name), args.files
    )
    return args.files


async def fill_worktree(project: Project, git: Git, tree: Git) -> tuple[list[str], list[str]]:
    """Copy ignored files, and fill submodules; return the files to ask about, and notes.
    Raises GitFailed.
    """
    allowed, files_to_ask_about = await _find_files_to_copy(project, git)
    await asyncio.to_thread(_copy_files, git.root, tree.root, allowed)
    missing = await check_out_submodules(tree)
    notes = [f"The submodule {path} could not be checked out." for path in missing]
    return files_to_ask_about, notes


async def _find_files_to_copy(project: Project, git: Git) -> tuple[list[str], list[str]]:
    """Return the ignored files and folders that rules allow to be copied, and those to ask about.
    Raises GitFailed.
    """
    rules = _DEFAULT_COPY_RULES | project.settings.config.worktree.copy
    arguments = ("ls-files", "--others", "--ignored", "--exclude-standard", "--directory", "-z")
    output = await git.run(*arguments, max_bytes=_MAX_LIST_BYTES)
    by_action: dict[str, list[str]] = {"allow": [], "ask": [], "deny": []}
    for name in os.fsdecode(output.data).split("\0"):
        path = name.rstrip("/")
        if path:
            by_action[_find_copy_action(path, rules)].append(path)
    return by_action["allow"], by_action["ask"]


def _find_copy_action(path: str, rules: Mapping[str, str]) -> str:
    """Return the action of the last rule that matches a path,
    or its last name if the pattern has no slash; or deny.
    """
    name = path.rpartition("/")[2]
    action = "deny"
    for pattern, rule_action in rules.items():
        if matches(path, pattern) or ("/" not in pattern and matches(name, pattern)):
            action = rule_action
    return action


def _copy_files(root: Path, tree: Path, files: Sequence[str]) -> None:
    """Copy files and folders, given relative to the project's top; links stay links. Blocks.
    Raises OSError.
    """
    for name in files:
        source, target = root / name, tree / name
        # Files of the commit stay as they are, and a link in it must not lead the
        # copy out of the work tree.
        if os.path.lexists(target) or not Path(os.path.realpath(target.parent)).is_relative_to(
            tree
        ):
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir() and not source.is_symlink():
            shutil.copytree(source, target, symlinks=True)
        else:
            shutil.copy2(source, target, follow_symlinks=False)
