"""`codeloop ci run`: handles one event of a host,
from its delivery to the comment that reports the outcome.
"""

import asyncio
import re
import time
from collections.abc import Callable, Sequence

import msgspec
from msgspec import Struct

from codeloop.client.formatting import format_cost
from codeloop.kit.remove_tree import temporary_folder
from codeloop.schema.errors import CodeloopError
from codeloop.schema.wire import replace
from codeloop_automation.bounds import CI_CLAIM_DELAY, CI_END, CI_POLL, CI_REQUESTS
from codeloop_automation.ci.agent_program import AgentProgram
from codeloop_automation.ci.event import CiEvent, Review, Skip, Task, plan_work
from codeloop_automation.ci.hosts.host import Comment, Host
from codeloop_automation.ci.inert_text import make_inert_phrase
from codeloop_automation.ci.job import CiJob, CiOutcome, JobSettings
from codeloop_automation.ci.job_repository import JobRepository
from codeloop_automation.ci.output_files import remove_links, write_output
from codeloop_automation.ci.review.review_runner import run_review
from codeloop_automation.ci.task_runner import run_task

COMMENT_MARKER = "<!-- codeloop-thread "
_RECORD_PATTERN = re.escape(COMMENT_MARKER) + r"(\{.*?\}) -->"


class ThreadRecord(Struct, frozen=True, omit_defaults=True):
    """The record of a thread for later jobs. `done`: keys of the handled events;
    `cost`: the dollars of all of them.

    `run`: the id of the job that works in the thread now, "" for none. `until`: the latest time at
    which that job ends, in seconds since the epoch.
    """

    done: tuple[str, ...] = ()
    cost: float = 0.0
    run: str = ""
    until: int = 0


def read_record(text: str) -> ThreadRecord:
    """Return the record in a comment of codeloop;
    an empty one if there is none or it can't be parsed.
    """
    # `match`, not `search`: a model could write a record further down in the text.
    match = re.match(_RECORD_PATTERN, text)
    try:
        return msgspec.json.decode(match[1], type=ThreadRecord) if match else ThreadRecord()
    except msgspec.DecodeError:
        return ThreadRecord()


def mark_done(record: ThreadRecord, key: str, cost: float) -> ThreadRecord:
    """Return the record after the event with this key was handled.
    No job works in the thread then.
    """
    keys = (*(each for each in record.done if each != key), key)[-CI_REQUESTS.value :]
    return ThreadRecord(done=keys, cost=round(record.cost + cost, 6))


def render_comment(record: ThreadRecord, title: str, text: str, facts: Sequence[str]) -> str:
    """Return a comment: the hidden record, a title, the text (Markdown), and a line of facts."""
    record_comment = f"{COMMENT_MARKER}{msgspec.json.encode(record).decode()} -->"
    line = " · ".join(fact for fact in facts if fact)
    # A space at the start belongs to the fence of a block of code.
    content = text.strip("\n")
    body = f"\n{content}\n" if content else ""
    footer = f"\n---\n{line}\n" if line else ""
    return f"{record_comment}\n**codeloop** · {title}\n{body}{footer}"


_FORK_REFUSAL = (
    "This pull request comes from a fork. Nothing of a fork is run where secrets are. If you have read the change and "
    "trust it, push its branch to this repository and ask there."
)

# Writes a line to the log of the job.
LogWriter = Callable[[str], object]


async def run_event(host: Host, event: CiEvent, settings: JobSettings, write_log: LogWriter) -> int:
    """Do what an event asks for, and return the exit code.
    Raises CodeloopError if the host or git keeps failing.
    """
    try:
        return await _handle_event(host, event, settings, write_log)
    finally:
        # The checkout and the agent can have put links there; outside of the checkout neither has.
        if settings.work in settings.output.parents:
            remove_links(settings.output)


async def _handle_event(
    host: Host, event: CiEvent, settings: JobSettings, write_log: LogWriter
) -> int:
    plan = plan_work(
        event, settings.trigger, settings.label, reviews_every_pull=settings.reviews_every_pull
    )
    if isinstance(plan, Skip):
        write_log(f"Nothing to do: {plan.reason}.")
        return 0
    if event.actor and not await host.can_write(event.actor):
        write_log(f"Nothing to do: {event.actor} may not write to this repository.")
        return 0
    # The event may not tell whether the pull request comes from a fork, so the host is asked.
    if event.is_pull and (await host.read_pull(event.number)).is_fork:
        write_log(f"Nothing to do: pull request {event.number} comes from a fork.")
        await _refuse_fork(host, event)
        return 0
    with temporary_folder("codeloop-ci-") as scratch:
        repository = JobRepository(
            settings.work, scratch / "repository.git", host.remote, host.make_git_credential()
        )
        job = CiJob(
            host,
            repository,
            AgentProgram(settings.limits, host.token, write_log),
            settings,
            scratch,
        )
        return await _carry_out(job, event, plan, write_log)


async def _carry_out(job: CiJob, event: CiEvent, plan: Task | Review, write_log: LogWriter) -> int:
    """Carry out a plan while this job holds the thread, report the outcome,
    and return the exit code.
    """
    record = await _wait_for_thread(job, event, plan, write_log)
    if record is None:
        return 0
    try:
        await job.repository.open(job.settings.output)
        match plan:
            case Task():
                outcome = await run_task(job, event, plan)
            case Review():
                outcome = await run_review(job, event)
    except CodeloopError as error:
        await _report_outcome(
            job,
            event,
            record,
            CiOutcome(
                title="failed",
                text=f"> {make_inert_phrase(str(error))}",
                exit_code=1,
                is_done=False,
            ),
            write_log,
        )
        raise
    # A signal of the host. The comment must not keep saying that the job is working.
    except asyncio.CancelledError:
        interrupted = CiOutcome(title="interrupted", text="", exit_code=130, is_done=False)
        await _report_outcome(job, event, record, interrupted, write_log)
        raise
    await _report_outcome(job, event, record, outcome, write_log)
    return outcome.exit_code


async def _wait_for_thread(
    job: CiJob, event: CiEvent, plan: Task | Review, write_log: LogWriter
) -> ThreadRecord | None:
    """Claim the thread for this job, and return its record; None if the event was handled before.

    Waits while another job works in the thread.
    """
    if not event.number:
        return ThreadRecord()
    while True:
        comment = await job.host.find_comment(
            event.number, is_pull=event.is_pull, marker=COMMENT_MARKER
        )
        record = read_record(comment.text) if comment is not None else ThreadRecord()
        if event.key in record.done:
            write_log(f"Nothing to do: {event.key} was carried out before.")
            return None
        is_free = not record.run or record.run == job.settings.run_id or record.until < time.time()
        # A job that has ended without having released the thread was killed.
        if (is_free or await job.host.has_job_ended(record.run)) and await _try_to_claim(
            job, event, plan, record
        ):
            return record
        latest = f", until {time.ctime(record.until)} at the latest" if record.run else ""
        write_log(f"Another job works on this; waiting for it{latest}.")
        await asyncio.sleep(CI_POLL.seconds)


async def _try_to_claim(
    job: CiJob, event: CiEvent, plan: Task | Review, record: ThreadRecord
) -> bool:
    """Try to claim a free thread; return whether this job has it.
    Of two jobs that try at once, one gets it.
    """
    # After this time the job counts as dead, also on a host that can't tell. Twice the limit of a
    # session: a job does more than its session, such as the proofs of a review.
    until = int(time.time() + 2 * (job.settings.limits.seconds + CI_END.seconds))
    claim = replace(record, run=job.settings.run_id, until=until)
    title = "reviewing" if isinstance(plan, Review) else "working on it"
    own_comment = await _write_comment(job, event, render_comment(claim, title, text="", facts=()))
    # Hosts have no compare-and-swap for comments. So write, wait for the other job to write too,
    # and read who was last.
    await asyncio.sleep(CI_CLAIM_DELAY.seconds)
    comment = await job.host.find_comment(
        event.number, is_pull=event.is_pull, marker=COMMENT_MARKER
    )
    # Two jobs saw no comment, and each made one: the first comment counts.
    if comment is not None and comment.id != own_comment.id:
        await job.host.delete_comment(event.number, own_comment, is_pull=event.is_pull)
        return False
    return comment is None or read_record(comment.text).run == job.settings.run_id


async def _report_outcome(
    job: CiJob, event: CiEvent, record: ThreadRecord, outcome: CiOutcome, write_log: LogWriter
) -> None:
    """Write the outcome to the comment of the thread, to a file of the output folder,
    and to the log.
    """
    total_cost = round(record.cost + outcome.cost, 6)
    if outcome.is_done:
        new_record = mark_done(record, event.key, outcome.cost)
    else:
        new_record = replace(record, cost=total_cost, run="", until=0)
    thread_cost = (
        f"{format_cost(total_cost)} for all of this thread" if record.cost and outcome.cost else ""
    )
    run_cost = format_cost(outcome.cost) if outcome.cost else ""
    facts = (*outcome.facts, run_cost, thread_cost)
    text = render_comment(new_record, outcome.title, outcome.text, facts)
    write_output(job.settings.output, "result.md", text)
    write_log(f"{outcome.title} ({run_cost})" if run_cost else outcome.title)
    if event.number:
        await _write_comment(job, event, text)


async def _write_comment(job: CiJob, event: CiEvent, text: str) -> Comment:
    return await job.host.write_comment(
        event.number, text, is_pull=event.is_pull, marker=COMMENT_MARKER
    )


async def _refuse_fork(host: Host, event: CiEvent) -> None:
    """Write a comment that says why nothing is done for a fork;
    the record in an existing comment is kept.
    """
    comment = await host.find_comment(event.number, is_pull=True, marker=COMMENT_MARKER)
    record = mark_done(
        read_record(comment.text) if comment is not None else ThreadRecord(), event.key, 0.0
    )
    await host.write_comment(
        event.number,
        render_comment(record, "not run", text=_FORK_REFUSAL, facts=()),
        is_pull=True,
        marker=COMMENT_MARKER,
    )
