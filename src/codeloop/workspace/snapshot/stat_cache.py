"""Caches a work tree's files and stats from the last scan, in memory and between runs.

By it a scan finds the files that have changed without reading the others.
"""

import gc
import os
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

import msgspec
from msgspec import Struct
from msgspec import field as struct_field

from codeloop.kit.paths import join_relative
from codeloop.kit.small_files import write_atomically
from codeloop.schema.wire import DECODE_ERRORS
from codeloop.workspace.git.ignore_patterns import Patterns
from codeloop.workspace.snapshot.object_store import TreeEntry

# Of the stored cache; one of another version is not read.
_VERSION = 2
# A cache of at most so many files is saved after scans;
# to write a larger one takes too long for that.
_MAX_FILES_SAVED_EARLY = 5_000
_SAVE_INTERVAL_SECONDS = 5.0


class CachedFile(NamedTuple):
    """One file: its entry in a tree and its stat. `is_shared`: the blob is the repository's,
    not in our own store.

    `mtime_ns` is -1 for a file so young that a change of it might leave the same
    stat: it is read again.
    """

    entry: TreeEntry
    mode: int
    mtime_ns: int
    ctime_ns: int
    size: int
    inode: int
    is_shared: bool = False

    def is_unchanged(self, info: os.stat_result) -> bool:
        """Return whether the file has not changed since it was read."""
        return (
            self.mtime_ns == info.st_mtime_ns
            and self.ctime_ns == info.st_ctime_ns
            and self.size == info.st_size
            and self.inode == info.st_ino
            and self.mode == info.st_mode
        )


class CachedIgnoreFile(NamedTuple):
    """A folder's own .gitignore. `state`: modification time, size and inode,
    which tell whether it has changed.
    """

    state: tuple[int, int, int]
    patterns: Patterns


class CachedFolder(Struct):
    """One folder. `tree`: its tree's id when it is up to date, "" when nothing below it is kept.

    `is_ignored`: git ignores new files in it. `ignore_rules`: the patterns of ignored files that
    apply in it, nearest first; `converting_rules`: those of files that git converts; `ignore_file`:
    its own .gitignore, if any.
    """

    entries: dict[str, CachedFile] = struct_field(default_factory=dict[str, CachedFile])
    folders: set[str] = struct_field(default_factory=set[str])
    tree: str = ""
    is_ignored: bool = False
    ignore_rules: tuple[Patterns, ...] = ()
    converting_rules: tuple[Patterns, ...] = ()
    ignore_file: CachedIgnoreFile | None = None


class StatCache(Struct):
    """All folders by their path relative to the work tree ("" is its top).

    `stale_folders`: those whose tree must be rebuilt. `is_complete`: the whole work tree was
    scanned; else the process ended first, and git's index tells which of the other files are clean.
    `is_saved`: nothing has changed since it was stored.
    """

    folders: dict[str, CachedFolder] = struct_field(default_factory=lambda: {"": CachedFolder()})
    stale_folders: set[str] = struct_field(default_factory=lambda: {""})
    file_count: int = 0
    is_complete: bool = False
    is_saved: bool = False

    def mark_stale(self, folder: str) -> None:
        """Record that a folder's tree, and so those above it, must be rebuilt."""
        self.is_saved = False
        while folder not in self.stale_folders:
            self.stale_folders.add(folder)
            if not folder:
                return
            folder = folder.rpartition("/")[0]

    def put_file(self, folder: str, name: str, file: CachedFile) -> None:
        """Add or replace a file."""
        entries = self.folders[folder].entries
        old = entries.get(name)
        entries[name] = file
        self.is_saved = False
        self.file_count += old is None
        if folder not in self.stale_folders and (old is None or old.entry != file.entry):
            self.mark_stale(folder)

    def drop_file(self, folder: str, name: str) -> None:
        """Remove a file, if it is known."""
        if self.folders[folder].entries.pop(name, None) is not None:
            self.file_count -= 1
            self.mark_stale(folder)

    def drop_folder(self, folder: str) -> list[str]:
        """Remove a folder with all below it; return the paths of the removed folders."""
        dropped: list[str] = []
        waiting = [folder]
        while waiting:
            path = waiting.pop()
            cached_folder = self.folders.pop(path, None)
            if cached_folder is None:
                continue
            dropped.append(path)
            self.file_count -= len(cached_folder.entries)
            waiting += (join_relative(path, name) for name in cached_folder.folders)
        parent, _, name = folder.rpartition("/")
        if parent in self.folders:
            self.folders[parent].folders.discard(name)
            self.mark_stale(parent)
        self.stale_folders -= set(dropped)
        return dropped

    def add_folder(self, folder: str) -> CachedFolder:
        """Return a folder; if it is not known, it and those above it are added."""
        cached_folder = self.folders.get(folder)
        if cached_folder is None:
            parent, _, name = folder.rpartition("/")
            above = self.add_folder(parent)
            above.folders.add(name)
            cached_folder = self.folders[folder] = CachedFolder(
                is_ignored=above.is_ignored,
                ignore_rules=above.ignore_rules,
                converting_rules=above.converting_rules,
            )
            self.mark_stale(folder)
        return cached_folder

    def iterate_files(self) -> Iterator[CachedFile]:
        """Yield every file."""
        for folder in self.folders.values():
            yield from folder.entries.values()


# Name as of `_to_stored`, git's mode, blob, and the fields of a CachedFile after its entry.
_Row = tuple[str, int, str, int, int, int, int, int, bool]


class _StoredCache(msgspec.Struct, array_like=True):
    """The cache in its file.

    `folders`: path, whether git ignores new files in it, id of its tree (None: it must be rebuilt),
    and its files.
    """

    version: int
    root: bytes
    is_complete: bool
    folders: list[tuple[str, bool, str | None, list[_Row]]]


class StatCacheFile:
    """Stores a work tree's cache from one run to the next. A lost one costs time only."""

    def __init__(self, root: Path, file: Path) -> None:
        self._root = root
        self._file = file
        self._saved_at = -_SAVE_INTERVAL_SECONDS

    def save_if_due(self, cache: StatCache) -> None:
        """Save a small cache that has changed, unless it was saved just now.
        A larger one waits for `save`.
        """
        if (
            cache.file_count <= _MAX_FILES_SAVED_EARLY
            and time.monotonic() - self._saved_at > _SAVE_INTERVAL_SECONDS
        ):
            self.save(cache)

    def save(self, cache: StatCache) -> None:
        """Save the cache if it has changed."""
        if cache.is_saved:
            return
        folders: list[tuple[str, bool, str | None, list[_Row]]] = []
        for path, folder in cache.folders.items():
            rows = [
                (_to_stored(name), file.entry.mode, file.entry.blob, *file[1:])
                for name, file in folder.entries.items()
            ]
            tree = None if path in cache.stale_folders else folder.tree
            folders.append((_to_stored(path), folder.is_ignored, tree, rows))
        stored_cache = _StoredCache(_VERSION, os.fsencode(self._root), cache.is_complete, folders)
        with suppress(OSError):
            write_atomically(self._file, msgspec.msgpack.encode(stored_cache))
            cache.is_saved = True
            self._saved_at = time.monotonic()

    def load(self) -> StatCache | None:
        """Return the cache of the last run; None when this work tree has no cache."""
        try:
            data = self._file.read_bytes()
        except OSError:
            return None
        # Objects that are made by the million, and all stay,
        # are not worth looking for garbage among them.
        with _without_collector():
            return self._parse(data)

    def _parse(self, data: bytes) -> StatCache | None:
        try:
            stored_cache = msgspec.msgpack.decode(data, type=_StoredCache)
        except DECODE_ERRORS:
            return None
        if stored_cache.version != _VERSION or stored_cache.root != os.fsencode(self._root):
            return None
        cache = StatCache()
        for path, is_ignored, tree, rows in stored_cache.folders:
            folder = cache.add_folder(_from_stored(path))
            folder.is_ignored, folder.tree = is_ignored, tree or ""
            for name, git_mode, blob, mode, mtime_ns, ctime_ns, size, inode, is_shared in rows:
                folder.entries[name if name[0] != "\0" else _from_stored(name)] = CachedFile(
                    TreeEntry(git_mode, blob), mode, mtime_ns, ctime_ns, size, inode, is_shared
                )
            cache.file_count += len(rows)
        cache.stale_folders.clear()
        for path, _, tree, _ in stored_cache.folders:
            if tree is None:
                cache.mark_stale(_from_stored(path))
        cache.is_complete = stored_cache.is_complete
        cache.is_saved = True
        return cache


def _to_stored(name: str) -> str:
    """Return a name as it is stored: where it is not UTF-8, its bytes as characters after a NUL,
    which no name holds.

    To store the bytes of each would take longer than all the rest.
    """
    if name.isascii():
        return name
    try:
        name.encode()
    except UnicodeEncodeError:
        return f"\0{os.fsencode(name).decode('latin-1')}"
    return name


def _from_stored(name: str) -> str:
    return os.fsdecode(name[1:].encode("latin-1")) if name[:1] == "\0" else name


@contextmanager
def _without_collector() -> Generator[None]:
    """Keep the collector of garbage off for a while."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
