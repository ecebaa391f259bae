"""When commands ran, and when the files changed that decide what git runs and follows in a repository."""

import os
import sys
import time
from pathlib import Path

from codeloop.kit.guarded_paths import fold_path
from codeloop.schema.bounds.sandbox import GIT_SEARCH_LINKS
from codeloop.workspace.git.planted.executed_lines import EXECUTED_LINES
from codeloop.workspace.git.planted.layout import (
    GIT_NAMES,
    WORK_TREE_NAMES,
    list_folders,
    list_work_trees,
    read_pointer,
)

_MAX_RUNS = 1_000
_COARSE_CLOCK = 5
"""CLOCK_REALTIME_COARSE, some ms behind the exact clock. Linux takes the times of files from either."""


class CommandRuns:
    """The times at which commands ran, which tell whether they may have made a file that is found later.

    They are compared with the change times (ctime) of files, which no command can set.
    """

    def __init__(self) -> None:
        self.running = 0
        self._times: list[tuple[int, int]] = []

    def count(self, more: int) -> None:
        """Count one more (1), one less (-1) or the same number (0) of commands that run."""
        now = time.time_ns()
        if self.running:
            self._times[-1] = (self._times[-1][0], now)
        elif more:
            self._times.append((_read_coarse_clock(), now))
        if len(self._times) > _MAX_RUNS:  # the oldest two become one: rather too much is theirs than too little
            self._times[:2] = [(self._times[0][0], self._times[1][1])]
        self.running += more

    def may_have_made(self, entry: Path) -> bool:
        """Return whether a command may have made a repository, or changed or moved what decides what git runs there."""

        def is_in_run(path: Path) -> bool:
            return self._include(read_change_time(path))

        if any(map(self._include, read_deciding_times(entry))):
            return True
        parts = (
            [entry.parent]
            if fold_path(entry.name) == ".git"
            else [entry / name for name in ("HEAD", "objects", "refs")]
        )
        return is_in_run(entry) and any(map(is_in_run, parts))

    def _include(self, changed: int) -> bool:
        if self.running and changed >= self._times[-1][0]:
            return True
        return any(began <= changed <= ended for began, ended in self._times)


def _read_coarse_clock() -> int:
    return time.clock_gettime_ns(_COARSE_CLOCK) if sys.platform == "linux" else time.time_ns()


def find_git_folder(entry: Path) -> Path | None:
    """Return the git directory that a `.git` or a bare repository is, or leads to."""
    return read_pointer(entry, "gitdir:") if entry.is_file() else Path(os.path.realpath(entry))


def read_deciding_times(entry: Path) -> tuple[int, ...]:
    """Return the change times of what decides which programs git runs in a repository of the user's."""
    folder = find_git_folder(entry)
    if folder is None:
        return (read_change_time(entry),)
    watched = [entry] if entry.is_file() else []
    watched += [folder / name for name in (*GIT_NAMES, *WORK_TREE_NAMES, *EXECUTED_LINES)]
    return tuple(read_change_time(path) for path in (*watched, *list_entries(folder / "hooks")))


def read_stamp(entry: Path) -> tuple[int, ...]:
    """Return the change times of the files of a `.git` or bare repository that decide what git runs and follows."""
    watched = [entry]
    for folder in list_all_git_folders(entry):
        watched += [folder / name for name in (*GIT_NAMES, *WORK_TREE_NAMES, *EXECUTED_LINES)]
        watched += [folder, folder / "info", folder / "objects", *list_entries(folder / "hooks")]
    return tuple(read_change_time(path) for path in watched)


def list_all_git_folders(entry: Path) -> tuple[Path, ...]:
    """Return the git directory that a `.git` or a bare repository is, and those in it."""
    top = read_pointer(entry, "gitdir:") if entry.is_file() else entry
    return () if top is None else (top, *list_work_trees(top), *list_modules(top))


def read_change_time(path: Path) -> int:
    """Return when a file was changed, renamed or linked, in ns; 0 for a missing one."""
    try:
        return path.lstat().st_ctime_ns
    except OSError:
        return 0


def list_modules(folder: Path) -> list[Path]:
    """Return the git directories of submodules in a git directory."""
    found: list[Path] = []
    waiting = list_folders(folder / "modules")
    for each in waiting:
        if (each / "HEAD").is_file():
            found.append(each)
        elif len(waiting) < GIT_SEARCH_LINKS.value:
            waiting += list_folders(each)
    return found


def list_entries(folder: Path) -> list[Path]:
    """Return the entries of a folder; none when it can't be read."""
    try:
        return list(folder.iterdir())
    except OSError:
        return []
