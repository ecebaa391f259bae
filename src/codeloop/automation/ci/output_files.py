"""Writes the files of a CI job for users, such as the page of the session, without following links of the agent."""

from pathlib import Path

from codeloop.kit.new_file import write_new_file
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
        data = content.encode("utf-8", "surrogateescape") if isinstance(content, str) else content
        write_new_file(path, data, base=Path("/"), mode=0o666)
    except OSError as error:
        raise CodeloopError(f"{path} can't be written: {error.strerror}.") from error
    return path
