"""Temporary names of writes under way are noted, so that a later run can remove what a kill left of them."""

import os
import re
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from codeloop.kit.alive import here, start_of
from codeloop.kit.folder import make_private

FOLDER = "writes"
"""The folder of notes, beside what else is kept of a project."""
NOTE = re.compile(r"(\d{1,10})-(\w+)-[0-9a-f]{16}")
"""The name of a note: who wrote it (process id and start), and something random."""
TEMPORARY = re.compile(r"\.codeloop-[0-9a-f]{16}")
"""What `new_name` gives."""
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW


def new_name() -> str:
    """Give a name for a temporary file, that nobody else has or will have."""
    return f".codeloop-{os.urandom(8).hex()}"


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
