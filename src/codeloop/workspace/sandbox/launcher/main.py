"""The loop of the launcher: takes requests for as long as we live, and then ends every process below it.

A request is one byte, its kind, with a socket; all else goes over that socket, to a process that serves it alone. There
is always one that waits for the next request.
"""

from __future__ import annotations

import os
import select
import sys
import time
from _socket import AF_INET, CMSG_SPACE, SCM_RIGHTS, SO_REUSEADDR, SOCK_STREAM, SOL_SOCKET, socket

from codeloop.workspace.sandbox.launcher.confine import confine, limit
from codeloop.workspace.sandbox.launcher.libc import become_subreaper, child_signals
from codeloop.workspace.sandbox.launcher.plan import read_plan
from codeloop.workspace.sandbox.launcher.processes import (
    KILL,
    descendants,
    end_descendants,
    forget_signals,
    has_children,
    send_signal,
    wait_for_child,
)
from codeloop.workspace.sandbox.launcher.proof import prove
from codeloop.workspace.sandbox.launcher.supervisor import descriptors, receive, supervise
from codeloop.workspace.sandbox.launcher.usage import Bounds

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

_BACKLOG = 128
_RETRY = 50  # ms until a fork that failed is tried again
_NO_BOUNDS = Bounds()
_GRACE = 1.0  # seconds that supervisors have to end their commands when we are gone


def main(fd: int, mark: str) -> None:
    """Serve the requests that come over a descriptor. `mark` begins the marks of its commands."""
    become_subreaper()
    serve(socket(fileno=fd), child_signals(), mark)


def inside(fd: int, _mark: str) -> None:
    """Make the process that another program put into a sandbox one of ours; what is planned comes over a descriptor."""
    _box(socket(fileno=fd), child_signals(), _NO_BOUNDS)


def serve(control: socket, signals: int, mark: str, bounds: Bounds = _NO_BOUNDS) -> None:
    """Serve requests until the other end is closed; then end what is left. `bounds` are those of each command."""
    taken, take = os.pipe()
    events = select.poll()
    for fd, mask in ((control.fileno(), 0), (signals, select.POLLIN), (taken, select.POLLIN)):
        events.register(fd, mask)
    waiting = _wait_for_one(control, signals, take, bounds)
    forks = {waiting} - {0}
    strays = False
    while control.fileno() not in (ready := {fd for fd, _ in events.poll(None if waiting else _RETRY)}):
        if signals in ready:
            forget_signals(signals)
            strays = _reap(forks) or strays
            strays = strays and _end_strays(forks)
        if taken in ready:
            os.read(taken, 1)
        if taken in ready or waiting not in forks:
            waiting = _wait_for_one(control, signals, take, bounds)
            forks |= {waiting} - {0}
    until = time.monotonic() + _GRACE
    while has_children() and (left := until - time.monotonic()) > 0:
        wait_for_child(signals, left)
    end_descendants(signals, 0, mark)


def _wait_for_one(control: socket, signals: int, take: int, bounds: Bounds) -> int:
    """Fork a process that waits for the next request and serves it: so nobody waits for the fork.

    Returns its id, 0 where the commands have so many processes that there is no room for it now.
    """
    try:
        pid = os.fork()
    except OSError:
        return 0
    if pid:
        return pid
    code = 1
    try:
        kind, ancillary, _, _ = control.recvmsg(1, CMSG_SPACE(4))
        fds = descriptors(ancillary)
        if kind and fds:
            os.write(take, b"t")
            os.close(take)
            control.close()
            _WORK[kind](socket(fileno=fds[0]), signals, bounds)
        code = 0
    finally:
        os._exit(code)  # whatever was raised: a command may have limited what its supervisor can use


def _reap(forks: set[int]) -> bool:
    """Take up what has ended; return whether a fork failed or was killed, which may leave strays.

    One that a command has stopped would let it run without a deadline and without bounds: it is killed.
    """
    failed = False
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG | os.WUNTRACED)
        except ChildProcessError:
            return failed
        if not pid:
            return failed
        if os.WIFSTOPPED(status):
            send_signal({pid} & forks, KILL)
            continue
        failed = failed or (pid in forks and status != 0)
        forks.discard(pid)


def _end_strays(forks: set[int]) -> bool:
    """Kill what a killed supervisor had below it; return whether there was any, so that its children come next."""
    strays = descendants(spare=forks)
    send_signal(strays, KILL)
    return bool(strays)


def _listen(channel: socket, _signals: int, _bounds: Bounds) -> None:
    """Listen on a port of this network and hand the listening socket out."""
    (port,), _ = receive(channel)
    listener = socket(AF_INET, SOCK_STREAM)
    listener.setsockopt(SOL_SOCKET, SO_REUSEADDR, 1)
    listener.bind(("127.0.0.1", int(port)))
    listener.listen(_BACKLOG)
    channel.sendmsg([b"l"], [(SOL_SOCKET, SCM_RIGHTS, listener.fileno().to_bytes(4, sys.byteorder))])


def _box(channel: socket, signals: int, _bounds: Bounds) -> None:
    """Enter a sandbox and serve its own requests there, for as long as somebody may ask."""
    # What comes with the socket is held for as long as this process and its forks live: the lock of its layers.
    (mark, *rows), (fd, *_held) = receive(channel)
    plan = read_plan(rows)
    try:
        confine(plan)
        limit(plan.bounds.most)
        prove(plan)
    except OSError as error:
        channel.sendall(f"failed {error.errno} {error.strerror} {error.filename or ''}".encode(errors="replace"))
        return
    channel.sendall(b"ready")
    channel.close()
    bounds = Bounds(plan.bounds.processes, plan.bounds.memory, has_namespace=os.getpid() == 1)
    serve(socket(fileno=fd), signals, mark, bounds)


_WORK: dict[bytes, Callable[[socket, int, Bounds], None]] = {b"c": supervise, b"l": _listen, b"b": _box}
