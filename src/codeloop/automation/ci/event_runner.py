"""Handles one event of a host, from its delivery to the comment that reports the outcome."""

import asyncio
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from codeloop.automation.ci.agent_program import AgentProgram
from codeloop.automation.ci.event import CiEvent, Review, Skip, Task, plan_work
from codeloop.automation.ci.hosts.host import Comment, Host
from codeloop.automation.ci.job import CiJob, CiOutcome, JobSettings
from codeloop.automation.ci.job_repository import JobRepository
from codeloop.automation.ci.output_files import write_output
from codeloop.automation.ci.review.review_runner import review_pull
from codeloop.automation.ci.task_runner import do_task
from codeloop.automation.ci.thread_comment import (
    MARKER,
    ThreadRecord,
    add_done,
    describe_cost,
    quote_answer,
    read_record,
    write_comment_text,
)
from codeloop.schema.bounds.automation import CI_CLAIM_DELAY, CI_END, CI_POLL
from codeloop.schema.errors import CodeloopError
from codeloop.schema.wire import replace

_FORK_REFUSAL = (
    "This pull request comes from a fork. Nothing of a fork is run where secrets are. If you have read the change and "
    "trust it, push its branch to this repository and ask there."
)

Say = Callable[[str], object]
"""Writes a line to the job's log."""


async def run_event(host: Host, event: CiEvent, settings: JobSettings, say: Say) -> int:
    """Do what an event asks for; return the exit code. Raises CodeloopError when the host or git fail for good."""
    plan = plan_work(event, settings.trigger, settings.label, reviews=settings.reviews)
    if isinstance(plan, Skip):
        say(f"Nothing to do: {plan.reason}.")
        return 0
    if event.actor and not await host.can_write(event.actor):
        say(f"Nothing to do: {event.actor} may not write to this repository.")
        return 0
    if event.is_pull and (await host.read_pull(event.number)).is_fork:
        say(f"Nothing to do: pull request {event.number} comes from a fork.")
        await _refuse_fork(host, event)
        return 0
    with tempfile.TemporaryDirectory(prefix="codeloop-ci-") as folder:
        scratch = Path(folder)
        repository = JobRepository(settings.work, scratch / "repository.git", host.remote, host.git_credential())
        job = CiJob(host, repository, AgentProgram(settings.limits, host.token, say), settings, scratch)
        return await _work_in_thread(job, event, plan, say)


async def _work_in_thread(job: CiJob, event: CiEvent, plan: Task | Review, say: Say) -> int:
    """Do the work while this job holds the thread, and report in its comment; return the exit code."""
    record = await _begin(job, event, plan, say)
    if record is None:
        return 0
    try:
        await job.repository.open(job.settings.output)
        match plan:
            case Task():
                outcome = await do_task(job, event, plan)
            case Review():
                outcome = await review_pull(job, event)
    except CodeloopError as error:
        await _end(job, event, record, CiOutcome("failed", f"> {quote_answer(str(error))}", 1, is_done=False), say)
        raise
    except asyncio.CancelledError:
        await _end(job, event, record, CiOutcome("interrupted", "", 130, is_done=False), say)
        raise
    await _end(job, event, record, outcome, say)
    return outcome.exit_code


async def _begin(job: CiJob, event: CiEvent, plan: Task | Review, say: Say) -> ThreadRecord | None:
    """Take the thread for this job and return its record; None if the event was dealt with before.

    Waits while another job works in the thread.
    """
    if not event.number:
        return ThreadRecord()
    while True:
        comment = await job.host.find_comment(event.number, is_pull=event.is_pull, marker=MARKER)
        record = read_record(comment.text) if comment is not None else ThreadRecord()
        if event.key in record.done:
            say(f"Nothing to do: {event.key} was carried out before.")
            return None
        is_free = not record.run or record.run == job.settings.run_id or record.until < time.time()
        # A job that is over without having given the thread back was killed.
        if (is_free or await job.host.is_job_over(record.run)) and await _take(job, event, plan, record):
            return record
        latest = f", until {time.ctime(record.until)} at the latest" if record.run else ""
        say(f"Another job works on this; waiting for it{latest}.")
        await asyncio.sleep(CI_POLL.seconds)


async def _take(job: CiJob, event: CiEvent, plan: Task | Review, record: ThreadRecord) -> bool:
    """Try to take a free thread; return whether this job has it. Of two jobs that try at once, one gets the thread."""
    until = int(time.time() + 2 * (job.settings.limits.seconds + CI_END.seconds))
    thread_record = replace(record, run=job.settings.run_id, until=until)
    title = "reviewing" if isinstance(plan, Review) else "working on it"
    mine = await _write(job, event, write_comment_text(thread_record, title, "", ()))
    await asyncio.sleep(CI_CLAIM_DELAY.seconds)
    comment = await job.host.find_comment(event.number, is_pull=event.is_pull, marker=MARKER)
    if comment is not None and comment.id != mine.id:  # two jobs saw no comment, and each made one
        await job.host.delete_comment(event.number, mine, is_pull=event.is_pull)
        return False
    return comment is None or read_record(comment.text).run == job.settings.run_id


async def _end(job: CiJob, event: CiEvent, record: ThreadRecord, outcome: CiOutcome, say: Say) -> None:
    """Report the outcome in the thread's comment, in a file of the output, and in the log."""
    total = round(record.cost + outcome.cost, 6)
    thread_record = (
        add_done(record, event.key, outcome.cost) if outcome.is_done else replace(record, cost=total, run="", until=0)
    )
    more = f"{describe_cost(total)} for all of this thread" if record.cost and outcome.cost else ""
    facts = (*outcome.facts, describe_cost(outcome.cost) if outcome.cost else "", more)
    text = write_comment_text(thread_record, outcome.title, outcome.text, facts)
    write_output(job.settings.output, "result.md", text)
    say(f"{outcome.title}{f' ({describe_cost(outcome.cost)})' if outcome.cost else ''}")
    if event.number:
        await _write(job, event, text)


async def _write(job: CiJob, event: CiEvent, text: str) -> Comment:
    return await job.host.write_comment(event.number, text, is_pull=event.is_pull, marker=MARKER)


async def _refuse_fork(host: Host, event: CiEvent) -> None:
    """Comment why nothing is done for a fork; the record in an existing comment is kept."""
    comment = await host.find_comment(event.number, is_pull=True, marker=MARKER)
    record = add_done(read_record(comment.text) if comment is not None else ThreadRecord(), event.key, 0.0)
    await host.write_comment(
        event.number, write_comment_text(record, "not run", _FORK_REFUSAL, ()), is_pull=True, marker=MARKER
    )
