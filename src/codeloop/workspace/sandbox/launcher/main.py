"""The launcher's main loop: serves requests until its client exits,
then ends every process below it.

A request is one byte, its kind, with a socket. A forked supervisor takes it, and exchanges
everything else over that socket. One supervisor always waits for the next request. A supervisor
whose command has ended with all that it started waits again,
since a fork costs more than a short command.
"""

from __future__ import annotations

import fcntl
import os
import resource
import select
import sys
import time
from _socket import AF_INET, CMSG_SPACE, SCM_RIGHTS, SO_REUSEADDR, SOCK_STREAM, SOL_SOCKET, socket
from struct import Struct

from codeloop.workspace.sandbox.launcher.cache_overlays import remove_work_folders
from codeloop.workspace.sandbox.launcher.confine import confine, limit_resources
from codeloop.workspace.sandbox.launcher.confinement_check import check_confinement
from codeloop.workspace.sandbox.launcher.descendants import (
    KILL,
    end_descendants,
    forget_signals,
    list_descendants,
    reap_children,
    send_signal,
    wait_for_child,
)
from codeloop.workspace.sandbox.launcher.libc import become_subreaper, open_child_signals
from codeloop.workspace.sandbox.launcher.messages import (
    COMMAND_KIND,
    LISTEN_KIND,
    REACH_KIND,
    SANDBOX_KIND,
    read_descriptors,
    receive,
)
from codeloop.workspace.sandbox.launcher.plan import read_plan
from codeloop.workspace.sandbox.launcher.reached_ports import serve_ports
from codeloop.workspace.sandbox.launcher.seccomp import NO_LISTENER, refuse_internet
from codeloop.workspace.sandbox.launcher.supervisor import supervise
from codeloop.workspace.sandbox.launcher.usage_watch import Bounds

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

_BACKLOG = 128
# The process id that a supervisor writes when it takes a request,
# and again when it waits for the next one.
_SUPERVISOR_ID = Struct("i")
# A fork fails when the limit of processes is reached, which lasts until a command ends.
_FORK_RETRY_MS = 50
_NO_BOUNDS = Bounds()
_RESOURCE_LIMITS = tuple(
    sorted({number for name, number in vars(resource).items() if name.startswith("RLIMIT_")})
)
# The time that supervisors have to end their commands after the client has gone;
# then everything is killed.
_SHUTDOWN_SECONDS = 1.0


def main(fd: int, mark: str, marks: str, *recovery: str) -> None:
    """Serve the requests that arrive on a socket, a descriptor. `mark`: see MARK_VARIABLE.

    `recovery`: a command that is started at the end if there is a file that begins with `marks`.
    """
    become_subreaper()
    # A command must not inherit the socket from its supervisor: it could start programs
    # outside of its sandbox.
    fcntl.fcntl(fd, fcntl.F_SETFD, fcntl.FD_CLOEXEC)
    serve(socket(fileno=fd), open_child_signals(), mark)
    folder, _, start = marks.rpartition("/")
    if recovery and any(name.startswith(start) for name in _list_names(folder)):
        os.posix_spawn(recovery[0], recovery, {})


def _list_names(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []


def serve_inside(fd: int, _mark: str) -> None:
    """Serve requests in a sandbox that another program has made. The plan arrives on the
    descriptor, with the mark.
    """
    _handle_enter(socket(fileno=fd), open_child_signals(), _NO_BOUNDS, NO_LISTENER)


def serve(
    control: socket,
    signal_fd: int,
    mark: str,
    bounds: Bounds = _NO_BOUNDS,
    *,
    refuses_internet: bool = False,
) -> None:
    """Serve requests until the other end is closed, then end the remaining processes.

    `signal_fd`: from `open_child_signals`; `mark`: see MARK_VARIABLE;
    `bounds`: those of each command;
    `refuses_internet`: supervisors refuse internet sockets to commands.
    """
    state_reader, state_writer = os.pipe()
    events = select.poll()
    # Mask 0 reports only the hang-up of the control socket: its requests are read
    # by the waiting supervisor.
    for fd, mask in (
        (control.fileno(), 0),
        (signal_fd, select.POLLIN),
        (state_reader, select.POLLIN),
    ):
        events.register(fd, mask)
    supervisors: set[int] = set()
    idle_supervisors: set[int] = set()
    has_strays = False
    while True:
        if not idle_supervisors and (
            pid := _fork_supervisor(
                control, signal_fd, state_writer, bounds, refuses_internet=refuses_internet
            )
        ):
            supervisors.add(pid)
            idle_supervisors.add(pid)
        ready = {fd for fd, _ in events.poll(None if idle_supervisors else _FORK_RETRY_MS)}
        if control.fileno() in ready:
            break
        if state_reader in ready:
            for (supervisor_id,) in _SUPERVISOR_ID.iter_unpack(
                os.read(state_reader, _SUPERVISOR_ID.size * _BACKLOG)
            ):
                # Each id toggles: an idle supervisor takes a request, a busy one is idle again.
                idle_supervisors ^= {supervisor_id}
        if signal_fd in ready:
            forget_signals(signal_fd)
            has_strays = _reap(supervisors) or has_strays
            has_strays = has_strays and _end_strays(supervisors)
        # A supervisor may have ended while it waited.
        idle_supervisors &= supervisors
    until = time.monotonic() + _SHUTDOWN_SECONDS
    while reap_children() and (seconds_left := until - time.monotonic()) > 0:
        wait_for_child(signal_fd, seconds_left)
    end_descendants(signal_fd, 0, mark)


def _fork_supervisor(
    control: socket, signal_fd: int, state_writer: int, bounds: Bounds, *, refuses_internet: bool
) -> int:
    """Fork a supervisor that waits for requests and serves them,
    so that no request waits for a fork.

    Returns its process id; 0 when the limit of processes is reached.
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
        listener = refuse_internet() if refuses_internet else NO_LISTENER
        limits = _read_limits()
        # A command can limit its supervisor (`prlimit`),
        # which would pass the limits on to the next command.
        while (
            _serve_one(control, signal_fd, state_writer, bounds, listener, parent)
            and _read_limits() == limits
        ):
            os.write(state_writer, _SUPERVISOR_ID.pack(os.getpid()))
        code = 0
    finally:
        # Whatever the error (a command may have limited its supervisor),
        # a fork must not return into our loop.
        os._exit(code)


def _read_limits() -> tuple[object, ...]:
    """Return the resource limits, the priority and the processors of this process."""
    limits: list[object] = [
        *map(resource.getrlimit, _RESOURCE_LIMITS),
        os.getpriority(os.PRIO_PROCESS, 0),
    ]
    if sys.platform == "linux":
        limits += [os.sched_getaffinity(0), os.sched_getscheduler(0)]
    return tuple(limits)


def _serve_one(
    control: socket, signal_fd: int, state_writer: int, bounds: Bounds, listener: int, parent: int
) -> bool:
    """Wait for a request and serve it. Returns whether this supervisor may serve another one."""
    kind, ancillary, _, _ = control.recvmsg(1, CMSG_SPACE(4))
    fds = read_descriptors(ancillary)
    if not kind or not fds:
        return False
    os.write(state_writer, _SUPERVISOR_ID.pack(os.getpid()))
    is_last = kind != COMMAND_KIND or os.getppid() != parent
    if is_last:
        # Neither a new sandbox nor an orphaned supervisor may keep these open:
        # others wait for their end.
        os.close(state_writer)
        control.close()
    channel = socket(fileno=fds[0])
    is_clean = _HANDLERS[kind](channel, signal_fd, bounds, listener)
    channel.close()
    return is_clean and not is_last and os.getppid() == parent


def _reap(supervisors: set[int]) -> bool:
    """Reap ended children. Returns whether a supervisor failed or was killed,
    whose processes may be left.

    A supervisor that a command has stopped (SIGSTOP) is killed: its command would run
    without deadline and bounds.
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
            send_signal({pid} & supervisors, KILL)
            continue
        has_failed = has_failed or (pid in supervisors and status != 0)
        supervisors.discard(pid)


def _end_strays(supervisors: set[int]) -> bool:
    """Kill the processes of an ended supervisor, which are now our children.
    Returns whether there were any.

    If so, it has to be called again: their own children become ours when they end.
    """
    strays = list_descendants(spared_pids=supervisors)
    send_signal(strays, KILL)
    return bool(strays)


def _handle_listen(channel: socket, _signals: int, _bounds: Bounds, _listener: int) -> bool:
    """Listen on a port of this network namespace, and send the socket to the client,
    which is in another one.
    """
    (port,), _ = receive(channel)
    listener = socket(AF_INET, SOCK_STREAM)
    listener.setsockopt(SOL_SOCKET, SO_REUSEADDR, 1)
    listener.bind(("127.0.0.1", int(port)))
    listener.listen(_BACKLOG)
    channel.sendmsg(
        [b"l"], [(SOL_SOCKET, SCM_RIGHTS, listener.fileno().to_bytes(4, sys.byteorder))]
    )
    return False


def _handle_reach(channel: socket, _signals: int, _bounds: Bounds, _listener: int) -> bool:
    """List and reach the ports of this network namespace for a client in another one,
    until the client is gone.
    """
    receive(channel)
    serve_ports(channel)
    return False


def _handle_enter(channel: socket, signal_fd: int, _bounds: Bounds, _listener: int) -> bool:
    """Enter a sandbox, say what it lacks or why it can't be made,
    and serve requests there until the client is gone.
    """
    # The further descriptors hold the lock on the sandbox's layers. They stay open as long as this
    # process and its forks live, so that no other process mounts these layers.
    (mark, *rows), (fd, *_held) = receive(channel)
    plan = read_plan(rows)
    try:
        confinement = confine(plan)
        limit_resources(plan.bounds.kernel_process_limit)
        check_confinement(plan)
    except OSError as error:
        path = f" ({error.filename})" if error.filename else ""
        channel.sendall(f"failed {error.strerror or error}{path}".encode(errors="replace"))
        return False
    channel.sendall(" ".join(("ready", *confinement.lacks, "\n")).encode())
    channel.close()
    # Process 1 is the first of a PID namespace.
    bounds = Bounds(plan.bounds.processes, plan.bounds.memory, has_namespace=os.getpid() == 1)
    serve(socket(fileno=fd), signal_fd, mark, bounds, refuses_internet=confinement.refuses_internet)
    if plan.kind == "base":
        # All sandboxes that used the layers were forked from this process, and have ended.
        remove_work_folders()
    return False


_HANDLERS: dict[bytes, Callable[[socket, int, Bounds, int], bool]] = {
    COMMAND_KIND: supervise,
    LISTEN_KIND: _handle_listen,
    REACH_KIND: _handle_reach,
    SANDBOX_KIND: _handle_enter,
}
"""By the kind of a request. Each returns whether its supervisor may serve another request."""
