"""Copies of small files that git ignores, in memory: a script may overwrite one,
and no snapshot holds it.
"""

import os
import stat

from msgspec import Struct

from codeloop.kit.guarded_paths import is_secret
from codeloop.schema.limits import SNAPSHOT_COPIES, SNAPSHOT_COPY
from codeloop.workspace.git.planted.entry_changes import is_made_again
from codeloop.workspace.snapshot.blob import Unreadable, read_regular_file


class IgnoredCopy(Struct, frozen=True):
    """The content of a file, its mode, and the numbers that show whether it has changed."""

    data: bytes
    mode: int
    stamp: tuple[int, ...]


class IgnoredCopies:
    """The copies for one work tree, by relative path: of files beside tracked ones,
    not of those in ignored folders.

    Left out are large files, secrets, and what tools make again.
    """

    def __init__(self, root: str) -> None:
        self._root = root
        self._copies: dict[str, IgnoredCopy] = {}
        self._bytes = 0

    def keep(self, path: str, info: os.stat_result) -> None:
        """Read a file, unless the copy of it is up to date. `info`: the file's."""
        old = self._copies.get(path)
        if old is not None and old.stamp == _make_stamp(info):
            return
        self._drop(path)
        size = info.st_size
        if (
            not stat.S_ISREG(info.st_mode)
            or size > SNAPSHOT_COPY.value
            or self._bytes + size > SNAPSHOT_COPIES.value
        ):
            return
        if is_made_again(path, is_written=True) or is_secret(path):
            return
        try:
            data, info = read_regular_file(f"{self._root}/{path}", SNAPSHOT_COPY.value)
        except (OSError, Unreadable):
            return
        self._copies[path] = IgnoredCopy(data, info.st_mode, _make_stamp(info))
        self._bytes += len(data)

    def holds(self, path: str) -> bool:
        """Return whether there is a copy of a file."""
        return path in self._copies

    def take_changed(self) -> dict[str, IgnoredCopy]:
        """Return the copies of the files that have changed or are gone since they were read;
        they are dropped.
        """
        changed: dict[str, IgnoredCopy] = {}
        for path, copy in self._copies.items():
            try:
                is_same = _make_stamp(os.lstat(f"{self._root}/{path}")) == copy.stamp
            except OSError:
                is_same = False
            if not is_same:
                changed[path] = copy
        for path in changed:
            self._drop(path)
        return changed

    def _drop(self, path: str) -> None:
        old = self._copies.pop(path, None)
        self._bytes -= len(old.data) if old is not None else 0


def _make_stamp(info: os.stat_result) -> tuple[int, ...]:
    return (info.st_mode, info.st_mtime_ns, info.st_ctime_ns, info.st_size, info.st_ino)
