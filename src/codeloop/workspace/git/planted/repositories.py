"""Keeps apart the repositories of the user and those that sandboxed commands made,
before and after each command.

The sandbox asks here which paths in repositories to protect. What commands planted is moved away by
`repository_cleaner.py`.
"""

import re
import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import NamedTuple

from codeloop.kit.small_files import read_start_or_empty
from codeloop.workspace.files.path_states import PathStates
from codeloop.workspace.git.planted.change_times import (
    CommandRuns,
    read_full_stamp,
    read_program_stamp,
)
from codeloop.workspace.git.planted.entry_changes import describe_lost
from codeloop.workspace.git.planted.known_repositories import KnownRepositories
from codeloop.workspace.git.planted.layout import (
    MAX_LINES_BYTES,
    list_all_git_folders,
    list_entry_folders,
    list_line_files,
    list_project_git_folders,
    resolve_git_folder,
)
from codeloop.workspace.git.planted.links import find_outward_links
from codeloop.workspace.git.planted.move_notes import describe_moves, describe_self_ignoring
from codeloop.workspace.git.planted.repository_cleaner import RepositoryCleaner
from codeloop.workspace.git.planted.repository_finder import RepositoryFinder

_MAX_EARLY_CLEANINGS = 3


class _StateBeforeCommand(NamedTuple):
    """The state of the user's repositories before a command.

    `links`: the links out of git directories; `scanned_folders`: the folders in which they were
    looked for, None where those were too many; `executed_lines`: the lines that git runs, by file;
    `unprotected_stamps`: the stamps of repositories that the kernel does not protect.
    """

    links: frozenset[Path]
    scanned_folders: frozenset[str] | None
    executed_lines: dict[Path, set[bytes]]
    unprotected_stamps: dict[Path, tuple[int, ...]]


class ProjectRepositories:
    """The repositories of a project: its own, others that the user has in it,
    and those that commands add.

    Call `begin_command` before each command and `end_command` after it.
    `roots`: the folders that commands may write;
    `quarantine`: the folder that planted files are moved to;
    `environment`: the user's, for git's configuration.
    """

    def __init__(
        self, roots: Sequence[Path], quarantine: Path, environment: Mapping[str, str]
    ) -> None:
        self._roots = roots
        self._quarantine = quarantine
        self._environment = environment
        self._finder = RepositoryFinder(roots)
        self._known = KnownRepositories(roots, self._finder, environment)
        self._state_before = _StateBeforeCommand(
            links=frozenset(), scanned_folders=None, executed_lines={}, unprotected_stamps={}
        )
        # Whether there are git directories that commands write to, which have to be read each time.
        self._has_open_folders = True
        # What was moved away while commands ran, and how often something was in each
        # repository that they made.
        self._early_moves: dict[Path, Path | None] = {}
        self._early_counts = Counter[Path]()
        # Of files that other names in folders without a watch may lead to.
        self._states: PathStates | None = None
        # Commands of several sessions begin and end in threads of their own.
        self._lock = threading.Lock()
        self._runs = CommandRuns()
        self.on_running: Callable[[int], None] | None = None
        """Called with `running_since` when the first command begins,
        and when the last one has ended.
        """

    def cover(self, private_folders: Mapping[Path, Path]) -> None:
        """Take note of git directories in the place of which commands see others: nothing
        in them has to be checked.
        """
        if self._known.cover(private_folders):
            self._has_open_folders = self._known.has_open_folders

    def list_protected_paths(self) -> list[Path]:
        """Return the paths in the user's repositories that no command may change,
        as far as they are known now.
        """
        return self._known.list_protected_paths()

    def list_nested_folders(self) -> tuple[Path, ...]:
        """Return the git directories of the user's repositories below the project in the place of
        which commands see private ones.
        """
        return self._known.list_nested_folders()

    @property
    def is_unchanged(self) -> bool:
        """Whether nothing has changed since the state was last recorded.

        False as long as there are repositories of commands,
        since those are checked after each command.
        """
        needs_check = (
            self._known.of_commands
            or self._early_counts
            or self._has_open_folders
            or self._known.has_unwatched
        )
        is_known = self._states is not None and self._states.are_unchanged()
        return not needs_check and is_known and self._finder.is_unchanged

    def require_check(self) -> None:
        """Have the next `end_command` look through everything: an index names repositories
        that were not watched.
        """
        self._states = None

    def try_begin_command(self) -> bool:
        """Do `begin_command` unless something has changed; return whether it is done.
        See `_record_if_unchanged`.
        """
        return self._record_if_unchanged(1)

    def try_end_command(self) -> bool:
        """Do `end_command` unless something has changed; return whether it is done.
        See `_record_if_unchanged`.
        """
        return self._record_if_unchanged(-1)

    def try_record_state(self) -> bool:
        """Do `record_state` unless something has changed; return whether it is done.
        See `_record_if_unchanged`.
        """
        return self._record_if_unchanged(0)

    def _record_if_unchanged(self, difference: int) -> bool:
        """Record that a command begins (1) or has ended (-1), or neither (0),
        if nothing has changed.

        Never waits, and looks at the times of a few files only. Returns whether it is recorded.
        """
        # Another thread that holds the lock may be reading a large project,
        # and this one is the event loop's.
        if not self._lock.acquire(blocking=False):
            return False
        try:
            # A command may have made a repository in a folder that is not searched or watched yet.
            is_unchanged = self.is_unchanged and (difference >= 0 or self._finder.is_complete)
            if is_unchanged:
                self._record(difference)
            return is_unchanged
        finally:
            self._lock.release()

    def _record(self, difference: int) -> None:
        """Record that a command begins (1) or has ended (-1), or neither (0)."""
        was_running = bool(self._runs.running)
        if difference < 0:
            self._finder.entries.remember_made()
        if difference > 0 and not was_running:
            # What is gone by now the user has removed.
            self._finder.has_news()
            self._finder.entries.clear()
        self._runs.record(difference)
        if self.on_running is not None and bool(self._runs.running) != was_running:
            self.on_running(self._runs.running_since)

    def begin_command(self) -> None:
        """Record the state before a command: unless another runs,
        what is new since the last one is the user's.
        """
        with self._lock:
            self._record_state()
            self._record(1)

    def record_state(self) -> None:
        """Record which repositories there are, so that `list_protected_paths`
        includes the user's new ones.
        """
        with self._lock:
            self._record_state()

    def _record_state(self) -> None:
        """Record the state of all repositories, unless a command runs or nothing has changed."""
        if self._runs.running or self.is_unchanged:
            return
        # These the user has changed.
        self._finder.entries.clear()
        self._states = PathStates(str(root / ".gitmodules") for root in self._roots)
        self._known.update_owners(self._runs.may_have_made)
        folders = self._known.list_git_folders()
        self._has_open_folders = self._known.has_open_folders
        scans = [find_outward_links(folder) for folder in folders]
        scanned_folders = [folder for scan in scans for folder in scan.read_folders]
        self._state_before = _StateBeforeCommand(
            links=frozenset(link for scan in scans for link in scan.links),
            scanned_folders=None
            if any(scan.unread_folders for scan in scans)
            else frozenset(scanned_folders),
            executed_lines={
                path: set(re.findall(pattern, text))
                for path, pattern in list_line_files(folders, self._roots)
                if (text := read_start_or_empty(path, MAX_LINES_BYTES))
            },
            unprotected_stamps={
                entry: read_program_stamp(entry) for entry in self._known.split_nested()[1]
            },
        )

    def end_command(self) -> str:
        """Check what was created while commands ran. Return a text on what was moved
        away or not searched, or "".
        """
        with self._lock:
            self._record(-1)
            if self.is_unchanged and self._finder.is_complete:
                return ""
            moves = self._early_moves | self._clean_changed()
            self._early_moves = {}
            self._early_counts.clear()
            ignored = describe_self_ignoring(self._finder.entries.ignore_files, self._roots)
            self._finder.entries.ignore_files.clear()
            return f"{describe_moves(moves, self._finder.unsearched_folder, self._roots)} {ignored}".strip()

    def end_interrupted(self, since: int, user_repositories: AbstractSet[Path]) -> str:
        """Do `end_command` for commands of an ended process that ran since a time (ns)."""
        with self._lock:
            self._known.user = {*user_repositories}
            self._runs.resume(since)
        return self.end_command()

    @property
    def user_repositories(self) -> frozenset[Path]:
        """The repositories that are the user's."""
        return frozenset(self._known.user)

    @property
    def running_since(self) -> int:
        """When the first of the commands that run began, in ns since the epoch; 0: none runs."""
        return self._runs.running_since

    def fileno(self) -> int:
        """Return the descriptor that is readable when something has changed in the project;
        -1: nothing tells that.
        """
        return self._finder.fileno()

    def has_news(self) -> bool:
        """Return whether `clean_early` may have something to do. Never waits;
        True also while another thread works.
        """
        if not self._lock.acquire(blocking=False):
            return True
        try:
            return self._finder.has_news()
        finally:
            self._lock.release()

    def clean_early(self) -> bool:
        """Look through the repositories that commands make while they still run: what git
        would run there goes at once.

        `end_command` tells what was moved away, and looks through them once more.
        Returns whether one has changed.
        """
        with self._lock:
            if not self._runs.running:
                return False
            is_changed = False
            # What has changed is not news any more at the end of the command,
            # which looks at all of it once more.
            self.require_check()
            cleaner = RepositoryCleaner(self._roots, self._quarantine, self._known.user)
            for entry in sorted(self._finder.find() - self._known.user):
                is_known = entry in self._early_counts and not self._finder.is_touched(entry)
                if is_known or not self._runs.may_have_made(entry):
                    continue
                is_changed = True
                # Watched before they are read, so that what comes between is noticed.
                self._finder.watch_repository(entry, map(str, list_entry_folders(entry)))
                moved = len(cleaner.moves)
                cleaner.clean_repository(entry)
                self._early_counts[entry] += len(cleaner.moves) > moved
                if self._early_counts[entry] > _MAX_EARLY_CLEANINGS:
                    # A program that writes it again each time would have it there most of the time.
                    cleaner.move([entry])
            self._early_moves |= cleaner.moves
            return is_changed

    @property
    def has_losses(self) -> bool:
        """Whether commands may have removed or changed what `describe_lost` describes.
        Never waits.
        """
        if not self._lock.acquire(blocking=False):
            return True
        try:
            self._finder.has_news()
            return self._finder.entries.has_losses
        finally:
            self._lock.release()

    def describe_lost(self, is_kept: Callable[[Path], bool]) -> str:
        """Return a text on what commands removed or changed since the last call and
        undo can't bring back; "".

        Git ignores it, so no snapshot has it. `is_kept` tells whether a file can be
        brought back all the same.

        Call it before `end_command`, which may look at the disk for long.
        """
        with self._lock:
            self._finder.has_news()
            written = self._finder.entries.take_written()
            removed = self._finder.entries.take_removed()
            # What a command has made may go with it.
            removed = {
                path: removed[path] for path in removed if Path(path) not in self._known.of_commands
            }
        removed = {
            path: is_folder for path, is_folder in removed.items() if not is_kept(Path(path))
        }
        written = {path for path in written if not is_kept(Path(path))}
        return (
            describe_lost(removed, written, self._roots, self._environment)
            if removed or written
            else ""
        )

    def take_early_warning(self) -> str:
        """Return a text on what was moved away since the last call while commands run,
        for user and model; "".

        Never waits: what another thread finds is told by the next call.
        """
        if not self._lock.acquire(blocking=False):
            return ""
        try:
            moves, self._early_moves = self._early_moves, {}
        finally:
            self._lock.release()
        return describe_moves(moves, "", self._roots)

    def _clean_changed(self) -> dict[Path, Path | None]:
        """Look through everything that a command may have changed.
        Return the moves: old path -> new path or None.
        """
        new = self._known.list_all() - self._known.user
        older = {
            each
            for each in new - self._known.of_commands.keys()
            if not self._runs.may_have_made(each)
        }
        self._known.user |= older
        cleaner = RepositoryCleaner(
            self._roots,
            self._quarantine,
            self._known.user,
            self._state_before.executed_lines,
        )
        for entry in sorted(new - older):
            if self._known.of_commands.get(entry) != read_full_stamp(entry):
                cleaner.clean_repository(entry)
            else:
                # A new link in `refs`, for example, changes no time in the stamp.
                folders = list_all_git_folders(entry)
                cleaner.move(
                    link for folder in folders for link in find_outward_links(folder).links
                )
            cleaner.move(self._known.list_configured_copies(entry))
            self._known.of_commands.setdefault(entry, ())
        for entry, stamp in self._state_before.unprotected_stamps.items():
            if (
                read_program_stamp(entry) != stamp
                and (folder := resolve_git_folder(entry)) is not None
            ):
                cleaner.clean_folder(folder)
        if not self._runs.running:
            # Before the next command the kernel protects it;
            # one that runs, and has made it, may still write there.
            for folder in list_project_git_folders(self._roots):
                self._known.of_commands.pop(folder, None)
        for folder in self._known.list_git_folders():
            scan = find_outward_links(folder, self._state_before.scanned_folders or ())
            cleaner.move(link for link in scan.links if link not in self._state_before.links)
            cleaner.move(
                scan.unread_folders if self._state_before.scanned_folders is not None else ()
            )
        for path, pattern in list_line_files(self._known.list_git_folders(), self._roots):
            cleaner.clean_lines(path, pattern)
        return cleaner.moves

    def close(self) -> None:
        """Stop watching."""
        with self._lock:
            self._finder.close()
