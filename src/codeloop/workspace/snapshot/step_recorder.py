"""Records the changes of one step: the states before its first and after its last change, and the files that differ."""

from collections.abc import Collection, Iterable
from pathlib import Path

import msgspec

from codeloop.workspace.snapshot.blob import Unreadable
from codeloop.workspace.snapshot.file_jobs import JobFailure
from codeloop.workspace.snapshot.object_store import EMPTY_TREE, TreeEntry
from codeloop.workspace.snapshot.snapshots import SkippedSnapshot, Snapshot, Snapshots
from codeloop.workspace.snapshot.stored_trees import TreeChange, find_entry, list_differences, store_changed_tree

# Omitted files that a note names; it counts the others.
_MAX_NAMED = 5


class StepChanges(msgspec.Struct, frozen=True):
    """The changes of a step. `before` and `after` name trees, `files` absolute paths.

    `notes` say what can't be undone, for the user.
    """

    before: str
    after: str
    files: tuple[str, ...]
    notes: tuple[str, ...] = ()


class StepRecorder:
    """Records the changes of one step. Concurrent steps in a work tree also record each other's shell changes.

    For a tool that names the files it writes, only those are stored. A shell command may change any file, so the whole
    work tree is scanned before the first one.
    """

    def __init__(self, snapshots: Snapshots) -> None:
        self._snapshots = snapshots
        # By relative path: each file that a call named, as it was before the step; None: it did not exist.
        self._entries: dict[str, TreeEntry | None] = {}
        # The tree before the step's first shell command; None: the step has run none, or no snapshot was taken.
        self._base: str | None = None
        # Relative paths that a snapshot omitted: changes of these files are not recorded.
        self._unrecorded: set[str] = set()
        self._notes: list[str] = []
        # Whether a snapshot of the whole work tree was attempted.
        self._has_tried_base = False
        self._has_begun = False

    async def record_before(self, paths: Collection[Path] | None = None, *, include_ignored: bool = False) -> None:
        """Record the state before a tool call that may change files: when it is allowed and about to run.

        `paths`: the only files (resolved, absolute) that the call can write; no others are read. None: the call may
        change any file, as a shell command does. `include_ignored`: it may also destroy files that git ignores.
        """
        self._has_begun = True
        if paths is None:
            await self._record_tree_before(include_ignored=include_ignored)
            return
        names = {name for path in paths if (name := self._snapshots.make_relative(path)) is not None}
        stored = await self._snapshots.jobs.run_job(lambda: self._store_entries_before(names))
        if isinstance(stored, JobFailure):
            self._notes.append(f"What this step writes can't be undone: {stored.reason}.")

    async def finish(self) -> StepChanges | None:
        """Return the changes at the step's end.

        None: no call could have changed files, or recording failed (`notes` say why).
        """
        if not self._has_begun:
            return None
        self._snapshots.mark_changed()
        after: Snapshot | None = None
        if self._base is not None:
            snapshot = await self._snapshots.take(tuple(self._entries))
            if isinstance(snapshot, Snapshot):
                after = snapshot
                self._unrecorded |= {each.path for each in snapshot.omitted}
            else:
                self._notes.append(f"What the shell changed in this step can't be undone: {snapshot.reason}.")
        changes = await self._snapshots.jobs.run_job(lambda: self._compare(after))
        if isinstance(changes, JobFailure):
            self._notes.append(f"This step can't be undone: {changes.reason}.")
            return None
        return changes

    @property
    def notes(self) -> tuple[str, ...]:
        """Lines for the user: which changes so far can't be undone, and why."""
        return tuple(self._notes)

    async def _record_tree_before(self, *, include_ignored: bool) -> None:
        if self._has_tried_base and not include_ignored:
            return
        snapshot = await self._snapshots.take(fresh=True)
        is_first = not self._has_tried_base
        self._has_tried_base = True
        if isinstance(snapshot, SkippedSnapshot):
            if snapshot.is_new:
                self._notes.append(f"What the shell changes can't be undone: {snapshot.reason}.")
            return
        if is_first:
            self._base = snapshot.tree
            self._unrecorded |= {each.path for each in snapshot.omitted}
            self._note_omissions(snapshot)
        if include_ignored and self._base is not None:
            await self._add_ignored_files(snapshot)

    async def _add_ignored_files(self, without_ignored: Snapshot) -> None:
        """Add the files that git ignores to the base: those that a full scan finds in addition to `without_ignored`."""
        snapshot = await self._snapshots.take(include_ignored=True)
        base = self._base
        if isinstance(snapshot, SkippedSnapshot) or base is None:
            self._notes.append("The files that git ignores are not in the snapshot.")
            return
        objects = self._snapshots.objects

        def join_trees() -> str:
            ignored_files = {
                each.path: each.after
                for each in list_differences(objects, without_ignored.tree, snapshot.tree)
                if not each.before
            }
            return store_changed_tree(objects, base, ignored_files)

        joined_tree = await self._snapshots.jobs.run_job(join_trees)
        self._base = base if isinstance(joined_tree, JobFailure) else joined_tree
        self._unrecorded |= {each.path for each in snapshot.omitted}
        self._note_omissions(snapshot)

    def _note_omissions(self, snapshot: Snapshot) -> None:
        omitted = snapshot.omitted
        if omitted:
            names = ", ".join(each.path for each in omitted[:_MAX_NAMED])
            more = f" and {len(omitted) - _MAX_NAMED:,} more" if len(omitted) > _MAX_NAMED else ""
            self._notes.append(f"Not in the snapshot: {names}{more} (`codeloop debug snapshot` says why).")

    def _store_entries_before(self, names: Iterable[str]) -> None:
        """Store files as they are before a call writes them, unless an earlier state of the step is stored."""
        objects = self._snapshots.objects
        for name in names:
            if name in self._entries:
                continue
            if self._base is not None and find_entry(objects, self._base, name) is not None:
                continue
            try:
                self._entries[name] = self._snapshots.store_entry(name)
            except Unreadable as error:
                self._notes.append(f"{name} can't be restored by undo: it is {error}.")

    def _compare(self, after: Snapshot | None) -> StepChanges:
        """Return the step's changes. `after`: the snapshot at its end; None: compare only files that calls named."""
        objects = self._snapshots.objects
        objects.create_if_missing()
        last = self._snapshots.last
        base_tree = self._base or (last.tree if last is not None else EMPTY_TREE)
        before_tree = store_changed_tree(objects, base_tree, self._entries)
        after_tree = (
            after.tree if after is not None else store_changed_tree(objects, before_tree, self._store_entries_now())
        )
        changes = [
            change
            for change in list_differences(objects, before_tree, after_tree)
            if change.path not in self._unrecorded
        ]
        # Without a snapshot the trees are built on an old one, which may differ in files that this step did not write.
        if after is None:
            changes = [change for change in changes if change.path in self._entries]
        self._copy_contents(changes)
        files = tuple(f"{self._snapshots.root}/{change.path}" for change in changes)
        return StepChanges(before_tree, after_tree, files, self.notes)

    def _store_entries_now(self) -> dict[str, TreeEntry | None]:
        """Store the files that calls named as they are now, and return their entries."""
        entries: dict[str, TreeEntry | None] = {}
        for name in self._entries:
            try:
                entries[name] = self._snapshots.store_entry(name)
            except Unreadable as error:
                self._unrecorded.add(name)
                self._notes.append(f"{name} can't be restored by undo: it is {error}.")
        return entries

    def _copy_contents(self, changes: list[TreeChange]) -> None:
        """Copy blobs that only the user's repository has into our store, except blobs that git converted."""
        objects = self._snapshots.objects
        blobs = [change.before.blob for change in changes if change.before is not None]
        shared = [blob for blob in dict.fromkeys(blobs) if not objects.has(blob)]
        for blob in set(blobs).difference(shared):
            objects.keep_longer(blob)
        objects.copy_shared(shared, self._snapshots.environment, self._snapshots.find_size)
        missing = sum(not objects.has(blob) for blob in shared)
        if missing:
            self._notes.append(f"{missing:,} files could not be backed up; undo can't restore them.")
