"""Reads and writes our own small files: with a size limit, never blocking on a pipe, atomically."""

from pathlib import Path

from codeloop.kit.small_files import make_private, read_start, write_atomically
from codeloop.schema.errors import CodeloopError


def read_text(path: Path, most: int) -> str | None:
    """Return a file's text, None when there is no such file.

    Raises CodeloopError when it can't be read, is longer than `most` bytes or is not UTF-8.
    """
    try:
        content = read_start(path, most + 1)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise CodeloopError(f"{path} can't be read: {reason(error)}.") from error
    if len(content) > most:
        raise CodeloopError(f"{path} is larger than {most:,} bytes, the most that is read of such a file.")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise CodeloopError(f"{path}:{line}: not UTF-8 text. Save the file as UTF-8.") from error


def write_private(path: Path, text: str) -> None:
    """Write a file that only its owner may read, atomically; its folder is made when missing. Raises OSError."""
    make_private(path.parent)
    write_atomically(path, text.encode(), sync=True)


def reason(error: OSError) -> str:
    """Return the system's message for an error."""
    return error.strerror or str(error)
