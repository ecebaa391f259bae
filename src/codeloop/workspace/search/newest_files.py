"""Chooses the files that were modified last."""

import heapq
import os
from collections.abc import Iterable
from pathlib import Path

from codeloop.workspace.search.grep_query import FileMatches


def keep_newest(paths: Iterable[str], count: int) -> list[str]:
    """Return the `count` paths that were modified last, the newest first."""
    return heapq.nlargest(count, paths, key=_read_modification_time)


def sort_newest_first(files: list[FileMatches]) -> list[FileMatches]:
    """Return the matches of files, those of the file that was modified last first."""
    return sorted(files, key=lambda matches: _read_modification_time(matches.path), reverse=True)


def _read_modification_time(path: str | Path) -> int:
    """Return the modification time of a file in ns; 0 for a missing one."""
    try:
        return os.lstat(path).st_mtime_ns
    except OSError:
        return 0
