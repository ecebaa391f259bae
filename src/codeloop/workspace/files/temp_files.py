"""Records the temporary files of writes in progress,
so that a later run removes those that a kill left behind.

Each write has a record, a small file in the project's data folder.
"""

import os
import re
import stat
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from codeloop.kit.new_file import CREATE_FLAGS
from codeloop.kit.processes import is_own_scope, read_pid_scope, read_start_time
from codeloop.kit.small_files import create_private_folder
from codeloop.schema.limits import WRITE_RECORD_AGE, WRITE_RECORD_BYTES
from codeloop.workspace.files.safe_open import FileRefused, open_folder

# The folder of records within a project's data folder.
RECORDS_FOLDER = "writes"
# The name of a record: its writer's process id and start time, and a random part.
RECORD_NAME = r"(\d{1,10})-(\w+)-[0-9a-f]{16}"
# The names that `make_temporary_name` makes.
TEMPORARY_NAME = r"\.codeloop-[0-9a-f]{16}"


def make_temporary_name() -> str:
    """Return a unique name for a temporary file."""
    return f".codeloop-{os.urandom(8).hex()}"


@contextmanager
def record_temporary_files(folder: Path | None, paths: Sequence[Path]) -> Generator[None]:
    """Keep a record of temporary paths in `folder` until the end of the block.

    Without a folder, or when it can't be written,
    nothing is recorded: the write itself matters more.
    """
    record = None
    if folder is not None:
        with suppress(OSError):
            record = _write_record(folder, paths)
    try:
        yield
    finally:
        if record is not None:
            with suppress(OSError):
                record.unlink()


def _write_record(folder: Path, paths: Sequence[Path]) -> Path:
    record = folder / f"{os.getpid()}-{read_start_time(os.getpid())}-{os.urandom(8).hex()}"
    # A process id means something only until the machine is restarted, and within its container.
    text = b"".join(os.fsencode(each) + b"\0" for each in (read_pid_scope(), *paths))
    try:
        fd = os.open(record, CREATE_FLAGS, 0o600)
    except FileNotFoundError:
        create_private_folder(folder)
        fd = os.open(record, CREATE_FLAGS, 0o600)
    try:
        # A record that is cut short names fewer files, which is harmless.
        os.write(fd, text)
    finally:
        os.close(fd)
    return record


def remove_leftovers(folder: Path) -> list[Path]:
    """Remove the temporary files that dead processes have recorded; return their paths. Blocks.

    Only files with a name of `make_temporary_name` are removed.
    Those that can't be reached now are left for a later run.
    """
    removed: list[Path] = []
    for record in _list_records(folder):
        with suppress(OSError):
            with record.open("rb") as file:
                scope, *paths = os.fsdecode(file.read(WRITE_RECORD_BYTES.value)).split("\0")
                age = time.time() - os.fstat(file.fileno()).st_mtime
            if _is_writer_dead(record, scope, age):
                # After the last NUL nothing follows, or a path that is cut short.
                removed += [path for path in map(Path, paths[:-1]) if _remove_temporary_file(path)]
                record.unlink()
    return removed


def _list_records(folder: Path) -> list[Path]:
    try:
        return [file for file in folder.iterdir() if re.fullmatch(RECORD_NAME, file.name)]
    except OSError:
        return []


def _is_writer_dead(record: Path, scope: str, age: float) -> bool:
    """Return whether a record's writer has ended, by its process id,
    or else by the record's `age` in seconds.
    """
    match = re.fullmatch(RECORD_NAME, record.name)
    if match is not None and is_own_scope(scope):
        # Another process may have the same id by now, but not the same start time.
        return read_start_time(int(match[1])) != match[2]
    return age > WRITE_RECORD_AGE.seconds


def _remove_temporary_file(path: Path) -> bool:
    """Remove a temporary file or link, following no link on the way; return whether there was one.
    Raises OSError.
    """
    if not path.is_absolute() or not re.fullmatch(TEMPORARY_NAME, path.name):
        return False
    try:
        with open_folder(path.parent) as folder:
            if stat.S_ISDIR(os.stat(path.name, dir_fd=folder, follow_symlinks=False).st_mode):
                return False
            os.unlink(path.name, dir_fd=folder)
    except (FileNotFoundError, FileRefused):  # the folder was replaced
        return False
    return True
