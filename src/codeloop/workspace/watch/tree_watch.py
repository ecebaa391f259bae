"""Watches the files of a work tree by inotify, and returns added, changed and removed ones.

`project_watch.py` publishes them. inotify watches single folders,
so each folder of the tree is watched by itself.
"""

import asyncio
import errno
import os
import time
from itertools import islice
from pathlib import Path
from typing import Literal, NamedTuple

from msgspec import Struct

from codeloop.kit.paths import join_relative
from codeloop.schema.bounds.watch import WATCH_BURST, WATCH_FOLDERS, WATCH_THROTTLE
from codeloop.workspace.watch.ignored_files import IgnoredFiles
from codeloop.workspace.watch.inotify import COMPLETED_CHANGES_MASK, FOLDER_BIT, InotifyWatch

# Folders are scanned in slices of this length. After each one nothing is done for a multiple of its
# time, so that the scan of a large tree takes a sixth of one processor.
_SLICE_SECONDS = 0.004
_REST_FACTOR = 5
# The errors that end the watch of a whole tree: no other folder could be watched either.
_NO_MORE_WATCHES = frozenset((errno.ENOSPC, errno.ENOMEM))
# The key of the repository's folder, which is not part of the tree. No file name contains a NUL.
_GIT_KEY = "\0git"


class WatchedFileChange(Struct, frozen=True):
    """A change of a file."""

    path: Path
    kind: Literal["add", "change", "unlink"]


class RootFolderMissing(OSError):
    """The watched folder no longer exists."""


class TooManyFolders(OSError):
    """A work tree has more folders than WATCH_FOLDERS."""


class _DrainedEvents(NamedTuple):
    """What events are about: files (a folder and a name in it) and new folders, each once,
    and removed folders.
    """

    files: list[tuple[str, str]]
    new_folders: list[str]
    removed_folders: list[str]


class TreeWatch:
    """Watches the files of a work tree that are not ignored. Call `scan` first, then
    `wait_for_changes` repeatedly.

    `git`: the repository's folder, whose `HEAD` is watched, too.
    """

    def __init__(self, root: Path, git: Path | None, ignored: IgnoredFiles) -> None:
        """Raise OSError where nothing can be watched."""
        self._root = root
        self._git = git
        self._ignored = ignored
        self._watch = InotifyWatch(COMPLETED_CHANGES_MASK)
        # Folder -> the names of its files in one string, each between two NULs,
        # which takes less memory than a set.
        self._names: dict[str, bytes] = {}

    async def scan(self) -> None:
        """Watch all folders, some at a time. Raises RootFolderMissing, TooManyFolders,
        or OSError (no more watches).
        """
        self._check_root()
        if self._git is not None:
            self._watch.add(_GIT_KEY, str(self._git))
        await self._watch_below([""])

    async def wait_for_changes(self) -> list[WatchedFileChange]:
        """Wait until files have changed; return them, each once.
        Raises RootFolderMissing, or OSError as `scan`.
        """
        while True:
            await self._wait_for_events()
            await asyncio.sleep(WATCH_THROTTLE.seconds)
            drained = self._drain_events()
            self._check_root()
            if self._watch.is_broken:
                return await self._watch_again()
            changes = await self._list_changes(drained.files)
            for path in drained.removed_folders:
                self._names.pop(path, None)
                self._ignored.forget_folder(path)
            new_folders = await self._watch_below(await self._find_unignored(drained.new_folders))
            new_files = (
                WatchedFileChange(self._make_path(folder, name), "add")
                for folder in new_folders
                for name in _split_names(self._names[folder])
            )
            changes += islice(new_files, WATCH_BURST.value)
            if changes:
                return changes[: WATCH_BURST.value]

    def close(self) -> None:
        """Stop watching."""
        asyncio.get_running_loop().remove_reader(self._watch)
        self._watch.close()

    def _check_root(self) -> None:
        if not self._root.is_dir():
            raise self._make_root_gone()

    def _make_root_gone(self) -> RootFolderMissing:
        return RootFolderMissing(errno.ENOENT, "the folder is gone", str(self._root))

    async def _wait_for_events(self) -> None:
        loop = asyncio.get_running_loop()
        ready = loop.create_future()
        loop.add_reader(self._watch, ready.set_result, None)
        try:
            await ready
        finally:
            loop.remove_reader(self._watch)

    async def _list_changes(self, files: list[tuple[str, str]]) -> list[WatchedFileChange]:
        """Return the changes of files. Ignore patterns may make it slow, so it works in slices,
        in a thread.
        """
        changes: list[WatchedFileChange] = []
        waiting = files[::-1]

        def handle_some(until: float) -> None:
            while waiting and time.monotonic() < until:
                if change := self._make_change(*waiting.pop()):
                    changes.append(change)

        while waiting:
            began = time.monotonic()
            await asyncio.to_thread(handle_some, began + _SLICE_SECONDS)
            if waiting:
                await asyncio.sleep(time.monotonic() - began)
        return changes

    async def _find_unignored(self, folders: list[str]) -> list[str]:
        """Return the folders that are not ignored."""

        def is_watched(path: str) -> bool:
            folder, _, name = path.rpartition("/")
            return not self._ignored.is_ignored_entry(folder, name, is_folder=True)

        return [path for path in folders if await asyncio.to_thread(is_watched, path)]

    def _drain_events(self) -> _DrainedEvents:
        """Read the waiting events; return the files and folders that they name.
        Raises RootFolderMissing.
        """
        files: dict[tuple[str, str], None] = {}
        new_folders: dict[str, None] = {}
        removed_folders: list[str] = []
        for folder, mask, name in self._watch.read_events():
            # The root was deleted or moved. There may be another one by now.
            if not name and not folder:
                raise self._make_root_gone()
            if not name or (folder == _GIT_KEY and name != "HEAD"):
                continue
            if not mask & FOLDER_BIT:
                files[folder, name] = None
                continue
            path = join_relative(folder, name)
            if _is_folder(self._root / path):
                if path not in self._names:
                    new_folders[path] = None
            else:
                removed_folders.append(path)
        return _DrainedEvents(list(files), list(new_folders), removed_folders)

    def _make_change(self, folder: str, name: str) -> WatchedFileChange | None:
        """Return the change of a file that an event is about, and record it in the names;
        None: nothing to report.
        """
        path = self._make_path(folder, name)
        if folder == _GIT_KEY:
            return WatchedFileChange(path, "change")
        names = self._names.get(folder, b"\0")
        delimited_name = b"\0" + os.fsencode(name) + b"\0"
        was_there, is_there = delimited_name in names, os.path.lexists(path)
        if was_there and is_there:
            return WatchedFileChange(path, "change")
        if was_there:
            self._names[folder] = names.replace(delimited_name, b"\0")
            return WatchedFileChange(path, "unlink")
        if not is_there or self._ignored.is_ignored_entry(folder, name, is_folder=False):
            return None
        self._names[folder] = names + delimited_name[1:]
        return WatchedFileChange(path, "add")

    def _make_path(self, folder: str, name: str) -> Path:
        return (
            self._git / name
            if folder == _GIT_KEY and self._git is not None
            else self._root / folder / name
        )

    async def _watch_again(self) -> list[WatchedFileChange]:
        """Watch everything anew after lost events or a moved folder. Returns the differences."""
        before, self._names = self._names, {}
        self._watch.close()
        self._watch = InotifyWatch(COMPLETED_CHANGES_MASK)
        await self.scan()
        changes: list[WatchedFileChange] = []
        for folder in before.keys() | self._names.keys():
            old, new = before.get(folder, b""), self._names.get(folder, b"")
            if old != new:
                old_names, new_names = set(_split_names(old)), set(_split_names(new))
                removed, added = old_names - new_names, new_names - old_names
                changes += [
                    WatchedFileChange(self._make_path(folder, name), "unlink") for name in removed
                ]
                changes += [
                    WatchedFileChange(self._make_path(folder, name), "add") for name in added
                ]
        return changes[: WATCH_BURST.value]

    async def _watch_below(self, folders: list[str]) -> list[str]:
        """Watch folders and all folders below them, some at a time. Returns the watched folders."""
        watched_folders: list[str] = []
        while folders:
            began = time.monotonic()
            await asyncio.to_thread(
                self._watch_some, folders, watched_folders, began + _SLICE_SECONDS
            )
            if folders:
                await asyncio.sleep((time.monotonic() - began) * _REST_FACTOR)
        return watched_folders

    def _watch_some(self, folders: list[str], watched_folders: list[str], until: float) -> None:
        """Watch some of the folders, and move them to `watched_folders`;
        add their subfolders to `folders`. Blocks.
        """
        while folders and time.monotonic() < until:
            if len(self._names) >= WATCH_FOLDERS.value:
                raise TooManyFolders
            folder = folders.pop()
            path = str(self._root / folder) if folder else str(self._root)
            try:
                self._watch.add(folder, path)
            except OSError as error:
                if not folder or error.errno in _NO_MORE_WATCHES:
                    raise
                # An error of this folder alone, such as one of a network file system,
                # leaves the others watched.
            try:
                with os.scandir(path) as directory_entries:
                    entries = [
                        (entry.name, entry.is_dir(follow_symlinks=False))
                        for entry in directory_entries
                    ]
            except OSError:
                continue
            files = [name for name, is_folder in entries if not is_folder]
            self._ignored.read_folder(folder, files)
            files_watched = [
                name
                for name in files
                if not self._ignored.is_ignored_entry(folder, name, is_folder=False)
            ]
            self._names[folder] = os.fsencode(
                "\0".join(("", *files_watched, "")) if files_watched else "\0"
            )
            watched_folders.append(folder)
            for name, is_folder in entries:
                if is_folder and not self._ignored.is_ignored_entry(folder, name, is_folder=True):
                    folders.append(join_relative(folder, name))


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except OSError:
        return False  # the path is too long, or the file system fails


def _split_names(names: bytes) -> list[str]:
    return [os.fsdecode(name) for name in names.split(b"\0") if name]
