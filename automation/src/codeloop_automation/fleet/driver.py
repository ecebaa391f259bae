"""The interface of a fleet's drivers. A driver runs the agent of a job and returns
its result and changes.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any, NamedTuple, Protocol

import msgspec
from msgspec import Meta, Struct

from codeloop.schema.errors import CodeloopError
from codeloop.schema.wire import DECODE_ERRORS, JSON
from codeloop_automation.fleet.jobs import FleetJob

OUTPUT_NAME = "run.jsonl"
"""The file with the output of `codeloop run --format json` in the folder of
an attempt on this machine.
"""


class FleetStopped(CodeloopError):
    """The fleet is being stopped, or the coordinator of a worker is gone:
    the job is set to waiting.
    """


class DriverLost(CodeloopError):
    """The driver's machine can no longer be reached and returned no result:
    the job is set to waiting.
    """


class JobTask(Struct, frozen=True):
    """One attempt at a job, for a driver.

    `folder`: the folder of the attempt. Its `work` is a clone on this machine, at the commit to
    start from, on the branch `codeloop/ID`. A driver may add files for users, such as `log`.
    `flags`: flags of `codeloop run`.
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
        """Return the arguments of `codeloop` for this job.
        `tree`: the path of the clone where the agent runs.
        """
        job = self.job
        goal = ("--goal", job.goal) if job.goal else ()
        checks = [flag for check in job.checks for flag in ("--check", check)]
        model = ("--model", job.model) if job.model else ()
        arguments = [
            "run",
            "--format",
            "json",
            "--title",
            job.id,
            *model,
            *self.flags,
            *goal,
            *checks,
        ]
        # After `--` a prompt that begins with a hyphen is not an option.
        return [*arguments, "--dir", tree, *(("--", job.prompt) if job.prompt else ())]


class Driver(Protocol):
    """Runs the agents of jobs on some machine. The methods are called from many threads at once."""

    @property
    def name(self) -> str:
        """The driver's name in messages: the value of `--on`."""
        ...

    def run(
        self, task: JobTask, record_child: Callable[[int], None], is_stopping: Callable[[], bool]
    ) -> JSON:
        """Run the agent to its end; afterwards its changes are in `task.tree`, committed or not.

        `record_child` is called with the id of the process on this machine that works on the job,
        if there is one; it leads its own session. Returns the result as `check_result` does.
        Raises FleetStopped soon after
        `is_stopping` returns True, when all processes have ended; DriverLost;
        and CodeloopError when the job failed.
        """
        ...

    def end_remote_processes(self, job_id: str, attempt: int) -> None:
        """End the processes on other machines of an attempt whose coordinator was killed."""
        ...

    def remove_remains(self, job_id: str) -> None:
        """Remove what is left on other machines of a job whose result is stored.
        Raises DriverLost.
        """
        ...


class _RunResult(
    Struct,
    frozen=True,
    kw_only=True,
    rename={"exit_code": "exitCode", "milliseconds": "durationMs", "session_id": "sessionID"},
):
    """The fields of the result of `codeloop run --format json` that the table of a fleet stores."""

    exit_code: int
    reason: str | None = None
    message: str | None = None
    text: str | None = None
    cost: Annotated[float, Meta(ge=0, le=1e9)] | None = None
    steps: Annotated[int, Meta(ge=0)] | None = None
    milliseconds: Annotated[float, Meta(ge=0)] | None = None
    session_id: str | None = None
    goal: Any = None
    checks: Any = None


def check_result(result: JSON) -> JSON:
    """Return the fields of a result that the table stores,
    or a failure if it has another shape than ours.
    """
    try:
        msgspec.convert(result, _RunResult)
    # It may come from another machine, where something else has answered.
    except msgspec.ValidationError as error:
        return {
            "reason": "error",
            "exitCode": 1,
            "message": f"The answer is not a result of codeloop: {error}.",
        }
    return {key: result[key] for key in _RunResult.__struct_encode_fields__ if key in result}


def get_cost(result: JSON) -> float:
    """Return the dollars of a result; 0 if it does not say."""
    # A table may be shared with others, and holds results of earlier versions,
    # which were not checked.
    try:
        return msgspec.convert(result.get("cost") or 0.0, float)
    except msgspec.ValidationError:
        return 0.0


class Spending(NamedTuple):
    """What an attempt has cost in dollars, and its session, as far as its output tells."""

    cost: float = 0.0
    session: str = ""


def read_spending(output: Path) -> Spending:
    """Return the dollars and the session that the output of a run names: in its result,
    else in the steps that it had stored so far.
    """
    cost, session = 0.0, ""
    try:
        lines = output.read_bytes().splitlines()
    except OSError:
        return Spending()
    for line in lines:
        # The last line of a killed run may be incomplete.
        with suppress(*DECODE_ERRORS):
            event = msgspec.json.decode(line, type=_SpendingLine)
            session = event.session_id or session
            if event.type == "result":
                return Spending(event.cost, session)
            cost += event.part.cost if event.type == "step_finish" else 0.0
    return Spending(cost, session)


def drop_diff(result: JSON) -> JSON:
    """Return a result without its diff, as the table stores it."""
    return {name: value for name, value in result.items() if name != "diff"}


class _StepPart(Struct, frozen=True):
    cost: float = 0.0


class _SpendingLine(Struct, frozen=True):
    """A line of the output, as far as it tells a cost."""

    type: str
    cost: float = 0.0
    session_id: str = msgspec.field(name="sessionID", default="")
    part: _StepPart = _StepPart()
