"""Compares a small work tree with its commit, as `git status` does,
by a few bounded reads and without running git.

`project_facts.py` uses it for one line that the model reads. The changes that clients show are
found by running git (`working_diff.py`).
"""

import os
import time
from collections.abc import Mapping
from itertools import islice
from pathlib import Path

from msgspec import Struct

from codeloop.kit.git import compute_blob_id
from codeloop.kit.paths import join_relative
from codeloop.kit.small_files import read_start, read_start_or_empty
from codeloop.workspace.git.ignore_patterns import (
    Patterns,
    is_ignored,
    list_user_excludes,
    read_ignore_file,
)
from codeloop.workspace.git.index import IndexedRepository, IndexEntry, open_repository

# The largest index that is compared: some 500 files. The state of a larger repository is unknown.
_INDEX_BYTES = 48 * 1024
# The most bytes hashed in all, of files whose times and sizes don't decide.
_HASHED_BYTES = 256 * 1024
_RULES_BYTES = 64 * 1024
# The most entries of folders that are read in all, and those among them that are not tracked.
_MAX_ENTRIES = 2_000
_MAX_UNTRACKED = 200
# The most folders whose trees are read from the commit.
_MAX_TREES = 50
# CPU time for untracked files: a hostile ignore file can take milliseconds for each name.
_CPU_SECONDS = 0.02
# Files that exist while an index may hold several entries for a file,
# or entries of deliberately absent files.
_SPECIAL_STATES = (
    "MERGE_HEAD",
    "CHERRY_PICK_HEAD",
    "REVERT_HEAD",
    "rebase-merge",
    "rebase-apply",
    "info/sparse-checkout",
)
_SUBMODULE_MODE, _FOLDER_MODE = 0o160000, 0o40000


class TreeState(Struct, frozen=True):
    """The changed paths of a work tree, relative to its top; None: unknown.

    A folder that differs as a whole ends with a slash.
    """

    staged: list[str] | None
    unstaged: list[str] | None
    untracked: list[str] | None


class _LimitExceeded(Exception):
    """The repository is too large to compare."""


def read_tree_state(root: Path, environment: Mapping[str, str]) -> TreeState | None:
    """Return the state of the work tree at `root`; None: unknown."""
    # Without its index first: a large one would take long to parse.
    unread_repository = open_repository(root, with_index=False)
    if unread_repository is None:
        return None
    index = read_start_or_empty(unread_repository.folder / "index", _INDEX_BYTES + 1)
    if len(index) > _INDEX_BYTES or any(
        (unread_repository.folder / name).exists() for name in _SPECIAL_STATES
    ):
        return None
    repository = open_repository(root, with_index=True)
    if repository is None or not repository.tracked:
        return None
    untracked = _UntrackedFinder(root, repository, environment).find()
    return TreeState(_find_staged(repository), _find_unstaged(root, repository), untracked)


def _find_staged(repository: IndexedRepository) -> list[str] | None:
    """Return the files and folders that differ between index and commit; None: unknown."""
    # Imported here, since a project without a repository, or with a large one, does not need it.
    from codeloop.workspace.git.head import read_head_commit
    from codeloop.workspace.git.objects import GitObjects

    objects = GitObjects(repository.common)
    commit = read_head_commit(repository.folder, repository.common)
    if commit is None:
        return None
    if not commit:
        return sorted(
            join_relative(folder, name)
            for folder, files in repository.tracked.items()
            for name in files
        )
    tree = objects.read_tree_id(commit)
    if tree is None:
        return None
    index_folders = _group_folders(repository)
    staged: list[str] = []
    # Folders whose trees differ, each with its tree in the commit.
    waiting: list[tuple[str, bytes]] = [("", tree)]
    remaining_trees = _MAX_TREES
    while waiting:
        path, tree_id = waiting.pop()
        if repository.trees.get(path) == tree_id:
            continue  # the index has the same tree, so nothing below differs
        remaining_trees -= 1
        tree_entries = objects.read_tree(tree_id) if remaining_trees >= 0 else None
        index_entries = repository.tracked.get(path, {})
        # Without a blob, the file was added only by name.
        if tree_entries is None or any(not entry.blob for entry in index_entries.values()):
            return None
        committed_files = {
            name: (entry.mode, entry.object_id)
            for name, entry in tree_entries.items()
            if entry.mode not in {_SUBMODULE_MODE, _FOLDER_MODE}
        }
        indexed_files = {name: (entry.mode, entry.blob) for name, entry in index_entries.items()}
        names = committed_files.keys() | indexed_files.keys()
        staged += [
            join_relative(path, name)
            for name in names
            if committed_files.get(name) != indexed_files.get(name)
        ]
        committed_folders = {
            name: entry.object_id
            for name, entry in tree_entries.items()
            if entry.mode == _FOLDER_MODE
        }
        indexed_folders = index_folders.get(path, set())
        staged += [
            f"{join_relative(path, folder)}/"
            for folder in committed_folders.keys() ^ indexed_folders
        ]
        waiting += [
            (join_relative(path, folder), committed_folders[folder])
            for folder in committed_folders.keys() & indexed_folders
        ]
    return sorted(staged)


def _group_folders(repository: IndexedRepository) -> dict[str, set[str]]:
    """Return by folder the names of its subfolders that hold tracked files, at any depth."""
    folders: dict[str, set[str]] = {}
    for folder in repository.tracked:
        path = folder
        while path:
            path, _, name = path.rpartition("/")
            folders.setdefault(path, set()).add(name)
    return folders


def _find_unstaged(root: Path, repository: IndexedRepository) -> list[str] | None:
    """Return the tracked files that differ from the index; None: unknown."""
    remaining_bytes = _HASHED_BYTES
    changed: list[str] = []
    for folder, files in repository.tracked.items():
        for name, entry in files.items():
            path = join_relative(folder, name)
            try:
                info = os.lstat(f"{root}/{path}")
            except OSError:
                changed.append(path)
                continue
            if entry.is_unchanged(info):
                continue
            # git writes a size of 0 where the file may have changed right after it was added.
            is_resized = entry.size not in {0, info.st_size & 0xFFFFFFFF}
            remaining_bytes -= 0 if is_resized else info.st_size
            if not entry.blob or remaining_bytes < 0:
                return None
            if is_resized or not _is_blob(root / path, info, entry):
                changed.append(path)
    return sorted(changed)


def _is_blob(path: Path, info: os.stat_result, entry: IndexEntry) -> bool:
    """Return whether a file, whose stat differs,
    still has the content and mode of its index entry.
    """
    try:
        # `Path.readlink` drops a `./` and double slashes, which git stores.
        data = (
            os.readlink(os.fsencode(path))
            if path.is_symlink()
            else read_start(path, info.st_size + 1)
        )
    except OSError:
        return False
    is_program = bool(info.st_mode & 0o100) and not path.is_symlink()
    if is_program != (entry.mode == 0o100755):
        return False
    return compute_blob_id(data) == entry.blob


class _UntrackedFinder:
    """Finds what is neither tracked nor ignored in the folders of tracked files."""

    def __init__(
        self, root: Path, repository: IndexedRepository, environment: Mapping[str, str]
    ) -> None:
        files = (repository.common / "info" / "exclude", *list_user_excludes(environment))
        self._rules = tuple(read_ignore_file(file, "", _RULES_BYTES) for file in files)
        self._root = root
        self._tracked = repository.tracked
        self._folders = _group_folders(repository)
        self._entries_left, self._untracked_left = _MAX_ENTRIES, _MAX_UNTRACKED
        # CPU time of this thread, so that the result does not depend on how busy the machine is.
        self._deadline = time.thread_time() + _CPU_SECONDS

    def find(self) -> list[str] | None:
        """Return the paths, sorted; None: there are too many entries,
        or reading them takes too long.
        """
        try:
            return sorted(self._find_in("", self._rules))
        except (OSError, _LimitExceeded):
            return None

    def _find_in(self, path: str, rules: tuple[Patterns, ...]) -> list[str]:
        """Return the untracked paths in a folder. `rules`: the ignore patterns
        from the folders around it.
        """
        untracked: list[str] = []
        tracked, folders = self._tracked.get(path, {}), self._folders.get(path, ())
        entries = self._list_folder(path)
        rules = self._add_own_rules(path, entries, rules)
        for name, is_folder in entries.items():
            entry_path = join_relative(path, name)
            self._check_time()
            if is_folder and name in folders:
                if not is_ignored(rules, entry_path, name, is_folder=True):
                    untracked += self._find_in(entry_path, rules)
            elif (
                name not in tracked
                and name != ".git"
                and self._is_new(entry_path, name, rules, is_folder=is_folder)
            ):
                untracked.append(f"{entry_path}/" if is_folder else entry_path)
        return untracked

    def _is_new(
        self, path: str, name: str, rules: tuple[Patterns, ...], *, is_folder: bool
    ) -> bool:
        """Return whether a path that is not tracked is a file that is not ignored,
        or a folder that holds one.
        """
        self._untracked_left -= 1
        if self._untracked_left < 0:
            raise _LimitExceeded
        self._check_time()
        if is_ignored(rules, path, name, is_folder=is_folder):
            return False
        if not is_folder:
            return True
        entries = self._list_folder(path)
        rules = self._add_own_rules(path, entries, rules)
        # A nested repository counts as untracked whatever is in it, as in git.
        return ".git" in entries or any(
            self._is_new(f"{path}/{each}", each, rules, is_folder=is_subfolder)
            for each, is_subfolder in entries.items()
        )

    def _check_time(self) -> None:
        if time.thread_time() > self._deadline:
            raise _LimitExceeded

    def _list_folder(self, path: str) -> dict[str, bool]:
        """Return the names in a folder, each with whether it is a folder itself.
        Raises _LimitExceeded, OSError.
        """
        with os.scandir(f"{self._root}/{path}") as rows:
            entries = {
                row.name: row.is_dir(follow_symlinks=False)
                for row in islice(rows, self._entries_left + 1)
            }
        self._entries_left -= len(entries)
        if self._entries_left < 0:
            raise _LimitExceeded
        return entries

    def _add_own_rules(
        self, path: str, entries: Mapping[str, bool], rules: tuple[Patterns, ...]
    ) -> tuple[Patterns, ...]:
        if ".gitignore" not in entries:
            return rules
        return (read_ignore_file(self._root / path / ".gitignore", path, _RULES_BYTES), *rules)
