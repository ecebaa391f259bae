"""Recognises files that commands may have made: compares the change times of git's
files with when commands ran.

A *stamp* holds the change times (ctime) of the files in a repository that decide
what git runs and follows.
"""

import sys
import time
from pathlib import Path

from codeloop.kit.guarded_paths import fold_path
from codeloop.workspace.git.planted.layout import (
    EXECUTED_LINES,
    GIT_FOLDER_ENTRIES,
    WORK_TREE_ENTRIES,
    list_all_git_folders,
    list_entries,
    resolve_git_folder,
)

_MAX_PERIODS = 1_000
# Python's `time` has no name for this clock, which is some ms behind the exact one. Linux takes the
# times of files from either.
_CLOCK_REALTIME_COARSE = 5


class CommandRuns:
    """The times at which commands ran, which show whether they may have made a
    file that is found later.

    `running`: the number of commands that run now.
    """

    # Compared with change times: a command can set the modification time of a file,
    # but not its change time.

    def __init__(self) -> None:
        self.running = 0
        # Start and end of each period in which at least one command ran, in ns.
        self._periods: list[tuple[int, int]] = []

    def record(self, difference: int) -> None:
        """Record that a command begins (1) or has ended (-1), or that as many run as before (0)."""
        now = time.time_ns()
        if self.running:
            self._periods[-1] = (self._periods[-1][0], now)
        elif difference:
            self._periods.append((_read_coarse_clock(), now))
        # The oldest two become one: it is safer to take a file of the user's for a command's
        # than the other way round.
        if len(self._periods) > _MAX_PERIODS:
            self._periods[:2] = [(self._periods[0][0], self._periods[1][1])]
        self.running += difference

    def resume(self, since: int) -> None:
        """Record that a command of an ended process runs since a time (ns)."""
        self._periods = [(since, time.time_ns())]
        self.running = 1

    @property
    def running_since(self) -> int:
        """When the first of the commands that run began, in ns since the epoch; 0: none runs."""
        return self._periods[-1][0] if self.running else 0

    def may_have_made(self, entry: Path) -> bool:
        """Return whether a command may have made a repository,
        or changed or moved what decides what git runs there.
        """

        def is_changed_in_run(path: Path) -> bool:
            return self._covers(read_change_time(path))

        if any(map(self._covers, read_program_stamp(entry))):
            return True
        # Each use of git changes its folder; making or moving a repository also changes the folder
        # around it, or the entries of a bare one.
        if fold_path(entry.name) == ".git":
            also_changed = [entry.parent]
        else:
            also_changed = [entry / name for name in ("HEAD", "objects", "refs")]
        return is_changed_in_run(entry) and any(map(is_changed_in_run, also_changed))

    def _covers(self, changed_at: int) -> bool:
        """Return whether a command ran at a time (ns since the epoch)."""
        if self.running and changed_at >= self._periods[-1][0]:
            return True
        return any(began <= changed_at <= ended for began, ended in self._periods)


def _read_coarse_clock() -> int:
    return (
        time.clock_gettime_ns(_CLOCK_REALTIME_COARSE) if sys.platform == "linux" else time.time_ns()
    )


def read_program_stamp(entry: Path) -> tuple[int, ...]:
    """Return the change times of what decides which programs git runs in a
    repository of the user's.
    """
    folder = resolve_git_folder(entry)
    if folder is None:
        return (read_change_time(entry),)
    paths = [entry] if entry.is_file() else []
    paths += [folder / name for name in (*GIT_FOLDER_ENTRIES, *WORK_TREE_ENTRIES, *EXECUTED_LINES)]
    return tuple(read_change_time(path) for path in (*paths, *list_entries(folder / "hooks")))


def read_full_stamp(entry: Path) -> tuple[int, ...]:
    """Return the change times of the files of a `.git` or bare repository that decide
    what git runs and follows.
    """
    paths = [entry]
    for folder in list_all_git_folders(entry):
        paths += [
            folder / name for name in (*GIT_FOLDER_ENTRIES, *WORK_TREE_ENTRIES, *EXECUTED_LINES)
        ]
        paths += [folder, folder / "info", folder / "objects", *list_entries(folder / "hooks")]
    return tuple(read_change_time(path) for path in paths)


def read_change_time(path: Path) -> int:
    """Return when a file was changed, renamed or linked, in ns; 0 for a missing one."""
    try:
        return path.lstat().st_ctime_ns
    except OSError:
        return 0
