"""The file of `--record`: checked before a model is asked, and complete under its name or not there at all."""

import fcntl
import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from msgspec import Struct

from codeloop.cli.exit_codes import UsageProblem
from codeloop.schema.errors import CodeloopError


class Tape(Struct):
    """The file that is recorded into, and whether all that was answered is in it."""

    path: Path
    is_whole: bool = True


@contextmanager
def recording(path: Path, *, replace: bool) -> Generator[Tape]:
    """Yield the file to record into; it gets its name when the work is over, so that a killed run leaves none.

    One that is not whole keeps the name it has meanwhile.

    Raises UsageProblem when something is there already that must not be replaced, CodeloopError when the folder can't
    be written.
    """
    target = Path(os.path.realpath(path))
    if target.exists() and not target.is_file():
        raise UsageProblem(f"{path} of --record is no regular file. Choose another name.")
    if not replace and target.exists() and target.stat().st_size:
        raise UsageProblem(f"The recording {path} exists. Choose another name, or replace it with --force.")
    part = target.with_name(f"{target.name}.part")
    try:
        descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        raise CodeloopError(f"The recording {path} can't be written: {error.strerror}. Choose another file.") from error
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UsageProblem(f"Another run records to {path}. Choose another name.") from None
        os.ftruncate(descriptor, 0)  # what a killed run left
        tape = Tape(part)
        try:
            yield tape
        finally:
            if tape.is_whole and os.fstat(descriptor).st_size:
                part.replace(target)
            elif tape.is_whole:
                part.unlink(missing_ok=True)
    finally:
        os.close(descriptor)
