"""Links in a git directory through which git would write, read or remove elsewhere."""

import os
from collections.abc import Collection
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from codeloop.schema.bounds.sandbox import GIT_SEARCH_LINKS

_SKIPPED = ("hooks",)
"""Entries that no command can change; users have links there."""
_SHALLOW = ("objects", "lfs/objects", "annex/objects", "modules", "worktrees")
"""Folders whose subfolders are not read: they hold many files, or are git directories themselves."""
_READ_ANYWAY = ("objects/info", "objects/pack")
"""Subfolders of those that are read nevertheless: git follows links there."""


class LinkScan(NamedTuple):
    """The links in a git directory, and the folders that were read.

    `unread`: folders that were not, since there are too many; of each such part the one nearest to the top.
    """

    links: tuple[Path, ...]
    read: tuple[str, ...]
    unread: tuple[Path, ...]


def find_links_out(folder: Path, known_paths: Collection[str] = ()) -> LinkScan:
    """Find the links in a git directory that lead out of it. `known_paths`: folders that are read before any other.

    Each folder is read completely, so that a link can't be hidden among many files.
    """
    paths: list[Path] = []
    top = str(folder)
    paths_read: list[str] = []
    # `others` first in, first out: where there are too many folders, those nearest to the top are read.
    waiting, others = [top], list[str]()
    while waiting or others:
        each = waiting.pop() if waiting else others.pop(0)
        if len(paths_read) >= GIT_SEARCH_LINKS.value:
            return LinkScan(tuple(paths), tuple(paths_read), tuple(map(Path, (each, *waiting, *others))))
        paths_read.append(each)
        try:
            with os.scandir(each) as entries:
                for entry in entries:
                    if entry.is_symlink():
                        paths += [] if _is_below(entry.path, folder) else [Path(entry.path)]
                    elif entry.is_dir(follow_symlinks=False) and _is_read(entry.path[len(top) + 1 :]):
                        (waiting if entry.path in known_paths else others).append(entry.path)
        except OSError:
            continue
    return LinkScan(tuple(paths), tuple(paths_read), ())


def _is_below(path: str, folder: Path) -> bool:
    return Path(os.path.realpath(path)).is_relative_to(folder)


def _is_read(name: str) -> bool:
    """Return whether a folder of a git directory is read. `name`: its path there."""
    return name in _READ_ANYWAY or (name not in _SKIPPED and str(PurePosixPath(name).parent) not in _SHALLOW)
