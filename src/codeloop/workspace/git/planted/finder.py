"""Finds the repositories below a project: one walk, then only the folders that have changed."""

import os
import time
from collections import deque
from collections.abc import Sequence
from math import inf
from pathlib import Path

from codeloop.kit.guarded_paths import fold_path
from codeloop.schema.bounds.sandbox import GIT_SEARCH_FOLDERS, GIT_SEARCH_NEW_FOLDERS, GIT_SEARCH_TIME
from codeloop.workspace.sandbox.locations import FOLDERS_NOT_SEARCHED
from codeloop.workspace.watch.inotify import Watch

_GIT = ".git"
_MAX_USER_WATCHES = Path("/proc/sys/fs/inotify/max_user_watches")
_CLOCK_TICK_NS = 50_000_000
"""Two changes of a folder within this time may leave the same change time."""


class RepositoryFinder:
    """Finds each `.git`, and each folder that git would take for a bare repository, below some folders.

    Folders are watched as far as the system allows; the change times of the others are compared at each look.
    """

    def __init__(self, roots: Sequence[Path]) -> None:
        self._roots = [str(root) for root in roots]
        self._below: dict[str, set[str]] = {}
        self._repositories: dict[str, list[str]] = {}
        self._waiting: deque[str] = deque()
        self._states: dict[str, tuple[int, int]] = {}
        self._watch: Watch | None = None
        self._has_begun = False
        self._room = 0
        self.unsearched = ""
        """A folder that was not searched, because there were too many; "" when all were."""

    def look(self) -> set[Path]:
        """Return every `.git` and every bare repository that is known now.

        Of a large project, one look searches the changed folders first, then those that no look has searched yet, the
        nearest to its top first. When too many changes were lost to tell where, all is searched again.
        """
        self.unsearched = ""
        if not self._has_begun or (self._watch is not None and self._watch.broken):
            self._begin()
            changed = deque[str]()
        else:
            watched = self._watch.take_changed_folders() if self._watch is not None else set[str]()
            states = self._states.items()
            changed = deque(folder for folder in watched if folder in self._below)
            changed += [folder for folder, state in states if _read_state(folder) != state]
        self._room = GIT_SEARCH_NEW_FOLDERS.value
        self._search(changed)
        self._waiting.extendleft(reversed(changed))
        self._search(self._waiting, GIT_SEARCH_TIME.seconds)
        self.unsearched = self.unsearched or next(iter(self._waiting), "")
        return {Path(path) for paths in self._repositories.values() for path in paths if os.path.lexists(path)}

    @property
    def is_same(self) -> bool:
        """Whether nothing has happened in the watched folders since the last look began."""
        return self._watch is not None and not self._watch.broken and not self._watch.has_events

    @property
    def is_whole(self) -> bool:
        """Whether every folder has been searched, and is watched."""
        return self._watch is not None and not self._waiting and not self._states

    def close(self) -> None:
        """Stop watching."""
        if self._watch is not None:
            self._watch.close()
            self._watch = None

    def _begin(self) -> None:
        self.close()
        self._has_begun = True
        self._below.clear()
        self._repositories.clear()
        self._states.clear()
        self._waiting = deque(self._roots)
        self._spare = count_watches()
        try:
            self._watch = Watch()
        except OSError:
            self._watch = None  # then the change times are compared

    def _search(self, waiting: deque[str], seconds: float = inf) -> None:
        """Search these folders and those that are found in them, as far as there is room and time."""
        until = time.monotonic() + seconds
        while waiting and self._room and time.monotonic() < until:
            folder = waiting.popleft()
            self._room -= 1
            self._add(folder)  # before it is read: a change in between is then noticed next time
            try:
                with os.scandir(folder) as entries:
                    rows = [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries]
            except OSError:
                for known in (self._below, self._repositories, self._states):
                    known.pop(folder, None)
                continue
            names = {name for name, _ in rows}
            found = [f"{folder}/{name}" for name in names if fold_path(name) == _GIT]
            below = {f"{folder}/{name}" for name, is_folder in rows if is_folder and name not in FOLDERS_NOT_SEARCHED}
            below -= set(found)
            self._repositories[folder] = [folder, *found] if is_bare(names) else found
            new = sorted(below - self._below.get(folder, set()))
            self._below[folder] = below
            room = max(GIT_SEARCH_FOLDERS.value - len(self._below) - len(waiting), 0)
            waiting += new[:room]
            self.unsearched = self.unsearched or "".join(new[room : room + 1])

    def _add(self, folder: str) -> None:
        """Watch a folder, or remember its state, before it is read."""
        if self._watch is not None and self._watch.has(folder):
            return
        if self._watch is not None and self._spare:
            self._spare -= 1
            try:
                self._watch.add(folder, folder)
            except OSError:
                self._spare = 0
            else:
                self._states.pop(folder, None)
                return
        state = _read_state(folder)
        # A second change within the same tick would not show, so a folder that young is searched again next time.
        self._states[folder] = state if time.time_ns() - state[0] > _CLOCK_TICK_NS else (0, 0)


def count_watches() -> int:
    """Return how many folders may be watched: a quarter of what the user may watch, the rest is for other programs."""
    try:
        return int(_MAX_USER_WATCHES.read_text(encoding="ascii")) // 4
    except (OSError, ValueError):
        return 0


def is_bare(names: set[str]) -> bool:
    """Return whether a folder with these names is a git directory, of its own or of another work tree."""
    return "HEAD" in names and ("commondir" in names or {"objects", "refs"} <= names)


def _read_state(folder: str) -> tuple[int, int]:
    """Return when a folder was changed, in ns, and its inode; a missing one has none."""
    try:
        info = os.lstat(folder)
    except OSError:
        return -1, 0
    return info.st_ctime_ns, info.st_ino
