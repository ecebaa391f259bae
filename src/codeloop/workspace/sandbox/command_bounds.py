"""The limits of processes and memory that each sandboxed command gets,
from those of the machine or the container.
"""

import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from codeloop.schema.limits import SANDBOX_MEMORY, SANDBOX_PROCESSES
from codeloop.workspace.sandbox.launcher.usage_watch import Bounds

# The limits of the container, by cgroup v2 and v1.
_CONTAINER_MEMORY_FILES = (
    "/sys/fs/cgroup/memory.max",
    "/sys/fs/cgroup/memory/memory.limit_in_bytes",
)
_CONTAINER_PROCESS_FILES = ("/sys/fs/cgroup/pids.max", "/sys/fs/cgroup/pids/pids.max")


def compute_bounds() -> Bounds:
    """Return the limits of one command, computed from those of the machine or the container."""
    memory = read_smallest_number(
        _CONTAINER_MEMORY_FILES, os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    )
    # Half of what a container may have: with more,
    # nothing of ours could be started to end the command.
    processes = read_smallest_number(_CONTAINER_PROCESS_FILES, 2 * SANDBOX_PROCESSES.value) // 2
    return Bounds(processes, memory * SANDBOX_MEMORY.value // 100)


def read_smallest_number(paths: Sequence[str], maximum: int) -> int:
    """Return the smallest number in the files, at most `maximum`; missing files are skipped."""
    numbers = [maximum]
    for path in paths:
        # Cgroup v2 writes "max" where there is no limit.
        with suppress(OSError, ValueError):
            numbers.append(int(Path(path).read_text(encoding="ascii")))
    return min(numbers)
