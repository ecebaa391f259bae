"""Ends programs that lead process sessions of their own, such as the agents of a fleet,
with all their processes.
"""

import os
import signal
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

from codeloop.kit.processes import is_alive
from codeloop_automation.bounds import FLEET_JOB_END_TIME, FLEET_POLL, FLEET_STOP_TIME

# How many programs end at the same time when a fleet stops;
# more would only take the CPU from each other.
MAX_PARALLEL_ENDS = 2 * (os.cpu_count() or 1)


def end_program(pid: int, start_time: str = "", grace: float = FLEET_JOB_END_TIME.seconds) -> None:
    """End all processes of the session that a program leads: ask them to end,
    and kill them after `grace` seconds.

    `start_time`: of the program, so that another one with the same id is left alone; "": any.
    Processes in sessions of their own end by themselves: their launcher notices
    that the program has ended.
    """
    if not pid or not is_alive(pid, start_time):
        return
    deadline = time.monotonic() + grace
    # EPERM: the answer of macOS for a group whose processes have all ended.
    with suppress(ProcessLookupError, PermissionError):
        if grace > 0:
            os.killpg(pid, signal.SIGTERM)
        while time.monotonic() < deadline and is_alive(pid, start_time) and not _has_ended(pid):
            time.sleep(FLEET_POLL.seconds / 4)
        # Also if the program has ended: others of its group may be left.
        os.killpg(pid, signal.SIGKILL)


def end_programs(programs: Iterable[tuple[int, str]]) -> None:
    """End many programs (process id, start time) as `end_program` does,
    all of them within about FLEET_STOP_TIME.
    """
    deadline = time.monotonic() + FLEET_STOP_TIME.seconds

    def end(program: tuple[int, str]) -> None:
        end_program(*program, grace=deadline - time.monotonic())

    with ThreadPoolExecutor(MAX_PARALLEL_ENDS) as threads:
        list(threads.map(end, programs))


def _has_ended(pid: int) -> bool:
    """Return whether a child of this process has ended; False for another process."""
    # WNOWAIT leaves the exit code to `Popen.wait`, and the process id reserved until then.
    try:
        return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
    except ChildProcessError:
        return False
