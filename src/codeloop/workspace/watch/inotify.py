"""Watches folders by Linux's inotify, called through ctypes.
docs/decisions/0010 says why no package is used.

`tree_watch.py` reports changed files by it; snapshots and the checks of repositories
(`git/planted`) find changed folders by it.
"""

import os
import sys
from collections.abc import Iterator
from errno import EACCES, ELOOP, ENAMETOOLONG, ENOENT, ENOTDIR
from struct import Struct

# The kernel's names and values, from `sys/inotify.h`.
_IN_MODIFY, _IN_ATTRIB, _IN_CLOSE_WRITE = 0x2, 0x4, 0x8
_IN_MOVED_FROM, _IN_MOVED_TO, _IN_CREATE, _IN_DELETE = 0x40, 0x80, 0x100, 0x200
_IN_DELETE_SELF, _IN_MOVE_SELF = 0x400, 0x800
_IN_Q_OVERFLOW, _IN_IGNORED = 0x4000, 0x8000
_IN_ONLYDIR, _IN_DONT_FOLLOW = 0x01000000, 0x02000000
_IN_NONBLOCK, _IN_CLOEXEC = 0o4000, 0o2000000
_EVENT = Struct("iIII")
"""`struct inotify_event` without its name: watch descriptor, mask, cookie, length of the name."""
# The mask for completed changes: neither each write, nor attributes.
COMPLETED_CHANGES_MASK = (
    _IN_CLOSE_WRITE
    | _IN_MOVED_FROM
    | _IN_MOVED_TO
    | _IN_CREATE
    | _IN_DELETE
    | _IN_DELETE_SELF
    | _IN_MOVE_SELF
    | _IN_ONLYDIR
    | _IN_DONT_FOLLOW
)
_ALL_CHANGES_MASK = COMPLETED_CHANGES_MASK | _IN_MODIFY | _IN_ATTRIB
# The masks for what appears in a folder, for its entries with their rights,
# and for what is written into them.
NEW_NAMES_MASK = _IN_CREATE | _IN_MOVED_TO | _IN_ONLYDIR | _IN_DONT_FOLLOW
ENTRIES_MASK = COMPLETED_CHANGES_MASK | _IN_ATTRIB
FILES_MASK = NEW_NAMES_MASK | _IN_CLOSE_WRITE | _IN_MODIFY
CREATED_BIT, DELETED_BIT, WRITTEN_BIT = _IN_CREATE | _IN_MOVED_TO, _IN_DELETE, _IN_CLOSE_WRITE
MOVED_AWAY_BIT, MOVED_HERE_BIT = _IN_MOVED_FROM, _IN_MOVED_TO
# IN_ISDIR: the event is about a subfolder.
FOLDER_BIT = 0x40000000
_READ_BYTES = 256 * 1024


class InotifyWatch:
    """Watches folders by inotify.

    `is_broken`: events may have been lost, or a watched folder was moved,
    so that all folders must be scanned again.
    """

    def __init__(self, mask: int = _ALL_CHANGES_MASK) -> None:
        """`mask`: the kinds of events. Raises OSError where inotify is not available,
        or its limit is reached.
        """
        if sys.platform != "linux":
            raise OSError("inotify exists on Linux only")
        from ctypes import CDLL, c_char_p, c_int, c_uint32, get_errno

        libc = CDLL(None, use_errno=True)
        self._get_errno = get_errno
        self._add_watch = libc.inotify_add_watch
        self._add_watch.argtypes = (c_int, c_char_p, c_uint32)
        self._remove_watch = libc.inotify_rm_watch
        self._remove_watch.argtypes = (c_int, c_int)
        self._fd: int = libc.inotify_init1(_IN_NONBLOCK | _IN_CLOEXEC)
        if self._fd < 0:
            raise OSError(get_errno(), "inotify is not available")
        self._folders: dict[int, str] = {}
        """By watch descriptor."""
        self._descriptors: dict[str, int] = {}
        """The watch descriptor of each folder."""
        self.is_broken = False
        self._mask = mask

    def fileno(self) -> int:
        """Return the file descriptor, which is readable when events are waiting."""
        return self._fd

    def add(self, folder: str, path: str, mask: int = 0) -> None:
        """Watch one folder, and report it as `folder`. `path`: its path on the disk;
        `mask`: 0: the one given above.

        A path that is missing, unreadable, too long, or no folder is ignored, because a scan finds
        that as well. Raises OSError when there are too many watches, or this folder can't be
        watched for another reason.
        """
        descriptor: int = self._add_watch(self._fd, os.fsencode(path), mask or self._mask)
        if descriptor < 0:
            code = self._get_errno()
            if code in {ENOENT, EACCES, ENOTDIR, ELOOP, ENAMETOOLONG}:
                return
            raise OSError(code, "the folder can't be watched", path)
        self._folders[descriptor] = folder
        self._descriptors[folder] = descriptor

    def has(self, folder: str) -> bool:
        """Return whether a folder is watched."""
        return folder in self._descriptors

    def remove(self, folder: str) -> None:
        """Stop watching a folder, unless it was moved and is watched under its new name."""
        descriptor = self._descriptors.pop(folder, None)
        if descriptor is not None and self._folders.get(descriptor) == folder:
            del self._folders[descriptor]
            self._remove_watch(self._fd, descriptor)

    def take_changed_folders(self) -> set[str]:
        """Return the folders with events since the last call."""
        return {folder for folder, _, _ in self.read_events()}

    def read_events(self) -> Iterator[tuple[str, int, str]]:
        """Yield the events since the last call: the folder, the kernel's bits,
        and the name in it ("": itself).
        """
        while True:
            try:
                data = os.read(self._fd, _READ_BYTES)
            except BlockingIOError:
                return
            offset = 0
            while offset < len(data):
                descriptor, mask, _, length = _EVENT.unpack_from(data, offset)
                name = data[offset + _EVENT.size : offset + _EVENT.size + length].rstrip(b"\0")
                offset += _EVENT.size + length
                # After an overflow of the queue events are missing. A moved folder takes the
                # watches below it along, and they would be reported under their old names.
                if mask & (_IN_Q_OVERFLOW | _IN_MOVE_SELF):
                    self.is_broken = True
                folder = self._folders.get(descriptor)
                if folder is None:
                    continue
                yield folder, mask, os.fsdecode(name)
                if mask & _IN_IGNORED:
                    del self._folders[descriptor]
                    self._descriptors.pop(folder, None)

    def close(self) -> None:
        """Stop watching."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
