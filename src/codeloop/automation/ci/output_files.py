"""Writes the files that a job leaves for users. The agent may have put links into their folder."""

from pathlib import Path

from codeloop.kit.small_files import write_atomically
from codeloop.schema.errors import CodeloopError


def write_output(folder: Path, name: str, data: bytes | str) -> Path:
    """Write a file into the output folder, and return its path. A link of this name is replaced, never followed.

    `folder`: an absolute path that had no links when the job began. Raises CodeloopError.
    """
    path = folder / name
    try:
        if folder.is_symlink():
            folder.unlink()
        folder.mkdir(parents=True, exist_ok=True)
        if folder.resolve() != folder:
            raise CodeloopError(f"{folder} leads somewhere else by now: nothing is written there.")
        write_atomically(path, data.encode("utf-8", "surrogateescape") if isinstance(data, str) else data)
    except OSError as error:
        raise CodeloopError(f"{path} can't be written: {error.strerror}.") from error
    return path
