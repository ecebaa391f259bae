"""Restores files that an agent wrote and nobody changed since; each file is old or new at any time."""

import os
import stat
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from codeloop.schema.limits import SNAPSHOT_TRACKED
from codeloop.schema.wire import replace
from codeloop.workspace.files.atomic_write import FileChanged, Replacement, replace_file
from codeloop.workspace.files.safe_open import FileRefused, load, open_folder
from codeloop.workspace.files.temp_files import new_name, note_temporary
from codeloop.workspace.snapshot.blob import LINK, Unreadable, blob_name, to_git_mode, tree_entry_of
from codeloop.workspace.snapshot.object_store import MissingObject, ObjectStore, TreeEntry
from codeloop.workspace.snapshot.tree_diff import TreeChange


class Restoration(msgspec.Struct, frozen=True):
    """One file (relative path): the content it must have now, and the one to restore; None: no file."""

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


def find_unwound(now: TreeEntry | None, changes: Sequence[TreeChange]) -> TreeEntry | None:
    """Return a file's entry before an agent's changes (oldest first), as far back as the content is the agent's.

    It stops at a change whose result somebody else replaced: their version stays.
    """
    for change in reversed(changes):
        if now == change.before:
            continue
        if now != change.after:
            break
        now = change.before
    return now


def is_unwound(now: TreeEntry | None, changes: Sequence[TreeChange]) -> bool:
    """Return whether a file is, or can be restored to, what it was before all of these changes."""
    return find_unwound(now, changes) == (changes[0].before if changes else now)


def put_back(
    objects: ObjectStore, root: Path, moves: Iterable[Restoration], notes: Path | None = None, *, dry_run: bool = False
) -> RestoreResult:
    """Restore the files that still have the expected content. Blocks. `root`: resolved; never raises for one file.

    `notes`: as of `replace_files`. `dry_run`: only return what would happen.
    """
    restored: list[str] = []
    unchanged: list[str] = []
    conflicts: list[Conflict] = []
    # Deletions first, the deepest ones before their folders, so that a folder can become a file.
    for move in sorted(moves, key=lambda move: (move.desired is not None, -move.path.count("/"), move.path)):
        try:
            now = tree_entry_of(f"{root}/{move.path}", SNAPSHOT_TRACKED.value)
            if now == move.desired and not (now is None and _is_folder(root, move.path)):
                unchanged.append(move.path)
            elif now != move.expected:
                conflicts.append(Conflict(move.path, _describe_difference(now, move)))
            else:
                if not dry_run:
                    _restore(objects, root, move, notes)
                elif move.desired is not None and not objects.has(move.desired.blob):
                    raise MissingObject(move.desired.blob)
                restored.append(move.path)
        except MissingObject:
            conflicts.append(Conflict(move.path, "its previous content is no longer kept"))
        except FileChanged:
            conflicts.append(Conflict(move.path, "it was changed just now"))
        except (FileRefused, Unreadable) as error:
            conflicts.append(Conflict(move.path, str(error)))
        except OSError as error:
            conflicts.append(Conflict(move.path, f"it can't be written: {error.strerror}"))
    return RestoreResult(tuple(sorted(restored)), tuple(sorted(unchanged)), tuple(conflicts))


def _describe_difference(now: TreeEntry | None, move: Restoration) -> str:
    if now is None:
        return "it is gone"
    if move.expected is None:
        return "it was created since"
    return "it was changed since" if now.blob != move.expected.blob else "its mode was changed since"


def _is_folder(root: Path, path: str) -> bool:
    with suppress(OSError):
        return stat.S_ISDIR(os.lstat(root / path).st_mode)
    return False


def _restore(objects: ObjectStore, root: Path, move: Restoration, notes: Path | None) -> None:
    """Replace one file atomically. Raises MissingObject, FileRefused, FileChanged, OSError."""
    real = root / move.path
    desired = move.desired
    data = None if desired is None else objects.blob(desired.blob)
    if LINK in {each.mode for each in (move.expected, desired) if each is not None}:
        _swap(real, move, data, notes)
    elif move.expected is None:
        replace_file(Replacement(real, None, data, _choose_mode(desired)), notes)
    else:
        before = load(real)
        if TreeEntry(to_git_mode(before.mode), blob_name(before.data)) != move.expected:
            raise FileChanged(str(real))
        if desired is not None:
            before = replace(before, mode=_change_mode(before.mode, desired))
        replace_file(Replacement(real, before, data), notes)
    if desired is None:
        _remove_empty(root, real.parent)


def _choose_mode(desired: TreeEntry | None) -> int | None:
    """Return the mode of a file to create; None: the default of the user's umask."""
    if desired is None or desired.mode == 0o100644:
        return None
    return stat.S_IMODE(desired.mode)


def _change_mode(mode: int, desired: TreeEntry) -> int:
    """Return a mode that becomes what git would call `desired`, with as few bits changed as possible."""
    if to_git_mode(stat.S_IFREG | mode) == desired.mode:
        return mode
    if not mode & 0o077 or not desired.mode & 0o077:
        return stat.S_IMODE(desired.mode)
    return mode | (mode & 0o444) >> 2 if desired.mode & 0o100 else mode & ~0o111


def _swap(real: Path, move: Restoration, data: bytes | None, notes: Path | None) -> None:
    """Replace atomically where a link is involved."""
    desired = move.desired
    temporary = new_name()
    with (
        note_temporary(notes, [real.with_name(temporary)]),
        open_folder(real.parent, create=desired is not None) as folder,
    ):
        destination = _Destination(folder, real.name, temporary)
        if desired is None or data is None:
            _check(real, move)
            os.unlink(destination.name, dir_fd=folder)
            return
        make: Callable[[_Destination], None] = (
            _make_linker(data) if desired.mode == LINK else _make_writer(data, desired)
        )
        make(destination)
        try:
            _check(real, move)
            os.replace(destination.temporary, destination.name, src_dir_fd=folder, dst_dir_fd=folder)
        except (OSError, FileRefused, Unreadable):
            os.unlink(destination.temporary, dir_fd=folder)
            raise


class _Destination(msgspec.Struct, frozen=True):
    """A folder's descriptor, the final name in it, and a temporary one."""

    folder: int
    name: str
    temporary: str


def _make_linker(target: bytes) -> Callable[[_Destination], None]:
    return lambda destination: os.symlink(target, destination.temporary, dir_fd=destination.folder)


def _make_writer(data: bytes, desired: TreeEntry) -> Callable[[_Destination], None]:
    def write(destination: _Destination) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        fd = os.open(destination.temporary, flags, 0o666 if desired.mode & 0o077 else 0o600, dir_fd=destination.folder)
        with os.fdopen(fd, "wb") as file:
            file.write(data)
            mode = _choose_mode(desired)
            if mode is not None:
                os.fchmod(fd, mode)

    return write


def _check(real: Path, move: Restoration) -> None:
    if tree_entry_of(str(real), SNAPSHOT_TRACKED.value) != move.expected or _is_folder(real.parent, real.name):
        raise FileChanged(str(real))


def _remove_empty(root: Path, folder: Path) -> None:
    """Remove the folders that a deletion left empty, as git does."""
    with suppress(OSError):
        while folder != root and root in folder.parents:
            folder.rmdir()
            folder = folder.parent
