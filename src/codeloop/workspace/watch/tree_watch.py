"""Watches the files of a work tree, folder by folder: added, changed and removed ones."""

import asyncio
import os
import time
from itertools import islice
from pathlib import Path
from typing import Literal

from msgspec import Struct

from codeloop.schema.bounds.language_tools import WATCH_BURST, WATCH_FOLDERS, WATCH_THROTTLE
from codeloop.workspace.watch.ignored_files import IgnoredFiles
from codeloop.workspace.watch.inotify import COMPLETED_CHANGES, FOLDER, Watch

_SLICE = 0.004  # seconds of looking through folders at once
_REST_FACTOR = 5  # times as long it rests then, so that a large tree takes a fifth of one processor for a while
_GIT = "\0git"
"""The key of the repository's folder, which is not part of the tree."""


class FileEvent(Struct, frozen=True):
    """What happened to a file."""

    path: Path
    what: Literal["add", "change", "unlink"]


class RootGone(OSError):
    """The watched folder no longer exists."""


class TreeWatch:
    """Watches the files of a work tree that are not ignored. Call `scan` first, then `wait_for_changes` repeatedly.

    Only the names in each folder are kept, in one string. `git`: the repository's folder, whose `HEAD` is watched too.
    """

    def __init__(self, root: Path, git: Path | None, ignored: IgnoredFiles) -> None:
        """Raise OSError where nothing can be watched."""
        self._root = root
        self._git = git
        self._ignored = ignored
        self._watch = Watch(COMPLETED_CHANGES)
        self._names: dict[str, bytes] = {}

    async def scan(self) -> None:
        """Watch all folders, some of them at once. Raises RootGone, or OSError when there are too many."""
        self._check_root()
        if self._git is not None:
            self._watch.add(_GIT, str(self._git))
        await self._enter([""])

    async def wait_for_changes(self) -> list[FileEvent]:
        """Wait until files have changed; return them, each once. Raises RootGone, or OSError as `scan`."""
        while True:
            await self._wait_readable()
            await asyncio.sleep(WATCH_THROTTLE.seconds)
            changes, folders, folders_removed = self._drain()
            self._check_root()
            if self._watch.broken:
                return await self._rewatch()
            events = await self._list_events(list(changes))
            for path in folders_removed:
                self._names.pop(path, None)
                self._ignored.forget(path)
            new = (
                FileEvent(self._path(folder, name), "add")
                for folder in await self._enter(await self._find_unignored(list(folders)))
                for name in _split(self._names[folder])
            )
            events += islice(new, WATCH_BURST.value)
            if events:
                return events[: WATCH_BURST.value]

    def close(self) -> None:
        """Stop watching."""
        asyncio.get_running_loop().remove_reader(self._watch)
        self._watch.close()

    def _check_root(self) -> None:
        if not self._root.is_dir():
            raise self._make_root_gone()

    def _make_root_gone(self) -> RootGone:
        return RootGone(2, "the folder is gone", str(self._root))

    async def _wait_readable(self) -> None:
        loop = asyncio.get_running_loop()
        ready = loop.create_future()
        loop.add_reader(self._watch, ready.set_result, None)
        try:
            await ready
        finally:
            loop.remove_reader(self._watch)

    async def _list_events(self, changes: list[tuple[str, str]]) -> list[FileEvent]:
        """Return the changes of files. Ignore files may make it slow, so it works in pieces, in a thread."""
        events: list[FileEvent] = []
        waiting = changes[::-1]

        def handle_some(until: float) -> None:
            while waiting and time.monotonic() < until:
                if event := self._make_event(*waiting.pop()):
                    events.append(event)

        while waiting:
            began = time.monotonic()
            await asyncio.to_thread(handle_some, began + _SLICE)
            if waiting:
                await asyncio.sleep(time.monotonic() - began)
        return events

    async def _find_unignored(self, folders: list[str]) -> list[str]:
        """Return the folders that are not ignored."""

        def is_watched(path: str) -> bool:
            folder, _, name = path.rpartition("/")
            return not self._ignored.has(folder, name, is_folder=True)

        return [path for path in folders if await asyncio.to_thread(is_watched, path)]

    def _drain(self) -> tuple[dict[tuple[str, str], None], dict[str, None], list[str]]:
        """Return the files that something happened to, the folders that are new, and those that are gone."""
        changes: dict[tuple[str, str], None] = {}
        folders: dict[str, None] = {}
        folders_removed: list[str] = []
        for folder, mask, name in self._watch.events():
            if not name and not folder:  # it was deleted or moved; there may be another one by now
                raise self._make_root_gone()
            if not name or (folder == _GIT and name != "HEAD"):
                continue
            if not mask & FOLDER:
                changes[folder, name] = None
                continue
            path = f"{folder}/{name}" if folder else name
            if (self._root / path).is_dir():
                if path not in self._names:
                    folders[path] = None
            else:
                folders_removed.append(path)
        return changes, folders, folders_removed

    def _make_event(self, folder: str, name: str) -> FileEvent | None:
        path = self._path(folder, name)
        if folder == _GIT:
            return FileEvent(path, "change")
        was, is_there = self._has(folder, name), os.path.lexists(path)
        if not was and (not is_there or self._ignored.has(folder, name, is_folder=False)):
            return None
        mark = b"\0" + os.fsencode(name) + b"\0"
        if is_there and not was:
            self._names[folder] = self._names.get(folder, b"\0") + mark[1:]
        elif was and not is_there and folder in self._names:
            self._names[folder] = self._names[folder].replace(mark, b"\0")
        return FileEvent(path, "change" if was and is_there else "add" if is_there else "unlink")

    def _has(self, folder: str, name: str) -> bool:
        return b"\0" + os.fsencode(name) + b"\0" in self._names.get(folder, b"")

    def _path(self, folder: str, name: str) -> Path:
        return self._git / name if folder == _GIT and self._git is not None else self._root / folder / name

    async def _rewatch(self) -> list[FileEvent]:
        """Watch everything anew after lost events or a moved folder; return what differs."""
        before, self._names = self._names, {}
        self._watch.close()
        self._watch = Watch(COMPLETED_CHANGES)
        await self.scan()
        events: list[FileEvent] = []
        for folder in before.keys() | self._names.keys():
            old, new = before.get(folder, b""), self._names.get(folder, b"")
            if old != new:
                was, now = set(_split(old)), set(_split(new))
                events += [FileEvent(self._path(folder, name), "unlink") for name in was - now]
                events += [FileEvent(self._path(folder, name), "add") for name in now - was]
        return events[: WATCH_BURST.value]

    async def _enter(self, folders: list[str]) -> list[str]:
        """Watch folders and all below them; return those that are watched now."""
        folders_entered: list[str] = []
        while folders:
            began = time.monotonic()
            await asyncio.to_thread(self._watch_some, folders, folders_entered, began + _SLICE)
            if folders:
                await asyncio.sleep((time.monotonic() - began) * _REST_FACTOR)
        return folders_entered

    def _watch_some(self, folders: list[str], folders_entered: list[str], until: float) -> None:
        """Watch some of the folders; add those in them, and to `folders_entered` those that are done. Blocks."""
        while folders and time.monotonic() < until:
            if len(self._names) >= WATCH_FOLDERS.value:
                raise OSError(28, "there are too many folders")
            folder = folders.pop()
            path = str(self._root / folder) if folder else str(self._root)
            self._watch.add(folder, path)
            try:
                with os.scandir(path) as directory_entries:
                    entries = [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in directory_entries]
            except OSError:
                continue
            files = [name for name, is_folder in entries if not is_folder]
            self._ignored.enter(folder, files)
            files_watched = [name for name in files if not self._ignored.has(folder, name, is_folder=False)]
            self._names[folder] = os.fsencode("\0".join(("", *files_watched, "")) if files_watched else "\0")
            folders_entered.append(folder)
            for name, is_folder in entries:
                if is_folder and not self._ignored.has(folder, name, is_folder=True):
                    folders.append(f"{folder}/{name}" if folder else name)


def _split(names: bytes) -> list[str]:
    return [os.fsdecode(name) for name in names.split(b"\0") if name]
