"""What a driver of a fleet does: it runs the agent of one job somewhere, and brings back its result and changes."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

from msgspec import Struct

from codeloop.automation.fleet.jobs import FleetJob
from codeloop.schema.errors import CodeloopError
from codeloop.schema.wire import JSON

RESULT_KEYS = ("reason", "message", "text", "cost", "steps", "durationMs", "sessionID", "exitCode", "goal", "checks")
"""What is kept of the result that `codeloop run --format json` ends with."""


class Stopped(CodeloopError):
    """The fleet is to stop: the job waits for another time."""


class DriverLost(CodeloopError):
    """Where the job ran can't be reached any more, and nothing of it came back: the job waits again."""


class JobTask(Struct, frozen=True):
    """One attempt at a job, for a driver.

    `folder`: the attempt's own, in which `work` is a clone on this machine, on the branch `codeloop/ID` and at the
    commit to start from; what else a driver keeps there (`log`, `run.jsonl`) is for people. `flags`: of `codeloop run`.
    """

    job: FleetJob
    attempt: int
    folder: Path
    flags: Sequence[str]

    @property
    def tree(self) -> Path:
        """The clone."""
        return self.folder / "work"

    def to_arguments(self, tree: str) -> list[str]:
        """Return the arguments of `codeloop` for this job, where its clone is at `tree`."""
        job = self.job
        words = ("--goal", job.goal) if job.goal else ()
        checks = [flag for check in job.checks for flag in ("--check", check)]
        model = ("--model", job.model) if job.model else ()
        arguments = ["run", "--format", "json", "--title", job.id, *model, *self.flags, *words, *checks]
        return [*arguments, "--dir", tree, *(("--", job.prompt) if job.prompt else ())]


class Driver(Protocol):
    """Where agents of jobs run. Its methods are called from many threads at once."""

    @property
    def name(self) -> str:
        """What it is called in messages, as given with `--on`."""
        ...

    def run(self, task: JobTask, note_child: Callable[[int], None], is_stopping: Callable[[], bool]) -> JSON:
        """Run the agent until it ends; afterwards its changes are in `task.tree`, committed or not.

        `note_child` is told the id of a process of this machine that works on it, which leads a session of its own.
        Returns what of the agent's result is in RESULT_KEYS, at least `exitCode`. Raises Stopped soon after
        `is_stopping` is true, when all that it started has ended; DriverLost; CodeloopError: the job has failed.
        """
        ...

    def end_leftovers(self, job_id: str, attempt: int) -> None:
        """End what an attempt left whose coordinator was killed; its process on this machine has been ended."""
        ...

    def forget(self, job_id: str) -> None:
        """Remove what is left elsewhere of a job whose result is stored here, if anything is. Raises DriverLost."""
        ...
