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
    """No snapshot was taken; `reason` is a clause for the user. `is_new`: this reason was not reported before."""

    reason: str
    is_new: bool


class SnapshotStats(msgspec.Struct, frozen=True):
    """Figures for `codeloop debug snapshot`. `files`: in the work tree, as far as scanned; `objects`, `bytes`: stored.

    `disabled_reason`: why this work tree has no snapshots; None when it may have some.
    """

    folder: Path
    files: int
    objects: int
    bytes: int
    watched: bool
    omitted: tuple[Omitted, ...]
    disabled_reason: str | None


class Snapshots:
    """Snapshots of a work tree. `take` returns Skipped instead of raising. `jobs` runs the jobs that read files."""

    def __init__(
        self, root: Path, folder: Path, environment: Mapping[str, str], excluded: Collection[Path] = ()
    ) -> None:
        """`folder`: where snapshots are stored. `excluded`: folders of codeloop, which no snapshot holds."""
        self.root = Path(os.path.realpath(root))
        self.environment = environment
        self.undo_folder = folder.with_name(FOLDER)
        """The folder in which undo records its writes in progress."""
        self.objects = ObjectStore(folder / sha1(os.fsencode(self.root), usedforsecurity=False).hexdigest()[:16])
        self.jobs = FileJobs(self._count_files)
        self._cache_file = StatCacheFile(self.root, self.objects.folder / "files.msgpack")
        self._excluded = tuple(Path(os.path.realpath(path)) for path in (*excluded, folder))
        self._disabled_reason = _find_disabled_reason(self.root, environment)
        self._scan: Scanner | None = None
        self._last: Snapshot | None = None
        self._changed = True
        self._reported: set[str] = set()

    def mark_changed(self) -> None:
        """Record that the work tree may have changed, so that the next `take` scans it."""
        self._changed = True

    @property
    def last(self) -> Snapshot | None:
        """The latest snapshot; None: none was taken yet."""
        return self._last

    async def take(
        self, paths: Collection[str] = (), *, fresh: bool = False, include_ignored: bool = False
    ) -> Snapshot | Skipped:
        """Return a snapshot of the present state; the last one when no change was marked since, except with `fresh`.

        `paths` (relative to the work tree) are read even if git ignores them, folders with all below them.
        `include_ignored`: all ignored files are read, up to the limits. Takes at most SNAPSHOT_TIME; a scan that takes
        longer continues in the background.
        """
        if self._disabled_reason is not None:
            return self._skip(self._disabled_reason)
        if self._last is not None and not (self._changed or fresh or paths or include_ignored):
            return self._last
        self._changed = False
        snapshot = await self.jobs.work(lambda: self._scan_tree(tuple(paths), include_ignored=include_ignored))
        if isinstance(snapshot, Failed):
            self._changed = True
            return self._skip(snapshot.reason)
        self._last = snapshot
        return snapshot

    def store_entry(self, path: str) -> TreeEntry | None:
        """Store the file or link at a path, and return its entry; None: nothing is there, or a folder.

        Blocks. Raises Unreadable, OSError.
        """
        self.objects.ensure()
        full_path = f"{self.root}/{path}"
        try:
            data, info = read_contents(full_path, SNAPSHOT_TRACKED.value)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except Unreadable:
            if Path(full_path).is_dir():
                return None
            raise
        return TreeEntry(to_git_mode(info.st_mode), self.objects.put_blob(data))

    def size_of(self, blob: str) -> int | None:
        """Return the size on the disk that a file had whose blob was only in the user's repository; None: not known."""
        return self._scan.replaced.get(blob) if self._scan is not None else None

    def relative(self, path: Path) -> str | None:
        """Return an absolute path relative to the work tree; None when it is outside of the work tree."""
        folder = Path(os.path.realpath(path.parent))
        if folder != self.root and self.root not in folder.parents:
            return None
        return str((folder / path.name).relative_to(self.root))

    async def close(self) -> None:
        """Save the stat cache for the next run. Each SNAPSHOT_PRUNE, prune old contents."""
        if self._scan is not None and not self.jobs.is_busy:
            await self.jobs.work(self._save_and_prune)

    def prune(self, *, age_ms: int = SNAPSHOT_AGE.value, size: int = SNAPSHOT_SIZE.value) -> int:
        """Remove objects unused for `age_ms`, and the oldest beyond `size` bytes; returns their number. Blocks.

        Objects of the work tree's present state are kept.
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
            disabled_reason=self._disabled_reason,
        )

    def _scan_tree(self, paths: tuple[str, ...], *, include_ignored: bool) -> Snapshot:
        fault_injection.point("snapshot")
        self.objects.ensure()
        if self._scan is None:
            options = ScanOptions(self._excluded, list_user_excludes(self.environment))
            self._scan = Scanner(self.root, self.objects, self._cache_file.load(), options)
        scan = self._scan
        try:
            scan.update(include_ignored=include_ignored)
            if paths:
                scan.read_paths(paths)
        except ScanRefused as error:
            self._disabled_reason = f"{error}; there are no snapshots of it"
            raise
        self._cache_file.note(scan.table)
        tree = scan.tree()
        self._cache_file.save_soon(scan.table)
        return Snapshot(tree, _list_omitted(scan))

    def _save_and_prune(self) -> None:
        scan = self._scan
        if scan is None:
            return
        self._cache_file.save(scan.table)
        scan.close()
        prune_stamp = self.objects.folder / "pruned"
        if not prune_stamp.exists():
            prune_stamp.touch()
        elif time.time() - prune_stamp.stat().st_mtime > SNAPSHOT_PRUNE.seconds:
            prune_stamp.touch()
            self.prune()

    def _count_files(self) -> int:
        return self._scan.table.files if self._scan is not None else 0

    def _skip(self, reason: str) -> Skipped:
        without_figures = reason.partition("(")[0]
        is_new = without_figures not in self._reported
        self._reported.add(without_figures)
        return Skipped(reason, is_new)


def _list_omitted(scan: Scanner) -> tuple[Omitted, ...]:
    omissions = [
        Omitted(f"{folder}/{name}".strip("/"), reason)
        for folder, names in scan.skipped.items()
        for name, reason in names.items()
    ]
    return tuple(sorted(omissions, key=lambda each: each.path))


def _find_disabled_reason(root: Path, environment: Mapping[str, str]) -> str | None:
    home = environment.get("HOME", "")
    if root == Path(root.anchor):
        return f"there are no snapshots of {root}; start in a project's own folder to be able to undo"
    if home and (Path(os.path.realpath(home)) == root or root in Path(os.path.realpath(home)).parents):
        return f"there are no snapshots of {root}, which holds a whole home; start in a project's own folder to undo"
    return None
