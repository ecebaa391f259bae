"""Recognises files that commands may have made: compares the change times of git's files with when commands ran.

A *stamp* holds the change times (ctime) of the files in a repository that decide what git runs and follows.
"""

import os
import sys
import time
from pathlib import Path

from codeloop.kit.guarded_paths import fold_path
from codeloop.schema.bounds.sandbox import GIT_LINK_SEARCH_FOLDERS
from codeloop.workspace.git.planted.layout import (
    EXECUTED_LINES,
    GIT_FOLDER_ENTRIES,
    WORK_TREE_ENTRIES,
    list_subfolders,
    list_work_tree_folders,
    read_pointer,
)

_MAX_PERIODS = 1_000
# Python's `time` has no name for this clock, which is some ms behind the exact one. Linux takes the times of files
# from either.
_CLOCK_REALTIME_COARSE = 5


class CommandRuns:
    """The times at which commands ran, which tell whether they may have made a file that is found later."""

    # They are compared with change times, since a command can set the modification time of a file, but not that one.

    def __init__(self) -> None:
        self.running = 0
        # Start and end of each period in which at least one command ran, in ns.
        self._periods: list[tuple[int, int]] = []

    def count(self, difference: int) -> None:
        """Count one more (1), one less (-1) or the same number (0) of commands that run."""
        now = time.time_ns()
        if self.running:
            self._periods[-1] = (self._periods[-1][0], now)
        elif difference:
            self._periods.append((_read_coarse_clock(), now))
        # The oldest two become one: it is safer to take a file of the user's for a command's than the other way round.
        if len(self._periods) > _MAX_PERIODS:
            self._periods[:2] = [(self._periods[0][0], self._periods[1][1])]
        self.running += difference

    def may_have_made(self, entry: Path) -> bool:
        """Return whether a command may have made a repository, or changed or moved what decides what git runs there."""

        def is_changed_in_run(path: Path) -> bool:
            return self._covers(read_change_time(path))

        if any(map(self._covers, read_program_stamp(entry))):
            return True
        parts = (
            [entry.parent]
            if fold_path(entry.name) == ".git"
            else [entry / name for name in ("HEAD", "objects", "refs")]
        )
        # Each use of git changes its folder; making or moving a repository also changes the folder around it, or the
        # entries of a bare one.
        return is_changed_in_run(entry) and any(map(is_changed_in_run, parts))

    def _covers(self, changed_at: int) -> bool:
        """Return whether a command ran at this time, in ns."""
        if self.running and changed_at >= self._periods[-1][0]:
            return True
        return any(began <= changed_at <= ended for began, ended in self._periods)


def _read_coarse_clock() -> int:
    return time.clock_gettime_ns(_CLOCK_REALTIME_COARSE) if sys.platform == "linux" else time.time_ns()


def resolve_git_folder(entry: Path) -> Path | None:
    """Return the git directory that a `.git` or a bare repository is, or leads to."""
    return read_pointer(entry, "gitdir:") if entry.is_file() else Path(os.path.realpath(entry))


def read_program_stamp(entry: Path) -> tuple[int, ...]:
    """Return the change times of what decides which programs git runs in a repository of the user's."""
    folder = resolve_git_folder(entry)
    if folder is None:
        return (read_change_time(entry),)
    watched = [entry] if entry.is_file() else []
    watched += [folder / name for name in (*GIT_FOLDER_ENTRIES, *WORK_TREE_ENTRIES, *EXECUTED_LINES)]
    return tuple(read_change_time(path) for path in (*watched, *list_entries(folder / "hooks")))


def read_full_stamp(entry: Path) -> tuple[int, ...]:
    """Return the change times of the files of a `.git` or bare repository that decide what git runs and follows."""
    watched = [entry]
    for folder in list_all_git_folders(entry):
        watched += [folder / name for name in (*GIT_FOLDER_ENTRIES, *WORK_TREE_ENTRIES, *EXECUTED_LINES)]
        watched += [folder, folder / "info", folder / "objects", *list_entries(folder / "hooks")]
    return tuple(read_change_time(path) for path in watched)


def list_all_git_folders(entry: Path) -> tuple[Path, ...]:
    """Return the git directory that a `.git` or a bare repository is, and those in it."""
    top = read_pointer(entry, "gitdir:") if entry.is_file() else entry
    return () if top is None else (top, *list_work_tree_folders(top), *list_submodule_folders(top))


def read_change_time(path: Path) -> int:
    """Return when a file was changed, renamed or linked, in ns; 0 for a missing one."""
    try:
        return path.lstat().st_ctime_ns
    except OSError:
        return 0


def list_submodule_folders(folder: Path) -> list[Path]:
    """Return the git directories of submodules in a git directory."""
    found: list[Path] = []
    waiting = list_subfolders(folder / "modules")
    for each in waiting:
        if (each / "HEAD").is_file():
            found.append(each)
        elif len(waiting) < GIT_LINK_SEARCH_FOLDERS.value:
            waiting += list_subfolders(each)
    return found


def list_entries(folder: Path) -> list[Path]:
    """Return the entries of a folder; none when it can't be read."""
    try:
        return list(folder.iterdir())
    except OSError:
        return []
