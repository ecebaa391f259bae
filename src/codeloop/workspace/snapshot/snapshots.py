"""Takes snapshots of a work tree for undo, stored apart from the user's repository."""

import asyncio
import os
import time
from collections.abc import Collection, Mapping
from functools import cached_property
from hashlib import sha1
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from codeloop.kit import fault_injection
from codeloop.kit.git import find_git_folder
from codeloop.schema.limits import SNAPSHOT_AGE, SNAPSHOT_PRUNE, SNAPSHOT_SIZE, SNAPSHOT_TRACKED
from codeloop.workspace.files.temp_files import RECORDS_FOLDER
from codeloop.workspace.snapshot.blob import Unreadable, read_contents, to_git_mode
from codeloop.workspace.snapshot.file_jobs import FileJobs, JobFailure, ScanRefused
from codeloop.workspace.snapshot.object_store import ObjectStore, TreeEntry

if TYPE_CHECKING:
    from codeloop.workspace.snapshot.ignored_copies import IgnoredCopy
    from codeloop.workspace.snapshot.open_steps import OpenSteps
    from codeloop.workspace.snapshot.scanner import Scanner
    from codeloop.workspace.snapshot.stat_cache import StatCacheFile

CACHE_NAME = "files.msgpack"
"""The file in a store's folder with the cache of the work tree's files."""
_OPEN_STEPS_NAME = "open-steps"
# A cache of fewer bytes is that of a small work tree,
# about 3,000 files: its scan is not worth to be begun early.
_LARGE_CACHE_BYTES = 300_000
# The first scan begins so long after its turn, in s: most answers that come sooner call no tool.
_EARLY_SCAN_DELAY = 0.3


def get_store_folder(stores: Path, root: Path) -> Path:
    """Return the folder of a work tree's snapshots in the folder for those of all
    work trees of a project.
    """
    return stores / sha1(os.fsencode(root), usedforsecurity=False).hexdigest()[:16]


class OmittedPath(msgspec.Struct, frozen=True):
    """A path (relative to the work tree) that a snapshot does not hold;
    `reason` is a clause for the user.
    """

    path: str
    reason: str


class Snapshot(msgspec.Struct, frozen=True):
    """A state of the work tree: the id of its tree, 40 hex digits,
    and the paths that are not in it.
    """

    tree: str
    omitted: tuple[OmittedPath, ...] = ()


class SkippedSnapshot(msgspec.Struct, frozen=True):
    """The result when no snapshot was taken. `reason`: a clause for the user;
    `is_new`: it was not reported before.
    """

    reason: str
    is_new: bool


class SnapshotStats(msgspec.Struct, frozen=True):
    """Figures for `codeloop debug snapshot`.

    `files`: in the work tree, as far as it was scanned; `objects`, `bytes`: in the store;
    `disabled_reason`: why this work tree has no snapshots, None if it may have some.
    """

    folder: Path
    files: int
    objects: int
    bytes: int
    watched: bool
    omitted: tuple[OmittedPath, ...]
    disabled_reason: str | None


class Snapshots:
    """The snapshots of a work tree. `jobs` runs the jobs that read files."""

    def __init__(
        self,
        root: Path,
        folder: Path,
        environment: Mapping[str, str],
        excluded: Collection[Path] = (),
    ) -> None:
        """`folder`: where snapshots are stored; `excluded`: folders of codeloop,
        which no snapshot holds.
        """
        self.root = Path(os.path.realpath(root))
        self.environment = environment
        # Where undo records its writes in progress, as of `replace_files`.
        self.records_folder = folder.with_name(RECORDS_FOLDER)
        self.objects = ObjectStore(get_store_folder(folder, self.root))
        self.jobs = FileJobs(self._count_files, self._read_progress)
        self._excluded = tuple(Path(os.path.realpath(path)) for path in (*excluded, folder))
        self._disabled_reason = _find_disabled_reason(self.root, environment)
        self._scanner: Scanner | None = None
        self._last: Snapshot | None = None
        self._may_have_changed = True
        self.is_closing = False
        self._early_scan: asyncio.Task[None] | None = None
        # Reasons for which no snapshot was taken, without their figures.
        self._reported: set[str] = set()

    @cached_property
    def open_steps(self) -> "OpenSteps":
        """The records of the steps that may be changing files."""
        # Imported late: a turn without a command or an edit has none.
        from codeloop.workspace.snapshot.open_steps import OpenSteps

        return OpenSteps(self.objects.folder / _OPEN_STEPS_NAME)

    def has_open_steps(self) -> bool:
        """Return whether steps have records: they are going on, or were cut off by a kill."""
        try:
            with os.scandir(f"{self.objects.folder}/{_OPEN_STEPS_NAME}") as records:
                return any(records)
        except OSError:
            return False

    @cached_property
    def _cache_file(self) -> "StatCacheFile":
        # Imported late, as the scanner is.
        from codeloop.workspace.snapshot.stat_cache import StatCacheFile

        return StatCacheFile(self.root, self.objects.folder / CACHE_NAME)

    def mark_changed(self) -> None:
        """Record that the work tree may have changed, so that the next `take` scans it."""
        self._may_have_changed = True

    @property
    def last(self) -> Snapshot | None:
        """The latest snapshot; None: none was taken yet."""
        return self._last

    async def take(
        self, paths: Collection[str] = (), *, fresh: bool = False, include_ignored: bool = False
    ) -> Snapshot | SkippedSnapshot:
        """Take a snapshot of the present state, or return the last one if no
        change was marked since.

        `fresh`: take a new one in any case. `paths` (relative to the work tree) are read even if
        git ignores them, folders with all below them. `include_ignored`: all ignored files
        are read, up to the limits.
        """
        if self._disabled_reason is not None:
            return self._skip(self._disabled_reason)
        if self._last is not None and not (
            self._may_have_changed or fresh or paths or include_ignored
        ):
            return self._last
        self._may_have_changed = False
        snapshot = await self.jobs.run_scan(
            lambda: self._scan_tree(tuple(paths), include_ignored=include_ignored)
        )
        if isinstance(snapshot, JobFailure):
            self._may_have_changed = True
            return self._skip(snapshot.reason)
        self._last = snapshot
        return snapshot

    def begin_early(self) -> None:
        """Begin the first scan of a large work tree, which then goes on while the model thinks.
        Returns at once.
        """
        if (
            self._early_scan is None
            and self._disabled_reason is None
            and self._scanner is None
            and self._is_large()
        ):
            self._early_scan = asyncio.create_task(self._scan_early())

    def _is_large(self) -> bool:
        """Return whether the work tree was large at its last scan;
        one with git that was never scanned may be.
        """
        try:
            # Without the module of the cache: most turns need no scan.
            return (self.objects.folder / CACHE_NAME).stat().st_size > _LARGE_CACHE_BYTES
        except OSError:
            return find_git_folder(self.root) is not None

    async def _scan_early(self) -> None:
        await asyncio.sleep(_EARLY_SCAN_DELAY)
        if self._last is None:
            # A failure is reported by the scan that needs the result.
            await self.jobs.run_scan(lambda: self._scan_tree((), include_ignored=False))

    def store_entry(self, path: str) -> TreeEntry | None:
        """Store the file or link at a path, and return its entry;
        None: there is nothing, or a folder.

        Blocks. Raises Unreadable, OSError.
        """
        self.objects.create_if_missing()
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

    def keeps(self, path: Path) -> bool:
        """Return whether there is a copy of a file that git ignores,
        in case a command changes it.
        """
        name = self.make_relative(path) if self._scanner is not None else None
        return name is not None and self._scanner is not None and self._scanner.copies.holds(name)

    def take_changed_copies(self) -> "dict[str, IgnoredCopy]":
        """Return the copies of ignored files that have changed since they were made;
        the next scan makes new ones.
        """
        return self._scanner.copies.take_changed() if self._scanner is not None else {}

    def find_size(self, blob: str) -> int | None:
        """Return the size on the disk of the file of a blob that only the user's repository has;
        None: unknown.
        """
        return self._scanner.replaced.get(blob) if self._scanner is not None else None

    def make_relative(self, path: Path) -> str | None:
        """Return an absolute path relative to the work tree;
        None when it is outside of the work tree.
        """
        # Only the folder is resolved: the path itself may be a link,
        # which a snapshot stores as a link.
        folder = Path(os.path.realpath(path.parent))
        if folder != self.root and self.root not in folder.parents:
            return None
        return str((folder / path.name).relative_to(self.root))

    async def close(self) -> None:
        """Stop a scan, and keep what it has read for the next run;
        once per SNAPSHOT_PRUNE, remove old contents.
        """
        self.is_closing = True
        if self._early_scan is not None:
            self._early_scan.cancel()
        if self._scanner is not None:
            self._scanner.is_stopped = True
        if self._scanner is not None or self.jobs.is_busy:
            await self.jobs.run_scan(self._save_and_prune)

    def prune(self, *, age_ms: int = SNAPSHOT_AGE.value, size: int = SNAPSHOT_SIZE.value) -> int:
        """Remove objects unused for `age_ms`, and the oldest beyond `size` bytes;
        returns their number. Blocks.

        Objects of the work tree's present state are kept.
        """
        cache = self._scanner.cache if self._scanner is not None else self._cache_file.load()
        keep: set[str] = set()
        if cache is not None:
            keep |= {file.entry.blob for file in cache.iterate_files()}
            keep |= {folder.tree for folder in cache.folders.values()}
        return self.objects.prune(keep, time.time() - age_ms / 1000, size)

    def read_stats(self) -> SnapshotStats:
        """Return figures for the user. Blocks: reads the store's folder."""
        stored_objects = list(self.objects.list_objects())
        cache = self._scanner.cache if self._scanner is not None else self._cache_file.load()
        return SnapshotStats(
            folder=self.objects.folder,
            files=cache.file_count if cache is not None else 0,
            objects=len(stored_objects),
            bytes=sum(each.size for each in stored_objects),
            watched=self._scanner is not None and self._scanner.watch is not None,
            omitted=_list_omitted(self._scanner)
            if self._scanner is not None and not self.jobs.is_busy
            else (),
            disabled_reason=self._disabled_reason,
        )

    def _scan_tree(self, paths: tuple[str, ...], *, include_ignored: bool) -> Snapshot:
        fault_injection.pass_point("snapshot")
        self.objects.create_if_missing()
        if self._scanner is None:
            # Imported late: a turn without a command or an edit scans nothing.
            from codeloop.workspace.git.ignore_patterns import list_user_excludes
            from codeloop.workspace.snapshot.scan_limits import ScanOptions
            from codeloop.workspace.snapshot.scanner import Scanner

            options = ScanOptions(self._excluded, list_user_excludes(self.environment))
            self._scanner = Scanner(self.root, self.objects, self._cache_file.load(), options)
        scanner = self._scanner
        scanner.is_stopped = self.is_closing
        is_first = not scanner.cache.is_complete
        try:
            scanner.scan(include_ignored=include_ignored)
            if paths:
                scanner.read_paths(paths)
        except ScanRefused as error:
            advice = "name what is generated in a .gitignore to be able to undo"
            self._disabled_reason = f"{error}, so there are no snapshots of it; {advice}"
            scanner.close()
            self._scanner = None
            raise ScanRefused(self._disabled_reason) from error
        tree = scanner.store_tree()
        if is_first:
            # It took long, and the process may be killed.
            self._cache_file.save(scanner.cache)
        else:
            self._cache_file.save_if_due(scanner.cache)
        return Snapshot(tree, _list_omitted(scanner))

    def _save_and_prune(self) -> None:
        scanner = self._scanner
        if scanner is None:
            return
        scanner.flush()
        self._cache_file.save(scanner.cache)
        scanner.close()
        prune_stamp = self.objects.folder / "pruned"
        if not prune_stamp.exists():
            prune_stamp.touch()
        elif time.time() - prune_stamp.stat().st_mtime > SNAPSHOT_PRUNE.seconds:
            prune_stamp.touch()
            self.prune()

    def _count_files(self) -> int:
        return self._scanner.cache.file_count if self._scanner is not None else 0

    def _read_progress(self) -> int:
        return self._scanner.progress if self._scanner is not None else 0

    def _skip(self, reason: str) -> SkippedSnapshot:
        # A reason may end with a count in brackets, which differs each time.
        without_figures = reason.partition("(")[0]
        is_new = without_figures not in self._reported
        self._reported.add(without_figures)
        return SkippedSnapshot(reason, is_new)


def _list_omitted(scanner: "Scanner") -> tuple[OmittedPath, ...]:
    omissions = [
        OmittedPath(f"{folder}/{name}".strip("/"), reason)
        for folder, names in scanner.skipped.items()
        for name, reason in names.items()
    ]
    return tuple(sorted(omissions, key=lambda each: each.path))


def _find_disabled_reason(root: Path, environment: Mapping[str, str]) -> str | None:
    """Return why a work tree has no snapshots, as a clause for the user;
    None if it may have some.
    """
    home = environment.get("HOME", "")
    if root == Path(root.anchor):
        return (
            f"there are no snapshots of {root}; start in a project's own folder to be able to undo"
        )
    if home and (
        Path(os.path.realpath(home)) == root or root in Path(os.path.realpath(home)).parents
    ):
        return f"there are no snapshots of {root}, which holds a whole home; start in a project's own folder to undo"
    return None
