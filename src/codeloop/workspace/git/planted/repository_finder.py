"""Finds the repositories below a project: by one walk at first,
then in the folders that have changed.
"""

import os
import time
from collections import deque
from collections.abc import Iterable, Sequence
from contextlib import suppress
from math import inf
from pathlib import Path

from codeloop.kit.guarded_paths import fold_path
from codeloop.schema.bounds.sandbox import (
    GIT_SEARCH_FOLDERS,
    GIT_SEARCH_NEW_FOLDERS,
    GIT_SEARCH_TIME,
)
from codeloop.workspace.git.planted.entry_changes import EntryChanges
from codeloop.workspace.sandbox.paths.restricted_paths import FOLDERS_NOT_SEARCHED
from codeloop.workspace.watch.inotify import ENTRIES_MASK, FILES_MASK, FOLDER_BIT, InotifyWatch

_GIT_NAME = ".git"
_LAYOUT_NAMES = frozenset((_GIT_NAME, "head", "commondir", "objects", "refs"))
_WATCH_LIMIT_FILE = Path("/proc/sys/fs/inotify/max_user_watches")
# Two changes of a folder within this time may leave the same change time.
_CLOCK_TICK_NS = 50_000_000
# inotify watches are a limit for all programs of the user: editors and other tools need theirs.
_USABLE_SHARE_OF_WATCHES = 1 / 4


class RepositoryFinder:
    """Finds each `.git`, and each folder that git would take for a bare repository,
    below some folders.

    Folders are watched as far as the system allows; the change times of the others
    are compared at each `find`.
    """

    def __init__(self, roots: Sequence[Path]) -> None:
        self._roots = [str(root) for root in roots]
        # By folder: its subfolders that are searched, and the repositories found in it.
        self._subfolders: dict[str, set[str]] = {}
        self._repositories: dict[str, list[str]] = {}
        self._waiting: deque[str] = deque()
        # The change time and inode of each folder that is not watched.
        self._states: dict[str, tuple[int, int]] = {}
        self._watch: InotifyWatch | None = None
        # Watched folders that have changed since the last `find`, so far as that was looked at.
        self._changed: set[str] = set()
        # Those that had at the last `find`, with the repositories in whose watched
        # folders something had.
        self._touched: set[str] = set()
        # Watched folders of git directories, with the `.git` or bare repository for
        # which they are watched.
        self._git_folders: dict[str, Path] = {}
        self._has_started = False
        # The folders that this `find` may still search, and those that may still be watched.
        self._remaining_folders = 0
        self._spare_watches = 0
        self.entries = EntryChanges()
        """What has appeared and gone in watched folders; whoever looks at it clears it."""
        # A folder that was not searched, because there were too many; "" when all were.
        self.unsearched_folder = ""

    def find(self) -> set[Path]:
        """Return every `.git` and every bare repository that is known now.

        Of a large project, one call searches the changed folders first, then those that no call has
        searched yet, the nearest to its top first. After a loss of events, which may concern any
        folder, all is searched again.
        """
        self.unsearched_folder = ""
        if not self._has_started or (self._watch is not None and self._watch.is_broken):
            self._start_over()
            changed = deque[str]()
        else:
            self.has_news()
            changed = deque(folder for folder in self._changed if folder in self._subfolders)
            changed += [
                folder for folder, state in self._states.items() if _read_state(folder) != state
            ]
        self._touched = self._changed | {
            str(self._git_folders[each]) for each in self._changed & self._git_folders.keys()
        }
        self._changed.clear()
        self._remaining_folders = GIT_SEARCH_NEW_FOLDERS.value
        # Changed folders are searched without a time limit,
        # since a command may have made a repository there.
        self._search(changed, has_started=True)
        self._waiting.extendleft(reversed(changed))
        self._search(self._waiting, GIT_SEARCH_TIME.seconds)
        self.unsearched_folder = self.unsearched_folder or next(iter(self._waiting), "")
        return {
            Path(path)
            for paths in self._repositories.values()
            for path in paths
            if os.path.lexists(path)
        }

    @property
    def is_unchanged(self) -> bool:
        """Whether nothing that `find` would have to look at has happened in the watched
        folders since it last began.
        """
        return self._watch is not None and not self.has_news() and not self.entries.ignore_files

    @property
    def is_complete(self) -> bool:
        """Whether every folder has been searched, and is watched."""
        return self._watch is not None and not self._waiting and not self._states

    def fileno(self) -> int:
        """Return the descriptor that is readable when something has changed;
        -1 where nothing is watched.
        """
        return self._watch.fileno() if self._watch is not None else -1

    def has_news(self) -> bool:
        """Return whether a repository may have been made,
        or one that `watch_repository` watches was changed.

        Most changes of files show neither, which is told without looking at the disk.
        """
        if self._watch is None:
            return False
        for folder, mask, name in self._watch.read_events():
            if folder not in self._git_folders:
                self.entries.note_event(folder, name, mask)
            is_layout = mask & FOLDER_BIT or not name or fold_path(name) in _LAYOUT_NAMES
            if is_layout or folder in self._git_folders:
                self._changed.add(folder)
        return bool(self._changed) or self._watch.is_broken

    def watch_repository(self, entry: Path, folders: Iterable[str]) -> None:
        """Watch folders of a git directory, too, so far as the system allows.
        `entry`: see `is_touched`.
        """
        for folder in folders:
            if self._watch is None or not self._spare_watches:
                return
            self._spare_watches -= folder not in self._git_folders
            with suppress(OSError):
                # Also a known one: there may be another of the same name now.
                self._watch.add(folder, folder, FILES_MASK)
                self._git_folders[folder] = entry

    def is_touched(self, entry: Path) -> bool:
        """Return whether a `.git` or bare repository may have changed between the
        last two calls of `find`.
        """
        return not self._touched.isdisjoint((str(entry), str(entry.parent)))

    def close(self) -> None:
        """Stop watching."""
        if self._watch is not None:
            self._watch.close()
            self._watch = None

    def _start_over(self) -> None:
        self.close()
        self._has_started = True
        self._subfolders.clear()
        self._repositories.clear()
        self._states.clear()
        self._changed.clear()
        self._git_folders.clear()
        self.entries.forget_names()
        self._waiting = deque(self._roots)
        self._spare_watches = count_available_watches()
        try:
            self._watch = InotifyWatch(ENTRIES_MASK)
        except OSError:
            self._watch = None  # then the change times are compared

    def _search(
        self, waiting: deque[str], seconds: float = inf, *, has_started: bool = False
    ) -> None:
        """Search these folders and those that are found in them,
        until the count of folders or the time is used up.

        `seconds`: of processor time, which others on a busy machine don't take away. `has_started`:
        a folder that is not known was made since the search began.
        """
        end = time.thread_time() + seconds
        while waiting and self._remaining_folders and time.thread_time() < end:
            folder = waiting.popleft()
            self._remaining_folders -= 1
            # Watched before it is read: a change in between is then noticed next time.
            self._watch_folder(folder)
            try:
                with os.scandir(folder) as entries:
                    rows = [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries]
            except OSError:
                # The folder is gone.
                for by_folder in (self._subfolders, self._repositories, self._states):
                    by_folder.pop(folder, None)
                self.entries.note_names(folder, set())
                continue
            names = {name for name, _ in rows}
            entries_found = [f"{folder}/{name}" for name in names if fold_path(name) == _GIT_NAME]
            subfolders = {
                f"{folder}/{name}"
                for name, is_folder in rows
                if is_folder and name not in FOLDERS_NOT_SEARCHED
            }
            subfolders -= set(entries_found)
            self.entries.note_names(folder, {name for name, is_folder in rows if not is_folder})
            if has_started and folder not in self._subfolders and ".gitignore" in names:
                # It was there before the folder was watched, so no event told of it.
                self.entries.ignore_files.add(f"{folder}/.gitignore")
            self._repositories[folder] = (
                [folder, *entries_found] if has_git_layout(names) else entries_found
            )
            new = sorted(subfolders - self._subfolders.get(folder, set()))
            self._subfolders[folder] = subfolders
            acceptable = max(GIT_SEARCH_FOLDERS.value - len(self._subfolders) - len(waiting), 0)
            waiting += new[:acceptable]
            if len(new) > acceptable:
                self.unsearched_folder = self.unsearched_folder or new[acceptable]

    def _watch_folder(self, folder: str) -> None:
        """Watch a folder, or remember its state where it can't be watched."""
        if self._watch is not None and self._watch.has(folder):
            return
        if self._watch is not None and self._spare_watches:
            self._spare_watches -= 1
            try:
                self._watch.add(folder, folder)
            except OSError:
                self._spare_watches = 0
            else:
                self._states.pop(folder, None)
                return
        state = _read_state(folder)
        # A second change within the same tick would not show,
        # so a folder that young is searched again next time.
        self._states[folder] = state if time.time_ns() - state[0] > _CLOCK_TICK_NS else (0, 0)


def count_available_watches() -> int:
    """Return how many folders a finder may watch; 0 where there is no inotify."""
    try:
        return int(int(_WATCH_LIMIT_FILE.read_text(encoding="ascii")) * _USABLE_SHARE_OF_WATCHES)
    except (OSError, ValueError):
        return 0


def has_git_layout(names: set[str]) -> bool:
    """Return whether a folder with these names is a git directory,
    of its own or of another work tree.
    """
    return "HEAD" in names and ("commondir" in names or {"objects", "refs"} <= names)


def _read_state(folder: str) -> tuple[int, int]:
    """Return the change time of a folder, in ns, and its inode; (-1, 0) for a missing one."""
    try:
        info = os.lstat(folder)
    except OSError:
        return -1, 0
    return info.st_ctime_ns, info.st_ino
