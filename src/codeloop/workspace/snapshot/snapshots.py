"""Snapshots of a work tree in a shadow git directory: bounded in time, separate from the user's repository."""

import os
import time
from collections.abc import Collection, Mapping
from hashlib import sha1
from pathlib import Path

import msgspec

from codeloop.kit import fault_injection
from codeloop.schema.limits import (
    SNAPSHOT_AGE,
    SNAPSHOT_PRUNE,
    SNAPSHOT_SIZE,
    SNAPSHOT_TRACKED,
)
from codeloop.workspace.files.temp_files import FOLDER
from codeloop.workspace.git.ignore_patterns import list_user_excludes
from codeloop.workspace.snapshot.blob import Unreadable, read_contents, to_git_mode
from codeloop.workspace.snapshot.file_jobs import Failed, FileJobs
from codeloop.workspace.snapshot.object_store import ObjectStore, TreeEntry
from codeloop.workspace.snapshot.scanner import Scanner, ScanOptions, ScanRefused
from codeloop.workspace.snapshot.stat_cache import StatCacheFile


class Omitted(msgspec.Struct, frozen=True):
    """A path (relative to the work tree) that a snapshot does not hold, and why."""

    path: str
    reason: str


class Snapshot(msgspec.Struct, frozen=True):
    """A state of the work tree: the name of its tree, 40 hex digits, and what is not in it."""

    tree: str
    omitted: tuple[Omitted, ...] = ()


class Skipped(msgspec.Struct, frozen=True):
    """There is no snapshot; `reason` is a clause for the user. `first`: it was not reported before."""

    reason: str
    first: bool


class SnapshotStats(msgspec.Struct, frozen=True):
    """What `codeloop debug snapshot` shows. `files`: known in the work tree; `objects`, `bytes`: in the store."""

    folder: Path
    files: int
    objects: int
    bytes: int
    watched: bool
    omitted: tuple[Omitted, ...]
    off: str | None


class Snapshots:
    """The snapshots of one work tree. `take` returns Skipped instead of raising. `jobs` runs what reads files."""

    def __init__(self, root: Path, folder: Path, environment: Mapping[str, str], own: Collection[Path] = ()) -> None:
        """`folder`: where our project keeps its snapshots. `own`: our data folders, should they be in the work tree."""
        self.root = Path(os.path.realpath(root))
        self.environment = environment
        self.notes = folder.with_name(FOLDER)
        """Where undo records writes in progress."""
        self.objects = ObjectStore(folder / sha1(os.fsencode(self.root), usedforsecurity=False).hexdigest()[:16])
        self.jobs = FileJobs(self._count_files)
        self._cache_file = StatCacheFile(self.root, self.objects.folder / "files.msgpack")
        self._own = tuple(Path(os.path.realpath(path)) for path in (*own, folder))
        self._off = _find_off_reason(self.root, environment)
        self._scan: Scanner | None = None
        self._last: Snapshot | None = None
        self._changed = True
        self._reported: set[str] = set()

    def mark_changed(self) -> None:
        """Note that something may have changed since the last snapshot."""
        self._changed = True

    @property
    def last(self) -> Snapshot | None:
        """The last snapshot that was taken."""
        return self._last

    async def take(
        self, paths: Collection[str] = (), *, fresh: bool = False, everything: bool = False
    ) -> Snapshot | Skipped:
        """Return the present state. Without `fresh`, a state that nobody marked as changed is not looked at again.

        `paths` (relative to the work tree) are read whatever git ignores, folders with all below them. `everything`:
        ignored files too, as far as they fit. Takes at most SNAPSHOT_TIME; a first look goes on in the background.
        """
        if self._off is not None:
            return self._skip(self._off)
        if self._last is not None and not (self._changed or fresh or paths or everything):
            return self._last
        self._changed = False
        snapshot = await self.jobs.work(lambda: self._look(tuple(paths), everything=everything))
        if isinstance(snapshot, Failed):
            self._changed = True
            return self._skip(snapshot.reason)
        self._last = snapshot
        return snapshot

    def keep(self, path: str) -> TreeEntry | None:
        """Store what lies at a path now; None: nothing, or a folder. Blocks. Raises Unreadable, OSError."""
        self.objects.ensure()
        here = f"{self.root}/{path}"
        try:
            data, info = read_contents(here, SNAPSHOT_TRACKED.value)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except Unreadable:
            if Path(here).is_dir():
                return None
            raise
        return TreeEntry(to_git_mode(info.st_mode), self.objects.put_blob(data))

    def size_of(self, blob: str) -> int | None:
        """Return the size on the disk of a replaced file whose blob was the repository's."""
        return self._scan.replaced.get(blob) if self._scan is not None else None

    def relative(self, path: Path) -> str | None:
        """Return an absolute path as snapshots know it; None when it is outside of the work tree."""
        folder = Path(os.path.realpath(path.parent))
        if folder != self.root and self.root not in folder.parents:
            return None
        return str((folder / path.name).relative_to(self.root))

    async def close(self) -> None:
        """Save the table for the next run, and prune old contents now and then."""
        if self._scan is not None and not self.jobs.is_busy:
            await self.jobs.work(self._put_away)

    def prune(self, *, age_ms: int = SNAPSHOT_AGE.value, size: int = SNAPSHOT_SIZE.value) -> int:
        """Remove blobs not wanted for `age_ms`, and the oldest beyond `size` bytes; returns how many. Blocks.

        What the present state of the work tree needs is kept.
        """
        table = self._scan.table if self._scan is not None else self._cache_file.load()
        keep: set[str] = set()
        if table is not None:
            keep = {entry.item.blob for entry in table.entries()} | {folder.tree for folder in table.folders.values()}
        return self.objects.prune(keep, time.time() - age_ms / 1000, size)

    def stats(self) -> SnapshotStats:
        """Return figures for the user. Blocks: reads the store's folder."""
        objects_stored = list(self.objects.iterate_objects())
        table = self._scan.table if self._scan is not None else self._cache_file.load()
        return SnapshotStats(
            folder=self.objects.folder,
            files=table.files if table is not None else 0,
            objects=len(objects_stored),
            bytes=sum(row[1] for row in objects_stored),
            watched=self._scan is not None and self._scan.watch is not None,
            omitted=_list_omitted(self._scan) if self._scan is not None and not self.jobs.is_busy else (),
            off=self._off,
        )

    def _look(self, paths: tuple[str, ...], *, everything: bool) -> Snapshot:
        fault_injection.point("snapshot")
        self.objects.ensure()
        if self._scan is None:
            surroundings = ScanOptions(self._own, list_user_excludes(self.environment))
            self._scan = Scanner(self.root, self.objects, self._cache_file.load(), surroundings)
        scan = self._scan
        try:
            scan.look(everything=everything)
            if paths:
                scan.look_at(paths)
        except ScanRefused as error:
            self._off = f"{error}; there are no snapshots of it"
            raise
        self._cache_file.note(scan.table)
        tree = scan.tree()
        self._cache_file.save_soon(scan.table)
        return Snapshot(tree, _list_omitted(scan))

    def _put_away(self) -> None:
        scan = self._scan
        if scan is None:
            return
        self._cache_file.save(scan.table)
        scan.close()
        mark = self.objects.folder / "pruned"
        if not mark.exists():
            mark.touch()
        elif time.time() - mark.stat().st_mtime > SNAPSHOT_PRUNE.seconds:
            mark.touch()
            self.prune()

    def _count_files(self) -> int:
        return self._scan.table.files if self._scan is not None else 0

    def _skip(self, reason: str) -> Skipped:
        kind = reason.partition("(")[0]
        first = kind not in self._reported
        self._reported.add(kind)
        return Skipped(reason, first)


def _list_omitted(scan: Scanner) -> tuple[Omitted, ...]:
    omissions = [
        Omitted(f"{folder}/{name}".strip("/"), reason)
        for folder, names in scan.skipped.items()
        for name, reason in names.items()
    ]
    return tuple(sorted(omissions, key=lambda each: each.path))


def _find_off_reason(root: Path, environment: Mapping[str, str]) -> str | None:
    home = environment.get("HOME", "")
    if root == Path(root.anchor):
        return f"there are no snapshots of {root}; start in a project's own folder to be able to undo"
    if home and (Path(os.path.realpath(home)) == root or root in Path(os.path.realpath(home)).parents):
        return f"there are no snapshots of {root}, which holds a whole home; start in a project's own folder to undo"
    return None
