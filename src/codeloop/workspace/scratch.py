"""Files for whole outputs: private, in the scratch folder, named by an id."""

import os
from pathlib import Path

from codeloop.schema.ids import new_id


def create(folder: Path) -> tuple[Path, int]:
    """Make a new empty file that only its owner can read. Gives its path and a descriptor; raises OSError."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    path = folder / new_id("tool")
    return path, os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)


def save(folder: Path, data: bytes) -> Path:
    """Write `data` to a new file and give its path. Raises OSError; then no file is left."""
    path, fd = create(folder)
    try:
        write(fd, data)
    except OSError:
        path.unlink(missing_ok=True)
        raise
    finally:
        os.close(fd)
    return path


def write(fd: int, data: bytes | memoryview) -> None:
    """Write all of `data`; raises OSError."""
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(fd, rest) :]
