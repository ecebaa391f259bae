"""Runs a command on the project as it was at the last commit: on a copy, which is removed afterwards.

Where the sandbox can mount, the copy stands at the project's own path, with the ignored files that commands need, so
that packages which are installed from the project are the commit's, too. Nothing is written to the project.
"""

import asyncio
import os
import tempfile
import time
from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from codeloop.kit.git import git_folder
from codeloop.kit.small_files import remove_tree
from codeloop.schema.bounds.program import COMMIT_FILES, COMMIT_LEFT, COMMIT_SHOWN, COMMIT_SIZE
from codeloop.schema.wire import replace
from codeloop.tool.tool import ToolContext, ToolFailure
from codeloop.workspace.git.planted.layout import git_folders
from codeloop.workspace.git.repository import Git, GitFailed
from codeloop.workspace.git.worktrees import describe_failure, run_unfiltered
from codeloop.workspace.process.shells import CommandResult, ShellCommand, ShellContext, Shells
from codeloop.workspace.sandbox.launcher.mounts import LAYERS
from codeloop.workspace.sandbox.policy import SandboxPolicy
from codeloop.workspace.sandbox.process_launcher import finish_uncancelled
from codeloop.workspace.sandbox.sandbox import Sandbox

_SUBMODULE, _LINK = "160000", "120000"
_ROW = 400
"""Bytes of one row of git's lists, at most on average."""
_DEPENDENCIES = frozenset({".venv", "venv", "node_modules"})
"""Folders that are shown although nothing ignores them."""
_OUTPUTS = frozenset({
    "__pycache__", "target", "htmlcov", "coverage", ".coverage", ".nyc_output", ".tox", ".nox", ".gradle",
    ".hypothesis", ".pytest_cache", ".mypy_cache", ".ruff_cache", ".codeloop", ".opencode",
})  # fmt: skip
"""Ignored entries that are not shown: they are made of the changed files, or they are ours."""
_MOST_NAMES = 5
"""Links that a note names."""
_OUTPUT_ENDS = (".pyc", ".pyo", ".log", ".o", ".class", ".tmp", ".swp")


class _Commit(NamedTuple):
    """A commit's name, how many submodules, files and bytes it has, and the paths of its links."""

    name: str
    submodules: int
    files: int
    size: int
    links: list[str]


async def run_unchanged(
    ctx: ToolContext, context: ShellContext, command: ShellCommand, sandbox: Sandbox | None, show: Callable[[str], None]
) -> CommandResult:
    """Run a command on a copy of the last commit, and remove the copy. `sandbox`: that of the session's commands.

    Raises ToolFailure where there is no such commit, or it can't be copied; OSError as `Shells.run`.
    """
    root, shells = Path(os.path.realpath(ctx.workspace.root)), ctx.workspace.shells
    git = Git(root, ctx.workspace.environment)
    top = ctx.workspace.scratch.with_name(f"{ctx.workspace.scratch.name}.commit")
    policy, own = command.policy, None
    try:
        commit = await _look_at(git)
        copy = await asyncio.to_thread(_make_folder, top)
        try:
            await _fill(git, commit.name, copy)
            hidden = policy.hidden if policy is not None else ()
            ignored_paths = await asyncio.to_thread(_keep_inside, root, copy, await _list_needed_ignored(git, hidden))
            is_mounted = sandbox is not None and sandbox.replaces_temporary
            if policy is not None:
                secrets = await asyncio.to_thread(_keep_inside, root, copy, hidden)
                await asyncio.to_thread(_remove, [copy / each.relative_to(root) for each in secrets])
                own = _set_replica(policy, copy, ignored_paths, is_mounted=is_mounted)
            left_out = list[str]()
            if not is_mounted:
                left_out = await asyncio.to_thread(_drop_links, root, copy, commit.links)
                _link(root, copy, ignored_paths)
            inside = root if is_mounted else copy
            directory = _find_directory(command.directory or shells.directory(context), root, copy, inside)
            apart = replace(command, policy=own, directory=directory, is_apart=True)
            outcome = await shells.run(context, apart, show)
        finally:
            await finish_uncancelled(_clean(shells, own, copy))
    except GitFailed as error:
        raise ToolFailure(str(error)) from error
    where = f"It ran on the last commit, {commit.name[:10]}, without the changes since."
    if not is_mounted:
        where += f" The copy was in {copy}: what is installed from the project's own folder was that with the changes."
    if left_out:
        more = ", ..." if len(left_out) > _MOST_NAMES else ""
        where += f" Links that the project does not have so were left out: {', '.join(left_out[:_MOST_NAMES])}{more}."
    return replace(outcome, notes=(where, *outcome.notes))


async def _look_at(git: Git) -> _Commit:
    """Return the last commit. Raises ToolFailure when there is none that can be copied, GitFailed."""
    if git_folder(git.root) is None:
        raise ToolFailure("This project is no git repository, so it has no last commit.", advice="Leave out unchanged.")
    full = await git.commit("HEAD")
    if full is None:
        raise ToolFailure("This repository has no commit yet.", advice="Leave out unchanged.")
    listing = await git.ask("ls-tree", "-r", "-l", "-z", full, cap=COMMIT_FILES.value * _ROW)
    lines = [row.partition("\t") for row in os.fsdecode(listing.data).split("\0") if row]
    rows = [line[0].split() for line in lines]
    sizes = [int(row[3]) for row in rows if len(row) > 3 and row[3].isdecimal()]
    links = [name for facts, _, name in lines if facts.startswith(_LINK)]
    commit = _Commit(full, sum(row[0] == _SUBMODULE for row in rows), len(rows), sum(sizes), links)
    if commit.submodules:
        text = "The last commit has submodules, and a copy would lack their files."
        raise ToolFailure(text, advice="Leave out unchanged; read old files with `git show HEAD:path`.")
    if not listing.whole or commit.files > COMMIT_FILES.value or commit.size > COMMIT_SIZE.value:
        most = f"{COMMIT_FILES.value:,} files and {COMMIT_SIZE.value // 10**6:,} MB"
        raise ToolFailure(f"The last commit is too large to be copied: at most {most}.", advice="Leave out unchanged.")
    return commit


def _make_folder(top: Path) -> Path:
    """Make the folder of a copy; remove copies that a killed process left."""
    top.mkdir(mode=0o700, parents=True, exist_ok=True)
    for each in top.iterdir():
        with suppress(OSError):
            if time.time() - each.lstat().st_mtime > COMMIT_LEFT.seconds:
                _remove([each])
    copy = Path(os.path.realpath(tempfile.mkdtemp(dir=top)))
    Path(f"{copy}{LAYERS}").mkdir(mode=0o700)
    return copy


async def _fill(git: Git, commit: str, copy: Path) -> None:
    """Write the files of a commit to a folder, without the filter programs that the repository configures."""
    index = Path(f"{copy}.index")
    printed = await git.ask("read-tree", commit, index=index)
    if printed.code == 0:
        printed = await run_unfiltered(git, "checkout-index", "--all", "--quiet", f"--prefix={copy}/", index=index)
    if printed.code != 0:
        raise ToolFailure(f"git can't copy the last commit: {describe_failure(printed)}")


async def _list_needed_ignored(git: Git, hidden: Collection[Path]) -> list[Path]:
    """Return the ignored entries that commands need (`node_modules`): folders and files that are in no commit."""
    words, most = ("ls-files", "--others", "--directory", "-z"), COMMIT_FILES.value * _ROW
    ignored = await git.ask(*words, "--ignored", "--exclude-standard", cap=most)
    others = await git.ask(*words, cap=most)
    names = [name.rstrip("/") for name in os.fsdecode(ignored.data).split("\0") if name]
    names += [
        name for each in os.fsdecode(others.data).split("\0") if Path(name := each.rstrip("/")).name in _DEPENDENCIES
    ]
    found = [git.root / name for name in dict.fromkeys(names) if _is_needed(Path(name))]
    plain = [path for path in found if path not in hidden and os.path.realpath(path) == str(path)]
    return plain[: COMMIT_SHOWN.value]


def _is_needed(path: Path) -> bool:
    return path.name not in _OUTPUTS and not path.name.endswith(_OUTPUT_ENDS)


def _drop_links(root: Path, copy: Path, names: Iterable[str]) -> list[str]:
    """Remove the commit's links that the project has not, and return them.

    Where no sandbox holds, what a command reads is judged by the files of the project: a link in their place could lead
    anywhere.
    """
    dropped: list[str] = []
    for name in names:
        ours, link = root / name, copy / name
        with suppress(OSError):
            if os.path.realpath(ours.parent) == str(ours.parent) and ours.readlink() == link.readlink():
                continue
        link.unlink(missing_ok=True)
        dropped.append(name)
    return dropped


def _keep_inside(root: Path, copy: Path, paths: Iterable[Path]) -> list[Path]:
    """Return the paths below the project that are in the copy, too: the commit may have a link for a folder above one.

    What is made or removed at such a path would be made or removed where the link leads, out of the copy.
    """
    parents = ((path, copy / path.parent.relative_to(root)) for path in paths if root in path.parents)
    return [path for path, parent in parents if os.path.realpath(parent) == str(parent)]


def _set_replica(policy: SandboxPolicy, copy: Path, borrowed: Iterable[Path], *, is_mounted: bool) -> SandboxPolicy:
    """Return the policy with the copy in place of the project. That is read-only, and so is its git directory."""
    root = policy.writable[0]
    git = [Path(os.path.realpath(each)) for each in git_folders(root)]
    others = [path for path in policy.writable if path not in git and not path.is_relative_to(root)]
    pointer = [root / ".git"] if os.path.lexists(root / ".git") else []
    if is_mounted:
        visible = dict.fromkeys((*policy.visible, *git, *pointer, *borrowed))
        return replace(policy, writable=(root, *others), visible=tuple(visible), replica=copy)
    return replace(policy, writable=(copy, *others), visible=tuple(dict.fromkeys((*policy.visible, root, *git))))


def _link(root: Path, copy: Path, borrowed: Iterable[Path]) -> None:
    """Make links in the copy to what it needs of the project."""
    for path in (*borrowed, *([root / ".git"] if os.path.lexists(root / ".git") else [])):
        link = copy / path.relative_to(root)
        with suppress(OSError):
            link.parent.mkdir(parents=True, exist_ok=True)
            link.symlink_to(path)


def _find_directory(wanted: Path, root: Path, copy: Path, inside: Path) -> Path:
    """Return where to run: the same folder in the copy; its top where the commit has no such folder."""
    real = Path(os.path.realpath(wanted))
    if not real.is_relative_to(root):
        return wanted
    below = real.relative_to(root)
    return inside / below if (copy / below).is_dir() else inside


async def _clean(shells: Shells, policy: SandboxPolicy | None, copy: Path) -> None:
    """End the sandbox that had the copy, and remove it. `policy`: that sandbox's own; None: there was none."""
    if policy is not None:
        await shells.sandboxes.leave(policy)
    await asyncio.to_thread(_remove, [copy, Path(f"{copy}{LAYERS}"), Path(f"{copy}.index")])


def _remove(paths: Iterable[Path]) -> None:
    for path in paths:
        remove_tree(path)
