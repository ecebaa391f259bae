"""Temporary names of writes under way are noted, so that a later run removes what a kill left of them."""

import os
import re
import stat
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from codeloop.kit.alive import here, is_here, start_of
from codeloop.kit.folder import make_private
from codeloop.schema.limits import WRITE_NOTE, WRITE_NOTE_AGE
from codeloop.workspace.files import FileRefused, open_folder

_NOTE = re.compile(r"(\d{1,10})-(\w+)-[0-9a-f]{16}")
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW


def new_name() -> str:
    """Give a name for a temporary file, that nobody else has or will have."""
    return f".codeloop-{os.urandom(8).hex()}"


_TEMPORARY = re.compile(r"\.codeloop-[0-9a-f]{16}")


@contextmanager
def noted(folder: Path | None, paths: Sequence[Path]) -> Generator[None]:
    """Note, in a folder of our own, which temporary names are about to be made, until they are gone again.

    Without a folder, or when it can't be written, nothing is noted: the write itself is what matters.
    """
    note = None
    if folder is not None:
        with suppress(OSError):
            note = _written(folder, paths)
    try:
        yield
    finally:
        if note is not None:
            with suppress(OSError):
                note.unlink()


def _written(folder: Path, paths: Sequence[Path]) -> Path:
    note = folder / f"{os.getpid()}-{start_of(os.getpid())}-{os.urandom(8).hex()}"
    text = b"".join(os.fsencode(each) + b"\0" for each in (here(), *paths))
    try:
        fd = os.open(note, _CREATE, 0o600)
    except FileNotFoundError:
        make_private(folder)
        fd = os.open(note, _CREATE, 0o600)
    try:
        os.write(fd, text)  # one that is cut short names fewer
    finally:
        os.close(fd)
    return note


def clear(folder: Path) -> list[Path]:
    """Remove the temporary names that processes noted and could not remove before they died; gives them. Blocks.

    Only names of our own kind that were noted are touched. What can't be reached now is left for another time.
    """
    removed: list[Path] = []
    for note in _notes(folder):
        with suppress(OSError):
            info = note.lstat()
            with note.open("rb") as file:
                place, *paths = os.fsdecode(file.read(WRITE_NOTE.value)).split("\0")
            if not stat.S_ISREG(info.st_mode) or not _is_dead(note, place, time.time() - info.st_mtime):
                continue
            removed += [path for path in map(Path, paths[:-1]) if _remove(path)]
            note.unlink()
    return removed


def _notes(folder: Path) -> list[Path]:
    try:
        return [folder / name for name in os.listdir(folder) if _NOTE.fullmatch(name)]
    except OSError:
        return []


def _is_dead(note: Path, place: str, age: float) -> bool:
    """Tell whether who wrote a note is surely gone: by looking where that can be seen, else by the note's age in s."""
    found = _NOTE.fullmatch(note.name)
    if found is not None and is_here(place):
        return start_of(int(found[1])) != found[2]
    return age > WRITE_NOTE_AGE.seconds


def _remove(path: Path) -> bool:
    """Remove a file or link of a name of ours, following no link on the way. Raises OSError unless it is gone."""
    if not path.is_absolute() or not _TEMPORARY.fullmatch(path.name):
        return False
    try:
        with open_folder(path.parent) as folder:
            if stat.S_ISDIR(os.stat(path.name, dir_fd=folder, follow_symlinks=False).st_mode):
                return False
            os.unlink(path.name, dir_fd=folder)
    except (FileNotFoundError, FileRefused):  # the folder is another one now
        return False
    return True
