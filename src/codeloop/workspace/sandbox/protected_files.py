"""Restores files that no sandboxed command may change, and moves away files that it may not create.

`workspace/process/` uses it around each command and each program in the sandbox of commands: the
kernel can't protect a path that does not exist yet,
and Landlock can't protect a file in a writable folder.
"""

import asyncio
import itertools
import os
import stat
from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from msgspec import Struct

from codeloop.kit.small_files import read_bounded
from codeloop.workspace.files.existing_paths import list_existing
from codeloop.workspace.git.planted.quarantine import move_away
from codeloop.workspace.git.planted.repositories import ProjectRepositories
from codeloop.workspace.sandbox.git_folders import GitFolders
from codeloop.workspace.sandbox.name_watch import NameWatch
from codeloop.workspace.sandbox.paths.linked_paths import is_below_any, list_outside
from codeloop.workspace.sandbox.sandbox import Sandbox

# The largest file whose content is remembered.
_MAX_BYTES = 1024 * 1024
# The most files that are remembered below one protected path.
_MAX_FILES = 500
# The most paths that a note names.
_PATHS_SHOWN = 3


class MovedFile(Struct, frozen=True):
    """A file or folder that appeared while a sandboxed command ran, and where it was moved to.

    The command may have made it, or the user meanwhile.
    """

    path: Path
    moved: Path

    def move_back(self) -> bool:
        """Move it back. Returns whether it is at its old path now."""
        if not os.path.lexists(self.path) and _has_no_link_above(self.path):
            with suppress(OSError):
                # Imported late: hardly a run puts a file back.
                import shutil

                shutil.move(self.moved, self.path)
        return not os.path.lexists(self.moved)


class _Content(NamedTuple):
    """A file's mode, as in `st_mode`, and its content; of a link, its target."""

    mode: int
    data: bytes


class SandboxWatch(NamedTuple):
    """What is looked for after a program in the sandbox, besides what its policy says.

    `expected`: files that may appear, since codeloop writes them or the user put them back; more
    may be added later. `find_denied` returns the files that rules deny to write: those that did not
    exist before are moved away.
    `keeps_ignored`: what it may remove of files that git ignores was kept for undo;
    `is_kept` tells so of one file.
    """

    expected: Collection[Path] = ()
    find_denied: Callable[[], Iterable[Path]] = tuple
    keeps_ignored: bool = False
    is_kept: Callable[[Path], bool] = lambda _: False


NO_WATCH = SandboxWatch()


class ProtectedFiles:
    """The state of a sandbox's protected files before a command.
    `folder`: the target of new files that are moved away.

    Where the sandbox can't protect the files, their contents are restored, too. `repositories`: the
    check of repositories that was started before the command; `warnings`: its results, for the
    model and the user. `git`: where the command's changes in git folders are carried over from.
    `names` tells what appears meanwhile. `watch`: see SandboxWatch. `is_lasting`: the program may
    run as long as the session, in which the user changes and replaces protected files:
    only new ones are moved away.
    """

    def __init__(
        self,
        sandbox: Sandbox,
        folder: Path,
        repositories: ProjectRepositories | None,
        git: GitFolders | None = None,
        names: NameWatch | None = None,
        *,
        watch: SandboxWatch = NO_WATCH,
        is_lasting: bool = False,
    ) -> None:
        self._git = git
        self._names = names
        policy, covered = sandbox.policy, sandbox.covered_folders
        remember_contents = sandbox.backend == "landlock"
        self.moved_files: list[MovedFile] = []
        self.warnings: list[str] = []
        self._repositories = repositories
        self._policy = policy
        self._watch = watch
        self._folder = folder
        self._absent = list_outside(policy.absent, covered)
        protected = () if is_lasting else policy.protected
        self._parents = {
            path: _identify_folder(path.parent) for path in list_outside(protected, covered)
        }
        self._writable_exceptions = tuple(
            path for path in policy.writable if is_below_any(path, policy.protected)
        )
        self._before = self._read_contents(protected) if remember_contents else {}
        self._protected = protected if remember_contents else ()

    def watch_names(self, on_change: Callable[[], object]) -> Callable[[], None]:
        """Call a function when a path that may not appear may have appeared.
        Returns what ends that.
        """
        if self._names is None or not self._absent:
            return lambda: None
        return self._names.start(self._list_watched_folders, on_change)

    def _list_watched_folders(self) -> set[str]:
        """Return the folders where paths that may not appear would, and those that have,
        as long as they are empty.
        """
        # Texts, not paths: there are some sixty, and each command asks twice.
        absent = [str(path) for path in self._absent]
        folders = {path.rpartition("/")[0] or "/" for path in absent}
        new = [path for path in list_existing(absent) if stat.S_ISDIR(_read_mode(path))]
        return folders | {top for path in new for top, _, _ in os.walk(path)}

    @property
    def _granted(self) -> tuple[Path, ...]:
        return (*self._policy.granted, *self._watch.expected)

    async def settle(self) -> list[str]:
        """Carry over what the program changed in git folders, and `restore`,
        in a thread unless it is quick.

        Returns notes as `restore`; notes on git are added to the warnings.
        """
        if self._git is not None:
            await self._git.carry()
            if self._git.has_waiting and self._repositories is not None:
                self._repositories.require_check()
        if (
            self._repositories is not None
            and not self._watch.keeps_ignored
            and self._repositories.has_losses
        ):
            lost = await asyncio.to_thread(self._repositories.describe_lost, self._watch.is_kept)
            self.warnings += [lost] if lost else []
        if self._repositories is not None and self._repositories.try_end_command():
            # None has changed, so there is nothing to look through.
            self._repositories = None
        has_work = self._repositories is not None or self._protected or self._granted
        is_quick = not has_work and self._watch.find_denied is tuple
        notes = self.restore() if is_quick else await asyncio.to_thread(self.restore)
        if self._git is not None:
            await self._git.carry(is_rest=True)
            self.warnings += self._git.take_notes()
        return notes

    def take_early_warning(self) -> str:
        """Return a text on what was moved away in repositories while the program runs; ""."""
        return self._repositories.take_early_warning() if self._repositories is not None else ""

    def restore(self) -> list[str]:
        """Restore changed files and move new ones away. Returns notes about it for the model."""
        notes: list[str] = []
        if self._repositories is not None:
            warning, self._repositories = self._repositories.end_command(), None
            self.warnings += [warning] if warning else []
        left = self.move_new_paths()
        known = (*self._policy.protected, *self._policy.absent, *self._policy.granted)
        for path in self._watch.find_denied():
            if is_below_any(path, known):
                continue
            if (moved_to := move_away(path, self._folder)) is not None:
                self.warnings.append(
                    f"{path} may not be written by a rule: it was moved to {moved_to}."
                )
        now = self._read_contents(self._protected)
        changed = [path for path, before in self._before.items() if now.get(path) != before]
        new_paths = sorted(now.keys() - self._before.keys())
        failed = [path for path in left if path not in changed and path not in new_paths]
        failed += [path for path in new_paths if not move_away(path, self._folder)]
        failed += [path for path in changed if not _restore_file(path, self._before[path])]
        restored = [path for path in (*changed, *new_paths) if path not in failed]
        if restored:
            paths_shown = ", ".join(map(str, restored[:_PATHS_SHOWN]))
            paths_shown += " ..." if len(restored) > _PATHS_SHOWN else ""
            notes.append(
                f"blocked: change of {paths_shown}, which is protected; it is as it was before."
            )
        if failed:
            paths_shown = ", ".join(map(str, failed[:_PATHS_SHOWN]))
            advice = "look at it before anything runs in this repository."
            notes.append(f"{paths_shown} could not be put back or moved away: {advice}")
        return notes

    def move_new_files(self) -> None:
        """Do `move_new_paths` while the program runs, but for folders that hold no file yet.

        They decide nothing, and who makes files in them, the user perhaps, would find them gone.
        """
        self.move_new_paths(_holds_file)

    def move_new_paths(self, is_due: Callable[[Path], bool] = lambda _: True) -> list[Path]:
        """Move away what has appeared at paths that may not be created.
        Returns those that could not be moved.
        """
        left: list[Path] = []
        for path in filter(is_due, self._list_new_paths()):
            moved_to = move_away(path, self._folder)
            if moved_to is not None:
                self.moved_files.append(MovedFile(path, moved_to))
            elif os.path.lexists(path):
                left.append(path)
        return left

    def _list_new_paths(self) -> list[Path]:
        """Return the paths that were absent and exist now;
        of a folder with granted entries, the other entries.
        """
        # A protected file that a command moved with its folder is still protected, and the file
        # that the command put at the old path counts as new.
        replaced = (
            path
            for path, parent in self._parents.items()
            if _identify_folder(path.parent) != parent
        )
        existing = map(Path, list_existing(map(str, (*self._absent, *replaced))))
        paths = [path for path in existing if path not in self._granted]
        holding_grants = [
            path for path in paths if any(each.is_relative_to(path) for each in self._granted)
        ]
        entries = [
            Path(top, name)
            for path in holding_grants
            for top, _, names in os.walk(path)
            for name in names
        ]
        new_entries = [path for path in entries if not any(map(path.is_relative_to, self._granted))]
        return [*(path for path in paths if path not in holding_grants), *new_entries]

    def _read_contents(self, paths: tuple[Path, ...]) -> dict[Path, _Content]:
        """Return the contents of the files at or below the paths,
        except those that the policy makes writable.
        """
        contents = _read_contents(paths)
        return {
            path: content
            for path, content in contents.items()
            if not any(map(path.is_relative_to, self._writable_exceptions))
        }


def _read_mode(path: str) -> int:
    """Return the mode of a path, as in `st_mode`, of a link its own;
    0: there is nothing, or it can't be looked at.
    """
    try:
        return os.lstat(path).st_mode
    except OSError:
        return 0


def _identify_folder(folder: Path) -> tuple[int, int]:
    """Return the device and inode of a folder; zeros for a missing one."""
    try:
        status = folder.stat()
    except OSError:
        return 0, 0
    return status.st_dev, status.st_ino


def _has_no_link_above(path: Path) -> bool:
    """Return whether no folder above a path is a link,
    through which another file would be changed.
    """
    return os.path.realpath(path.parent) == str(path.parent)


def _read_contents(paths: tuple[Path, ...]) -> dict[Path, _Content]:
    """Return the content of each file at or below the paths, without large files."""
    contents: dict[Path, _Content] = {}
    for start in paths:
        below = (Path(top) / name for top, _, names in os.walk(start) for name in names)
        for path in itertools.islice((start, *below), _MAX_FILES):
            try:
                status = path.lstat()
                if stat.S_ISLNK(status.st_mode):
                    contents[path] = _Content(status.st_mode, os.readlink(os.fsencode(path)))
                elif stat.S_ISREG(status.st_mode) and status.st_size <= _MAX_BYTES:
                    contents[path] = _Content(status.st_mode, read_bounded(path, _MAX_BYTES))
            except OSError:
                continue
    return contents


def _holds_file(path: Path) -> bool:
    """Return whether a path is not a folder, or one with something else than folders in it,
    such as a link.
    """
    if path.is_symlink() or not path.is_dir():
        return True
    return any(
        names or any(Path(top, each).is_symlink() for each in folders)
        for top, folders, names in os.walk(path)
    )


def _restore_file(path: Path, before: _Content) -> bool:
    """Restore the mode and content of a file. Returns whether that worked."""
    try:
        path.parent.mkdir(exist_ok=True)
        if not _has_no_link_above(path):
            return False
        # Never written in place: it may have become a link, or another name of some file.
        path.unlink(missing_ok=True)
        if stat.S_ISLNK(before.mode):
            path.symlink_to(os.fsdecode(before.data))
        else:
            path.write_bytes(before.data)
            path.chmod(stat.S_IMODE(before.mode))
    except OSError:
        return False
    return True
