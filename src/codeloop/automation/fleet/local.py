"""The driver for this machine: each agent is a program in a session of its own."""

import os
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import msgspec

from codeloop.automation.fleet.driver import RESULT_KEYS, JobTask, Stopped
from codeloop.kit.processes import is_alive, with_absolute_path
from codeloop.schema.bounds.automation import FLEET_END, FLEET_LOOK, FLEET_STOP
from codeloop.schema.wire import JSON

PROGRAM = (sys.executable, "-P", "-m", "codeloop")
_ENDING_AT_ONCE = 2 * (os.cpu_count() or 1)
"""How many agents of a fleet that stops clean up at the same time; hundreds would take the cores from each other."""


class LocalDriver:
    """See the module. `hidden_variables`: variables of this process that agents don't get."""

    name = "here"

    def __init__(self, hidden_variables: Sequence[str] = ()) -> None:
        self._hidden_variables = frozenset(hidden_variables)
        self._turns = threading.Semaphore(_ENDING_AT_ONCE)

    def run(self, task: JobTask, note_child: Callable[[int], None], is_stopping: Callable[[], bool]) -> JSON:
        """See Driver."""
        with (task.folder / "run.jsonl").open("w+b") as output, (task.folder / "log").open("wb") as log:
            child = subprocess.Popen(
                [*PROGRAM, *task.to_arguments(str(task.tree))],
                cwd="/",
                env=with_absolute_path({key: os.environ[key] for key in os.environ.keys() - self._hidden_variables}),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=log,
                start_new_session=True,
            )
            try:
                note_child(child.pid)
                while child.poll() is None:
                    if is_stopping():
                        raise Stopped("The fleet was stopped.")
                    _wait(child.pid, FLEET_LOOK.seconds)
            finally:
                if is_stopping():
                    self._end_in_turn(child.pid)
                else:
                    end_program(child.pid)
                child.wait()
            output.seek(0)
            lines = output.read().splitlines()
        try:
            last = msgspec.json.decode(lines[-1], type=JSON)
        except (IndexError, msgspec.DecodeError):
            last = {}
        if last.get("type") != "result":  # killed: what it had printed by then says nothing of how it ended
            return {"reason": "error", "exitCode": child.returncode or 1, "message": "It ended without a result."}
        return {key: last[key] for key in RESULT_KEYS if key in last}

    def _end_in_turn(self, pid: int) -> None:
        """End one of many agents that are to end: asked first if its turn comes in time, else killed."""
        deadline = time.monotonic() + FLEET_STOP.seconds
        has_turn = self._turns.acquire(timeout=FLEET_STOP.seconds)
        try:
            end_program(pid, grace=deadline - time.monotonic())
        finally:
            if has_turn:
                self._turns.release()

    def end_leftovers(self, job_id: str, attempt: int) -> None:
        """Do nothing: the coordinator ends the agent's process by its id."""

    def forget(self, job_id: str) -> None:
        """Do nothing: nothing is left elsewhere."""


def _wait(pid: int, seconds: float) -> None:
    """Wait for so long; where the system says when a child ends, not longer than that."""
    try:
        fd = os.pidfd_open(pid)
    except (AttributeError, OSError):  # another system than Linux, or an old one
        time.sleep(seconds)
        return
    try:
        poll = select.poll()
        poll.register(fd, select.POLLIN)
        poll.poll(seconds * 1000)
    finally:
        os.close(fd)


def end_program(pid: int, start_time: str = "", grace: float = FLEET_END.seconds) -> None:
    """End a program that leads its own session, with all of it: asked first, killed after `grace` seconds.

    What it has started in other sessions ends by itself: its launcher sees that it is gone.
    """
    if not pid or not is_alive(pid, start_time):
        return
    deadline = time.monotonic() + grace
    with suppress(ProcessLookupError, PermissionError):
        if grace > 0:
            os.killpg(pid, signal.SIGTERM)
        while time.monotonic() < deadline and is_alive(pid, start_time) and not _is_over(pid):
            time.sleep(FLEET_LOOK.seconds / 4)
        os.killpg(pid, signal.SIGKILL)


def end_programs(programs: Iterable[tuple[int, str]]) -> None:
    """End many programs (process id, start time) as `end_program` does, in about FLEET_STOP however many they are."""
    deadline = time.monotonic() + FLEET_STOP.seconds

    def end(program: tuple[int, str]) -> None:
        end_program(*program, grace=deadline - time.monotonic())

    with ThreadPoolExecutor(_ENDING_AT_ONCE) as threads:
        list(threads.map(end, programs))


def _is_over(pid: int) -> bool:
    """Return whether a child has ended that nobody has collected yet; it stays to be collected."""
    try:
        return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
    except ChildProcessError:
        return False
