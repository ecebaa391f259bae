"""Runs a task in a CI job: the agent changes files, which are committed,
pushed and proposed as a pull request.
"""

import hashlib
import re

from msgspec import Struct

from codeloop.kit.text.terminal_text import one_line
from codeloop.schema.errors import CodeloopError
from codeloop.schema.wire import replace
from codeloop_automation.ci.agent_program import AgentResult
from codeloop_automation.ci.event import CiEvent, Task
from codeloop_automation.ci.event_thread import describe_late_texts, read_event_thread
from codeloop_automation.ci.hosts.host import Thread
from codeloop_automation.ci.inert_text import (
    make_code_span,
    make_inert_line,
    make_inert_markdown,
    make_inert_message,
    make_inert_phrase,
    read_inert_message,
)
from codeloop_automation.ci.job import CiJob, CiOutcome, describe_run, export_session
from codeloop_automation.ci.job_prompts import quote_thread, read_prompt
from codeloop_automation.ci.job_repository import REQUEST_TRAILER, GitProblem, PushRejected
from codeloop_automation.ci.output_files import write_output

# The title of the comment for each exit code of `codeloop run`; for any other code it is "failed".
_OUTCOME_TITLES = {
    0: "done",
    3: "the model's service failed",
    4: "stopped at a limit; what was done until then is kept",
    5: "something that needs a permission was left out",
    124: "stopped by its time limit; what was done until then is kept",
    130: "interrupted",
}
# After one of these, a second delivery of the event does not start the task again.
_FINAL_EXIT_CODES = frozenset({0, 4, 5, 124})
_MAX_TITLE_CHARACTERS = 70
_REFUSAL = (
    "Since this was asked for, {changes} changed. Only what the person who asked has read is carried out, so nothing "
    "was done. Read it as it is now, and ask again."
)


class StartPoint(Struct, frozen=True):
    """The starting point of a task: a commit, the branch to push to,
    and the branch `base` to merge into.

    `base_commit`: the last commit of `base`. `is_pull`: the task is about a pull request,
    whose branch `branch` is.
    """

    commit: str
    branch: str
    base: str
    base_commit: str
    is_pull: bool


async def run_task(job: CiJob, event: CiEvent, task: Task) -> CiOutcome:
    """Run a task, and return its outcome. Raises CodeloopError, such as HostProblem.

    If the push fails, the changes are in the output folder as a patch.
    """
    start = await _find_start_point(job, event)
    earlier_commit = await job.repository.find_request_commit(
        event.key, start.commit, start.base_commit
    )
    # An earlier job pushed the commit, and ended before it could report that.
    if earlier_commit is not None:
        answer = _extract_answer(earlier_commit.message)
        outcome = CiOutcome(title="done", text=make_inert_markdown(answer), exit_code=0)
        return await _open_pull_request(job, event, start, earlier_commit.sha, answer, outcome)
    event_thread = await read_event_thread(job.host, event)
    if event_thread.changes:
        text = _REFUSAL.format(changes=" and ".join(event_thread.changes))
        return CiOutcome(title="not run", text=text, exit_code=0)
    await job.repository.check_out(start.commit, start.branch)
    # Files that were there before, such as those of an earlier build step,
    # are not part of the change.
    before = await job.repository.record_files(start.commit)
    thread = event_thread.thread
    title = _make_title(event, task, thread)
    result = await job.agent.run(
        job.settings.work, title, _make_prompt(job, event, task, thread, start)
    )
    page = await export_session(job, result)
    after = await job.repository.record_files(start.commit)
    answer = result.text.strip() or result.message
    outcome = CiOutcome(
        title=_OUTCOME_TITLES.get(result.exit_code, "failed"),
        text=_format_answer(result),
        exit_code=result.exit_code,
        cost=result.cost,
        facts=(page, *describe_run(result), describe_late_texts(event_thread)),
        is_done=result.exit_code in _FINAL_EXIT_CODES,
    )
    message = f"{title}\n\n{make_inert_message(answer)}\n\n{REQUEST_TRAILER}: {event.key}\n"
    commit = await job.repository.commit(start.commit, before, after, message, job.host.author)
    if commit is None:
        return outcome
    try:
        branch = await _push_commit(job, commit, start.branch, event.key)
    except GitProblem as problem:
        text = await job.repository.make_patch(before, after)
        patch = write_output(job.settings.output, "changes.patch", text)
        raise CodeloopError(
            f"{problem} The changes are in {patch.name} among the files of this job."
        ) from None
    if branch != start.branch:
        old_branch, new_branch = make_code_span(start.branch), make_code_span(branch)
        note = f"{old_branch} has moved or is protected, so the commit is on {new_branch}."
        outcome = replace(outcome, text=f"{outcome.text}\n\n{note}")
        start = replace(start, branch=branch)
        # The task is about a pull request, which has its branch: no second one is
        # opened for the new branch.
        if event.is_pull:
            return outcome
    return await _open_pull_request(job, event, start, commit, answer, outcome)


async def _find_start_point(job: CiJob, event: CiEvent) -> StartPoint:
    """Return the starting point: the branch of the pull request,
    or that for the issue if it exists already.
    """
    if event.is_pull:
        pull = await job.host.read_pull(event.number)
        head, base = await job.repository.fetch(pull.head), await job.repository.fetch(pull.base)
        if head is None or base is None:
            raise CodeloopError(f"The branch `{pull.head if head is None else pull.base}` is gone.")
        return StartPoint(
            commit=head, branch=pull.head, base=pull.base, base_commit=base, is_pull=True
        )
    base_name = job.settings.base or await job.host.read_default_branch()
    base = await job.repository.fetch(base_name)
    if base is None:
        raise CodeloopError(
            f"The repository has no branch `{base_name}`. Push it, or name another with --base."
        )
    # Without an issue the branch is named by the request's text: the same schedule
    # continues on the same branch.
    text_hash = hashlib.sha256(event.text.encode()).hexdigest()[:8]
    branch = (
        f"codeloop/issue-{event.number}" if event.number else f"codeloop/{event.kind}-{text_hash}"
    )
    tip = await job.repository.fetch(branch)
    has_open_pull = tip is not None and await job.host.find_pull(branch) is not None
    if (
        tip is not None
        and not has_open_pull
        and await job.repository.find_request_commit(event.key, tip, base) is None
    ):
        # The pull request of that branch was merged or closed.
        branch = f"{branch}-{event.key}"
        tip = await job.repository.fetch(branch)
    return StartPoint(
        commit=tip or base, branch=branch, base=base_name, base_commit=base, is_pull=False
    )


async def _push_commit(job: CiJob, commit: str, branch: str, key: str) -> str:
    """Push a commit to a branch, or to a new branch if that is rejected; return the branch."""
    try:
        await job.repository.push(commit, branch)
    # Somebody has pushed meanwhile, or the branch is protected.
    except PushRejected:
        prefix = "" if branch.startswith("codeloop/") else "codeloop/"
        new_branch = f"{prefix}{branch}-{key}"
        await job.repository.push(commit, new_branch)
        return new_branch
    return branch


async def _open_pull_request(
    job: CiJob, event: CiEvent, start: StartPoint, commit: str, answer: str, outcome: CiOutcome
) -> CiOutcome:
    """Open or update the pull request for a pushed branch, unless the task is about one,
    which has that branch.

    Returns the outcome with a link to it and the commit.
    """
    result_link = f"commit {commit[:10]} on {make_code_span(start.branch)}"
    if not start.is_pull:
        closes = f"\n\nCloses #{event.number}" if event.number else ""
        title = (
            make_inert_line(event.title or event.text, _MAX_TITLE_CHARACTERS)
            or "Changes by codeloop"
        )
        pull = await job.host.open_pull(
            start.branch, start.base, title, f"{make_inert_markdown(answer)}{closes}"
        )
        # A plain git host has no pull requests, and so no URL of one.
        if pull.url:
            result_link = f"[pull request #{pull.number}]({pull.url}), {result_link}"
    return replace(outcome, facts=(result_link, *outcome.facts))


def _make_title(event: CiEvent, task: Task, thread: Thread) -> str:
    """Return the title of the session and the commit.

    For a pull request it is the request, for an issue the title of the issue.
    """
    first_line = next((line for line in task.text.splitlines() if line.strip()), "")
    candidates = (first_line, thread.title) if event.is_pull else (thread.title, first_line)
    return make_inert_line(
        next(filter(None, candidates), f"Request {event.key}"), _MAX_TITLE_CHARACTERS
    )


def _make_prompt(job: CiJob, event: CiEvent, task: Task, thread: Thread, start: StartPoint) -> str:
    request = (
        task.text
        or f"Do what {'the pull request' if event.is_pull else 'the issue'} {event.number} asks for."
    )
    about = (
        f"It is about these lines:\n\n{event.about}\n\n"
        if event.about and event.kind == "comment"
        else ""
    )
    return read_prompt(
        "task",
        host=job.host.name,
        branch=start.branch,
        request=request,
        about=about,
        thread=quote_thread(thread) or "Nothing else: the request stands alone.",
    )


def _format_answer(result: AgentResult) -> str:
    """Return the text of the comment: the agent's answer, and the error if the run failed."""
    pieces = [make_inert_markdown(result.text.strip())]
    if result.exit_code != 0 and result.message:
        pieces.append(f"> {make_inert_phrase(one_line(result.message, 600))}")
    return "\n\n".join(piece for piece in pieces if piece)


def _extract_answer(message: str) -> str:
    """Return the agent's answer from a commit message, without title and trailer."""
    return read_inert_message(
        re.sub(rf"\n+{REQUEST_TRAILER}: .*\s*\Z", "", message.partition("\n\n")[2]).strip()
    )
