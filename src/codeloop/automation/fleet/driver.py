"""The interface of a fleet's drivers: a driver runs the agent of a job, and brings back its result and changes."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

from msgspec import Struct

from codeloop.automation.fleet.jobs import FleetJob
from codeloop.schema.errors import CodeloopError
from codeloop.schema.wire import JSON

RESULT_KEYS = ("reason", "message", "text", "cost", "steps", "durationMs", "sessionID", "exitCode", "goal", "checks")
"""The fields of the result of `codeloop run --format json` that are stored."""


class Stopped(CodeloopError):
    """The fleet is being stopped: the job is set to waiting."""


class DriverLost(CodeloopError):
    """The driver's machine can't be reached any more, and gave no result: the job is set to waiting."""


class JobTask(Struct, frozen=True):
    """One attempt at a job, for a driver.

    `folder`: the folder of the attempt. Its `work` is a clone on this machine, at the commit to start from, on the
    branch `codeloop/ID`. A driver may store further files for users there, such as `log`. `flags`: of `codeloop run`.
    """

    job: FleetJob
    attempt: int
    folder: Path
    flags: Sequence[str]

    @property
    def tree(self) -> Path:
        """The folder of the clone."""
        return self.folder / "work"

    def to_arguments(self, tree: str) -> list[str]:
        """Return the arguments of `codeloop` for this job. `tree`: the path of the clone where the agent runs."""
        job = self.job
        words = ("--goal", job.goal) if job.goal else ()
        checks = [flag for check in job.checks for flag in ("--check", check)]
        model = ("--model", job.model) if job.model else ()
        arguments = ["run", "--format", "json", "--title", job.id, *model, *self.flags, *words, *checks]
        return [*arguments, "--dir", tree, *(("--", job.prompt) if job.prompt else ())]


class Driver(Protocol):
    """Runs the agents of jobs on some machine. The methods are called from many threads at once."""

    @property
    def name(self) -> str:
        """The driver's name in messages, as given with `--on`."""
        ...

    def run(self, task: JobTask, note_child: Callable[[int], None], is_stopping: Callable[[], bool]) -> JSON:
        """Run the agent to its end; afterwards its changes are in `task.tree`, committed or not.

        `note_child` is called with the id of the process on this machine that works on the job, if there is one; it
        leads its own session. Returns the fields in RESULT_KEYS, at least `exitCode`. Raises Stopped soon after
        `is_stopping` returns True, when all processes have ended; DriverLost; and CodeloopError when the job failed.
        """
        ...

    def end_leftovers(self, job_id: str, attempt: int) -> None:
        """End remote processes of an attempt whose coordinator was killed; local ones have been ended already."""
        ...

    def forget(self, job_id: str) -> None:
        """Remove remote remains of a job whose result is stored, if there are any. Raises DriverLost."""
        ...
