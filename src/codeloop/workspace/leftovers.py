"""What a kill left beside files is removed by a later run: only names that we noted, of processes that are gone."""

import os
import stat
import time
from contextlib import suppress
from pathlib import Path

from codeloop.kit.alive import is_here, start_of
from codeloop.schema.limits import WRITE_NOTE, WRITE_NOTE_AGE
from codeloop.workspace.files import FileRefused, open_folder
from codeloop.workspace.notes import NOTE, TEMPORARY


def clear(folder: Path) -> list[Path]:
    """Remove the temporary names that processes noted and could not remove before they died; gives them. Blocks.

    Only names of our own kind that were noted are touched. What can't be reached now is left for another time.
    """
    removed: list[Path] = []
    for note in _notes(folder):
        with suppress(OSError):
            with note.open("rb") as file:
                place, *paths = os.fsdecode(file.read(WRITE_NOTE.value)).split("\0")
                age = time.time() - os.fstat(file.fileno()).st_mtime
            if _is_dead(note, place, age):
                removed += [path for path in map(Path, paths[:-1]) if _remove(path)]
                note.unlink()
    return removed


def _notes(folder: Path) -> list[Path]:
    try:
        return [file for file in folder.iterdir() if NOTE.fullmatch(file.name)]
    except OSError:
        return []


def _is_dead(note: Path, place: str, age: float) -> bool:
    """Tell whether who wrote a note is surely gone: by looking where that can be seen, else by the note's age in s."""
    found = NOTE.fullmatch(note.name)
    if found is not None and is_here(place):
        return start_of(int(found[1])) != found[2]
    return age > WRITE_NOTE_AGE.seconds


def _remove(path: Path) -> bool:
    """Remove a file or link of a name of ours, following no link on the way. Raises OSError unless it is gone."""
    if not path.is_absolute() or not TEMPORARY.fullmatch(path.name):
        return False
    try:
        with open_folder(path.parent) as folder:
            if stat.S_ISDIR(os.stat(path.name, dir_fd=folder, follow_symlinks=False).st_mode):
                return False
            os.unlink(path.name, dir_fd=folder)
    except (FileNotFoundError, FileRefused):  # the folder is another one now
        return False
    return True
