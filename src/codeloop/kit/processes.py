"""Lists processes, tells one from a later one with the same id, and finds programs that no project has planted."""

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

if TYPE_CHECKING:
    from asyncio.subprocess import Process as ChildProcess

OWN_PROGRAMS = (".venv/bin", "venv/bin", "env/bin", "node_modules/.bin", "vendor/bin")
"""Folders in which a project has programs of its own."""
ALIVE = "alive"
"""The start time of a living process where no /proc shows it."""
_PROC = Path("/proc")
_BOOT_ID = _PROC / "sys/kernel/random/boot_id"
_PID_NAMESPACE = _PROC / "self/ns/pid"
_PR_SET_DUMPABLE = 4
_excluded_folders: set[str] = set()
"""Folders where commands of the agent write. With an environment of the project active, its `.venv/bin` stands first
on the PATH, and a command can put a `git` there."""


class Process(Struct, frozen=True):
    """One living process. `started` tells it from an earlier or later one with the same id."""

    pid: int
    parent: int
    group: int
    session: int
    started: str
    has_marker: bool


def list_processes(marker: str = "") -> list[Process]:
    """Return every living process that can be seen, without zombies.

    `has_marker`: the environment that the process started with contains `marker`.
    """
    return list(_read_from_proc(marker.encode()) if (_PROC / "self" / "stat").exists() else _read_from_ps(marker))


def make_undumpable() -> None:
    """Keep other processes of the same user from reading this one's environment and memory (Linux; root still can).

    Programs that this process starts are readable again.
    """
    if sys.platform == "linux":
        import ctypes  # 3 to 5 ms

        ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)


def exclude_folder(folder: Path) -> None:
    """Exclude the programs in this folder, or below it, from `find_program` from now on.

    A folder that contains the home directory is not excluded, since the user's own programs are in it.
    """
    real = os.path.realpath(folder)
    if not f"{os.path.realpath(Path.home())}/".startswith(f"{real.rstrip('/')}/"):
        _excluded_folders.add(real)


def exclude_project(directory: Path) -> None:
    """Exclude the programs of a directory and of the work trees around it."""
    for folder in (directory, *directory.parents):
        if folder == directory or os.path.lexists(folder / ".git"):
            exclude_folder(folder)


def is_excluded(folder: str) -> bool:
    """Return whether the programs of a folder (absolute) are excluded."""
    names = (folder, _resolve_folder(folder))
    return any(name == each or name.startswith(f"{each}/") for name in names for each in _excluded_folders)


@lru_cache(maxsize=256)
def _resolve_folder(folder: str) -> str:
    # Cached: commands can only change links in folders that are excluded by their own names.
    return os.path.realpath(folder)


def find_program(name: str, path: str | None, *, in_project: bool = False) -> str | None:
    """Find a program in the absolute folders of a PATH.

    `in_project`: excluded ones too, for a program that runs in a sandbox or is only named.
    """
    for folder in (path or os.defpath).split(os.pathsep):
        candidate = f"{folder}/{name}"
        if not candidate.startswith("/") or not os.access(candidate, os.X_OK) or Path(candidate).is_dir():
            continue
        if in_project or not (is_excluded(folder) or is_excluded(str(Path(candidate).resolve().parent))):
            return candidate
    return None


def with_absolute_path(environment: Mapping[str, str]) -> dict[str, str]:
    """Return an environment whose PATH has neither relative nor excluded folders."""
    folders = environment.get("PATH", os.defpath).split(os.pathsep)
    absolute = (folder for folder in folders if folder.startswith("/") and not is_excluded(folder))
    return {**environment, "PATH": os.pathsep.join(absolute)}


async def start_desktop_program(
    program: Sequence[str],
    *,
    folder: str = "/",
    stdin: int | None = None,
    output: int | None = None,
    is_apart: bool = False,
) -> "ChildProcess":
    """Start a program of the user's desktop, unsandboxed, so that no file of a project decides what it runs.

    `stdin` and `output` (stdout) as in asyncio; stderr goes where stdout goes, or nowhere if that is a pipe.
    `is_apart`: in a session of its own, so that signals to ours don't reach it.
    Raises OSError, also when it is not installed.
    """
    from asyncio import create_subprocess_exec
    from asyncio.subprocess import DEVNULL, PIPE

    environment = with_absolute_path(os.environ)
    path = program[0] if program[0].startswith("/") else find_program(program[0], environment["PATH"])
    if path is None:
        raise FileNotFoundError(2, f"{program[0]} is not installed", program[0])
    errors = DEVNULL if output == PIPE else output
    return await create_subprocess_exec(
        *(path, *program[1:]),
        cwd=folder,
        env=environment,
        stdin=stdin,
        stdout=output,
        stderr=errors,
        start_new_session=is_apart,
    )


@cache
def pid_scope() -> str:
    """Return where our process ids are valid: `machine#boot.namespace`, without `#...` where that is unknown.

    Two containers may have the same machine name and the same process ids, and so may two machines.
    """
    machine = os.uname().nodename
    try:
        boot = _BOOT_ID.read_text(encoding="utf-8").strip().partition("-")[0]
        namespace = "".join(char for char in str(_PID_NAMESPACE.readlink()) if char.isdigit())
    except (OSError, UnicodeDecodeError):
        return machine
    return f"{machine}#{boot}.{namespace}"


def is_own_scope(scope: str) -> bool:
    """Return whether process ids of a scope are ours; older versions named only the machine."""
    return scope in {pid_scope(), machine_of(pid_scope())}


def machine_of(scope: str) -> str:
    """Return the name of a scope's machine."""
    return scope.partition("#")[0]


def start_time(pid: int) -> str:
    """Return when a living process was started, in the system's own unit, or ALIVE; "" for no such process."""
    if _proc_shows_us():
        row = _read_process(pid, b"")
        return "" if row is None else row.started
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return ""
    except PermissionError:
        return ALIVE
    return ALIVE


def is_alive(pid: int, started: str) -> bool:
    """Return whether a process is alive: the one with this start time, or, for "", any with this id."""
    start = start_time(pid)
    return start == started if started else bool(start)


def _proc_shows_us() -> bool:
    """Return whether /proc shows our own process ids: a container may see the host's."""
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
        state, parent, group, session, *fields = _read_file(f"/proc/{pid}/stat").rpartition(b")")[2].split()
    except (OSError, ValueError):
        return None
    if state in {b"Z", b"X"}:
        return None
    return Process(pid, int(parent), int(group), int(session), fields[15].decode(), _has_marker(pid, marker))


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
    """Read the table where there is no /proc; `ps -E` shows the environment of one's own processes."""
    import subprocess

    command = ["ps", "-axwwE", "-o", "pid=,ppid=,pgid=,state=,command="]
    stdout = subprocess.run(command, capture_output=True, check=False, env={"PATH": "/bin:/usr/bin"}).stdout
    for line in stdout.decode(errors="replace").splitlines():
        pid, parent, group, state, words = (*line.split(None, 4), "")[:5]
        if not state.startswith("Z"):
            yield Process(int(pid), int(parent), int(group), 0, "", bool(marker) and marker in words)
