"""What the table of a fleet's jobs holds: jobs with their states, attempts and pull requests."""

from typing import Literal, NamedTuple

import msgspec
from msgspec import Struct

from codeloop.schema.errors import CodeloopError
from codeloop.schema.wire import DECODE_ERRORS, JSON
from codeloop_automation.fleet.jobs import FleetJob

JobState = Literal["waiting", "running", "done", "failed", "cancelled"]


class LedgerRow(Struct, frozen=True):
    """A job with its state since `changed` (seconds since the epoch),
    and the result of its last attempt, without its diff unless that was asked for.

    `cost`: the dollars that all its attempts have cost,
    as far as it is known of those that were ended.
    """

    job: FleetJob
    state: JobState
    attempt: int
    result: JSON
    changed: float
    cost: float = 0.0


class RecordedAttempt(Struct, frozen=True):
    """One attempt at a job. `place`: the value of `--on`; `started`, `ended`: seconds since the
    epoch, `ended` 0 while it runs; `cost`: dollars, as far as known; `reason`: why it ended.
    """

    job_id: str
    number: int
    place: str
    started: float
    ended: float
    cost: float
    reason: str
    session: str


class AddedJobs(NamedTuple):
    """The ids of jobs that a table has given: new ones, those whose row was `changed` and that wait
    now, and those whose changed row is `ignored`, since they run or are done.
    """

    new: list[str]
    changed: list[str]
    ignored: list[str]


class FleetPullRequest(Struct, frozen=True):
    """The pull request of a fleet, with the changes of `jobs` (ids): from `branch` into `target`.

    `commit`: the last of the fleet's own commits for it; "": nothing was pushed yet. `number` and
    `url`: 0 and "" for a host without pull requests. `problem`: why the pull request is missing, or
    lacks the changes of a job.
    """

    repository: str
    branch: str
    target: str
    jobs: tuple[str, ...]
    commit: str = ""
    number: int = 0
    url: str = ""
    problem: str = ""


class Orphan(Struct, frozen=True):
    """A running job whose coordinator has ended. `child`: the process id of its program;
    0: none on this machine.
    """

    job_id: str
    attempt: int
    child: int
    child_started: str


def is_same_job(data: str, job: FleetJob) -> bool:
    """Return whether the data of a row is this job."""
    try:
        return msgspec.json.decode(data, type=FleetJob) == job
    except msgspec.DecodeError:
        return False


def parse_row(row: tuple[str, JobState, int, str, float]) -> LedgerRow:
    """Return a row of the table with data, state, attempt, result and change.
    Raises CodeloopError.
    """
    data, state, attempt, result, changed = row
    try:
        job = msgspec.json.decode(data, type=FleetJob)
    # Others may write into a shared PostgreSQL table.
    except msgspec.DecodeError as error:
        raise CodeloopError(f"The table has a row that is not a job: {error}.") from error
    return LedgerRow(
        job=job, state=state, attempt=attempt, result=_parse_result(result), changed=changed
    )


def _parse_result(text: str) -> JSON:
    try:
        return msgspec.json.decode(text, type=JSON)
    except DECODE_ERRORS:
        return {
            "reason": "error",
            "exitCode": 1,
            "message": "The table holds no result that can be read.",
        }
