"""Finds, interrupts and kills the descendants of this process.

Used by the launcher and its supervisors, and by `process_launcher.py` when the
launcher no longer answers.
"""

from __future__ import annotations

import os
import select
import sys
import time

from codeloop.workspace.sandbox.launcher.suppress import Suppress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Set as AbstractSet

# Signals. The module `signal` would take 5 ms to import.
_INT = 2
TERM, KILL, STOP, CONT = (15, 9, 19, 18) if sys.platform == "linux" else (15, 9, 17, 19)
MARK_VARIABLE = "CODELOOP_CHILD"
"""The variable that marks a command's processes where orphans are not reparented to us (macOS).

A `mark` is its value for one command, or the beginning that the values of all commands of a
launcher share: processes whose value begins with it are found.
"""
_FILTER_PROGRAMS = frozenset(
    b"tail head grep tee cat sed awk gawk mawk sort uniq wc cut tr less more ts".split()
)
"""Filters that print their result when their input ends, and nothing when they are interrupted."""
# Processes that live longer can't be killed by this user.
_KILL_TIMEOUT_SECONDS = 1.0
_KILL_ROUND_SECONDS = 0.005
_POLL_SECONDS = 0.05


def list_descendants(
    mark: str = "", spared_pids: AbstractSet[int] = frozenset(), top_pid: int = 0
) -> set[int]:
    """Return the ids of all living processes below this one, or below `top_pid`.

    Where orphans do not stay below their subreaper (macOS), processes with the mark in their
    environment are added. `spared_pids` and the processes below these are left out.
    """
    parents = _list_parents() if sys.platform == "linux" else {}
    pids = set[int]() if sys.platform == "linux" else _list_marked_processes(mark, parents)
    below: dict[int, list[int]] = {}
    for pid, parent in parents.items():
        below.setdefault(parent, []).append(pid)
    waiting = [top_pid or os.getpid(), *pids]
    while waiting:
        for pid in below.get(waiting.pop(), ()):
            if pid not in pids and pid not in spared_pids:
                pids.add(pid)
                waiting.append(pid)
    return pids - {os.getpid()}


def end_descendants(signal_fd: int, grace: float, mark: str = "") -> int:
    """Send TERM to every process below this one, and after `grace` seconds KILL until none is left.

    Returns the number of processes. `signal_fd`: the descriptor of `open_child_signals`. Processes
    that can't be killed are given up after a second.
    """
    pids_seen = list_descendants(mark)
    send_signal(pids_seen, TERM)
    # A stopped process handles TERM only when it runs again.
    send_signal(pids_seen, CONT)
    until = time.monotonic() + grace
    while time.monotonic() < until and reap_children() and list_descendants(mark):
        wait_for_child(signal_fd, min(until - time.monotonic(), _POLL_SECONDS))
    # In rounds, since a process may fork between the look at the table and its own end.
    until = time.monotonic() + _KILL_TIMEOUT_SECONDS
    while time.monotonic() < until:
        living = list_descendants(mark)
        if not living and not reap_children():
            break
        # A stopped process can't fork while the others are killed.
        send_signal(living, STOP)
        send_signal(living | list_descendants(mark), KILL)
        for group in _find_groups(living):
            # The kernel kills a group at once: none of its processes can fork and
            # end before it is found.
            with Suppress(ProcessLookupError, PermissionError):
                os.killpg(group, KILL)
        pids_seen |= living
        reap_children()
        wait_for_child(signal_fd, _KILL_ROUND_SECONDS)
    reap_children()
    return len(pids_seen)


def interrupt_group(shell: int, signal_fd: int, seconds: float, mark: str = "") -> None:
    """Interrupt the programs in a shell's process group, as Ctrl-C does,
    and wait at most `seconds` for their end.
    """
    # The shell itself is stopped meanwhile: it would go on with its next command. Filters are not
    # interrupted: they end, and print their result, when the program that they read from ends.
    group = {pid for pid in list_descendants(mark) if _find_groups({pid}) == {shell}}
    children = group - {shell} or group
    send_signal(group - children, STOP)
    send_signal({pid for pid in children if _read_name(pid) not in _FILTER_PROGRAMS}, _INT)
    until = time.monotonic() + seconds
    while time.monotonic() < until and children & list_descendants(mark):
        wait_for_child(signal_fd, min(until - time.monotonic(), _POLL_SECONDS))


def _read_name(pid: int) -> bytes:
    """Return the name of a process, at most 15 bytes; b"" where it can't be read."""
    with Suppress(OSError), open(f"/proc/{pid}/comm", "rb") as file:
        return file.read().rstrip()
    return b""


def kill_namespace() -> None:
    """Kill all processes of this PID namespace except the first and this one.

    The kernel does it at once, so no process can escape by forking.
    """
    with Suppress(ProcessLookupError):
        os.kill(-1, KILL)


def _find_groups(pids: AbstractSet[int]) -> set[int]:
    """Return the process groups of the given processes, without our own group."""
    groups: set[int] = set()
    for pid in pids:
        with Suppress(ProcessLookupError, PermissionError):
            groups.add(os.getpgid(pid))
    return groups - {0, os.getpgrp()}


def reap_children() -> bool:
    """Reap ended children. Returns whether one is left that has not ended."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return False
    return True


def wait_for_child(signal_fd: int, seconds: float) -> None:
    """Wait until a child ends, at most `seconds`."""
    select.select([signal_fd], [], [], max(seconds, 0))
    forget_signals(signal_fd)


def forget_signals(signal_fd: int) -> None:
    """Drain the descriptor of `open_child_signals`,
    so that it is readable only after the next end of a child.
    """
    try:
        while os.read(signal_fd, 4096):
            pass
    except BlockingIOError:
        return


def send_signal(pids: AbstractSet[int], number: int) -> None:
    """Send a signal to each process that still lives and belongs to this user."""
    # Older processes first: a shell that has ended can't print messages about the
    # programs that it started.
    for pid in sorted(pids):
        try:
            os.kill(pid, number)
        except (ProcessLookupError, PermissionError):
            continue


def _list_parents() -> dict[int, int]:
    """Return the parent of each living process, from /proc, without zombies."""
    parents: dict[int, int] = {}
    with os.scandir("/proc") as entries:
        names = [entry.name for entry in entries if entry.name.isdigit()]
    # The newest first: short-lived processes may end meanwhile.
    for name in sorted(names, key=int, reverse=True):
        try:
            fd = os.open(f"/proc/{name}/stat", os.O_RDONLY | os.O_CLOEXEC)
            try:
                # The name in parentheses is chosen by the process and may contain more of them, so
                # the fields start after the last one.
                state, parent = os.read(fd, 4096).rpartition(b")")[2].split()[:2]
            finally:
                os.close(fd)
        except (OSError, ValueError):
            continue
        if state not in {b"Z", b"X"}:
            parents[int(name)] = int(parent)
    return parents


def _list_marked_processes(mark: str, parents: dict[int, int]) -> set[int]:
    """Fill `parents` with all living processes, from `ps`.
    Returns the processes with the mark in their environment.
    """
    # Imported here: it takes 6 ms, and Linux does not need it.
    import subprocess

    # `-E` shows the environment of the user's own processes.
    command = ["ps", "-axwwE", "-o", "pid=,ppid=,state=,command="]
    stdout = subprocess.run(
        command, capture_output=True, check=False, env={"PATH": "/bin:/usr/bin"}
    ).stdout
    marked: set[int] = set()
    for line in stdout.decode(errors="replace").splitlines():
        pid, parent, state, words = (*line.split(None, 3), "")[:4]
        if not state.startswith("Z"):
            parents[int(pid)] = int(parent)
            if mark and f"{MARK_VARIABLE}={mark}" in words:
                marked.add(int(pid))
    return marked
