"""Small files of ours: read with a bound and without ever blocking, written whole or not at all."""

import os
import stat
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

from codeloop.kit.folder import make_private
from codeloop.schema.errors import CodeloopError

_READ = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC


@contextmanager
def opened(path: Path) -> Generator[int]:
    """Open a regular file for reading and give its descriptor. Raises OSError, for pipes and devices too."""
    descriptor = os.open(path, _READ)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(0, "not a regular file")
        yield descriptor
    finally:
        os.close(descriptor)


def read_start(path: Path, most: int) -> bytes:
    """Give the first `most` bytes of a regular file. Raises OSError."""
    with opened(path) as descriptor:
        pieces: list[bytes] = []
        while most > 0 and (piece := os.read(descriptor, most)):
            pieces.append(piece)
            most -= len(piece)
        return b"".join(pieces)


def read_text(path: Path, most: int) -> str | None:
    """Give a file's text, None when there is no such file.

    Raises CodeloopError when it can't be read, is longer than `most` bytes or is not UTF-8.
    """
    try:
        content = read_start(path, most + 1)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise CodeloopError(f"{path} can't be read: {reason(error)}.") from error
    if len(content) > most:
        raise CodeloopError(f"{path} is larger than the {most:,} bytes that are read of such a file.")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise CodeloopError(f"{path}:{line}: not UTF-8 text. Save the file as UTF-8.") from error


def write_private(path: Path, text: str) -> None:
    """Write a file that only its owner may read, atomically; its folder is made when missing. Raises OSError."""
    make_private(path.parent)
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    with suppress(FileNotFoundError):
        draft.unlink()
    descriptor = os.open(draft, _CREATE, 0o600)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(descriptor)
        draft.replace(path)
    except OSError:
        draft.unlink(missing_ok=True)
        raise


def reason(error: OSError) -> str:
    """Give the system's words for an error."""
    return error.strerror or str(error)
