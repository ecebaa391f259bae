"""The launcher's loop: serves requests until its client exits, then ends every process below it.

A request is one byte, its kind, with a socket; all else goes over that socket, to a process that serves it alone. There
is always one that waits for the next request. One whose command has ended with all that it started waits again: a fork
costs more than a short command.
"""

from __future__ import annotations

import fcntl
import os
import select
import sys
import time
from _socket import AF_INET, CMSG_SPACE, SCM_RIGHTS, SO_REUSEADDR, SOCK_STREAM, SOL_SOCKET, socket
from struct import Struct

from codeloop.workspace.sandbox.launcher.confine import confine, limit_processes
from codeloop.workspace.sandbox.launcher.libc import become_subreaper, open_child_signals
from codeloop.workspace.sandbox.launcher.plan import read_plan
from codeloop.workspace.sandbox.launcher.processes import (
    KILL,
    end_descendants,
    forget_signals,
    has_children,
    list_descendants,
    send_signal,
    wait_for_child,
)
from codeloop.workspace.sandbox.launcher.proof import prove
from codeloop.workspace.sandbox.launcher.supervisor import read_descriptors, receive, supervise
from codeloop.workspace.sandbox.launcher.usage import Bounds, read_limits

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

_BACKLOG = 128
_NOTICE = Struct("i")  # the id of a supervisor that takes a request or waits again
_RETRY_MS = 50  # until a fork that failed is tried again
_NO_BOUNDS = Bounds()
_GRACE_SECONDS = 1.0  # that supervisors have to end their commands when the client is gone


def main(fd: int, mark: str) -> None:
    """Serve the requests that come over a descriptor. `mark` begins the marks of its commands."""
    become_subreaper()
    # Supervisors hold it while a command runs, which must not inherit it.
    fcntl.fcntl(fd, fcntl.F_SETFD, fcntl.FD_CLOEXEC)
    serve(socket(fileno=fd), open_child_signals(), mark)


def inside(fd: int, _mark: str) -> None:
    """Serve inside a sandbox that another program made; the plan comes over a descriptor."""
    _enter_sandbox(socket(fileno=fd), open_child_signals(), _NO_BOUNDS)


def serve(control: socket, signals: int, mark: str, bounds: Bounds = _NO_BOUNDS) -> None:
    """Serve requests until the other end is closed; then end what is left. `bounds` are those of each command."""
    taken_fd, take = os.pipe()
    events = select.poll()
    # 0: of the control socket only the hang-up counts; its requests are read by the waiting supervisor.
    for fd, mask in ((control.fileno(), 0), (signals, select.POLLIN), (taken_fd, select.POLLIN)):
        events.register(fd, mask)
    forks: set[int] = set()
    waiting: set[int] = set()
    strays = False
    while True:
        if not waiting and (pid := _fork_supervisor(control, signals, take, bounds)):
            forks.add(pid)
            waiting.add(pid)
        ready = {fd for fd, _ in events.poll(None if waiting else _RETRY_MS)}
        if control.fileno() in ready:
            break
        if taken_fd in ready:
            for notice in _NOTICE.iter_unpack(os.read(taken_fd, _NOTICE.size * _BACKLOG)):
                waiting ^= {notice[0]}  # it takes a request, or waits again
        if signals in ready:
            forget_signals(signals)
            strays = _reap(forks) or strays
            strays = strays and _end_strays(forks)
        waiting &= forks  # without those that ended while they waited
    until = time.monotonic() + _GRACE_SECONDS
    while has_children() and (seconds_left := until - time.monotonic()) > 0:
        wait_for_child(signals, seconds_left)
    end_descendants(signals, 0, mark)


def _fork_supervisor(control: socket, signals: int, take: int, bounds: Bounds) -> int:
    """Fork a process that waits for requests and serves them, so that no request waits for a fork.

    Returns its id; 0 when the limit of processes leaves no room for it now.
    """
    parent = os.getpid()
    try:
        pid = os.fork()
    except OSError:
        return 0
    if pid:
        return pid
    code = 1
    try:
        limits = read_limits()
        # A command can limit its supervisor (`prlimit`), which would pass the limits on to the next command.
        while _serve_one(control, signals, take, bounds, parent) and read_limits() == limits:
            os.write(take, _NOTICE.pack(os.getpid()))
        code = 0
    finally:
        # Whatever the error (a command may have limited its supervisor), a fork must not return into our loop.
        os._exit(code)


def _serve_one(control: socket, signals: int, take: int, bounds: Bounds, parent: int) -> bool:
    """Wait for a request and serve it. Return whether this process may serve another one."""
    kind, ancillary, _, _ = control.recvmsg(1, CMSG_SPACE(4))
    fds = read_descriptors(ancillary)
    if not kind or not fds:
        return False
    os.write(take, _NOTICE.pack(os.getpid()))
    is_last = kind != _COMMAND or os.getppid() != parent
    if is_last:  # what it becomes, or an orphan, must not keep these open
        os.close(take)
        control.close()
    channel = socket(fileno=fds[0])
    is_clean = _WORK[kind](channel, signals, bounds)
    channel.close()
    return is_clean and not is_last and os.getppid() == parent


def _reap(forks: set[int]) -> bool:
    """Reap ended children; return whether a fork failed or was killed, which may leave strays.

    A supervisor that a command has stopped is killed: its command would run without deadline and bounds.
    """
    has_failed = False
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG | os.WUNTRACED)
        except ChildProcessError:
            return has_failed
        if not pid:
            return has_failed
        if os.WIFSTOPPED(status):
            send_signal({pid} & forks, KILL)
            continue
        has_failed = has_failed or (pid in forks and status != 0)
        forks.discard(pid)


def _end_strays(forks: set[int]) -> bool:
    """Kill the processes of a killed supervisor, which are now our children; return whether there were any.

    If so, it has to be called again: their children become ours when they end.
    """
    strays = list_descendants(spare=forks)
    send_signal(strays, KILL)
    return bool(strays)


def _listen(channel: socket, _signals: int, _bounds: Bounds) -> bool:
    """Listen on a port of this network, and send the listening socket to the client, which is in another network."""
    (port,), _ = receive(channel)
    listener = socket(AF_INET, SOCK_STREAM)
    listener.setsockopt(SOL_SOCKET, SO_REUSEADDR, 1)
    listener.bind(("127.0.0.1", int(port)))
    listener.listen(_BACKLOG)
    channel.sendmsg([b"l"], [(SOL_SOCKET, SCM_RIGHTS, listener.fileno().to_bytes(4, sys.byteorder))])
    return False


def _enter_sandbox(channel: socket, signals: int, _bounds: Bounds) -> bool:
    """Enter a sandbox and serve requests there until the client is gone."""
    # Further descriptors stay open as long as this process and its forks live: they hold the lock of its layers.
    (mark, *rows), (fd, *_held) = receive(channel)
    plan = read_plan(rows)
    try:
        confine(plan)
        limit_processes(plan.bounds.most)
        prove(plan)
    except OSError as error:
        channel.sendall(f"failed {error.errno} {error.strerror} {error.filename or ''}".encode(errors="replace"))
        return False
    channel.sendall(b"ready")
    channel.close()
    bounds = Bounds(plan.bounds.processes, plan.bounds.memory, has_namespace=os.getpid() == 1)
    serve(socket(fileno=fd), signals, mark, bounds)
    return False


_COMMAND = b"c"
_WORK: dict[bytes, Callable[[socket, int, Bounds], bool]] = {_COMMAND: supervise, b"l": _listen, b"b": _enter_sandbox}
