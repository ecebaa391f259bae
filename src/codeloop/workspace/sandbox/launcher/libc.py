"""Functions of the C library that Python does not offer, or only with an import that takes long.

Used by the launcher, and for `identify_file` by the sandboxes outside.
"""

import ctypes
import os
import stat
import sys
from struct import Struct

_SET_DUMPABLE, _SET_CHILD_SUBREAPER = 4, 36
# SIGPIPE and SIGXFSZ. Python ignores them, and children inherit that: `yes | head` would never end.
IGNORED_SIGNALS = (13, 25)
_SIG_BLOCK, _SIGCHLD = 0, 17
_SFD_FLAGS = 0o2004000  # SFD_NONBLOCK | SFD_CLOEXEC

_MAX_HANDLE_BYTES = 128  # MAX_HANDLE_SZ of the kernel
# `struct file_handle` without its bytes: their number and the handle's type.
_FILE_HANDLE, _FILE_STATUS = Struct("Ii"), Struct("QQQ")
_AT_FDCWD = -100
_libc = ctypes.CDLL(None, use_errno=True)
# name_to_handle_at writes the mount's id here, which nothing reads.
_MOUNT_ID = ctypes.byref(ctypes.c_int())


def call_libc(name: str, *arguments: int | bytes | ctypes.Array[ctypes.c_char] | None) -> int:
    """Call a function of the C library by name. Raises OSError when it fails."""
    # As `long`: through `syscall` and `prctl` the kernel reads whole registers,
    # and ctypes passes 32 bits of an int.
    result = getattr(_libc, name)(
        *(ctypes.c_long(each) if isinstance(each, int) else each for each in arguments)
    )
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, f"{name}: {os.strerror(code)}")
    return result


def become_subreaper() -> None:
    """Make this process the new parent of orphaned descendants (Linux)."""
    if sys.platform == "linux":
        call_libc("prctl", _SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def make_undumpable() -> None:
    """Keep other processes of the same user from reading or changing this one (Linux)."""
    if sys.platform == "linux":
        call_libc("prctl", _SET_DUMPABLE, 0, 0, 0, 0)


def open_child_signals() -> int:
    """Return a descriptor that becomes readable when a child of the reading process ends.
    Forks inherit it.

    Raises OSError, for example when too many files are open.
    """
    if sys.platform != "linux":
        return _make_signal_pipe()
    mask = ctypes.create_string_buffer(128)
    call_libc("sigemptyset", mask)
    call_libc("sigaddset", mask, _SIGCHLD)
    call_libc("sigprocmask", _SIG_BLOCK, mask, None)
    return call_libc("signalfd", -1, mask, _SFD_FLAGS)


def _ignore_signal(_number: int, _frame: object) -> None:
    """Do nothing: the handler exists so that the signal wakes the loop."""


def _make_signal_pipe() -> int:
    # Imported here: it takes 5 ms, and Linux does not need it.
    import signal

    reader, writer = os.pipe()
    os.set_blocking(reader, False)
    os.set_blocking(writer, False)
    # A full pipe is not a problem: one byte is enough to wake the reader.
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, _ignore_signal)
    return reader


def identify_file(path: str | os.PathLike[str]) -> bytes:
    """Return bytes that identify a file, even if its inode number is used again later;
    b"" for a missing file.
    """
    handle = ctypes.create_string_buffer(
        _FILE_HANDLE.pack(_MAX_HANDLE_BYTES, 0), _FILE_HANDLE.size + _MAX_HANDLE_BYTES
    )
    # A handle contains the inode's generation as well as its number.
    if sys.platform == "linux" and not _libc.name_to_handle_at(
        _AT_FDCWD, os.fsencode(path), handle, _MOUNT_ID, 0
    ):
        return handle.raw
    try:
        status = os.lstat(path)
    except OSError:
        return b""
    # The file system has no handles. A folder's time changes with its entries,
    # so there the inode has to do.
    return _FILE_STATUS.pack(
        status.st_dev, status.st_ino, 0 if stat.S_ISDIR(status.st_mode) else status.st_ctime_ns
    )
