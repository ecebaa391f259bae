"""Lists and identifies processes on this machine, and keeps others from reading this one.

A process is identified by its id and its start time, since ids are reused.
"""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path

from msgspec import Struct

UNKNOWN_START_TIME = "alive"
"""Stands for the start time of a living process when there is no /proc to read it from."""
_PROC = Path("/proc")
_BOOT_ID = _PROC / "sys/kernel/random/boot_id"
_PID_NAMESPACE = _PROC / "self/ns/pid"
_SELF = _PROC / "self"
_PR_SET_DUMPABLE = 4
_PS_SECONDS = 5


class Process(Struct, frozen=True):
    """One living process. `started`: its start time in the system's own unit;
    `session`: the id of its session.

    Where `ps` lists the processes, these two are unknown: "" and 0.
    """

    pid: int
    parent: int
    group: int
    session: int
    started: str
    has_marker: bool


def list_processes(marker: str = "") -> list[Process]:
    """Return all living processes that this user can see, without zombies.

    `Process.has_marker` is true for a process whose environment contained
    `marker` when it was started.
    """
    return list(
        _read_from_proc(marker.encode())
        if (_PROC / "self" / "stat").exists()
        else _read_from_ps(marker)
    )


def has_process_files() -> bool:
    """Return whether processes are visible as files."""
    return _SELF.is_dir()


def measure_memory(top: int) -> int:
    """Return the memory in bytes of a process and all below it, by /proc; 0 for what has ended."""
    total, pids = 0, [top]
    for pid in pids:
        total += _read_resident_bytes(pid)
        pids += _list_children(pid)
    return total


def measure_memory_by_ps(top: int) -> int:
    """Return the memory in bytes of a process and all below it,
    where processes are not visible as files.
    """
    import subprocess

    try:
        rows = subprocess.run(
            ["/bin/ps", "-axo", "pid=,ppid=,rss="],
            capture_output=True,
            timeout=_PS_SECONDS,
            check=True,
        ).stdout
        table = [
            (int(pid), int(parent), int(size))
            for pid, parent, size in map(bytes.split, rows.splitlines())
        ]
    except (OSError, ValueError, subprocess.SubprocessError):
        return 0
    total, pids = 0, [top]
    for each in pids:
        total += sum(size * 1024 for pid, _, size in table if pid == each)
        pids += [pid for pid, parent, _ in table if parent == each]
    return total


def _list_children(pid: int) -> list[int]:
    with suppress(OSError, ValueError):
        texts = (file.read_text() for file in Path(f"/proc/{pid}/task").glob("*/children"))
        return [int(child) for text in texts for child in text.split()]
    return []


def _read_resident_bytes(pid: int) -> int:
    with suppress(OSError, ValueError):
        return int(Path(f"/proc/{pid}/statm").read_bytes().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    return 0


def make_undumpable() -> None:
    """Keep other processes of the same user from reading this process's environment
    and memory (Linux only).

    Root can still read them. Programs that this process starts are not protected.
    """
    if sys.platform == "linux":
        _find_prctl()(_PR_SET_DUMPABLE, 0, 0, 0, 0)


@cache
def _find_prctl() -> Callable[[int, int, int, int, int], int]:
    """Return a function of the C library. To load that anew for each command would
    cost as much as an analysis.
    """
    # The import takes 3 to 5 ms, so not at start-up.
    import ctypes

    return ctypes.CDLL(None).prctl


@cache
def read_pid_scope() -> str:
    """Return the scope in which this process's id is unique: `machine#boot.namespace`,
    or `machine` if that is unknown.

    The machine's name alone is not enough: two containers may have the same name
    and the same process ids.
    """
    machine = os.uname().nodename
    try:
        boot = _BOOT_ID.read_text(encoding="utf-8").strip().partition("-")[0]
        namespace = "".join(char for char in str(_PID_NAMESPACE.readlink()) if char.isdigit())
    except (OSError, UnicodeDecodeError):
        return machine
    return f"{machine}#{boot}.{namespace}"


def is_own_scope(scope: str) -> bool:
    """Return whether process ids of a scope are valid here.
    Scopes that older versions stored are a machine's name.
    """
    return scope in {read_pid_scope(), get_machine_name(read_pid_scope())}


def get_machine_name(scope: str) -> str:
    """Return the machine's name in a scope."""
    return scope.partition("#")[0]


def read_start_time(pid: int) -> str:
    """Return the start time of a process in the system's own unit; "" for no such process.

    Without a usable /proc it is UNKNOWN_START_TIME.
    """
    if _is_proc_usable():
        row = _read_process(pid, b"")
        return "" if row is None else row.started
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return ""
    except PermissionError:
        return UNKNOWN_START_TIME
    return UNKNOWN_START_TIME


def is_alive(pid: int, started: str) -> bool:
    """Return whether the process with this id and start time is alive;
    with "" for the start time, any with this id.
    """
    start = read_start_time(pid)
    return start == started if started else bool(start)


def _is_proc_usable() -> bool:
    """Return whether /proc shows this process under its own id;
    in a container it may show the host's ids.
    """
    try:
        return Path("/proc/self").readlink() == Path(str(os.getpid()))
    except OSError:
        return False


def _read_from_proc(marker: bytes) -> Iterator[Process]:
    with os.scandir(_PROC) as entries:
        for entry in entries:
            row = _read_process(int(entry.name), marker) if entry.name.isdigit() else None
            if row is not None:
                yield row


def _read_process(pid: int, marker: bytes) -> Process | None:
    try:
        # The name in brackets may hold anything; the fields start after the last bracket.
        state, parent, group, session, *fields = (
            _read_file(f"/proc/{pid}/stat").rpartition(b")")[2].split()
        )
    except (OSError, ValueError):
        return None
    if state in {b"Z", b"X"}:
        return None
    # `fields` begins with the 7th field of proc(5); the 22nd is the start time.
    return Process(
        pid, int(parent), int(group), int(session), fields[15].decode(), _has_marker(pid, marker)
    )


def _has_marker(pid: int, marker: bytes) -> bool:
    if not marker:
        return False
    try:
        return marker in _read_file(f"/proc/{pid}/environ")
    except OSError:
        return False


def _read_file(path: str) -> bytes:
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        data = os.read(fd, 65536)
        while len(chunk := os.read(fd, 65536)):
            data += chunk
        return data
    finally:
        os.close(fd)


def _read_from_ps(marker: str) -> Iterator[Process]:
    """Yield the processes that `ps` prints, for systems without /proc;
    `-E` adds the environment of own processes.
    """
    import subprocess

    command = ["ps", "-axwwE", "-o", "pid=,ppid=,pgid=,state=,command="]
    stdout = subprocess.run(
        command, capture_output=True, check=False, env={"PATH": "/bin:/usr/bin"}
    ).stdout
    for line in stdout.decode(errors="replace").splitlines():
        pid, parent, group, state, words = (*line.split(None, 4), "")[:5]
        if not state.startswith("Z"):
            yield Process(
                int(pid), int(parent), int(group), 0, "", bool(marker) and marker in words
            )
