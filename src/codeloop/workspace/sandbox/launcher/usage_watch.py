"""Measures how many processes a command has and how much memory they use, at intervals, and
compares with its bounds.

Used by a command's supervisor. docs/decisions/0018 says why the kernel's own limits are not enough.
"""

from __future__ import annotations

import time

from codeloop.workspace.sandbox.launcher.descendants import list_descendants
from codeloop.workspace.sandbox.launcher.proc_files import read_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Set as AbstractSet

_INTERVAL_SECONDS = 0.25
# A slow measurement is repeated less often: the interval is at least this many times its duration,
# so that measuring takes at most one part in 25 of a processor.
_COST_FACTOR = 25
_KIB = 1024


class Bounds:
    """The limits of one command: `processes` (threads included) and `memory` in bytes. 0: no limit.

    `has_namespace`: whether the commands of its sandbox have their own PID namespace.
    """

    def __init__(self, processes: int = 0, memory: int = 0, *, has_namespace: bool = False) -> None:
        self.processes = processes
        self.memory = memory
        self.has_namespace = has_namespace

    @property
    def has_any(self) -> bool:
        """Whether any bound is set."""
        return bool(self.processes or self.memory)

    @property
    def kernel_process_limit(self) -> int:
        """The number of processes that the kernel allows: a quarter more,
        so that our own can still end the command.
        """
        return self.processes + self.processes // 4


class UsageWatch:
    """Measures the processes below this one at intervals, and finds the bound that they exceed."""

    def __init__(self, bounds: Bounds) -> None:
        self._bounds = bounds
        # Most commands end before the first measurement and cost nothing.
        self._next_time = time.monotonic() + _INTERVAL_SECONDS

    @property
    def wait_seconds(self) -> float | None:
        """The seconds until the next measurement; None: nothing is measured."""
        return max(self._next_time - time.monotonic(), 0) if self._bounds.has_any else None

    def find_exceeded(self) -> str:
        """Measure if it is time to. Returns the exceeded bound,
        `4096 processes` or `2048 memory` (MB), or "".
        """
        began = time.monotonic()
        if began < self._next_time or not self._bounds.has_any:
            return ""
        pids = list_descendants()
        sizes = [
            _read_sizes(f"/proc/{pid}/status", ("Threads:", "VmRSS:", "VmSwap:")) for pid in pids
        ]
        exceeded = ""
        if (
            self._bounds.processes
            and sum(threads for threads, _, _ in sizes) > self._bounds.processes
        ):
            exceeded = f"{self._bounds.processes} processes"
        # Resident sizes count shared pages once for each process. The exact measurement is slow, so
        # it is made only when they exceed the bound.
        elif self._exceeds_memory(
            sum(resident + swap for _, resident, swap in sizes)
        ) and self._exceeds_memory(_measure_exactly(pids)):
            exceeded = f"{self._bounds.memory // 1_000_000} memory"
        self._next_time = time.monotonic() + max(
            _INTERVAL_SECONDS, _COST_FACTOR * (time.monotonic() - began)
        )
        return exceeded

    def _exceeds_memory(self, memory: int) -> bool:
        return 0 < self._bounds.memory < memory * _KIB


def _measure_exactly(pids: AbstractSet[int]) -> int:
    """Return the memory of processes in KiB, where each shared page is divided among its processes.
    Slow.
    """
    total = 0
    for pid in pids:
        share, swap = _read_sizes(f"/proc/{pid}/smaps_rollup", ("Pss:", "SwapPss:"))
        if not share:
            # The file of another user's process can't be read; then its unshared memory is counted.
            share, _ = _read_sizes(f"/proc/{pid}/status", ("RssAnon:", "VmSwap:"))
        total += share + swap
    return total


def _read_sizes(path: str, names: tuple[str, ...]) -> list[int]:
    """Return the numbers with the given names in a file of /proc; 0 for a missing one."""
    try:
        # Lines such as `VmRSS:     1234 kB`.
        sizes = dict(
            line.split()[:2] for line in read_text(path).splitlines() if line.startswith(names)
        )
    except OSError:
        # The process has ended.
        sizes = dict[str, str]()
    return [int(sizes.get(name, "0")) for name in names]
