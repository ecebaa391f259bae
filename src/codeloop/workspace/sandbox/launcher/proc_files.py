"""Reads and writes the files of /proc."""

import os


def read_text(path: str) -> str:
    """Return the text of a file in /proc, whose size is unknown before it is read.
    Raises OSError.
    """
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        data = bytearray()
        while chunk := os.read(fd, 65536):
            data += chunk
    finally:
        os.close(fd)
    return os.fsdecode(bytes(data))


def unescape_mount_path(text: str) -> str:
    """Return a path from mountinfo, where blanks, line ends and backslashes are octal escapes.

    No codec is used: it would be imported now, when the files of this Python may be hidden already.
    """
    first, *rest = text.split("\\")
    return first + "".join(chr(int(each[:3], 8)) + each[3:] for each in rest)


def write_text(path: str, text: str) -> None:
    """Write to a file of /proc in one system call, as the kernel requires for some.
    Raises OSError.
    """
    fd = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(fd, text.encode())
    finally:
        os.close(fd)
