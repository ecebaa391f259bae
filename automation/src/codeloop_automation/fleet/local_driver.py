"""The driver for this machine: each agent is a `codeloop run` in a process session of its own."""

import os
import select
import subprocess
import threading
import time
from collections.abc import Callable, Sequence

import msgspec

from codeloop.kit.programs import make_child_environment, make_safe_environment
from codeloop.schema.wire import DECODE_ERRORS, JSON
from codeloop_automation.bounds import FLEET_POLL, FLEET_STOP_TIME
from codeloop_automation.command_lines import CODELOOP_COMMAND
from codeloop_automation.fleet.driver import (
    OUTPUT_NAME,
    FleetStopped,
    JobTask,
    check_result,
    read_spending,
)
from codeloop_automation.fleet.end_programs import MAX_PARALLEL_ENDS, end_program


class LocalDriver:
    """Runs agents on this machine. `hidden_variables`: names of variables
    that agents must not get.
    """

    name = "here"

    def __init__(self, hidden_variables: Sequence[str] = ()) -> None:
        self._hidden_variables = frozenset(hidden_variables)
        self._end_slots = threading.Semaphore(MAX_PARALLEL_ENDS)

    def run(
        self, task: JobTask, record_child: Callable[[int], None], is_stopping: Callable[[], bool]
    ) -> JSON:
        """See Driver."""
        with (
            (task.folder / OUTPUT_NAME).open("w+b") as output,
            (task.folder / "log").open("wb") as log,
        ):
            variables = {key: os.environ[key] for key in os.environ.keys() - self._hidden_variables}
            child = subprocess.Popen(
                [*CODELOOP_COMMAND, *task.to_arguments(str(task.tree))],
                cwd="/",
                env=make_child_environment(make_safe_environment(variables), "/"),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=log,
                start_new_session=True,
            )
            try:
                record_child(child.pid)
                while child.poll() is None:
                    if is_stopping():
                        raise FleetStopped("The fleet was stopped.")
                    _wait_for_end(child.pid, FLEET_POLL.seconds)
            finally:
                if is_stopping():
                    self._end_in_slot(child.pid)
                else:
                    end_program(child.pid)
                child.wait()
            output.seek(0)
            lines = output.read().splitlines()
        try:
            last = msgspec.json.decode(lines[-1], type=JSON)
        except (IndexError, *DECODE_ERRORS):
            last = {}
        # It was killed before it printed its result.
        if last.get("type") != "result":
            return {
                "reason": "error",
                "exitCode": child.returncode or 1,
                "message": "It ended without a result.",
                "cost": read_spending(task.folder / OUTPUT_NAME).cost,
            }
        return check_result(last)

    def _end_in_slot(self, pid: int) -> None:
        """End one of many agents: ask it to end when a slot is free,
        or kill it if none becomes free in time.
        """
        deadline = time.monotonic() + FLEET_STOP_TIME.seconds
        has_slot = self._end_slots.acquire(timeout=FLEET_STOP_TIME.seconds)
        try:
            end_program(pid, grace=deadline - time.monotonic())
        finally:
            if has_slot:
                self._end_slots.release()

    def end_remote_processes(self, job_id: str, attempt: int) -> None:
        """Do nothing: the coordinator ends the agent's process on this machine."""

    def remove_remains(self, job_id: str) -> None:
        """Do nothing: all remains are on this machine."""


def _wait_for_end(pid: int, seconds: float) -> None:
    """Wait for `seconds`; on Linux not longer than until the process ends."""
    try:
        fd = os.pidfd_open(pid)
    # macOS has no pidfd, nor has Linux before 5.3.
    except (AttributeError, OSError):
        time.sleep(seconds)
        return
    try:
        poll = select.poll()
        poll.register(fd, select.POLLIN)
        poll.poll(seconds * 1000)
    finally:
        os.close(fd)
