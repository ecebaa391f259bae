"""Records the changes of one step: the states before its first and after its last change,
and the files that differ.
"""

import asyncio
import os
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path

import msgspec

from codeloop.workspace.snapshot.blob import Unreadable, to_git_mode
from codeloop.workspace.snapshot.file_jobs import JobFailure
from codeloop.workspace.snapshot.object_store import EMPTY_TREE, TreeEntry
from codeloop.workspace.snapshot.open_steps import HEARTBEAT_SECONDS, OpenStep
from codeloop.workspace.snapshot.snapshots import SkippedSnapshot, Snapshot, Snapshots
from codeloop.workspace.snapshot.stored_trees import (
    TreeChange,
    find_entry,
    list_differences,
    store_changed_tree,
)

# Omitted files that a note names; it counts the others.
_MAX_NAMED = 5


class StepChanges(msgspec.Struct, frozen=True):
    """The changes of a step. `before` and `after` name trees (None: it is not known),
    `files` absolute paths.

    `notes` say what can't be undone, for the user; `unrecorded` as of `StepFinishPart`.
    """

    before: str
    after: str | None
    files: tuple[str, ...]
    notes: tuple[str, ...] = ()
    unrecorded: Mapping[str, str] = {}


class StepRecorder:
    """Records the changes of one step. Concurrent steps in a work tree also record
    each other's shell changes.

    For a tool that names the files it writes, only those are stored. A shell command may change any
    file, so the whole work tree is scanned before the first one.
    """

    def __init__(self, snapshots: Snapshots, session_id: str = "", message_id: str = "") -> None:
        """`message_id`: the answer of the step; "": a kill of the process
        loses the step's record.
        """
        self._snapshots = snapshots
        self._session_id = session_id
        self._message_id = message_id
        self._heartbeat: asyncio.TimerHandle | None = None
        # The record as it is stored: most calls of a step add nothing to it.
        self._stored: OpenStep | None = None
        # Only a step that was cut off has one: a file that changed later, in ns,
        # was changed by somebody else.
        self._latest_change: int | None = None
        # By relative path: each file that a call named, as it was before the step;
        # None: it did not exist.
        self._entries: dict[str, TreeEntry | None] = {}
        # The tree before the step's first shell command;
        # None: the step has run none, or no snapshot was taken.
        self._base: str | None = None
        # By relative path: what a snapshot omitted, with its stat when it was
        # seen first and the reason.
        self._omitted: dict[str, tuple[tuple[int, ...] | None, str]] = {}
        # By relative path: what can't be undone, with the reason;
        # "" stands for what commands changed.
        self._unrecorded: dict[str, str] = {}
        self._notes: list[str] = []
        # Whether a snapshot of the whole work tree was attempted.
        self._has_tried_base = False
        self._has_begun = False

    async def record_before(
        self, paths: Collection[Path] | None = None, *, include_ignored: bool = False
    ) -> None:
        """Record the state before a tool call that may change files: when it is
        allowed and about to run.

        `paths`: the only files (resolved, absolute) that the call can write; no others are read.
        None: the call may change any file, as a shell command does. `include_ignored`: it may also
        destroy files that git ignores.
        """
        self._has_begun = True
        if paths is None:
            await self._record_tree_before(include_ignored=include_ignored)
        else:
            await self._record_files_before(paths)
        self._store_record()

    def keeps(self, path: Path) -> bool:
        """Return whether undo could bring a file back that git ignores,
        if a command changed it now.
        """
        return self._base is not None and self._snapshots.keeps(path)

    async def _record_files_before(self, paths: Collection[Path]) -> None:
        names = {
            name for path in paths if (name := self._snapshots.make_relative(path)) is not None
        }
        stored = await self._snapshots.jobs.run_job(lambda: self._store_entries_before(names))
        if isinstance(stored, JobFailure):
            self._notes.append(f"What this step writes can't be undone: {stored.reason}.")
            self._unrecorded |= {name: stored.reason for name in names if name not in self._entries}

    async def finish(self) -> StepChanges | None:
        """Return the changes at the step's end.

        None: no call could have changed files, or recording failed (`notes` say why).
        """
        if not self._has_begun:
            return None
        self._snapshots.mark_changed()
        after: Snapshot | None = None
        if self._base is not None:
            await self._snapshots.jobs.run_job(self._add_changed_copies)
            snapshot = await self._snapshots.take(tuple(self._entries))
            if isinstance(snapshot, Snapshot):
                after = snapshot
                self._add_omitted(snapshot, is_before=False)
            else:
                self._notes.append(
                    f"What the shell changed in this step can't be undone: {snapshot.reason}."
                )
                self._unrecorded[""] = snapshot.reason
        changes = await self._snapshots.jobs.run_job(lambda: self._compare(after))
        if isinstance(changes, JobFailure):
            self._notes.append(f"This step can't be undone: {changes.reason}.")
            unrecorded = {**self._unrecorded, "": changes.reason}
            return StepChanges(self._base or EMPTY_TREE, None, (), self.notes, unrecorded)
        return changes

    def resume(self, step: OpenStep, latest_change: int) -> None:
        """Go on with a step that was cut off, from its record.
        `latest_change`: as of `OpenSteps.find_end`.
        """
        self._has_begun = True
        self._entries = step.list_entries()
        self._base = step.base
        self._omitted = {os.fsdecode(path): each for path, each in step.omitted.items()}
        self._unrecorded = {os.fsdecode(path): reason for path, reason in step.unrecorded.items()}
        self._latest_change = latest_change

    def forget(self) -> None:
        """Remove the record of the step: its end is stored."""
        if self._heartbeat is not None:
            self._heartbeat.cancel()
            self._heartbeat = None
        if self._message_id:
            self._snapshots.open_steps.remove(self._message_id)

    def _store_record(self) -> None:
        """Store what was recorded so far, for the case that the process is killed."""
        if not self._message_id:
            return
        step = OpenStep(
            session_id=self._session_id,
            message_id=self._message_id,
            base=self._base,
            entries={
                os.fsencode(path): (entry.mode, entry.blob) if entry else None
                for path, entry in self._entries.items()
            },
            omitted={os.fsencode(path): each for path, each in self._omitted.items()},
            unrecorded={os.fsencode(path): reason for path, reason in self._unrecorded.items()},
        )
        if step == self._stored:
            self._snapshots.open_steps.touch(self._message_id)
            return
        try:
            self._snapshots.open_steps.store(step)
            self._stored = step
        except OSError as error:
            note = f"If codeloop is killed in this step, it can't be undone: {error.strerror}."
            if note not in self._notes:
                self._notes.append(note)
        if self._heartbeat is None:
            self._beat()

    def _beat(self) -> None:
        """Keep the time of the record new, which tells when the process was killed."""
        self._snapshots.open_steps.touch(self._message_id)
        self._heartbeat = asyncio.get_running_loop().call_later(HEARTBEAT_SECONDS, self._beat)

    def _add_omitted(self, snapshot: Snapshot, *, is_before: bool) -> None:
        """Add what a snapshot omitted, with its stat now, if it is the one before the step;
        else it was not there.
        """
        for each in snapshot.omitted:
            if each.path not in self._omitted:
                stamp = _read_stamp(f"{self._snapshots.root}/{each.path}") if is_before else None
                self._omitted[each.path] = (stamp, each.reason)

    def _find_unrecorded(self) -> dict[str, str]:
        """Return the changed files that undo can't restore, since snapshots omit them,
        with the reason.
        """
        changed = {
            path: f"it was not recorded: {reason}"
            for path, (stamp, reason) in self._omitted.items()
            if _read_stamp(f"{self._snapshots.root}/{path}") != stamp
        }
        return {**self._unrecorded, **changed}

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
            self._unrecorded[""] = snapshot.reason
            return
        if is_first:
            self._base = snapshot.tree
            self._add_omitted(snapshot, is_before=True)
            self._note_omissions(snapshot)
        if include_ignored and self._base is not None:
            await self._add_ignored_files(snapshot)

    async def _add_ignored_files(self, without_ignored: Snapshot) -> None:
        """Add the files that git ignores to the base: those that a full scan finds in
        addition to `without_ignored`.
        """
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
        self._add_omitted(snapshot, is_before=True)
        self._note_omissions(snapshot)

    def _add_changed_copies(self) -> None:
        """Add the files that git ignores, that commands have changed,
        and of which there is a copy.
        """
        objects = self._snapshots.objects
        for path, copy in self._snapshots.take_changed_copies().items():
            # A file that a call named once is in all later snapshots.
            is_known = path in self._entries or (
                self._base and find_entry(objects, self._base, path) is not None
            )
            if not is_known:
                self._entries[path] = TreeEntry(to_git_mode(copy.mode), objects.put_blob(copy.data))

    def _note_omissions(self, snapshot: Snapshot) -> None:
        omitted = snapshot.omitted
        if omitted:
            names = ", ".join(each.path for each in omitted[:_MAX_NAMED])
            more = f" and {len(omitted) - _MAX_NAMED:,} more" if len(omitted) > _MAX_NAMED else ""
            self._notes.append(
                f"Not in the snapshot: {names}{more} (`codeloop debug snapshot` says why)."
            )

    def _store_entries_before(self, names: Iterable[str]) -> None:
        """Store files as they are before a call writes them,
        unless an earlier state of the step is stored.
        """
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
                self._unrecorded[name] = f"it was {error}"

    def _compare(self, after: Snapshot | None) -> StepChanges:
        """Return the step's changes. `after`: the snapshot at its end;
        None: compare only files that calls named.
        """
        objects = self._snapshots.objects
        objects.create_if_missing()
        last = self._snapshots.last
        base_tree = self._base or (last.tree if last is not None else EMPTY_TREE)
        before_tree = store_changed_tree(objects, base_tree, self._entries)
        after_tree = (
            after.tree
            if after is not None
            else store_changed_tree(objects, before_tree, self._store_entries_now())
        )
        changes = [
            change
            for change in list_differences(objects, before_tree, after_tree)
            if change.path not in self._omitted and change.path not in self._unrecorded
        ]
        # Without a snapshot the trees are built on an old one,
        # which may differ in files that this step did not write.
        if after is None:
            changes = [change for change in changes if change.path in self._entries]
        if self._latest_change is not None:
            changes = [change for change in changes if not self._was_changed_later(change.path)]
        self._copy_contents(changes)
        files = tuple(f"{self._snapshots.root}/{change.path}" for change in changes)
        return StepChanges(before_tree, after_tree, files, self.notes, self._find_unrecorded())

    def _was_changed_later(self, path: str) -> bool:
        """Return whether a file was changed after its step was cut off: then its present
        content is not the step's.
        """
        try:
            changed_at = os.lstat(f"{self._snapshots.root}/{path}").st_ctime_ns
        except OSError:
            return False
        if changed_at <= (self._latest_change or 0):
            return False
        self._unrecorded[path] = "it was changed after the step that changed it was cut off"
        return True

    def _store_entries_now(self) -> dict[str, TreeEntry | None]:
        """Store the files that calls named as they are now, and return their entries."""
        entries: dict[str, TreeEntry | None] = {}
        for name in self._entries:
            try:
                entries[name] = self._snapshots.store_entry(name)
            except Unreadable as error:
                self._unrecorded[name] = f"it is {error}"
                self._notes.append(f"{name} can't be restored by undo: it is {error}.")
        return entries

    def _copy_contents(self, changes: list[TreeChange]) -> None:
        """Copy blobs that only the user's repository has into our store,
        except blobs that git converted.
        """
        objects = self._snapshots.objects
        blobs = [change.before.blob for change in changes if change.before is not None]
        shared = [blob for blob in dict.fromkeys(blobs) if not objects.has(blob)]
        for blob in set(blobs).difference(shared):
            objects.keep_longer(blob)
        objects.copy_shared(shared, self._snapshots.environment, self._snapshots.find_size)
        missing = sum(not objects.has(blob) for blob in shared)
        if missing:
            self._notes.append(
                f"{missing:,} files could not be backed up; undo can't restore them."
            )


class UnrecordedStep:
    """Stands in for a StepRecorder where snapshots are off: an undo then says
    what it does not bring back.
    """

    notes: tuple[str, ...] = ()

    def __init__(self, root: Path) -> None:
        self._root = root
        self._unrecorded: dict[str, str] = {}

    def keeps(self, path: Path) -> bool:
        """Return False: nothing is kept."""
        _ = path
        return False

    async def record_before(
        self, paths: Collection[Path] | None = None, *, include_ignored: bool = False
    ) -> None:
        """Record which files a call may change; `include_ignored` makes no difference."""
        _ = include_ignored
        names = [""] if paths is None else [os.path.relpath(path, self._root) for path in paths]
        self._unrecorded |= dict.fromkeys(names, "`snapshot` is off in the configuration")

    async def finish(self) -> StepChanges | None:
        """Return the changes that can't be undone; None: no call could have changed files."""
        return (
            StepChanges(EMPTY_TREE, None, (), unrecorded=self._unrecorded)
            if self._unrecorded
            else None
        )

    def forget(self) -> None:
        """Do nothing: there is no record."""


Recorder = StepRecorder | UnrecordedStep
"""What a step records its changes with."""


def _read_stamp(path: str) -> tuple[int, ...] | None:
    """Return the numbers that show whether a file has changed; None: there is none."""
    try:
        info = os.lstat(path)
    except OSError:
        return None
    return (info.st_mode, info.st_mtime_ns, info.st_ctime_ns, info.st_size, info.st_ino)
