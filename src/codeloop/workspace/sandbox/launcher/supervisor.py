"""Supervises one command: starts it, reports its end, and ends all below it on request or when the client is gone.

Each command has a supervisor of its own, a subreaper: whatever a command starts stays below it, however it detaches.
"""

import fcntl
import os
import select
import sys
from _socket import MSG_WAITALL, socket

from codeloop.workspace.sandbox.launcher.libc import IGNORED_SIGNALS, become_subreaper
from codeloop.workspace.sandbox.launcher.processes import (
    KILL,
    MARK,
    end_all,
    end_descendants,
    forget_signals,
    has_children,
    interrupt,
)
from codeloop.workspace.sandbox.launcher.usage import Bounds, UsageWatch

_GRACE_SECONDS = 0.2  # from TERM to KILL when the client is gone and can't name another time
_READ_BYTES = 1 << 20


class Request:
    """A program to start, as it comes over a socket. `targets`: the numbers that the descriptors get in the program.

    `mark`: set in its environment where orphans are not reparented to us.
    """

    def __init__(self, fields: list[str]) -> None:
        self.mark, self.directory, numbers, count, *words = fields
        self.targets = [int(number) for number in numbers.split()]
        self.arguments = words[: int(count)]
        self.environment = dict(word.split("=", 1) for word in words[int(count) :])


def receive(channel: socket) -> tuple[list[str], list[int]]:
    """Return a message's fields and the descriptors that came with it. Raises EOFError when the other end is closed.

    It begins with its length in four bytes; a NUL separates two fields.
    """
    head, ancillary, _, _ = channel.recvmsg(4, 4096)
    fds = read_descriptors(ancillary)
    size = int.from_bytes(head + _read(channel, 4 - len(head)), "big")
    return os.fsdecode(_read(channel, size)).split("\0"), fds


def read_descriptors(ancillary: list[tuple[int, int, bytes]]) -> list[int]:
    """Return the descriptors that came with a message; no program inherits them by itself."""
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


def supervise(channel: socket, signals: int, bounds: Bounds) -> bool:
    """Run the command that comes over the channel until it and all it started have ended, or exceed their bounds.

    Returns whether they ended by themselves: then this process can serve another request.
    """
    fields, fds = receive(channel)
    request = Request(fields)
    become_subreaper()
    try:
        command = _start(request, fds)
    except OSError as error:
        where = "directory" if error.filename == request.directory else "program"
        channel.sendall(f"failed {error.errno} {where}\n".encode())
        return False
    for fd in fds:
        os.close(fd)
    channel.sendall(f"started {command}\n".encode())
    watch = UsageWatch(bounds)
    while True:
        ready, _, _ = select.select([channel, signals], [], [], watch.pause)
        if exceeded := watch.find_exceeded():
            _say(channel, f"stopped {exceeded}\n")
            count = _end(signals, 0, request.mark, bounds)
            _say(channel, f"exit {-KILL}\nended {count}\n")
            return False
        if signals in ready:
            forget_signals(signals)
            if not _reap(channel, command):
                return True
        if channel in ready:
            message = channel.recv(64).split()
            # An empty message: the client is gone.
            grace, notice = (int(word) / 1000 for word in message[1:]) if len(message) == 3 else (_GRACE_SECONDS, 0)
            if notice:
                interrupt(command, signals, notice, request.mark)
            count = _end(signals, grace, request.mark, bounds)
            _say(channel, f"ended {count}\n")
            return False


def _end(signals: int, grace: float, mark: str, bounds: Bounds) -> int:
    """End everything below this process.

    What forks and ends faster than it can be found is killed with all processes of the sandbox, other commands too.
    """
    count = end_descendants(signals, grace, mark)
    if bounds.has_namespace and has_children():
        end_all()
    return count


def _reap(channel: socket, command: int) -> bool:
    """Reap ended children and report the command's own end. Return whether anything is left of it."""
    news = ""
    pid = -1
    while pid:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            _say(channel, f"{news}ended 0\n")
            return False
        if pid == command:
            news = f"exit {os.waitstatus_to_exitcode(status)}\n"
    _say(channel, news)
    return True


def _say(channel: socket, text: str) -> None:
    try:
        channel.sendall(text.encode())
    except OSError:
        return  # the client is gone, which the next read of the channel shows


def _start(request: Request, fds: list[int]) -> int:
    """Start the command in a session of its own. Raises OSError."""
    os.chdir(request.directory)  # `posix_spawn` has no option for it
    actions: list[tuple[int, int, int]] = [
        (os.POSIX_SPAWN_DUP2, fd, target) for fd, target in zip(fds, request.targets, strict=True)
    ]
    environment = request.environment
    if sys.platform != "linux":
        environment = {**environment, MARK: request.mark}
    program = request.arguments[0]
    pid = os.posix_spawn(
        program,
        request.arguments,
        environment,
        file_actions=actions,
        setsid=True,
        setsigmask=(),
        setsigdef=IGNORED_SIGNALS,
    )
    os.chdir("/")  # else the supervisor would hold the command's folder as long as it lives
    return pid
