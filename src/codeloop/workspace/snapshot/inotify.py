"""Folders that changed, as the kernel reports them, so that a large work tree is not scanned again and again."""

import os
import select
import sys
from collections.abc import Iterator
from struct import Struct

_EVENT = Struct("iIII")
_OVERFLOW, _WATCH_REMOVED, _FOLDER_MOVED = 0x4000, 0x8000, 0x800
# Modified, attributes, closed after writing, moved, created, deleted, itself deleted or moved; only folders, no links.
_MASK = 0x2 | 0x4 | 0x8 | 0x40 | 0x80 | 0x100 | 0x200 | 0x400 | 0x800 | 0x01000000 | 0x02000000
WHOLE_FILES = _MASK & ~(0x2 | 0x4)
"""The events of completed changes: not each write, nor attributes."""
FOLDER = 0x40000000
"""Set in events about a subfolder."""
_NONBLOCK, _CLOEXEC = 0o4000, 0o2000000
_BUFFER = 256 * 1024


class Watch:
    """Watches folders by inotify. `broken`: events may have been lost; everything must be looked at again."""

    def __init__(self, mask: int = _MASK) -> None:
        """Raise OSError where inotify is not available or its limit is reached."""
        if sys.platform != "linux":
            raise OSError("inotify exists on Linux only")
        from ctypes import CDLL, c_char_p, c_int, c_uint32, get_errno

        libc = CDLL(None, use_errno=True)
        self._errno = get_errno
        self._add = libc.inotify_add_watch
        self._add.argtypes = (c_int, c_char_p, c_uint32)
        self._remove = libc.inotify_rm_watch
        self._remove.argtypes = (c_int, c_int)
        self._fd: int = libc.inotify_init1(_NONBLOCK | _CLOEXEC)
        if self._fd < 0:
            raise OSError(get_errno(), "inotify is not available")
        self._folders: dict[int, str] = {}
        self._numbers: dict[str, int] = {}
        self.broken = False
        self._mask = mask

    def fileno(self) -> int:
        """Return the descriptor, which is readable when something has changed."""
        return self._fd

    def add(self, folder: str, path: str) -> None:
        """Watch one folder, `path` on the disk. Raises OSError when there are too many watches."""
        number: int = self._add(self._fd, os.fsencode(path), self._mask)
        if number < 0:
            code = self._errno()
            if code in {2, 13, 20, 40}:  # gone, unreadable, no folder, a link: the scan sees that too
                return
            raise OSError(code, "no more folders can be watched")
        self._folders[number] = folder
        self._numbers[folder] = number

    def has(self, folder: str) -> bool:
        """Return whether a folder is watched."""
        return folder in self._numbers

    def remove(self, folder: str) -> None:
        """Stop watching a folder, unless it was moved and is watched under its new name."""
        number = self._numbers.pop(folder, None)
        if number is not None and self._folders.get(number) == folder:
            del self._folders[number]
            self._remove(self._fd, number)

    @property
    def has_news(self) -> bool:
        """Whether events are waiting for `take_changed_folders`."""
        waiting = select.poll()
        waiting.register(self._fd, select.POLLIN)
        return bool(waiting.poll(0))

    def take_changed_folders(self) -> set[str]:
        """Return the folders in which something happened since the last call."""
        return {folder for folder, _, _ in self.events()}

    def events(self) -> Iterator[tuple[str, int, str]]:
        """Yield the events since the last call: the folder, the kernel's bits, the name in it ("": itself)."""
        while True:
            try:
                data = os.read(self._fd, _BUFFER)
            except BlockingIOError:
                return
            at = 0
            while at < len(data):
                number, mask, _, length = _EVENT.unpack_from(data, at)
                name = data[at + _EVENT.size : at + _EVENT.size + length].rstrip(b"\0")
                at += _EVENT.size + length
                if mask & (
                    _OVERFLOW | _FOLDER_MOVED
                ):  # a moved folder takes the watches below it along, under their old names
                    self.broken = True
                folder = self._folders.get(number)
                if folder is None:
                    continue
                yield folder, mask, os.fsdecode(name)
                if mask & _WATCH_REMOVED:
                    del self._folders[number]
                    self._numbers.pop(folder, None)

    def close(self) -> None:
        """Stop watching."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
