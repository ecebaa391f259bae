"""Writes the files of a CI job for users, such as the page of the session, without following links of the agent."""

from pathlib import Path

from codeloop.kit.small_files import write_atomically
from codeloop.schema.errors import CodeloopError


def write_output(folder: Path, name: str, content: bytes | str) -> Path:
    """Write a file into the output folder, and return its path. Raises CodeloopError.

    `folder`: an absolute path that had no links when the job began.
    """
    path = folder / name
    try:
        # The agent can write here, and links of it would lead this process, which has the token, to other files.
        if folder.is_symlink():
            folder.unlink()
        folder.mkdir(parents=True, exist_ok=True)
        if folder.resolve() != folder:
            raise CodeloopError(f"{folder} leads somewhere else by now: nothing is written there.")
        # Replaces a link of this name instead of following it.
        write_atomically(path, content.encode("utf-8", "surrogateescape") if isinstance(content, str) else content)
    except OSError as error:
        raise CodeloopError(f"{path} can't be written: {error.strerror}.") from error
    return path
