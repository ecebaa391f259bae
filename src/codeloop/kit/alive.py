"""Which process this is, and whether another one still lives, as far as that can be seen from here."""

import os
from functools import cache
from pathlib import Path

ALIVE = "alive"
"""The start of a living process where there is no /proc to tell it."""
_BOOT = Path("/proc/sys/kernel/random/boot_id")
_SPACE = Path("/proc/self/ns/pid")


@cache
def here() -> str:
    """Name where process ids mean what they mean to us: `machine#boot.namespace`, without `#...` where that is unknown.

    Two containers may have the same machine name and the same process ids, and so may two machines.
    """
    machine = os.uname().nodename
    try:
        boot = _BOOT.read_text(encoding="ascii").strip().partition("-")[0]
        space = "".join(char for char in str(_SPACE.readlink()) if char.isdigit())
    except (OSError, UnicodeDecodeError):
        return machine
    return f"{machine}#{boot}.{space}"


def is_here(place: str) -> bool:
    """Tell whether process ids of a place are ours; an older codeloop only named the machine."""
    return place in {here(), machine_of(here())}


def machine_of(place: str) -> str:
    """Give the machine's name."""
    return place.partition("#")[0]


def start_of(pid: int) -> str:
    """Give what tells a process from a later one of the same id; empty when there is no such process."""
    if not _shows_us():
        return _answers(pid)
    try:
        # Field 22 of proc_pid_stat(5), counted behind the command's closing bracket.
        state = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace").rpartition(")")[2].split()
    except OSError:
        return ""
    return "" if state[0] in {"Z", "X"} else state[19]  # one that is dead may still wait to be collected


def _shows_us() -> bool:
    """Tell whether there is a /proc, and whether it numbers processes as we do: a container may be shown the host's."""
    try:
        return Path("/proc/self").readlink() == Path(str(os.getpid()))
    except OSError:
        return False


def _answers(pid: int) -> str:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return ""
    except PermissionError:
        return ALIVE
    return ALIVE
