"""The file of a recording: checked before the first request, and renamed only when complete."""

import fcntl
import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from msgspec import Struct

from codeloop.schema.errors import CodeloopError, UsageProblem


class Recording(Struct):
    """The file that is written, and whether it holds every answer."""

    path: Path
    is_whole: bool = True


@contextmanager
def recording(path: Path, *, replace: bool) -> Generator[Recording]:
    """Yield the file to write; it gets its name at the end, so that a killed run leaves no finished recording.

    One that is not whole stays `.part`.

    Raises UsageProblem if the file exists and must not be replaced, CodeloopError if it can't be written.
    """
    target = Path(os.path.realpath(path))
    if target.exists() and not target.is_file():
        raise UsageProblem(f"The recording {path} is not a regular file. Choose another name.")
    if not replace and target.exists() and target.stat().st_size:
        raise UsageProblem(f"The recording {path} already exists. Choose another name, or replace it with --force.")
    part = target.with_name(f"{target.name}.part")
    try:
        descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        raise CodeloopError(f"The recording {path} can't be written: {error.strerror}. Choose another file.") from error
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UsageProblem(f"Another run is recording to {path}. Choose another name.") from None
        os.ftruncate(descriptor, 0)  # what a killed run left
        record = Recording(part)
        try:
            yield record
        finally:
            if record.is_whole and os.fstat(descriptor).st_size:
                part.replace(target)
            elif record.is_whole:
                part.unlink(missing_ok=True)
    finally:
        os.close(descriptor)
