"""Supervises one command: starts it, reports its end,
and ends all its processes on request or without a client.

Each command has its own supervisor process, forked by the launcher's `main.py`. It is a subreaper,
so whatever a command starts stays below it, even a daemon that has left its session.
"""

import os
import select
import sys
from _socket import socket

from codeloop.workspace.sandbox.launcher.descendants import (
    KILL,
    MARK_VARIABLE,
    end_descendants,
    forget_signals,
    interrupt_group,
    kill_namespace,
    reap_children,
)
from codeloop.workspace.sandbox.launcher.libc import IGNORED_SIGNALS, become_subreaper
from codeloop.workspace.sandbox.launcher.messages import receive
from codeloop.workspace.sandbox.launcher.seccomp import NO_LISTENER, answer_attempt
from codeloop.workspace.sandbox.launcher.suppress import Suppress
from codeloop.workspace.sandbox.launcher.usage_watch import Bounds, UsageWatch

# The time from TERM to KILL when the client has gone and can't name another one.
_DEFAULT_GRACE_SECONDS = 0.2
_END_MESSAGE_BYTES = 64


class ReceivedCommand:
    """A command to start, as it is received from the client.

    `targets`: the numbers that the received descriptors get in the program. `mark`: a value of its
    environment by which its processes are found where orphans are not reparented
    to the supervisor (macOS).
    """

    def __init__(self, fields: list[str]) -> None:
        self.mark, self.directory, numbers, count, *words = fields
        self.targets = [int(number) for number in numbers.split()]
        self.arguments = words[: int(count)]
        self.environment = dict(word.split("=", 1) for word in words[int(count) :])


def supervise(channel: socket, signal_fd: int, bounds: Bounds, listener: int) -> bool:
    """Run the command that is received from the channel until all its processes
    have ended or are ended.

    They are ended when the client asks for it, when the client is gone, or when they exceed the
    bounds. `listener`: of attempts to make internet sockets, which are refused, see `seccomp.py`.
    Returns whether they ended by
    themselves: then this supervisor can serve another request.
    """
    fields, fds = receive(channel)
    received = ReceivedCommand(fields)
    become_subreaper()
    try:
        command_pid = _start(received, fds)
    except OSError as error:
        cause = "directory" if error.filename == received.directory else "program"
        channel.sendall(f"failed {error.errno} {cause}\n".encode())
        return False
    for fd in fds:
        os.close(fd)
    channel.sendall(f"started {command_pid}\n".encode())
    watch = UsageWatch(bounds)
    listeners = [] if listener == NO_LISTENER else [listener]
    is_attempt_reported = False
    while True:
        ready, _, _ = select.select([channel, signal_fd, *listeners], [], [], watch.wait_seconds)
        if listener in ready and answer_attempt(listener) and not is_attempt_reported:
            # Before the end is reported: the client reads what it is told in this order.
            is_attempt_reported = True
            _send(channel, "refused 1 network\n")
        if exceeded := watch.find_exceeded():
            _send(channel, f"stopped {exceeded}\n")
            count = _end_command(signal_fd, 0, received.mark, bounds)
            _send(channel, f"exit {-KILL}\nended {count}\n")
            return False
        if signal_fd in ready:
            forget_signals(signal_fd)
            if not _reap(channel, command_pid):
                return True
        if channel in ready:
            # `end GRACE INTERRUPT`, both in ms. Without any data the client is gone.
            message = channel.recv(_END_MESSAGE_BYTES).split()
            grace, interrupt_seconds = _DEFAULT_GRACE_SECONDS, 0.0
            if len(message) == 3:
                grace, interrupt_seconds = (int(word) / 1000 for word in message[1:])
            if interrupt_seconds:
                interrupt_group(command_pid, signal_fd, interrupt_seconds, received.mark)
            count = _end_command(signal_fd, grace, received.mark, bounds)
            _send(channel, f"ended {count}\n")
            return False


def _end_command(signal_fd: int, grace: float, mark: str, bounds: Bounds) -> int:
    """End everything below this process. Returns the number of processes."""
    count = end_descendants(signal_fd, grace, mark)
    # Processes that fork and end faster than they can be found are killed together with all other
    # commands of the sandbox, since only the kernel can kill them all at once.
    if bounds.has_namespace and reap_children():
        kill_namespace()
    return count


def _reap(channel: socket, command_pid: int) -> bool:
    """Reap ended children, and report the end of the command itself.
    Returns whether any process of it is left.
    """
    report = ""
    pid = -1
    while pid:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            _send(channel, f"{report}ended 0\n")
            return False
        if pid == command_pid:
            report = f"exit {os.waitstatus_to_exitcode(status)}\n"
    _send(channel, report)
    return True


def _send(channel: socket, text: str) -> None:
    # An error means that the client is gone, which the next read of the channel shows.
    with Suppress(OSError):
        channel.sendall(text.encode())


def _start(received: ReceivedCommand, fds: list[int]) -> int:
    """Start the command in a new session. Returns its process id. Raises OSError."""
    # `posix_spawn` has no option for the directory.
    os.chdir(received.directory)
    actions: list[tuple[int, int, int]] = [
        (os.POSIX_SPAWN_DUP2, fd, target) for fd, target in zip(fds, received.targets, strict=True)
    ]
    environment = received.environment
    if sys.platform != "linux":
        environment = {**environment, MARK_VARIABLE: received.mark}
    program = received.arguments[0]
    pid = os.posix_spawn(
        program,
        received.arguments,
        environment,
        file_actions=actions,
        setsid=True,
        setsigmask=(),
        setsigdef=IGNORED_SIGNALS,
    )
    # Otherwise the supervisor would hold the command's folder for as long as it lives.
    os.chdir("/")
    return pid
