"""The cache of a work tree's files and stats from the last scan; kept between runs."""

import os
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import msgspec
from msgspec import Struct
from msgspec import field as struct_field

from codeloop.kit.small_files import write_atomically
from codeloop.workspace.git.ignore_patterns import Patterns
from codeloop.workspace.snapshot.object_store import TreeEntry

_VERSION = 1
_SMALL = 5_000
_SAVE_EVERY = 5.0


class CachedFile(NamedTuple):
    """One file: its tree row and its stat. `borrowed`: the blob is the repository's, not in our own store.

    `mtime_ns` is -1 for a file so young that a change of it might leave the same stat: it is read again.
    """

    item: TreeEntry
    mode: int
    mtime_ns: int
    ctime_ns: int
    size: int
    inode: int
    borrowed: bool = False

    def same(self, info: os.stat_result) -> bool:
        """Return whether the file is still what was read."""
        return (
            self.mtime_ns == info.st_mtime_ns
            and self.ctime_ns == info.st_ctime_ns
            and self.size == info.st_size
            and self.inode == info.st_ino
            and self.mode == info.st_mode
        )


class CachedFolder(Struct):
    """One folder. `tree`: its tree's name when it is up to date, "" when nothing below it is kept.

    `ignored`: git ignores what is new in it. `rules` and `converted`: the patterns that hold in it, nearest first.
    """

    entries: dict[str, CachedFile] = struct_field(default_factory=dict[str, CachedFile])
    folders: set[str] = struct_field(default_factory=set[str])
    tree: str = ""
    ignored: bool = False
    rules: tuple[Patterns, ...] = ()
    converted: tuple[Patterns, ...] = ()
    own: tuple[tuple[int, int, int], Patterns] | None = None


class StatCache(Struct):
    """All folders by their path relative to the work tree ("" is its top), and those whose tree must be rebuilt."""

    folders: dict[str, CachedFolder] = struct_field(default_factory=lambda: {"": CachedFolder()})
    stale: set[str] = struct_field(default_factory=lambda: {""})
    files: int = 0

    def mark(self, folder: str) -> None:
        """Note that a folder's tree, and so those above it, must be rebuilt."""
        while folder not in self.stale:
            self.stale.add(folder)
            if not folder:
                return
            folder = folder.rpartition("/")[0]

    def put(self, folder: str, name: str, entry: CachedFile) -> None:
        """Note a file."""
        entries = self.folders[folder].entries
        old = entries.get(name)
        entries[name] = entry
        self.files += old is None
        if folder not in self.stale and (old is None or old.item != entry.item):
            self.mark(folder)

    def drop(self, folder: str, name: str) -> None:
        """Note that a file is gone."""
        if self.folders[folder].entries.pop(name, None) is not None:
            self.files -= 1
            self.mark(folder)

    def drop_folder(self, folder: str) -> list[str]:
        """Note that a folder is gone with all below it; returns the folders that are."""
        paths_dropped: list[str] = []
        waiting = [folder]
        while waiting:
            here = waiting.pop()
            cached_folder = self.folders.pop(here, None)
            if cached_folder is None:
                continue
            paths_dropped.append(here)
            self.files -= len(cached_folder.entries)
            waiting += (join(here, name) for name in cached_folder.folders)
        parent, _, name = folder.rpartition("/")
        if parent in self.folders:
            self.folders[parent].folders.discard(name)
            self.mark(parent)
        self.stale -= set(paths_dropped)
        return paths_dropped

    def make(self, folder: str) -> CachedFolder:
        """Return a folder, making it and those above it known."""
        cached_folder = self.folders.get(folder)
        if cached_folder is None:
            parent, _, name = folder.rpartition("/")
            above = self.make(parent)
            above.folders.add(name)
            cached_folder = self.folders[folder] = CachedFolder(
                ignored=above.ignored, rules=above.rules, converted=above.converted
            )
            self.mark(folder)
        return cached_folder

    def entries(self) -> Iterator[CachedFile]:
        """Return every file."""
        for folder in self.folders.values():
            yield from folder.entries.values()


def join(folder: str, name: str) -> str:
    """Return a path below a folder of the work tree."""
    return f"{folder}/{name}" if folder else name


_Row = tuple[bytes, int, str, int, int, int, int, int, bool]


class _StoredTable(msgspec.Struct, array_like=True):
    version: int
    root: bytes
    folders: list[tuple[bytes, bool, str, list[_Row]]]


class StatCacheFile:
    """Where a work tree's table is kept from one run to the next. It only saves time."""

    def __init__(self, root: Path, file: Path) -> None:
        self._root = root
        self._file = file
        self._is_saved = True
        self._saved_at = -_SAVE_EVERY

    def note(self, table: StatCache) -> None:
        """Note whether the table has changed; call it before its trees are rebuilt."""
        self._is_saved = self._is_saved and not table.stale

    def save_soon(self, table: StatCache) -> None:
        """Save a small table that has changed, now and then; a larger one is saved when the project closes."""
        if table.files <= _SMALL and time.monotonic() - self._saved_at > _SAVE_EVERY:
            self.save(table)

    def save(self, table: StatCache) -> None:
        """Save the table if it has changed."""
        if self._is_saved:
            return
        folders: list[tuple[bytes, bool, str, list[_Row]]] = []
        for path, folder in table.folders.items():
            rows = [
                (os.fsencode(name), entry.item.mode, entry.item.blob, *entry[1:])
                for name, entry in folder.entries.items()
            ]
            folders.append((os.fsencode(path), folder.ignored, "" if path in table.stale else folder.tree, rows))
        with suppress(OSError):
            write_atomically(
                self._file, msgspec.msgpack.encode(_StoredTable(_VERSION, os.fsencode(self._root), folders))
            )
            self._is_saved = True
            self._saved_at = time.monotonic()

    def load(self) -> StatCache | None:
        """Return the table of the last run; None when this work tree has no table."""
        try:
            table_stored = msgspec.msgpack.decode(self._file.read_bytes(), type=_StoredTable)
        except (OSError, msgspec.DecodeError):
            return None
        if table_stored.version != _VERSION or table_stored.root != os.fsencode(self._root):
            return None
        table = StatCache()
        for path, ignored, tree, rows in table_stored.folders:
            folder = table.make(os.fsdecode(path))
            folder.ignored, folder.tree = ignored, tree
            for name, mode, blob, kind, mtime, ctime, size, inode, is_borrowed in rows:
                folder.entries[os.fsdecode(name)] = CachedFile(
                    TreeEntry(mode, blob), kind, mtime, ctime, size, inode, is_borrowed
                )
            table.files += len(rows)
        table.stale = {path for path, folder in table.folders.items() if not folder.tree} | {""}
        return table
