"""Scans a work tree for files changed since the last scan,
and stores the tree of its present state.
"""

import os
import stat
import time
from collections.abc import Iterable
from pathlib import Path

from codeloop.kit.paths import join_relative
from codeloop.schema.limits import SNAPSHOT_FILES, SNAPSHOT_IGNORED, SNAPSHOT_WATCH
from codeloop.workspace.git.ignore_patterns import is_ignored
from codeloop.workspace.snapshot.blob import Unreadable, to_git_mode
from codeloop.workspace.snapshot.file_jobs import ScanRefused, ScanStopped
from codeloop.workspace.snapshot.ignored_copies import IgnoredCopies
from codeloop.workspace.snapshot.object_batch import ObjectBatch
from codeloop.workspace.snapshot.object_store import FOLDER_MODE, ObjectStore, TreeEntry
from codeloop.workspace.snapshot.rebuildable import (
    GENERATED_NAMES,
    is_omitted_build,
    is_rebuildable,
)
from codeloop.workspace.snapshot.scan_limits import ScanOptions, ScanPass, describe_unsupported
from codeloop.workspace.snapshot.stat_cache import CachedFile, CachedFolder, StatCache
from codeloop.workspace.snapshot.tree_repositories import TreeRepositories
from codeloop.workspace.watch.inotify import InotifyWatch

# A file changed this short ago may change again and keep its times: twice the coarsest
# tick of a kernel's clock.
_YOUNG_NS = 20_000_000


class Scanner:
    """Keeps a StatCache in step with a work tree. Its methods block;
    only one thread at a time may call them.
    """

    def __init__(
        self, root: Path, objects: ObjectStore, cache: StatCache | None, options: ScanOptions
    ) -> None:
        """`root`: resolved. `cache`: of an earlier run;
        without one, git's index tells which files are clean.
        """
        self._root = str(root)
        self._objects = objects
        self._batch = ObjectBatch(objects)
        self._own_folders = {str(path) for path in options.own_folders}
        self.cache = cache or StatCache()
        # Counts the entries of folders, so that it can be seen whether a scan goes on.
        self.progress = 0
        # Set by another thread: the scan ends before the next folder.
        self.is_stopped = False
        # Whether this process has scanned the whole work tree once.
        self.has_scanned = False
        # Folder -> the names in it that are not in the tree ("": itself) -> the reason,
        # a clause for the user.
        self.skipped: dict[str, dict[str, str]] = {}
        # Blobs of the repository that a scan found replaced -> their size on the disk.
        self.replaced: dict[str, int] = {}
        self.copies = IgnoredCopies(self._root)
        self.watch: InotifyWatch | None = None
        self._is_unwatchable = False
        self._repositories = TreeRepositories(
            self._root, options.excludes, with_index=not self.cache.is_complete
        )

    def scan(self, *, include_ignored: bool = False) -> None:
        """Bring the cache up to date. Raises ScanRefused, ScanStopped, OSError.

        `include_ignored`: also for ignored files, up to the limits.
        """
        scan_pass = ScanPass(include_ignored)
        # None: all folders have to be scanned.
        changed_folders: set[str] | None = None
        if self.watch is not None and self.has_scanned and not include_ignored:
            changed_folders = self.watch.take_changed_folders()
        if self.watch is not None and self.watch.is_broken:
            # Events were lost. `_scan_waiting` begins a new watch.
            self.close()
            changed_folders = None
        if changed_folders is not None and "" in changed_folders:
            changed_folders = None
        scan_pass.waiting += [""] if changed_folders is None else sorted(changed_folders)
        self._scan_waiting(scan_pass, is_complete=changed_folders is None)
        self.has_scanned = True
        if not self.cache.is_complete:
            self.cache.is_complete, self.cache.is_saved = True, False
        self._repositories.drop_index()

    def read_paths(self, paths: Iterable[str]) -> None:
        """Read these files, and those below these folders, even if git ignores them.

        Raises ScanRefused, ScanStopped, OSError.

        Paths are relative to the work tree. Of folders, those of rebuildable content that git
        ignores and those of generated content are skipped,
        unless the cache knows them or tracked files are in them.
        """
        scan_pass = ScanPass(include_ignored=True, must_read=True)
        for path in paths:
            self._read_path(path, scan_pass)
        self._scan_waiting(scan_pass, is_complete=True)

    def store_tree(self) -> str:
        """Store the trees that are not up to date; return the id of the top's tree.
        Raises OSError.
        """
        cache = self.cache
        # The deepest first, since a folder's tree holds the ids of those below.
        for path in sorted(cache.stale_folders, key=lambda path: (path == "", -path.count("/"))):
            folder = cache.folders.get(path)
            if folder is None:
                continue
            entries = {name: file.entry for name, file in folder.entries.items()}
            for name in folder.folders:
                subfolder = cache.folders.get(join_relative(path, name))
                if subfolder is not None and subfolder.tree:
                    entries[name] = TreeEntry(FOLDER_MODE, subfolder.tree)
            folder.tree = self._batch.put_tree(entries) if entries or not path else ""
        self.flush()
        cache.stale_folders.clear()
        return cache.folders[""].tree

    def flush(self) -> None:
        """Store what was read so far. Until then the cache names objects that are not stored.
        Raises OSError.
        """
        self._batch.flush()

    def close(self) -> None:
        """Stop watching."""
        if self.watch is not None:
            self.watch.close()
            self.watch = None

    def _scan_waiting(self, scan_pass: ScanPass, *, is_complete: bool) -> None:
        while scan_pass.waiting:
            if self.is_stopped:
                raise ScanStopped
            # Folders count, too: otherwise empty ones could be without end.
            if self.cache.file_count + len(self.cache.folders) > SNAPSHOT_FILES.value:
                raise ScanRefused(
                    f"the work tree has more than {SNAPSHOT_FILES.value:,} files and folders"
                )
            if (
                self.watch is None
                and is_complete
                and not self._is_unwatchable
                and self.cache.file_count > SNAPSHOT_WATCH.value
            ):
                self._begin_watch()
                scan_pass.waiting = [""]
            # Other ignore rules may concern every folder below.
            if self._scan_folder(scan_pass.waiting.pop(), scan_pass, is_complete=is_complete):
                is_complete = True
                scan_pass.waiting = [""]

    def _begin_watch(self) -> None:
        """Watch all known folders. The caller then scans all of them,
        as they may have changed meanwhile.
        """
        try:
            self.watch = InotifyWatch()
            for path in self.cache.folders:
                self.watch.add(path, self._full_path(path))
        except OSError:
            self._stop_watch()

    def _stop_watch(self) -> None:
        self.close()
        self._is_unwatchable = True

    def _full_path(self, path: str) -> str:
        return f"{self._root}/{path}" if path else self._root

    def _read_path(self, path: str, scan_pass: ScanPass) -> None:
        folder, _, name = path.rpartition("/")
        try:
            info = os.lstat(self._full_path(path))
        except OSError:
            info = None
        if info is not None and stat.S_ISDIR(info.st_mode):
            if ".git" in path.split("/"):
                # Never undone, though a command names it: only git knows what
                # belongs together there.
                return
            if is_omitted_build(path, self.cache) and not self._repositories.leads_to_tracked(path):
                return
            self._add_folder(path)
            scan_pass.waiting.append(path)
            return
        if path in self.cache.folders and path:
            self._forget_folder(path)
        if info is None:
            self._drop_file(folder, name)
            return
        self._add_folder(folder)
        self._scan_file(folder, name, info, scan_pass)

    def _add_folder(self, path: str) -> CachedFolder:
        """Return a folder's entry in the cache, added if it is new;
        the folder is watched if the others are.
        """
        folder = self.cache.add_folder(path)
        if self.watch is not None and not self.watch.has(path):
            try:
                self.watch.add(path, self._full_path(path))
            except OSError:
                self._stop_watch()
        return folder

    def _scan_folder(self, path: str, scan_pass: ScanPass, *, is_complete: bool) -> bool:
        """Scan a folder, and all known ones below if `is_complete`;
        if not, return whether its rules have changed.
        """
        if path not in self.cache.folders:
            return False
        folder = self._add_folder(path)
        self.skipped.pop(path, None)
        try:
            with os.scandir(self._full_path(path)) as iterator:
                entries = list(iterator)
        except (FileNotFoundError, NotADirectoryError):
            if path:
                self._forget_folder(path)
            return False
        except OSError as error:
            self._skip(path, "", f"can't be read: {error.strerror}")
            return False
        names = {entry.name for entry in entries}
        if ".git" in names and self._repositories.add_if_new(path, folder):
            self._objects.share_objects(self._repositories.object_folders)
        above = self.cache.folders[path.rpartition("/")[0]] if path else None
        have_rules_changed = self._repositories.update_rules(
            path, folder, above, names, is_complete=is_complete
        )
        folder_names: set[str] = set()
        file_names: set[str] = set()
        for entry in entries:
            name = entry.name
            if name == ".git":
                continue
            self.progress += 1
            if entry.is_dir(follow_symlinks=False):
                if self._queue_subfolder(path, name, folder, scan_pass, is_complete=is_complete):
                    folder_names.add(name)
                continue
            try:
                info = entry.stat(follow_symlinks=False)
            except OSError:
                continue
            file_names.add(name)
            self._scan_file(path, name, info, scan_pass)
        for name in [name for name in folder.entries if name not in file_names]:
            self._drop_file(path, name)
        for name in folder.folders - folder_names:
            self._forget_folder(join_relative(path, name))
        return have_rules_changed and not is_complete

    def _queue_subfolder(
        self, path: str, name: str, folder: CachedFolder, scan_pass: ScanPass, *, is_complete: bool
    ) -> bool:
        """Queue a subfolder if it must be scanned; return whether the snapshot has it."""
        subpath = join_relative(path, name)
        if self._own_folders and self._full_path(subpath) in self._own_folders:
            return False
        cached_folder = self.cache.folders.get(subpath)
        if cached_folder is not None and not is_complete:
            return True
        is_subfolder_ignored = (
            folder.is_ignored
            or name in GENERATED_NAMES
            or is_ignored(folder.ignore_rules, subpath, name, is_folder=True)
        )
        is_omitted = is_subfolder_ignored and (
            not scan_pass.include_ignored or is_rebuildable(subpath)
        )
        if (
            cached_folder is None
            and is_omitted
            and not self._repositories.leads_to_tracked(subpath)
        ):
            return False
        subfolder = self._add_folder(subpath)
        subfolder.is_ignored = is_subfolder_ignored
        scan_pass.waiting.append(subpath)
        return True

    def _scan_file(self, path: str, name: str, info: os.stat_result, scan_pass: ScanPass) -> None:
        """Update one file's entry: it is unchanged, clean by git's index, ignored,
        or read again.
        """
        folder = self.cache.folders[path]
        old = folder.entries.get(name)
        if (
            old is not None
            and not (scan_pass.must_read and old.is_shared)
            and old.is_unchanged(info)
        ):
            return
        if unsupported := describe_unsupported(info.st_mode):
            self._drop_file(path, name)
            self._skip(path, name, unsupported)
            return
        index_entry = self._repositories.find_index_entry(path, name) if old is None else None
        if (
            index_entry is not None
            and not scan_pass.must_read
            and self._repositories.is_clean(index_entry, folder, path, name, info)
        ):
            # The repository has the content, so the file need not even be read.
            entry = TreeEntry(to_git_mode(info.st_mode), index_entry.blob.hex())
            stamp = (info.st_mtime_ns, info.st_ctime_ns, info.st_size, info.st_ino)
            self.cache.put_file(path, name, CachedFile(entry, info.st_mode, *stamp, is_shared=True))
            return
        is_tracked = old is not None or index_entry is not None
        if not is_tracked and self._omit_or_count(folder, path, name, scan_pass):
            if not is_rebuildable(path):
                self.copies.keep(join_relative(path, name), info)
            return
        self._read_file(path, name, info, scan_pass, is_tracked=is_tracked)

    def _omit_or_count(
        self, folder: CachedFolder, path: str, name: str, scan_pass: ScanPass
    ) -> bool:
        """Return whether a new file is left out. One that is ignored and read
        nevertheless is counted.
        """
        if scan_pass.must_read:
            return False
        is_file_ignored = folder.is_ignored or is_ignored(
            folder.ignore_rules, join_relative(path, name), name, is_folder=False
        )
        if not is_file_ignored or not scan_pass.include_ignored or is_rebuildable(path):
            return is_file_ignored
        scan_pass.ignored_files += 1
        if scan_pass.ignored_files > SNAPSHOT_IGNORED.value:
            self._skip(path, name, f"more than {SNAPSHOT_IGNORED.value:,} files that git ignores")
        return scan_pass.ignored_files > SNAPSHOT_IGNORED.value

    def _read_file(
        self, path: str, name: str, info: os.stat_result, scan_pass: ScanPass, *, is_tracked: bool
    ) -> None:
        try:
            data, info = scan_pass.read(
                f"{self._full_path(path)}/{name}", info, is_tracked=is_tracked
            )
        except FileNotFoundError:
            self._drop_file(path, name)
            return
        except Unreadable as error:
            self._drop_file(path, name)
            self._skip(path, name, str(error))
            return
        except OSError as error:
            self._drop_file(path, name)
            self._skip(path, name, f"can't be read: {error.strerror}")
            return
        self._record_replaced(path, name)
        is_young = info.st_ctime_ns > time.time_ns() - _YOUNG_NS
        entry = TreeEntry(to_git_mode(info.st_mode), self._batch.put_blob(data))
        stamp = (-1 if is_young else info.st_mtime_ns, info.st_ctime_ns, info.st_size, info.st_ino)
        self.cache.put_file(path, name, CachedFile(entry, info.st_mode, *stamp))

    def _record_replaced(self, path: str, name: str) -> None:
        """Keep the size of a file whose content only the user's repository has, for
        `ObjectStore.copy_shared`.
        """
        old = self.cache.folders[path].entries.get(name)
        if old is not None and old.is_shared:
            self.replaced[old.entry.blob] = old.size

    def _drop_file(self, path: str, name: str) -> None:
        if path in self.cache.folders:
            self._record_replaced(path, name)
            self.cache.drop_file(path, name)

    def _forget_folder(self, path: str) -> None:
        waiting = [path]
        while waiting:
            subpath = waiting.pop()
            folder = self.cache.folders.get(subpath)
            if folder is None:
                continue
            for name in folder.entries:
                self._record_replaced(subpath, name)
            waiting += (join_relative(subpath, name) for name in folder.folders)
        for dropped in self.cache.drop_folder(path):
            self.skipped.pop(dropped, None)
            if self.watch is not None:
                self.watch.remove(dropped)

    def _skip(self, path: str, name: str, reason: str) -> None:
        self.skipped.setdefault(path, {})[name] = reason
