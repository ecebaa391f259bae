"""The descendants of this process, and how they are ended."""

from __future__ import annotations

import os
import select
import sys
import time

from codeloop.workspace.sandbox.launcher.suppress import Suppress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Set as AbstractSet

INT = 2
TERM, KILL, STOP, CONT = (15, 9, 19, 18) if sys.platform == "linux" else (15, 9, 17, 19)
MARK = "CODELOOP_CHILD"
"""The variable that marks a command's processes where orphans are not reparented to us (macOS)."""
_FILTERS = frozenset(b"tail head grep tee cat sed awk gawk mawk sort uniq wc cut tr less more ts".split())
"""Filters that print their result when their input ends, and nothing when they are interrupted."""
_KILL_SECONDS = 1.0  # processes that are still there then belong to another user
_ROUND_SECONDS = 0.005


def list_descendants(mark: str = "", spare: AbstractSet[int] = frozenset(), of: int = 0) -> set[int]:
    """Return every living process below this one, or below `of`, and without a subreaper those with the mark.

    Those in `spare` and what is below them are left out.
    """
    parents = _list_parents() if sys.platform == "linux" else {}
    pids = set[int]() if sys.platform == "linux" else _list_marked(mark, parents)
    below: dict[int, list[int]] = {}
    for pid, parent in parents.items():
        below.setdefault(parent, []).append(pid)
    waiting = [of or os.getpid(), *pids]
    while waiting:
        for pid in below.get(waiting.pop(), ()):
            if pid not in pids and pid not in spare:
                pids.add(pid)
                waiting.append(pid)
    return pids - {os.getpid()}


def end_descendants(signals: int, grace: float, mark: str = "") -> int:
    """End every process below this one: TERM, after `grace` seconds KILL, until none is left. Returns how many.

    `signals`: the descriptor of `open_child_signals`. Another user's processes are given up after a second.
    """
    pids_seen = list_descendants(mark)
    send_signal(pids_seen, TERM)
    send_signal(pids_seen, CONT)  # a stopped process handles TERM only when it runs again
    until = time.monotonic() + grace
    while time.monotonic() < until and has_children() and list_descendants(mark):
        wait_for_child(signals, min(until - time.monotonic(), 0.05))
    until = time.monotonic() + _KILL_SECONDS
    while time.monotonic() < until:
        living = list_descendants(mark)
        if not living and not has_children():
            break
        # A stopped process can't fork while the others are killed.
        send_signal(living, STOP)
        send_signal(living | list_descendants(mark), KILL)
        for group in _find_groups(living):
            # The kernel kills a group at once: none of its processes can fork and end before it is found.
            with Suppress(ProcessLookupError, PermissionError):
                os.killpg(group, KILL)
        pids_seen |= living
        has_children()
        wait_for_child(signals, _ROUND_SECONDS)
    has_children()
    return len(pids_seen)


def interrupt(shell: int, signals: int, seconds: float, mark: str = "") -> None:
    """Interrupt the programs that a shell has started in its group, as Ctrl-C does, and wait for them.

    `seconds`: how long at most. The shell is stopped meanwhile: it would go on with its next command. Filters are not
    interrupted: they end, and print their result, when the program that they read from ends.
    """
    group = {pid for pid in list_descendants(mark) if _find_groups({pid}) == {shell}}
    children = group - {shell} or group
    send_signal(group - children, STOP)
    send_signal({pid for pid in children if _read_name(pid) not in _FILTERS}, INT)
    until = time.monotonic() + seconds
    while time.monotonic() < until and children & list_descendants(mark):
        wait_for_child(signals, min(until - time.monotonic(), 0.05))


def _read_name(pid: int) -> bytes:
    """Return the name of a process as the system has it; empty where it can't be read."""
    with Suppress(OSError), open(f"/proc/{pid}/comm", "rb") as file:
        return file.read().rstrip()
    return b""


def end_all() -> None:
    """Kill every process of this PID namespace but the first and this one, whatever they do against it."""
    with Suppress(ProcessLookupError):
        os.kill(-1, KILL)


def _find_groups(pids: AbstractSet[int]) -> set[int]:
    """Return the process groups of these, without our own."""
    groups: set[int] = set()
    for pid in pids:
        with Suppress(ProcessLookupError, PermissionError):
            groups.add(os.getpgid(pid))
    return groups - {0, os.getpgrp()}


def has_children() -> bool:
    """Reap ended children; return whether one is left."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return False
    return True


def wait_for_child(signals: int, seconds: float) -> None:
    """Wait until a child ends, at most that long."""
    select.select([signals], [], [], max(seconds, 0))
    forget_signals(signals)


def forget_signals(signals: int) -> None:
    """Empty the descriptor of `open_child_signals`."""
    try:
        while os.read(signals, 4096):
            pass
    except BlockingIOError:
        return


def send_signal(pids: AbstractSet[int], number: int) -> None:
    """Send a signal to each that is still there and ours."""
    # Older ones first: a shell that has ended can't print messages about the programs that it started.
    for pid in sorted(pids):
        try:
            os.kill(pid, number)
        except (ProcessLookupError, PermissionError):
            continue


def _list_parents() -> dict[int, int]:
    """Return the parent of each living process (no zombies), from /proc."""
    parents: dict[int, int] = {}
    with os.scandir("/proc") as entries:
        names = [entry.name for entry in entries if entry.name.isdigit()]
    for name in sorted(names, key=int, reverse=True):  # the newest first: short-lived ones may end meanwhile
        try:
            fd = os.open(f"/proc/{name}/stat", os.O_RDONLY | os.O_CLOEXEC)
            try:
                # A process chooses its name, which stands in parentheses: the fields start after the last one.
                state, parent = os.read(fd, 4096).rpartition(b")")[2].split()[:2]
            finally:
                os.close(fd)
        except (OSError, ValueError):
            continue
        if state not in {b"Z", b"X"}:
            parents[int(name)] = int(parent)
    return parents


def _list_marked(mark: str, parents: dict[int, int]) -> set[int]:
    """Fill `parents` from `ps`, which shows the environment of one's own processes; return those with the mark."""
    import subprocess  # 6 ms, and Linux needs none of it

    command = ["ps", "-axwwE", "-o", "pid=,ppid=,state=,command="]
    stdout = subprocess.run(command, capture_output=True, check=False, env={"PATH": "/bin:/usr/bin"}).stdout
    marked: set[int] = set()
    for line in stdout.decode(errors="replace").splitlines():
        pid, parent, state, words = (*line.split(None, 3), "")[:4]
        if not state.startswith("Z"):
            parents[int(pid)] = int(parent)
            if mark and f"{MARK}={mark}" in words:
                marked.add(int(pid))
    return marked
