"""The messages of the launcher's client: the kinds of its requests,
and what receives their texts and descriptors.
"""

import fcntl
import os
from _socket import MSG_WAITALL, socket

# The kinds of requests to the launcher, one byte each: run a command, listen on a port, reach the
# ports that others listen on, enter a sandbox.
COMMAND_KIND, LISTEN_KIND, REACH_KIND, SANDBOX_KIND = b"c", b"l", b"r", b"b"
# The request for the ports that are listened on, and the bytes of the longest request for one.
LIST_PORTS, PORT_BYTES = b"list\n", 16
_READ_BYTES = 1 << 20


def receive(channel: socket) -> tuple[list[str], list[int]]:
    """Receive a message: its fields and the descriptors that came with it.
    Raises EOFError at the end of the stream.

    The message begins with its length in four bytes; a NUL separates two fields.
    """
    head, ancillary, _, _ = channel.recvmsg(4, 4096)
    fds = read_descriptors(ancillary)
    size = int.from_bytes(head + _read(channel, 4 - len(head)), "big")
    return os.fsdecode(_read(channel, size)).split("\0"), fds


def read_descriptors(ancillary: list[tuple[int, int, bytes]]) -> list[int]:
    """Return the descriptors that came with a message,
    after they were marked as not inheritable by programs.
    """
    fds = [fd for _, _, data in ancillary for fd in memoryview(data).cast("i")]
    for fd in fds:
        fcntl.fcntl(fd, fcntl.F_SETFD, fcntl.FD_CLOEXEC)
    return fds


def _read(channel: socket, size: int) -> bytes:
    data = bytearray()
    while len(data) < size:
        chunk = channel.recv(min(size - len(data), _READ_BYTES), MSG_WAITALL)
        if not chunk:
            raise EOFError
        data += chunk
    return bytes(data)
