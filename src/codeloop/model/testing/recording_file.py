"""The file that a run's answers of models are recorded to: checked before the first request,
named when complete.
"""

import fcntl
import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from msgspec import Struct

from codeloop.kit.new_file import open_parent
from codeloop.schema.errors import CodeloopError, UsageProblem


class RecordingFile(Struct):
    """The file that a recording is written to. `is_whole`: it holds every answer so far."""

    path: Path
    is_whole: bool = True


@contextmanager
def open_recording(path: Path, *, replace: bool) -> Generator[RecordingFile]:
    """Open a recording and yield the file to write, `path` with `.part`.
    A whole recording gets its name at the end.

    Raises UsageProblem if the file exists and must not be replaced,
    CodeloopError if it can't be written.
    """
    # A link may have been planted by the project, and would lead to a file of the user's.
    target = path.absolute()
    if target.is_symlink() or (target.exists() and not target.is_file()):
        raise UsageProblem(f"The recording {path} is not a regular file. Choose another name.")
    if not replace and target.exists() and target.stat().st_size:
        raise UsageProblem(
            f"The recording {path} already exists. Choose another name, or replace it with --force."
        )
    # A killed run leaves a `.part` file, which nobody takes for a complete recording.
    part = target.with_name(f"{target.name}.part")
    # A recording holds prompts and code, so only its owner may read it.
    # `O_NOFOLLOW`: nobody can divert it by a link.
    try:
        folder = open_parent(path)
        try:
            flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
            descriptor = os.open(part.name, flags, 0o600, dir_fd=folder)
        finally:
            os.close(folder)
    except OSError as error:
        raise CodeloopError(
            f"The recording {path} can't be written: {error.strerror}. Choose another file."
        ) from error
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UsageProblem(
                f"Another run is recording to {path}. Choose another name."
            ) from None
        # Only now, with the lock: before, another run may still be writing here.
        os.ftruncate(descriptor, 0)
        record = RecordingFile(part)
        try:
            yield record
        finally:
            if record.is_whole and os.fstat(descriptor).st_size:
                part.replace(target)
            elif record.is_whole:
                part.unlink(missing_ok=True)
    finally:
        os.close(descriptor)
