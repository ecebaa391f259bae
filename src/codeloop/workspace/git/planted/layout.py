"""The layout of git directories: where they are,
and which of their files decide what git runs and follows.
"""

import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from codeloop.kit.git import find_common_folder, find_git_folder
from codeloop.kit.small_files import read_start
from codeloop.schema.bounds.sandbox import GIT_LINK_SEARCH_FOLDERS
from codeloop.workspace.git.index import list_submodule_paths

# Entries of a git directory that decide which programs git runs and which paths it follows.
GIT_FOLDER_ENTRIES = (
    "hooks",
    "config",
    "config.worktree",
    "info/attributes",
    "commondir",
    "objects/info/alternates",
)
# The same for the folder that a linked work tree has in a git directory.
WORK_TREE_ENTRIES = ("commondir", "gitdir", "config.worktree")
# The folders of a git directory in which those entries are, but for itself.
_ENTRY_FOLDERS = (
    *("hooks", "info", "objects", "objects/info", "rebase-merge", "rebase-apply", "sequencer"),
    *("modules", "worktrees"),
)
# Files of a git directory that git must be able to read, and that git in any work tree may replace.
REPLACEABLE_FILES = ("packed-refs", "shallow")
# The most bytes read of a file in `EXECUTED_LINES`;
# a rebase of ten thousand commits takes a quarter of it.
MAX_LINES_BYTES = 4 * 1024 * 1024
# `x make test` or `exec make test` in the list of steps of a rebase.
_EXEC_LINE = rb"(?m)^[ \t]*(?:x|exec)[ \t].*\n?"
# Merge strategies of git itself. For any other, `x/y`,
# git runs a program `git-merge-x/y` of the project.
_OWN_STRATEGIES = rb"(?:ort|recursive|resolve|octopus|ours|subtree)"
_FOREIGN_STRATEGY = rb"(?m)^(?!" + _OWN_STRATEGIES + rb"$).+\n?"
_STRATEGY_OPTION = (
    rb"(?im)^(?!\tstrategy = " + _OWN_STRATEGIES + rb"$|\tstrategy-option = ).*strategy.*\n?"
)
# Files of a git directory -> the lines that run a program when the operation is continued.
EXECUTED_LINES = {
    "rebase-merge/git-rebase-todo": _EXEC_LINE,
    "rebase-apply/git-rebase-todo": _EXEC_LINE,
    "rebase-merge/strategy": _FOREIGN_STRATEGY,
    "rebase-apply/strategy": _FOREIGN_STRATEGY,
    "sequencer/opts": _STRATEGY_OPTION,
}
# Lines of `.gitmodules` that run a program in versions of git still in use.
UPDATE_LINE = rb"(?im)^[ \t]*update[ \t]*=[ \t]*\"?!.*\n?"
_POINTER_BYTES = 4096


def find_git_folders(root: Path) -> Iterator[Path]:
    """Yield the git directories of a work tree and of its submodules, wherever they really are.

    The work tree's own comes first; of a linked one, the shared one is next.
    """
    # What leads elsewhere is left out: a command may have written it,
    # to make a folder outside the project writable.
    top = find_git_folder(root)
    if top is None:
        return
    yield top
    shared = find_common_folder(top)
    if shared != top and (shared / "HEAD").is_file():
        yield shared
        top = shared
    waiting = [top / "modules"]
    while waiting:
        folder = waiting.pop()
        for each in list_subfolders(folder):
            if (each / "HEAD").is_file():
                yield each
                waiting.append(each / "modules")
            else:
                waiting.append(each)


def list_project_git_folders(roots: Iterable[Path]) -> list[Path]:
    """Return the git directories of all `roots`, as `find_git_folders` finds them."""
    return [folder for root in roots for folder in find_git_folders(root)]


def resolve_git_folder(entry: Path) -> Path | None:
    """Return the git directory that a `.git` or a bare repository is, or leads to;
    None: it leads nowhere.
    """
    return read_pointer(entry, "gitdir:") if entry.is_file() else Path(os.path.realpath(entry))


def list_all_git_folders(entry: Path) -> tuple[Path, ...]:
    """Return the git directory that a `.git` or a bare repository is, and those in it."""
    top = read_pointer(entry, "gitdir:") if entry.is_file() else entry
    return () if top is None else (top, *list_work_tree_folders(top), *list_submodule_folders(top))


def list_submodule_folders(folder: Path) -> list[Path]:
    """Return the git directories of submodules in a git directory."""
    return [each for each in _list_module_folders(folder) if (each / "HEAD").is_file()]


def list_entry_folders(entry: Path) -> list[Path]:
    """Return the folders in a `.git` or bare repository where something can decide what git runs,
    or soon may.
    """
    tops = list_all_git_folders(entry)
    found = [*tops, *(top / name for top in tops for name in _ENTRY_FOLDERS)]
    return [
        *found,
        *(
            each
            for top in tops[:1]
            for each in (*_list_module_folders(top), *list_work_tree_folders(top))
        ),
    ]


def _list_module_folders(folder: Path) -> list[Path]:
    """Return the git directories of submodules in a git directory,
    and the folders in which they are.
    """
    waiting = list_subfolders(folder / "modules")
    for each in waiting:
        if not (each / "HEAD").is_file() and len(waiting) < GIT_LINK_SEARCH_FOLDERS.value:
            waiting += list_subfolders(each)
    return waiting


def list_entries(folder: Path) -> list[Path]:
    """Return the entries of a folder; none when it can't be read."""
    try:
        return list(folder.iterdir())
    except OSError:
        return []


def read_reference(head: Path) -> str:
    """Return the reference that a HEAD file names; empty when it names none."""
    try:
        text = read_start(head, _POINTER_BYTES).decode("utf-8", "surrogateescape")
    except OSError:
        return ""
    return text.removeprefix("ref:").strip() if text.startswith("ref:") and "\0" not in text else ""


def list_work_tree_folders(folder: Path) -> list[Path]:
    """Return the folders that linked work trees have in a git directory."""
    return list_subfolders(folder / "worktrees")


def read_pointer(file: Path, prefix: str = "") -> Path | None:
    """Return the path that a file of git (`.git`, `commondir`) holds after `prefix`,
    with links followed, or None.
    """
    try:
        text = read_start(file, _POINTER_BYTES).decode("utf-8", "surrogateescape")
    except OSError:
        return None
    target = text.removeprefix(prefix).strip()
    if not text.startswith(prefix) or not target or "\0" in target:
        return None
    return Path(os.path.realpath(file.parent / target))


def list_subfolders(folder: Path) -> list[Path]:
    """Return the folders in a folder; none when it can't be read."""
    try:
        with os.scandir(folder) as entries:
            return [Path(entry.path) for entry in entries if entry.is_dir(follow_symlinks=False)]
    except OSError:
        return []


def list_line_files(folders: Iterable[Path], roots: Iterable[Path]) -> list[tuple[Path, bytes]]:
    """Return the files that may hold lines that git would run,
    each with the pattern of such a line.
    """
    lists = [(folder / name, lines) for folder in folders for name, lines in EXECUTED_LINES.items()]
    lists += [(root / ".gitmodules", UPDATE_LINE) for root in roots]
    return lists


def list_named_submodules(folder: Path, private_folders: Mapping[Path, Path]) -> set[str]:
    """Return the paths that the index of a git directory names as other repositories,
    or a command's index does.

    `private_folders`: as of `ProjectRepositories.cover`.
    """
    tops = [top for top in private_folders if folder.is_relative_to(top)]
    folders = (folder, *(private_folders[top] / folder.relative_to(top) for top in tops))
    return {name for each in folders for name in list_submodule_paths(each / "index")}
