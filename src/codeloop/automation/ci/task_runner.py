"""Carries out a request: the agent changes files, which are committed to a branch and shown in a pull request."""

import hashlib
import re

from msgspec import Struct

from codeloop.automation.ci.agent_program import AgentResult
from codeloop.automation.ci.event import CiEvent, Task
from codeloop.automation.ci.hosts.host import NO_THREAD, Thread
from codeloop.automation.ci.job import CiJob, CiOutcome, describe_run, export_session, quote_thread, read_prompt
from codeloop.automation.ci.job_repository import TRAILER, GitProblem, PushRejected
from codeloop.automation.ci.output_files import write_output
from codeloop.automation.ci.thread_comment import quote_answer
from codeloop.kit.terminal_text import one_line
from codeloop.schema.errors import CodeloopError

_TITLES = {
    0: "done",
    3: "the model's service failed",
    4: "stopped at a limit; what was done until then is kept",
    5: "something that needs a permission was left out",
    124: "stopped by its time limit; what was done until then is kept",
    130: "interrupted",
}
"""The title of the comment, by the exit code of the run."""
_FINAL_CODES = frozenset({0, 4, 5, 124})
"""Exit codes after which a second delivery of the event does not start the task again."""


class Start(Struct, frozen=True):
    """Where a task starts: a commit, the branch to push to, and the `base` branch that this is to be merged into."""

    commit: str
    branch: str
    base: str
    base_commit: str
    is_pull: bool


async def do_task(job: CiJob, event: CiEvent, task: Task) -> CiOutcome:
    """Carry out a request. Raises HostProblem, GitProblem and UsageProblem.

    When the push fails, the changes are left in the output as a patch.
    """
    start = await _find_start(job, event)
    request = await job.repository.find_request(event.key, start.commit, start.base_commit)
    if request is not None:  # an earlier run pushed the commit, and ended before it could report that
        return await _show_changes(job, event, start, request[0], _read_answer(request[1]), CiOutcome("done", "", 0))
    await job.repository.check_out(start.commit, start.branch)
    before = await job.repository.record_files(start.commit)
    thread = await job.host.read_thread(event.number, is_pull=event.is_pull) if event.number else NO_THREAD
    result = await job.agent.run(
        job.settings.work, _make_title(event, task, thread), _make_prompt(job, event, task, thread, start)
    )
    page = await export_session(job, result)
    after = await job.repository.record_files(start.commit)
    answer = result.text.strip() or result.message
    outcome = CiOutcome(
        title=_TITLES.get(result.exit_code, "failed"),
        text=_format_answer(result),
        exit_code=result.exit_code,
        cost=result.cost,
        facts=(page, *describe_run(result)),
        is_done=result.exit_code in _FINAL_CODES,
    )
    message = f"{_make_title(event, task, thread)}\n\n{answer}\n\n{TRAILER}: {event.key}\n"
    commit = await job.repository.commit(start.commit, before, after, message, job.host.author)
    if commit is None:
        return outcome
    try:
        branch = await _push(job, commit, start.branch, event.key)
    except GitProblem as problem:
        text = await job.repository.make_patch(before, after)
        patch = write_output(job.settings.output, "changes.patch", text)
        raise CodeloopError(f"{problem} The changes are in {patch.name} among the files of this job.") from None
    if branch != start.branch:
        note = f"`{start.branch}` has moved or is protected, so the commit is on `{branch}`."
        outcome = CiOutcome(outcome.title, f"{outcome.text}\n\n{note}", outcome.exit_code, outcome.cost, outcome.facts)
        start = Start(start.commit, branch, start.base, start.base_commit, is_pull=start.is_pull)
        if event.is_pull:
            return outcome
    return await _show_changes(job, event, start, commit, answer, outcome)


async def _find_start(job: CiJob, event: CiEvent) -> Start:
    """Return where the task starts: at the pull request's branch, or at the branch for the issue if there is one."""
    if event.is_pull:
        pull = await job.host.read_pull(event.number)
        head, base = await job.repository.fetch(pull.head), await job.repository.fetch(pull.base)
        if head is None or base is None:
            raise CodeloopError(f"The branch `{pull.head if head is None else pull.base}` is gone.")
        return Start(head, pull.head, pull.base, base, is_pull=True)
    base_name = job.settings.base or await job.host.default_branch()
    base = await job.repository.fetch(base_name)
    if base is None:
        raise CodeloopError(f"The repository has no branch `{base_name}`. Push it, or name another with --base.")
    # Without an issue the branch is named by the request's text: the same schedule continues on the same branch.
    text_hash = hashlib.sha256(event.text.encode()).hexdigest()[:8]
    branch = f"codeloop/issue-{event.number}" if event.number else f"codeloop/{event.kind}-{text_hash}"
    tip = await job.repository.fetch(branch)
    is_open = tip is None or await job.host.find_pull(branch) is not None
    if tip is not None and not is_open and await job.repository.find_request(event.key, tip, base) is None:
        branch = f"{branch}-{event.key}"  # the pull request of the first branch was merged or closed
        tip = await job.repository.fetch(branch)
    return Start(tip or base, branch, base_name, base, is_pull=False)


async def _push(job: CiJob, commit: str, branch: str, key: str) -> str:
    """Push a commit to a branch, or to a new one if that is rejected, so that nothing is lost; return the branch."""
    try:
        await job.repository.push(commit, branch)
    except PushRejected:
        branch_name = branch if branch.startswith("codeloop/") else f"codeloop/{branch}"
        await job.repository.push(commit, f"{branch_name}-{key}")
        return f"{branch_name}-{key}"
    return branch


async def _show_changes(
    job: CiJob, event: CiEvent, start: Start, commit: str, answer: str, outcome: CiOutcome
) -> CiOutcome:
    """Open or update the pull request of a pushed branch; return the outcome with a link to it."""
    what = f"commit {commit[:10]} on `{start.branch}`"
    if not start.is_pull:
        thread = await job.host.read_thread(event.number, is_pull=False) if event.number else NO_THREAD
        closes = f"\n\nCloses #{event.number}" if event.number else ""
        title = thread.title or one_line(event.text, 70) or "Changes by codeloop"
        pull = await job.host.open_pull(start.branch, start.base, title, f"{quote_answer(answer)}{closes}")
        what = f"[pull request #{pull.number}]({pull.url}), {what}" if pull.url else what
    text = outcome.text or quote_answer(answer)
    return CiOutcome(outcome.title, text, outcome.exit_code, outcome.cost, (what, *outcome.facts), outcome.is_done)


def _make_title(event: CiEvent, task: Task, thread: Thread) -> str:
    first = next((line for line in task.text.splitlines() if line.strip()), "")
    words = (first, thread.title) if event.is_pull else (thread.title, first)
    return one_line(next(filter(None, words), f"Request {event.key}"), 70)


def _make_prompt(job: CiJob, event: CiEvent, task: Task, thread: Thread, start: Start) -> str:
    request = task.text or f"Do what {'the pull request' if event.is_pull else 'the issue'} {event.number} asks for."
    about = f"It is about these lines:\n\n{event.about}\n\n" if event.about and event.kind == "comment" else ""
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
    pieces = [quote_answer(result.text.strip())]
    if result.exit_code != 0 and result.message:
        pieces.append(f"> {quote_answer(one_line(result.message, 600))}")
    return "\n\n".join(piece for piece in pieces if piece)


def _read_answer(message: str) -> str:
    """Return the agent's answer from a commit message, without title and trailer."""
    return re.sub(rf"\n+{TRAILER}: .*\s*\Z", "", message.partition("\n\n")[2]).strip()
