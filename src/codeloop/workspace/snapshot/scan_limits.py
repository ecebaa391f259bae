"""What one scan of a work tree reads: its options and limits, and what it has counted so far."""

import os
import stat
from pathlib import Path

from msgspec import Struct
from msgspec import field as struct_field

from codeloop.schema.limits import SNAPSHOT_BYTES, SNAPSHOT_FILE, SNAPSHOT_TRACKED
from codeloop.workspace.snapshot.blob import Unreadable, read_contents, read_regular_file

_UNSUPPORTED_KINDS = {
    stat.S_IFIFO: "a named pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


class ScanOptions(Struct, frozen=True):
    """Options of a scanner.

    `own_folders`: folders of codeloop, which are left out;
    `excludes`: the user's own files of patterns for git.
    """

    own_folders: tuple[Path, ...] = ()
    excludes: tuple[Path, ...] = ()


class ScanPass(Struct):
    """The limits and counts of one scan.

    `must_read`: ignored files are read too, and those whose content only the repository has.
    `read_bytes` and `ignored_files`: read so far; `waiting`: folders still to be scanned.
    """

    include_ignored: bool = False
    must_read: bool = False
    read_bytes: int = 0
    ignored_files: int = 0
    waiting: list[str] = struct_field(default_factory=list[str])

    def read(
        self, path: str, info: os.stat_result, *, is_tracked: bool
    ) -> tuple[bytes, os.stat_result]:
        """Read a file, as far as the limits allow, or a link; return it with its stat.
        Raises Unreadable, OSError.

        `info`: its stat just before; `is_tracked`: git or an earlier scan knows it.
        """
        cap = SNAPSHOT_TRACKED.value if is_tracked or self.must_read else SNAPSHOT_FILE.value
        if info.st_size > cap:
            raise Unreadable(f"larger than {cap:,} bytes")
        if self.read_bytes + info.st_size > max(SNAPSHOT_BYTES.value, cap):
            raise Unreadable(f"more than {SNAPSHOT_BYTES.value:,} bytes to read at once")
        read = read_regular_file if stat.S_ISREG(info.st_mode) else read_contents
        data, info = read(path, cap)
        self.read_bytes += len(data)
        return data, info


def describe_unsupported(mode: int) -> str:
    """Return what a path is that no snapshot can have, by its mode;
    "" for a regular file or a link.
    """
    kind = stat.S_IFMT(mode)
    if kind in {stat.S_IFREG, stat.S_IFLNK}:
        return ""
    return _UNSUPPORTED_KINDS.get(kind, "not a regular file")
