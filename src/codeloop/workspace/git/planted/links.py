"""Finds the links in a git directory through which git would write,
read or remove files elsewhere.
"""

import os
from collections.abc import Collection
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from codeloop.schema.bounds.sandbox import GIT_LINK_SEARCH_FOLDERS

# Entries that no command can change; users have links there.
_SKIPPED_FOLDERS = ("hooks",)
# Folders whose subfolders are not read: they hold many files, or are git directories themselves.
_SHALLOW_FOLDERS = ("objects", "lfs/objects", "annex/objects", "modules", "worktrees")
# Subfolders of those that are read nevertheless: git follows links there.
_READ_SUBFOLDERS = ("objects/info", "objects/pack")


class LinkScan(NamedTuple):
    """The links that lead out of a git directory, and the folders that were read.

    `unread_folders`: those that were not, since there are too many. Their subfolders, which are not
    listed, were not read either.
    """

    links: tuple[Path, ...]
    read_folders: tuple[str, ...]
    unread_folders: tuple[Path, ...]


def find_outward_links(git_directory: Path, known_folders: Collection[str] = ()) -> LinkScan:
    """Find the links in a git directory that lead out of it.

    Each folder is read completely, so that a link can't be hidden among many files.
    `known_folders`, those that were read before a command, are read before any other: only folders
    that the command added are then left unread where there are too many,
    and the caller moves those away.
    """
    links: list[Path] = []
    top = str(git_directory)
    read_folders: list[str] = []
    # `others` first in, first out: where there are too many folders,
    # those nearest to the top are read.
    known, others = [top], list[str]()
    while known or others:
        folder = known.pop() if known else others.pop(0)
        if len(read_folders) >= GIT_LINK_SEARCH_FOLDERS.value:
            return LinkScan(
                tuple(links), tuple(read_folders), tuple(map(Path, (folder, *known, *others)))
            )
        read_folders.append(folder)
        try:
            with os.scandir(folder) as entries:
                for entry in entries:
                    if entry.is_symlink():
                        if not _is_below(entry.path, git_directory):
                            links.append(Path(entry.path))
                    elif entry.is_dir(follow_symlinks=False) and _is_read(
                        entry.path[len(top) + 1 :]
                    ):
                        (known if entry.path in known_folders else others).append(entry.path)
        except OSError:
            continue
    return LinkScan(tuple(links), tuple(read_folders), ())


def _is_below(path: str, folder: Path) -> bool:
    return Path(os.path.realpath(path)).is_relative_to(folder)


def _is_read(name: str) -> bool:
    """Return whether a folder of a git directory is read. `name`: its path there."""
    return name in _READ_SUBFOLDERS or (
        name not in _SKIPPED_FOLDERS and str(PurePosixPath(name).parent) not in _SHALLOW_FOLDERS
    )
