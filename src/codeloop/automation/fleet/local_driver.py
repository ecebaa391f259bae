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
from codeloop.kit.processes import is_alive, make_safe_environment
from codeloop.schema.bounds.automation import FLEET_JOB_END_TIME, FLEET_POLL, FLEET_STOP_TIME
from codeloop.schema.wire import JSON

PROGRAM = (sys.executable, "-P", "-m", "codeloop")
_ENDING_AT_ONCE = 2 * (os.cpu_count() or 1)
"""How many agents are asked to end at the same time when a fleet stops; more would slow each other down."""


class LocalDriver:
    """Runs agents on this machine. `hidden_variables`: names of variables that agents must not get."""

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
                env=make_safe_environment({key: os.environ[key] for key in os.environ.keys() - self._hidden_variables}),
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
                    _wait(child.pid, FLEET_POLL.seconds)
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
        if last.get("type") != "result":  # it was killed before it printed its result
            return {"reason": "error", "exitCode": child.returncode or 1, "message": "It ended without a result."}
        return {key: last[key] for key in RESULT_KEYS if key in last}

    def _end_in_turn(self, pid: int) -> None:
        """End one of many agents: ask it to end when it is its turn, or kill it if its turn does not come in time."""
        deadline = time.monotonic() + FLEET_STOP_TIME.seconds
        has_turn = self._turns.acquire(timeout=FLEET_STOP_TIME.seconds)
        try:
            end_program(pid, grace=deadline - time.monotonic())
        finally:
            if has_turn:
                self._turns.release()

    def end_leftovers(self, job_id: str, attempt: int) -> None:
        """Do nothing: the coordinator ends the agent's process by its id."""

    def forget(self, job_id: str) -> None:
        """Do nothing: all remains are on this machine."""


def _wait(pid: int, seconds: float) -> None:
    """Wait for so many seconds, or until the child ends, if the system (Linux) can tell that."""
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


def end_program(pid: int, start_time: str = "", grace: float = FLEET_JOB_END_TIME.seconds) -> None:
    """End all processes of a session that a program leads: ask them to end, and kill them after `grace` seconds.

    Processes in other sessions end by themselves: their launcher notices that the program has ended.
    """
    if not pid or not is_alive(pid, start_time):
        return
    deadline = time.monotonic() + grace
    with suppress(ProcessLookupError, PermissionError):
        if grace > 0:
            os.killpg(pid, signal.SIGTERM)
        while time.monotonic() < deadline and is_alive(pid, start_time) and not _is_over(pid):
            time.sleep(FLEET_POLL.seconds / 4)
        os.killpg(pid, signal.SIGKILL)


def end_programs(programs: Iterable[tuple[int, str]]) -> None:
    """End many programs (process id, start time) as `end_program` does, all of them within about FLEET_STOP_TIME."""
    deadline = time.monotonic() + FLEET_STOP_TIME.seconds

    def end(program: tuple[int, str]) -> None:
        end_program(*program, grace=deadline - time.monotonic())

    with ThreadPoolExecutor(_ENDING_AT_ONCE) as threads:
        list(threads.map(end, programs))


def _is_over(pid: int) -> bool:
    """Return whether a child of this process has ended, without collecting its exit code."""
    try:
        return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
    except ChildProcessError:
        return False
