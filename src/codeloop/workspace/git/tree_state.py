"""How a work tree differs from its commit, as in `git status`, from a few bounded reads and without running git."""

import os
import time
from collections.abc import Mapping
from hashlib import sha1
from itertools import islice
from pathlib import Path

from msgspec import Struct

from codeloop.kit.small_files import read_start
from codeloop.workspace.git.ignore_patterns import Patterns, is_ignored, list_user_excludes, parse
from codeloop.workspace.git.index import Repository, Tracked, open_repository, read_small

_INDEX_BYTES = 48 * 1024
"""The largest index that is compared: some 500 files. The state of a larger repository is unknown."""
_CONTENT_BYTES = 256 * 1024
"""Contents of files that are hashed in all, where times and sizes don't decide."""
_RULES_BYTES = 64 * 1024
_MAX_ENTRIES = 2_000
"""Entries of folders that are read in all."""
_MAX_UNTRACKED = 200
"""Entries among them that are not tracked."""
_MAX_TREES = 50
_CPU_SECONDS = 0.02
"""Time of the processor for untracked files; hostile ignore files take milliseconds for each name."""
_SPECIAL_STATES = (
    "MERGE_HEAD",
    "CHERRY_PICK_HEAD",
    "REVERT_HEAD",
    "rebase-merge",
    "rebase-apply",
    "info/sparse-checkout",
)
"""Files that exist while an index may hold several entries for a file, or entries of deliberately absent files."""
_SUBMODULE, _FOLDER = 0o160000, 0o40000


class TreeState(Struct, frozen=True):
    """Paths from the top; a folder that differs as a whole ends with a slash. None: unknown."""

    staged: list[str] | None
    unstaged: list[str] | None
    untracked: list[str] | None


class _TooMuch(Exception):
    """The repository is too large to compare."""


def read_tree_state(root: Path, environment: Mapping[str, str]) -> TreeState | None:
    """Return the state of the work tree at `root`; None: unknown."""
    repository_only = open_repository(root, with_index=False)
    if repository_only is None or len(read_small(repository_only.folder / "index", _INDEX_BYTES + 1)) > _INDEX_BYTES:
        return None
    if any((repository_only.folder / name).exists() for name in _SPECIAL_STATES):
        return None
    repository = open_repository(root, with_index=True)
    if repository is None or not repository.tracked:
        return None
    return TreeState(
        _find_staged(repository), _find_unstaged(root, repository), _Untracked(root, repository, environment).find()
    )


def _find_staged(repository: Repository) -> list[str] | None:
    """Return the files that differ between index and commit, in folders without a cached tree."""
    from codeloop.workspace.git.objects import GitObjects, read_head_commit

    objects = GitObjects(repository.common)
    commit = read_head_commit(repository.folder, repository.common)
    if commit is None:
        return None
    if not commit:
        return sorted(_join(folder, name) for folder, files in repository.tracked.items() for name in files)
    tree = objects.read_tree_name(commit)
    if tree is None:
        return None
    folders = _group_folders(repository)
    staged: list[str] = []
    waiting: list[tuple[str, bytes]] = [("", tree)]
    remaining = _MAX_TREES
    while waiting:
        path, name = waiting.pop()
        if repository.trees.get(path) == name:
            continue  # the index has the same tree, so nothing below differs
        remaining -= 1
        rows = objects.read_rows(name) if remaining >= 0 else None
        here = repository.tracked.get(path, {})
        if rows is None or any(not entry.blob for entry in here.values()):
            return None
        files = {row: (each.mode, each.name) for row, each in rows.items() if each.mode not in {_SUBMODULE, _FOLDER}}
        ours = {file: (entry.mode, entry.blob) for file, entry in here.items()}
        staged += [_join(path, file) for file in files.keys() | ours.keys() if files.get(file) != ours.get(file)]
        below = {row: each.name for row, each in rows.items() if each.mode == _FOLDER}
        inside = folders.get(path, set())
        staged += [f"{_join(path, folder)}/" for folder in below.keys() ^ inside]
        waiting += [(_join(path, folder), below[folder]) for folder in below.keys() & inside]
    return sorted(staged)


def _group_folders(repository: Repository) -> dict[str, set[str]]:
    """Return the folders that hold tracked files, or folders with such files: by the folder that they are in."""
    folders: dict[str, set[str]] = {}
    for below in repository.tracked:
        path = below
        while path:
            path, _, name = path.rpartition("/")
            folders.setdefault(path, set()).add(name)
    return folders


def _join(folder: str, name: str) -> str:
    return f"{folder}/{name}" if folder else name


def _find_unstaged(root: Path, repository: Repository) -> list[str] | None:
    """Return the tracked files that differ from the index."""
    remaining = _CONTENT_BYTES
    changed: list[str] = []
    for folder, files in repository.tracked.items():
        for name, entry in files.items():
            path = _join(folder, name)
            try:
                info = os.lstat(f"{root}/{path}")
            except OSError:
                changed.append(path)
                continue
            if entry.same(info):
                continue
            # 0: git writes this where the file may have changed right after it was added.
            is_resized = entry.size not in {0, info.st_size & 0xFFFFFFFF}
            remaining -= 0 if is_resized else info.st_size
            if not entry.blob or remaining < 0:
                return None
            if is_resized or not _is_blob(root / path, info, entry):
                changed.append(path)
    return sorted(changed)


def _is_blob(path: Path, info: os.stat_result, entry: Tracked) -> bool:
    """Return whether a file with another time still has the content of its index entry."""
    try:
        data = os.fsencode(path.readlink()) if path.is_symlink() else read_start(path, info.st_size + 1)
    except OSError:
        return False
    is_program = bool(info.st_mode & 0o100) and not path.is_symlink()
    if is_program != (entry.mode == 0o100755):
        return False
    return sha1(b"blob %d\0%b" % (len(data), data), usedforsecurity=False).digest() == entry.blob


class _Untracked:
    """Finds what is neither tracked nor ignored in the folders of tracked files."""

    def __init__(self, root: Path, repository: Repository, environment: Mapping[str, str]) -> None:
        files = (repository.common / "info" / "exclude", *list_user_excludes(environment))
        self._rules = tuple(parse(read_small(file, _RULES_BYTES), "") for file in files)
        self._root = root
        self._tracked = repository.tracked
        self._folders = _group_folders(repository)
        self._entries_left, self._untracked_left = _MAX_ENTRIES, _MAX_UNTRACKED
        self._until = time.thread_time() + _CPU_SECONDS

    def find(self) -> list[str] | None:
        """Return the paths; None: there are too many entries, or reading them takes too long."""
        try:
            return sorted(self._list_in("", self._rules))
        except (OSError, _TooMuch):
            return None

    def _list_in(self, path: str, rules: tuple[Patterns, ...]) -> list[str]:
        untracked: list[str] = []
        tracked, folders = self._tracked.get(path, {}), self._folders.get(path, ())
        entries = self._list_folder(path)
        rules = self._with_own(path, entries, rules)
        for name, is_folder in entries.items():
            here = _join(path, name)
            self._check_time()
            if is_folder and name in folders:
                untracked += [] if is_ignored(rules, here, name, is_folder=True) else self._list_in(here, rules)
            elif name not in tracked and name != ".git" and self._is_new(here, name, rules, is_folder=is_folder):
                untracked.append(here + "/" * is_folder)
        return untracked

    def _is_new(self, path: str, name: str, rules: tuple[Patterns, ...], *, is_folder: bool) -> bool:
        """Return whether a path that is not tracked is a file that is not ignored, or a folder that holds one."""
        self._untracked_left -= 1
        if self._untracked_left < 0:
            raise _TooMuch
        self._check_time()
        if is_ignored(rules, path, name, is_folder=is_folder):
            return False
        if not is_folder:
            return True
        entries = self._list_folder(path)
        rules = self._with_own(path, entries, rules)
        # A nested repository counts as untracked whatever is in it; git shows its folder, too.
        return ".git" in entries or any(
            self._is_new(f"{path}/{each}", each, rules, is_folder=below) for each, below in entries.items()
        )

    def _check_time(self) -> None:
        if time.thread_time() > self._until:
            raise _TooMuch

    def _list_folder(self, path: str) -> dict[str, bool]:
        with os.scandir(f"{self._root}/{path}") as rows:
            entries = {row.name: row.is_dir(follow_symlinks=False) for row in islice(rows, self._entries_left + 1)}
        self._entries_left -= len(entries)
        if self._entries_left < 0:
            raise _TooMuch
        return entries

    def _with_own(self, path: str, entries: Mapping[str, bool], rules: tuple[Patterns, ...]) -> tuple[Patterns, ...]:
        if ".gitignore" not in entries:
            return rules
        return (parse(read_small(self._root / path / ".gitignore", _RULES_BYTES), path), *rules)
