"""Watches how many processes a command has and how much memory they use, at intervals.

docs/decisions/0018 says why the kernel's own limits are not enough.
"""

from __future__ import annotations

import os
import resource
import sys
import time

from codeloop.workspace.sandbox.launcher.libc import read_text
from codeloop.workspace.sandbox.launcher.processes import list_descendants

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Set as AbstractSet

_INTERVAL_SECONDS = 0.25
_COST_FACTOR = 25
"""A measurement that takes long is repeated less often: the interval is this many times its duration."""
_KIB = 1024
_LIMITS = tuple(sorted({number for name, number in vars(resource).items() if name.startswith("RLIMIT_")}))


class Bounds:
    """What one command may use. `processes`: threads count, too; `memory`: bytes. 0: no bound.

    `has_namespace`: whether the commands of its sandbox have a PID namespace of their own.
    """

    def __init__(self, processes: int = 0, memory: int = 0, *, has_namespace: bool = False) -> None:
        self.processes = processes
        self.memory = memory
        self.has_namespace = has_namespace

    @property
    def is_any(self) -> bool:
        """Whether any bound is set."""
        return bool(self.processes or self.memory)

    @property
    def most(self) -> int:
        """The limit that the kernel enforces: a quarter above ours, with room for our processes to end the command."""
        return self.processes + self.processes // 4


def read_limits() -> tuple[object, ...]:
    """Return the resource limits, the priority and the processors of this process."""
    limits: list[object] = [*map(resource.getrlimit, _LIMITS), os.getpriority(os.PRIO_PROCESS, 0)]
    if sys.platform == "linux":
        limits += [os.sched_getaffinity(0), os.sched_getscheduler(0)]
    return tuple(limits)


class UsageWatch:
    """Measures what the processes below this one use, at intervals."""

    def __init__(self, bounds: Bounds) -> None:
        self._bounds = bounds
        self._next = time.monotonic() + _INTERVAL_SECONDS  # nothing is measured of a shorter command

    @property
    def pause(self) -> float | None:
        """Return the seconds until the next measurement; None: there is none."""
        return max(self._next - time.monotonic(), 0) if self._bounds.is_any else None

    def find_exceeded(self) -> str:
        """Return the bound that is exceeded, `4096 processes` or `2048 memory` (MB); "": none, or it is too early."""
        began = time.monotonic()
        if began < self._next or not self._bounds.is_any:
            return ""
        pids = list_descendants()
        used = [_read_sizes(f"/proc/{pid}/status", ("Threads:", "VmRSS:", "VmSwap:")) for pid in pids]
        exceeded = ""
        if self._bounds.processes and sum(row[0] for row in used) > self._bounds.processes:
            exceeded = f"{self._bounds.processes} processes"
        # Resident sizes count shared pages once for each process: only above the bound is the slow way worth it.
        elif self._is_more(sum(row[1] + row[2] for row in used)) and self._is_more(_measure_unshared(pids)):
            exceeded = f"{self._bounds.memory // 1_000_000} memory"
        self._next = time.monotonic() + max(_INTERVAL_SECONDS, _COST_FACTOR * (time.monotonic() - began))
        return exceeded

    def _is_more(self, memory: int) -> bool:
        return 0 < self._bounds.memory < memory * _KIB


def _measure_unshared(pids: AbstractSet[int]) -> int:
    """Return the memory of processes in KiB, each shared page divided among the processes that share it. Slow."""
    total = 0
    for pid in pids:
        share, swap = _read_sizes(f"/proc/{pid}/smaps_rollup", ("Pss:", "SwapPss:"))
        # Where the file can't be read, as that of another user's process, at least unshared memory counts.
        own, _ = (share, swap) if share else _read_sizes(f"/proc/{pid}/status", ("RssAnon:", "VmSwap:"))
        total += own + swap
    return total


def _read_sizes(path: str, names: tuple[str, ...]) -> list[int]:
    """Return the numbers with these names in a file of /proc; 0 for a missing one."""
    try:
        rows = dict(line.split()[:2] for line in read_text(path).splitlines() if line.startswith(names))
    except OSError:
        rows = dict[str, str]()  # the process has ended
    return [int(rows.get(name, "0")) for name in names]
