"""Restores files that an agent wrote and nobody changed since;
each file is old or new at any time.
"""

import os
import stat
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from codeloop.kit.git import compute_blob_id
from codeloop.schema.limits import SNAPSHOT_TRACKED
from codeloop.schema.wire import replace
from codeloop.workspace.files.atomic_write import FileChanged, Replacement, replace_file
from codeloop.workspace.files.safe_open import FileRefused, open_folder, read_file
from codeloop.workspace.files.temp_files import make_temporary_name, record_temporary_files
from codeloop.workspace.snapshot.blob import LINK_MODE, Unreadable, read_tree_entry, to_git_mode
from codeloop.workspace.snapshot.object_store import MissingObject, ObjectStore, TreeEntry
from codeloop.workspace.snapshot.stored_trees import TreeChange


class Restoration(msgspec.Struct, frozen=True):
    """One file (relative path): the content it must have now, and the one to restore;
    None: no file.
    """

    path: str
    expected: TreeEntry | None
    desired: TreeEntry | None


class Conflict(msgspec.Struct, frozen=True):
    """A file that was not restored, and why."""

    path: str
    reason: str


class RestoreResult(msgspec.Struct, frozen=True):
    """The result: restored paths, paths that needed no change, and conflicts."""

    restored: tuple[str, ...] = ()
    unchanged: tuple[str, ...] = ()
    conflicts: tuple[Conflict, ...] = ()


def find_restorable_entry(now: TreeEntry | None, changes: Sequence[TreeChange]) -> TreeEntry | None:
    """Return the entry that undo may restore: the file before an agent's changes (oldest first).

    `now`: the present entry. Undo goes back as far as the content is the agent's, and stops at a
    change whose result somebody else replaced: their version stays.
    """
    for change in reversed(changes):
        if now == change.before:
            continue
        if now != change.after:
            break
        now = change.before
    return now


def is_fully_restorable(now: TreeEntry | None, changes: Sequence[TreeChange]) -> bool:
    """Return whether a file has the content from before all of these changes,
    or can be restored to it.
    """
    return find_restorable_entry(now, changes) == (changes[0].before if changes else now)


def restore_entries(
    objects: ObjectStore,
    root: Path,
    restorations: Iterable[Restoration],
    records_folder: Path | None = None,
    *,
    dry_run: bool = False,
) -> RestoreResult:
    """Restore the files that still have the expected content. Blocks; never raises for one file.

    `root`: the resolved work tree. `records_folder`: as of `replace_files`. `dry_run`: the result
    says what would happen, but nothing is written.
    """
    restored: list[str] = []
    unchanged: list[str] = []
    conflicts: list[Conflict] = []
    # Deletions first, the deepest ones before their folders, so that a folder can become a file.
    ordered = sorted(
        restorations, key=lambda each: (each.desired is not None, -each.path.count("/"), each.path)
    )
    for restoration in ordered:
        try:
            now = read_tree_entry(f"{root}/{restoration.path}", SNAPSHOT_TRACKED.value)
            if now == restoration.desired and not (
                now is None and _is_folder(root, restoration.path)
            ):
                unchanged.append(restoration.path)
            elif now != restoration.expected:
                conflicts.append(Conflict(restoration.path, _describe_difference(now, restoration)))
            else:
                if not dry_run:
                    _restore(objects, root, restoration, records_folder)
                elif restoration.desired is not None and not objects.has(restoration.desired.blob):
                    raise MissingObject(restoration.desired.blob)
                restored.append(restoration.path)
        except MissingObject:
            conflicts.append(Conflict(restoration.path, "its previous content is no longer kept"))
        except FileChanged:
            conflicts.append(Conflict(restoration.path, "it was changed just now"))
        except (FileRefused, Unreadable) as error:
            conflicts.append(Conflict(restoration.path, str(error)))
        except OSError as error:
            conflicts.append(Conflict(restoration.path, f"it can't be written: {error.strerror}"))
    return RestoreResult(tuple(sorted(restored)), tuple(sorted(unchanged)), tuple(conflicts))


def _describe_difference(now: TreeEntry | None, restoration: Restoration) -> str:
    if now is None:
        return "it is gone"
    if restoration.expected is None:
        return "it was created since"
    return (
        "it was changed since"
        if now.blob != restoration.expected.blob
        else "its mode was changed since"
    )


def _is_folder(root: Path, path: str) -> bool:
    with suppress(OSError):
        return stat.S_ISDIR(os.lstat(root / path).st_mode)
    return False


def _restore(
    objects: ObjectStore, root: Path, restoration: Restoration, records_folder: Path | None
) -> None:
    """Restore one file atomically. Raises MissingObject, FileRefused, FileChanged, OSError."""
    path = root / restoration.path
    desired = restoration.desired
    data = None if desired is None else objects.read_blob(desired.blob)
    if LINK_MODE in {each.mode for each in (restoration.expected, desired) if each is not None}:
        _replace_link(path, restoration, data, records_folder)
    elif restoration.expected is None:
        replace_file(Replacement(path, None, data, _choose_mode(desired)), records_folder)
    else:
        before = read_file(path)
        if (
            TreeEntry(to_git_mode(before.mode), compute_blob_id(before.data).hex())
            != restoration.expected
        ):
            raise FileChanged(str(path))
        if desired is not None:
            before = replace(before, mode=_change_mode(before.mode, desired))
        # A command may have made the link: what is not in the step must not be written.
        replace_file(Replacement(path, before, data, keeps_links=False), records_folder)
    if desired is None:
        _remove_empty_folders(root, path.parent)


def _choose_mode(desired: TreeEntry | None) -> int | None:
    """Return the mode of a file to create; None: the default of the user's umask."""
    if desired is None or desired.mode == 0o100644:
        return None
    return stat.S_IMODE(desired.mode)


def _change_mode(mode: int, desired: TreeEntry) -> int:
    """Return a file's mode changed in as few bits as possible,
    so that `to_git_mode` makes it that of `desired`.
    """
    if to_git_mode(stat.S_IFREG | mode) == desired.mode:
        return mode
    if not mode & 0o077 or not desired.mode & 0o077:
        return stat.S_IMODE(desired.mode)
    # Whoever may read it may run it, or nobody may.
    return mode | (mode & 0o444) >> 2 if desired.mode & 0o100 else mode & ~0o111


def _replace_link(
    path: Path, restoration: Restoration, data: bytes | None, records_folder: Path | None
) -> None:
    """Replace a link, or a file by a link, atomically: `replace_file` works
    on regular files only.
    """
    desired = restoration.desired
    temporary = make_temporary_name()
    with (
        record_temporary_files(records_folder, [path.with_name(temporary)]),
        open_folder(path.parent, create=desired is not None) as folder,
    ):
        destination = _Destination(folder, path.name, temporary)
        if desired is None or data is None:
            _check_unchanged(path, restoration)
            os.unlink(destination.name, dir_fd=folder)
            return
        if desired.mode == LINK_MODE:
            os.symlink(data, destination.temporary, dir_fd=folder)
        else:
            _write_temporary(destination, data, desired)
        try:
            _check_unchanged(path, restoration)
            os.replace(
                destination.temporary, destination.name, src_dir_fd=folder, dst_dir_fd=folder
            )
        except (OSError, FileRefused, Unreadable):
            os.unlink(destination.temporary, dir_fd=folder)
            raise


class _Destination(msgspec.Struct, frozen=True):
    """A folder's descriptor, the final name in it, and a temporary one."""

    folder: int
    name: str
    temporary: str


def _write_temporary(destination: _Destination, data: bytes, desired: TreeEntry) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    # The umask narrows this mode. A private file is never readable by others,
    # not even for a moment.
    fd = os.open(
        destination.temporary,
        flags,
        0o666 if desired.mode & 0o077 else 0o600,
        dir_fd=destination.folder,
    )
    with os.fdopen(fd, "wb") as file:
        file.write(data)
        mode = _choose_mode(desired)
        if mode is not None:
            os.fchmod(fd, mode)


def _check_unchanged(path: Path, restoration: Restoration) -> None:
    if read_tree_entry(str(path), SNAPSHOT_TRACKED.value) != restoration.expected or _is_folder(
        path.parent, path.name
    ):
        raise FileChanged(str(path))


def _remove_empty_folders(root: Path, folder: Path) -> None:
    """Remove the folders that a deletion left empty, as git does."""
    with suppress(OSError):
        while folder != root and root in folder.parents:
            folder.rmdir()
            folder = folder.parent
