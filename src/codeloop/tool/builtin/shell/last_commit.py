"""Runs a command on the files of the last commit,
in a copy that is removed afterwards (`unchanged` of `bash`).

If the sandbox can mount folders, the copy is mounted at the project's path, together with ignored
files that commands need, such as `node_modules`. Packages that are installed from the project's
folder then are those of the commit, too. Elsewhere the copy has links to these. In a sandbox
nothing is written to the project; without one a command may write to it by the links.
"""

import asyncio
import os
import tempfile
import time
from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from codeloop.kit.child_process import finish_uncancelled
from codeloop.kit.git import find_git_folder
from codeloop.kit.remove_tree import remove_tree
from codeloop.schema.bounds.program import COMMIT_FILES, COMMIT_LEFT, COMMIT_SHOWN, COMMIT_SIZE
from codeloop.schema.limits import WORKTREE_TIME
from codeloop.schema.wire import replace
from codeloop.tool.tool import ToolContext, ToolFailure
from codeloop.workspace.git.planted.layout import find_git_folders
from codeloop.workspace.git.repository import Git, GitFailed
from codeloop.workspace.git.worktrees import describe_failure
from codeloop.workspace.process.command_result import CommandResult
from codeloop.workspace.process.shells import ShellCommand, ShellContext, Shells
from codeloop.workspace.sandbox.launcher.mounts import LAYERS_SUFFIX
from codeloop.workspace.sandbox.policy import SandboxPolicy
from codeloop.workspace.sandbox.sandbox import Sandbox

_SUBMODULE_MODE, _LINK_MODE = "160000", "120000"
# More than the average size of a row in git's listings,
# so that the cap on their bytes only stops longer listings.
_ROW_BYTES = 400
# Folders that the copy needs even if no ignore file names them.
_DEPENDENCY_FOLDERS = frozenset({".venv", "venv", "node_modules"})
_OUTPUT_NAMES = frozenset({
    "__pycache__", "target", "htmlcov", "coverage", ".coverage", ".nyc_output", ".tox", ".nox", ".gradle",
    ".hypothesis", ".pytest_cache", ".mypy_cache", ".ruff_cache", ".codeloop", ".opencode",
})  # fmt: skip
"""Ignored entries that the copy must not have: they were built from the changed files,
or belong to codeloop.
"""
_OUTPUT_SUFFIXES = (".pyc", ".pyo", ".log", ".o", ".class", ".tmp", ".swp")
_MAX_NAMED_LINKS = 5


class _Commit(NamedTuple):
    """A commit. `size`: of all files, in bytes; `links`: the paths of its symbolic links."""

    hash: str
    submodule_count: int
    file_count: int
    size: int
    links: list[str]


async def run_unchanged(
    ctx: ToolContext,
    context: ShellContext,
    command: ShellCommand,
    sandbox: Sandbox | None,
    show: Callable[[str], None],
) -> CommandResult:
    """Run a command on a copy of the last commit, and remove the copy.
    `sandbox`: that of the session's commands.

    Raises ToolFailure if there is no commit or it can't be copied,
    and OSError as `Shells.run` does.
    """
    root, shells = Path(os.path.realpath(ctx.workspace.root)), ctx.workspace.shells
    git = Git(root, ctx.workspace.environment)
    top = ctx.workspace.scratch.with_name(f"{ctx.workspace.scratch.name}.commit")
    policy, copy_policy = command.policy, None
    try:
        commit = await _read_last_commit(git)
        copy = await asyncio.to_thread(_make_copy_folder, top)
        try:
            await _write_files(git, commit.hash, copy)
            hidden = policy.hidden if policy is not None else ()
            ignored_paths = await asyncio.to_thread(
                _keep_inside, root, copy, await _list_needed_ignored(git, hidden)
            )
            is_mounted = sandbox is not None and sandbox.has_private_folders
            if policy is not None:
                # The commit may have files that the sandbox hides in the project, such as keys.
                secrets = await asyncio.to_thread(_keep_inside, root, copy, hidden)
                await asyncio.to_thread(
                    _remove_trees, [copy / each.relative_to(root) for each in secrets]
                )
                copy_policy = _make_copy_policy(policy, copy, ignored_paths, is_mounted=is_mounted)
            left_out = list[str]()
            if not is_mounted:
                left_out = await asyncio.to_thread(_drop_links, root, copy, commit.links)
                _link_shared_paths(root, copy, ignored_paths)
            inside = root if is_mounted else copy
            directory = _find_directory(
                command.directory or shells.get_directory(context), root, copy, inside
            )
            command_on_copy = replace(
                command, policy=copy_policy, directory=directory, is_isolated=True
            )
            outcome = await shells.run(context, command_on_copy, show)
        finally:
            # Also if the call is cancelled, or the copy would stay.
            await finish_uncancelled(_remove_copy(shells, copy_policy, copy))
    except GitFailed as error:
        raise ToolFailure(str(error)) from error
    note = f"It ran on the last commit, {commit.hash[:10]}, without the changes since."
    if not is_mounted:
        note += f" The copy was in {copy}: what is installed from the project's own folder was that with the changes."
    if left_out:
        names = ", ".join(left_out[:_MAX_NAMED_LINKS])
        more = ", ..." if len(left_out) > _MAX_NAMED_LINKS else ""
        note += f" Links that the project does not have so were left out: {names}{more}."
    return replace(outcome, notes=(note, *outcome.notes))


async def _read_last_commit(git: Git) -> _Commit:
    """Return the last commit. Raises ToolFailure if there is none that can be copied,
    and GitFailed.
    """
    if find_git_folder(git.root) is None:
        raise ToolFailure(
            "This project is not a git repository, so it has no last commit.",
            advice="Leave out unchanged.",
        )
    commit_hash = await git.resolve_commit("HEAD")
    if commit_hash is None:
        raise ToolFailure("This repository has no commit yet.", advice="Leave out unchanged.")
    listing = await git.run(
        "ls-tree", "-r", "-l", "-z", commit_hash, max_bytes=COMMIT_FILES.value * _ROW_BYTES
    )
    # `100644 blob HASH SIZE<tab>PATH`; the size of a submodule is `-`.
    lines = [row.partition("\t") for row in os.fsdecode(listing.data).split("\0") if row]
    rows = [line[0].split() for line in lines]
    sizes = [int(row[3]) for row in rows if len(row) > 3 and row[3].isdecimal()]
    links = [name for facts, _, name in lines if facts.startswith(_LINK_MODE)]
    commit = _Commit(
        hash=commit_hash,
        submodule_count=sum(row[0] == _SUBMODULE_MODE for row in rows),
        file_count=len(rows),
        size=sum(sizes),
        links=links,
    )
    if commit.submodule_count:
        text = "The last commit has submodules, and a copy would lack their files."
        raise ToolFailure(
            text, advice="Leave out unchanged; read old files with `git show HEAD:path`."
        )
    if (
        not listing.is_complete
        or commit.file_count > COMMIT_FILES.value
        or commit.size > COMMIT_SIZE.value
    ):
        maximum = f"{COMMIT_FILES.value:,} files and {COMMIT_SIZE.value // 10**6:,} MB"
        raise ToolFailure(
            f"The last commit is too large to be copied: at most {maximum}.",
            advice="Leave out unchanged.",
        )
    return commit


def _make_copy_folder(top: Path) -> Path:
    """Make the folder of a copy. Old copies, which killed processes left, are removed."""
    top.mkdir(mode=0o700, parents=True, exist_ok=True)
    for each in top.iterdir():
        with suppress(OSError):
            if time.time() - each.lstat().st_mtime > COMMIT_LEFT.seconds:
                _remove_trees([each])
    copy = Path(os.path.realpath(tempfile.mkdtemp(dir=top)))
    Path(f"{copy}{LAYERS_SUFFIX}").mkdir(mode=0o700)
    return copy


async def _write_files(git: Git, commit: str, copy: Path) -> None:
    """Write the files of a commit to a folder, without filters."""
    # An index of its own: the repository's index belongs to the user.
    index = Path(f"{copy}.index")
    printed = await git.run("read-tree", commit, index=index)
    if printed.code == 0:
        arguments = ("checkout-index", "--all", "--quiet", f"--prefix={copy}/")
        printed = await git.run(*arguments, index=index, seconds=WORKTREE_TIME.seconds)
    if printed.code != 0:
        raise ToolFailure(f"git can't copy the last commit: {describe_failure(printed)}")


async def _list_needed_ignored(git: Git, hidden: Collection[Path]) -> list[Path]:
    """Return the files and folders that commands need and git does not track,
    such as `node_modules`.
    """
    arguments = ("ls-files", "--others", "--directory", "-z")
    max_bytes = COMMIT_FILES.value * _ROW_BYTES
    ignored = await git.run(*arguments, "--ignored", "--exclude-standard", max_bytes=max_bytes)
    others = await git.run(*arguments, max_bytes=max_bytes)
    names = [name.rstrip("/") for name in os.fsdecode(ignored.data).split("\0") if name]
    other_names = (each.rstrip("/") for each in os.fsdecode(others.data).split("\0"))
    names += [name for name in other_names if Path(name).name in _DEPENDENCY_FOLDERS]
    needed = [git.root / name for name in dict.fromkeys(names) if _is_needed(Path(name))]
    without_links = [
        path for path in needed if path not in hidden and os.path.realpath(path) == str(path)
    ]
    return without_links[: COMMIT_SHOWN.value]


def _is_needed(path: Path) -> bool:
    return path.name not in _OUTPUT_NAMES and not path.name.endswith(_OUTPUT_SUFFIXES)


def _drop_links(root: Path, copy: Path, names: Iterable[str]) -> list[str]:
    """Remove links of the commit from the copy unless the project has the same link;
    return the removed ones.

    Without a sandbox, permission to read was asked for the project's files: a link in the place of
    such a file could lead anywhere.
    """
    dropped: list[str] = []
    for name in names:
        original, link = root / name, copy / name
        with suppress(OSError):
            if (
                os.path.realpath(original.parent) == str(original.parent)
                and original.readlink() == link.readlink()
            ):
                continue
        link.unlink(missing_ok=True)
        dropped.append(name)
    return dropped


def _keep_inside(root: Path, copy: Path, paths: Iterable[Path]) -> list[Path]:
    """Return the paths of the project whose counterparts are inside the copy.

    The commit may have a link where the project has a folder.
    Writing below that link would write outside the copy.
    """
    parents = (
        (path, copy / path.parent.relative_to(root)) for path in paths if root in path.parents
    )
    return [path for path, parent in parents if os.path.realpath(parent) == str(parent)]


def _make_copy_policy(
    policy: SandboxPolicy, copy: Path, shared: Iterable[Path], *, is_mounted: bool
) -> SandboxPolicy:
    """Return a policy under which commands write to the copy in place of the project; other
    writable folders stay so.

    `is_mounted`: the copy is what they see at the project's root; else the project is visible, and
    read-only. `shared`: ignored paths of the project that the copy shows as well.
    """
    # The project's own, see `SandboxPolicy.writable`.
    root = policy.writable[0]
    git = [Path(os.path.realpath(each)) for each in find_git_folders(root)]
    others = [path for path in policy.writable if path not in git and not path.is_relative_to(root)]
    pointer = [root / ".git"] if os.path.lexists(root / ".git") else []
    if is_mounted:
        visible = dict.fromkeys((*policy.visible, *git, *pointer, *shared))
        return replace(
            policy, writable=(root, *others), visible=tuple(visible), git_folders=(), replica=copy
        )
    visible = dict.fromkeys((*policy.visible, root, *git))
    return replace(policy, writable=(copy, *others), visible=tuple(visible), git_folders=())


def _link_shared_paths(root: Path, copy: Path, shared: Iterable[Path]) -> None:
    """Make links in the copy to the project's `.git` and to the ignored paths
    that the copy shows as well.
    """
    for path in (*shared, *([root / ".git"] if os.path.lexists(root / ".git") else [])):
        link = copy / path.relative_to(root)
        with suppress(OSError):
            link.parent.mkdir(parents=True, exist_ok=True)
            link.symlink_to(path)


def _find_directory(wanted: Path, root: Path, copy: Path, inside: Path) -> Path:
    """Return the directory to run in: the folder of the copy that stands for `wanted`,
    or its top if it has none.

    `inside`: the copy's path as the command sees it.
    A directory outside the project stays as it is.
    """
    real = Path(os.path.realpath(wanted))
    if not real.is_relative_to(root):
        return wanted
    below = real.relative_to(root)
    return inside / below if (copy / below).is_dir() else inside


async def _remove_copy(shells: Shells, policy: SandboxPolicy | None, copy: Path) -> None:
    """End the sandbox of the copy's commands, and remove the copy. `policy`: the sandbox's;
    None: there was none.
    """
    if policy is not None:
        await shells.sandboxes.end_sandbox(policy)
    await asyncio.to_thread(
        _remove_trees, [copy, Path(f"{copy}{LAYERS_SUFFIX}"), Path(f"{copy}.index")]
    )


def _remove_trees(paths: Iterable[Path]) -> None:
    for path in paths:
        remove_tree(path)
