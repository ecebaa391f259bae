"""Reads and writes configuration files and other small files of codeloop.

Reads have a size limit and never block on a pipe; writes are atomic.
"""

from pathlib import Path

from codeloop.kit.small_files import create_private_folder, read_start, write_atomically
from codeloop.schema.errors import CodeloopError


def read_text(path: Path, max_bytes: int) -> str | None:
    """Return a file's text; None: there is no such file.

    Raises CodeloopError when it can't be read, is larger than `max_bytes` or is not UTF-8.
    """
    try:
        content = read_start(path, max_bytes + 1)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise CodeloopError(f"{path} can't be read: {describe_os_error(error)}.") from error
    if len(content) > max_bytes:
        raise CodeloopError(
            f"{path} is larger than {max_bytes:,} bytes, the most that is read of such a file."
        )
    try:
        # Some editors write a byte-order mark.
        return content.decode().removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise CodeloopError(f"{path}:{line}: not UTF-8 text. Save the file as UTF-8.") from error


def write_private(path: Path, text: str) -> None:
    """Write a file that only its owner may read, atomically; a missing folder is created.
    Raises OSError.
    """
    create_private_folder(path.parent)
    write_atomically(path, text.encode(), sync=True)


def describe_os_error(error: OSError) -> str:
    """Return the operating system's message for an error, such as "Permission denied"."""
    return error.strerror or str(error)
