"""System calls that Python has no function for."""

import ctypes
import os
import stat
import sys
from struct import Struct

_SET_DUMPABLE, _SET_CHILD_SUBREAPER = 4, 36
IGNORED_SIGNALS = (13, 25)
"""SIGPIPE and SIGXFSZ, which Python ignores and a program it starts must not."""
_SIG_BLOCK, _SIGCHLD = 0, 17
_SFD_FLAGS = 0o2004000  # SFD_NONBLOCK | SFD_CLOEXEC

_MAX_HANDLE_BYTES = 128  # MAX_HANDLE_SZ of the kernel
_HANDLE, _STATUS = Struct("Ii"), Struct("QQQ")
_libc = ctypes.CDLL(None, use_errno=True)
_MOUNT = ctypes.byref(ctypes.c_int())


def call(name: str, *arguments: int | bytes | None) -> int:
    """Call a function of the C library by name. Raises OSError when it fails."""
    # As `long`: through `syscall` and `prctl` the kernel reads whole registers, and ctypes passes 32 bits of an int.
    result = getattr(_libc, name)(*(ctypes.c_long(each) if isinstance(each, int) else each for each in arguments))
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, f"{name}: {os.strerror(code)}")
    return result


def become_subreaper() -> None:
    """Have orphans below this process become its children (Linux)."""
    if sys.platform == "linux":
        call("prctl", _SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def close_memory() -> None:
    """Keep other processes of the same user from reading or changing this one (Linux)."""
    if sys.platform == "linux":
        call("prctl", _SET_DUMPABLE, 0, 0, 0, 0)


def open_child_signals() -> int:
    """Return a descriptor that becomes readable when a child of the reading process ends. Forks inherit it."""
    if sys.platform != "linux":
        return _make_signal_pipe()
    mask = ctypes.create_string_buffer(128)
    _libc.sigemptyset(mask)
    _libc.sigaddset(mask, _SIGCHLD)
    _libc.sigprocmask(_SIG_BLOCK, mask, None)
    return _libc.signalfd(-1, mask, _SFD_FLAGS)


def _ignore_signal(_number: int, _frame: object) -> None:
    """Do nothing: the handler exists so that the signal wakes the loop."""


def _make_signal_pipe() -> int:
    import signal  # 5 ms, and Linux needs none of it

    reader, writer = os.pipe()
    os.set_blocking(reader, False)
    os.set_blocking(writer, False)
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)  # one byte is enough to wake the reader
    signal.signal(signal.SIGCHLD, _ignore_signal)
    return reader


def identify_file(path: str | os.PathLike[str]) -> bytes:
    """Return an identity that no other file has, not even one that reuses its inode number; empty when it is gone."""
    handle = ctypes.create_string_buffer(_HANDLE.pack(_MAX_HANDLE_BYTES, 0), _HANDLE.size + _MAX_HANDLE_BYTES)
    # A handle has the inode's generation, too. -100 is AT_FDCWD.
    if sys.platform == "linux" and not _libc.name_to_handle_at(-100, os.fsencode(path), handle, _MOUNT, 0):
        return handle.raw
    try:
        status = os.lstat(path)
    except OSError:
        return b""
    # The file system has no handles. A folder's time changes with its entries, so there the inode has to do.
    return _STATUS.pack(status.st_dev, status.st_ino, 0 if stat.S_ISDIR(status.st_mode) else status.st_ctime_ns)


def read_text(path: str) -> str:
    """Return a file of /proc. Raises OSError."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        data = bytearray()
        while chunk := os.read(fd, 65536):
            data += chunk
    finally:
        os.close(fd)
    return os.fsdecode(bytes(data))


def unescape(text: str) -> str:
    """Return a path of mountinfo, which writes blanks, line ends and backslashes as octal numbers.

    Without a codec, which would be imported only now, when the files of this Python may be hidden already.
    """
    first, *rest = text.split("\\")
    return first + "".join(chr(int(each[:3], 8)) + each[3:] for each in rest)


def write_text(path: str, text: str) -> None:
    """Write to a file of /proc in one system call, as the kernel requires for some. Raises OSError."""
    fd = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(fd, text.encode())
    finally:
        os.close(fd)
