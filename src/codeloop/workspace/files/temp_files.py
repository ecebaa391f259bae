"""Temporary names of writes in progress, recorded so that a later run removes those that a kill left behind."""

import os
import re
import stat
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from codeloop.kit.processes import is_own_scope, read_pid_scope, read_start_time
from codeloop.kit.small_files import CREATE_FLAGS, make_private
from codeloop.schema.limits import WRITE_RECORD_AGE, WRITE_RECORD_BYTES
from codeloop.workspace.files.safe_open import FileRefused, open_folder

FOLDER = "writes"
"""The folder of notes within a project's data folder."""
NOTE = re.compile(r"(\d{1,10})-(\w+)-[0-9a-f]{16}")
"""The name of a note: its writer's process id and start time, and a random part."""
TEMPORARY = re.compile(r"\.codeloop-[0-9a-f]{16}")
"""The names that `new_name` makes."""


def new_name() -> str:
    """Return a unique name for a temporary file."""
    return f".codeloop-{os.urandom(8).hex()}"


@contextmanager
def note_temporary(folder: Path | None, paths: Sequence[Path]) -> Generator[None]:
    """Record temporary names in `folder` until the end of the block, so that a later run can remove leftovers.

    Without a folder, or when it can't be written, nothing is recorded: the write itself matters more.
    """
    note = None
    if folder is not None:
        with suppress(OSError):
            note = _write_note(folder, paths)
    try:
        yield
    finally:
        if note is not None:
            with suppress(OSError):
                note.unlink()


def _write_note(folder: Path, paths: Sequence[Path]) -> Path:
    note = folder / f"{os.getpid()}-{read_start_time(os.getpid())}-{os.urandom(8).hex()}"
    text = b"".join(os.fsencode(each) + b"\0" for each in (read_pid_scope(), *paths))
    try:
        fd = os.open(note, CREATE_FLAGS, 0o600)
    except FileNotFoundError:
        make_private(folder)
        fd = os.open(note, CREATE_FLAGS, 0o600)
    try:
        os.write(fd, text)  # one that is cut short names fewer
    finally:
        os.close(fd)
    return note


def clear(folder: Path) -> list[Path]:
    """Remove the temporary names that processes noted and could not remove before they died; returns them. Blocks.

    Only names of our own kind that were noted are touched. What can't be reached now is left for another time.
    """
    removed: list[Path] = []
    for note in _list_notes(folder):
        with suppress(OSError):
            with note.open("rb") as file:
                boot_id, *paths = os.fsdecode(file.read(WRITE_RECORD_BYTES.value)).split("\0")
                age = time.time() - os.fstat(file.fileno()).st_mtime
            if _is_dead(note, boot_id, age):
                removed += [path for path in map(Path, paths[:-1]) if _remove(path)]
                note.unlink()
    return removed


def _list_notes(folder: Path) -> list[Path]:
    try:
        return [file for file in folder.iterdir() if NOTE.fullmatch(file.name)]
    except OSError:
        return []


def _is_dead(note: Path, boot_id: str, age: float) -> bool:
    """Return whether a note's writer has certainly ended: by its process id, else by `age` in seconds."""
    match = NOTE.fullmatch(note.name)
    if match is not None and is_own_scope(boot_id):
        return read_start_time(int(match[1])) != match[2]
    return age > WRITE_RECORD_AGE.seconds


def _remove(path: Path) -> bool:
    """Remove a temporary file or link, following no link on the way. Raises OSError unless it is gone."""
    if not path.is_absolute() or not TEMPORARY.fullmatch(path.name):
        return False
    try:
        with open_folder(path.parent) as folder:
            if stat.S_ISDIR(os.stat(path.name, dir_fd=folder, follow_symlinks=False).st_mode):
                return False
            os.unlink(path.name, dir_fd=folder)
    except (FileNotFoundError, FileRefused):  # the folder was replaced
        return False
    return True
