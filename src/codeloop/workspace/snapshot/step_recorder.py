"""Records what one step changes: the states before its first and after its last change, and the files that differ."""

from collections.abc import Collection, Iterable
from pathlib import Path

import msgspec

from codeloop.schema.limits import SNAPSHOT_COMPARE, SNAPSHOT_DIFF, SNAPSHOT_DIFFS, SNAPSHOT_SHARED
from codeloop.schema.message import SnapshotFileDiff
from codeloop.workspace.snapshot.blob import Unreadable
from codeloop.workspace.snapshot.file_jobs import Failed
from codeloop.workspace.snapshot.object_store import EMPTY_TREE, MissingObject, ObjectStore, TreeEntry
from codeloop.workspace.snapshot.snapshots import Skipped, Snapshot, Snapshots
from codeloop.workspace.snapshot.tree_diff import TreeChange, find_entry, list_differences, store_overlaid


class StepChanges(msgspec.Struct, frozen=True):
    """The changes of a step. `before` and `after` name trees, `files` absolute paths.

    `notes` say what can't be undone, for the user.
    """

    before: str
    after: str
    files: tuple[str, ...]
    notes: tuple[str, ...] = ()


class StepRecorder:
    """Records one step. Concurrent steps in one work tree each record the other's shell changes as their own."""

    def __init__(self, snapshots: Snapshots) -> None:
        self._snapshots = snapshots
        self._entries: dict[str, TreeEntry | None] = {}
        self._base: str | None = None
        self._unrecorded: set[str] = set()
        self._notes: list[str] = []
        self._named_only = True
        self._began = False

    async def record_before(self, paths: Collection[Path] | None = None, *, everything: bool = False) -> None:
        """Call before each call that may change something, when it is allowed and about to run.

        `paths`: the files (resolved, absolute) that it will write, when it can write no others: these alone are looked
        at. None: it may change anything, as a shell command does. `everything`: it may destroy ignored files too.
        """
        self._began = True
        if paths is None:
            await self._before_anything(everything=everything)
            return
        names = {name for path in paths if (name := self._snapshots.relative(path)) is not None}
        recording = await self._snapshots.jobs.run_in_background(lambda: self._keep(names))
        if isinstance(recording, Failed):
            self._notes.append(f"What this step writes can't be undone: {recording.reason}.")

    async def finish(self) -> StepChanges | None:
        """Call at the step's end; None when no call was announced, or nothing could be recorded (`notes` say why)."""
        if not self._began:
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
        diffs = await self._snapshots.jobs.run_in_background(lambda: self._compare(after), SNAPSHOT_COMPARE)
        if isinstance(diffs, Failed):
            self._notes.append(f"This step can't be undone: {diffs.reason}.")
            return None
        return diffs

    @property
    def notes(self) -> tuple[str, ...]:
        """What can't be undone so far, and why: lines for the user."""
        return tuple(self._notes)

    async def _before_anything(self, *, everything: bool) -> None:
        if not self._named_only and not everything:
            return
        snapshot = await self._snapshots.take(fresh=True)
        first = self._named_only
        self._named_only = False
        if isinstance(snapshot, Skipped):
            if snapshot.first:
                self._notes.append(f"What the shell changes can't be undone: {snapshot.reason}.")
            return
        if first:
            self._base = snapshot.tree
            self._unrecorded |= {each.path for each in snapshot.omitted}
            self._note_omissions(snapshot)
        if everything and self._base is not None:
            await self._before_destruction(snapshot)

    async def _before_destruction(self, plain: Snapshot) -> None:
        """Include the ignored files: what a full scan finds beyond the one just before."""
        snapshot = await self._snapshots.take(everything=True)
        base = self._base
        if isinstance(snapshot, Skipped) or base is None:
            self._notes.append("The files that git ignores are not in the snapshot.")
            return
        objects = self._snapshots.objects

        def join() -> str:
            more = {
                each.path: each.after
                for each in list_differences(objects, plain.tree, snapshot.tree)
                if not each.before
            }
            return store_overlaid(objects, base, more)

        omission = await self._snapshots.jobs.run_in_background(join)
        self._base = base if isinstance(omission, Failed) else omission
        self._unrecorded |= {each.path for each in snapshot.omitted}
        self._note_omissions(snapshot)

    def _note_omissions(self, state: Snapshot) -> None:
        if state.omitted:
            names = ", ".join(each.path for each in state.omitted[:5])
            more = f" and {len(state.omitted) - 5:,} more" if len(state.omitted) > 5 else ""
            self._notes.append(f"Not in the snapshot: {names}{more} (`codeloop debug snapshot` says why).")

    def _keep(self, names: Iterable[str]) -> None:
        objects = self._snapshots.objects
        for name in names:
            if name in self._entries:
                continue
            if self._base is not None and find_entry(objects, self._base, name) is not None:
                continue
            try:
                self._entries[name] = self._snapshots.keep(name)
            except Unreadable as error:
                self._notes.append(f"{name} can't be restored by undo: it is {error}.")

    def _compare(self, after: Snapshot | None) -> StepChanges:
        objects = self._snapshots.objects
        objects.ensure()
        last = self._snapshots.last
        start = self._base or (last.tree if last is not None else EMPTY_TREE)
        before = store_overlaid(objects, start, self._entries)
        closing = store_overlaid(objects, before, self._scan_now()) if after is None else after.tree
        changes = [
            change for change in list_differences(objects, before, closing) if change.path not in self._unrecorded
        ]
        if after is None:
            changes = [change for change in changes if change.path in self._entries]
        self._copy_contents(changes)
        files = tuple(f"{self._snapshots.root}/{change.path}" for change in changes)
        return StepChanges(before, closing, files, self.notes)

    def _scan_now(self) -> dict[str, TreeEntry | None]:
        now: dict[str, TreeEntry | None] = {}
        for name in self._entries:
            try:
                now[name] = self._snapshots.keep(name)
            except Unreadable as error:
                self._unrecorded.add(name)
                self._notes.append(f"{name} can't be restored by undo: it is {error}.")
        return now

    def _copy_contents(self, changes: list[TreeChange]) -> None:
        """Copy former contents that only the repository has, except those that git converted."""
        objects = self._snapshots.objects
        blobs = [change.before.blob for change in changes if change.before is not None]
        shared = [blob for blob in dict.fromkeys(blobs) if not objects.has(blob)]
        objects.fetch(shared[: SNAPSHOT_SHARED.value], self._snapshots.environment, self._snapshots.size_of)
        missing = sum(not objects.has(blob) for blob in shared)
        if missing:
            self._notes.append(f"{missing:,} files could not be backed up; undo can't restore them.")


def file_diffs(objects: ObjectStore, changes: Iterable[TreeChange]) -> tuple[SnapshotFileDiff, ...]:
    """Return changes as a client shows them; a file that is binary, large or one too many has an empty patch."""
    return tuple(
        _file_diff(objects, change, is_shown=number < SNAPSHOT_DIFFS.value) for number, change in enumerate(changes)
    )


def _file_diff(objects: ObjectStore, change: TreeChange, *, is_shown: bool) -> SnapshotFileDiff:
    status = "added" if change.before is None else "deleted" if change.after is None else "modified"
    before, after = (_read_text(objects, item) if is_shown else None for item in (change.before, change.after))
    if before is None or after is None:
        return SnapshotFileDiff(file=change.path, additions=0, deletions=0, patch="", status=status)
    from codeloop.kit.diff import unified_diff  # 2 ms, and most steps change no file

    diff = unified_diff(change.path, before, after)
    return SnapshotFileDiff(
        file=change.path, additions=diff.additions, deletions=diff.deletions, patch=diff.patch, status=status
    )


def _read_text(objects: ObjectStore, item: TreeEntry | None) -> str | None:
    """Return the text of a blob; None for one without lines."""
    if item is None:
        return ""
    try:
        data = objects.blob(item.blob)
        return None if len(data) > SNAPSHOT_DIFF.value or b"\0" in data else data.decode()
    except (MissingObject, UnicodeDecodeError):
        return None
