"""The words of `/jobs`, which lists what runs beside a turn, for every terminal."""

from collections.abc import Sequence

from codeloop.client.formatting import format_job
from codeloop.kit.text.terminal_text import escape_controls, one_line
from codeloop.schema.api.jobs import JobInfo

_END_VERBS = ("end", "stop", "kill")
NOTHING_RUNS = "Nothing runs in the background."
_MAX_LINE = 100


def parse_ended_job(words: str) -> str:
    """Return the id of the job that the words after `/jobs` end; "": they end none."""
    verb, _, job_id = words.partition(" ")
    return job_id.strip() if verb in _END_VERBS else ""


def describe_job(job: JobInfo) -> str:
    """Return one line on something that runs: how long already, what,
    and where a browser reaches it.
    """
    late = " (past its time limit)" if job.is_overdue else ""
    return escape_controls(f"{format_job(job.title, job.started, job.addresses)}{late}")


def format_jobs(jobs: Sequence[JobInfo]) -> list[str]:
    """Return the lines that list what runs, with the last line of each output."""
    lines: list[str] = []
    for job in jobs:
        lines.append(f"{job.id}  {job.kind}  {describe_job(job)}")
        if job.last_line:
            lines.append(f"    {one_line(job.last_line, _MAX_LINE)}")
    return lines or [NOTHING_RUNS]


def count_words(count: int) -> str:
    """Return how many commands run in the background, for the last row of a screen; "" for none."""
    return f"{count} in background" if count else ""
