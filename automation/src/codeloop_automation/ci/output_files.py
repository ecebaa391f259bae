"""The folder of a CI job with files for users: writes some,
and keeps of the agent's only regular files.

What publishes the folder follows links, and may publish them to everybody.
"""

import os
import shutil
import stat
from contextlib import suppress
from pathlib import Path

from codeloop.kit.new_file import open_new_file, write_new_file
from codeloop.kit.remove_tree import remove_tree, temporary_folder
from codeloop.schema.errors import CodeloopError

MAX_DEPTH = 20


def write_output(folder: Path, name: str, content: bytes | str) -> Path:
    """Write a file into the output folder, and return its path. Raises CodeloopError.

    `folder`: an absolute path that had no links when the job began.
    """
    path = folder / name
    try:
        # The agent can write here, and links of it would lead this process, which has the token,
        # to other files.
        if folder.is_symlink():
            folder.unlink()
        data = content.encode("utf-8", "surrogateescape") if isinstance(content, str) else content
        write_new_file(path, data, base=Path("/"), mode=0o666)
    except OSError as error:
        raise CodeloopError(f"{path} can't be written: {error.strerror}.") from error
    return path


def remove_links(folder: Path) -> None:
    """Put a new folder in the place of one that the agent could write to,
    with copies of the regular files in it.

    Links, pipes, files with a second name and folders deeper than MAX_DEPTH levels are left out.
    Raises CodeloopError.
    """
    if not folder.is_symlink() and not folder.exists():
        return
    try:
        with temporary_folder(f".{folder.name}-", folder.parent) as above:
            copy = above / folder.name
            copy.mkdir(mode=0o755)
            if not folder.is_symlink():
                _copy_regular_files(folder, copy)
            remove_tree(folder)
            copy.rename(folder)
    except OSError as error:
        raise CodeloopError(f"{folder} can't be made anew: {error.strerror}.") from error


def _copy_regular_files(source: Path, target: Path) -> None:
    for path, folders, names, descriptor in os.fwalk(source, follow_symlinks=False):
        place = Path(path).relative_to(source)
        if len(place.parts) >= MAX_DEPTH:
            folders.clear()
        for name in names:
            # A pipe would wait for a writer.
            with suppress(OSError):
                file = os.open(
                    name,
                    os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC,
                    dir_fd=descriptor,
                )
                with os.fdopen(file, "rb") as opened:
                    status = os.fstat(file)
                    if not stat.S_ISREG(status.st_mode) or status.st_nlink > 1:
                        continue
                    with open_new_file(target / place / name, base=target, mode=0o666) as copy:
                        shutil.copyfileobj(opened, copy)
