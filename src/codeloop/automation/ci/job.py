"""The context of a job on one event, shared by tasks and reviews."""

import re
import secrets
from importlib.resources import files
from pathlib import Path

from msgspec import Struct

from codeloop.automation.ci.agent_run import AgentLimits, AgentProgram, AgentResult
from codeloop.automation.ci.hosts.host import Host, Thread
from codeloop.automation.ci.job_repository import JobRepository
from codeloop.automation.ci.output import write_output
from codeloop.schema.bounds.automation import CI_THREAD

TRIGGER, LABEL = "/codeloop", "codeloop"


class JobSettings(Struct, frozen=True, kw_only=True):
    """What the command line and the host's variables say. `work`: the checkout; `output`: files for people."""

    work: Path
    output: Path
    limits: AgentLimits
    run_id: str = ""
    """The job, by which a second try of the same job is known."""
    session_url: str = ""
    """Where people find the files of `output`; "": only as files."""
    trigger: str = TRIGGER
    label: str = LABEL
    reviews: bool = True
    base: str = ""
    """The branch that changes go into; "": the host's default."""


class CiJob(Struct, frozen=True):
    """One event's surroundings."""

    host: Host
    repository: JobRepository
    agent: AgentProgram
    settings: JobSettings
    scratch: Path
    """A folder of this job that is removed with it."""


class CiOutcome(Struct, frozen=True):
    """What is said in the comment, and how the job ends. `facts`: short words for the last line."""

    title: str
    text: str
    exit_code: int
    cost: float = 0.0
    facts: tuple[str, ...] = ()
    is_done: bool = True
    """Whether a second delivery of the event has nothing left to do."""


def read_prompt(name: str, **values: str) -> str:
    """Return a prompt with values in its places; a value is never read for places of its own."""
    text = files("codeloop.automation.ci").joinpath("prompts", f"{name}.md").read_text(encoding="utf-8")
    return re.sub(r"\{(\w+)\}", lambda match: values.get(match[1], match[0]), text)


def quote_thread(thread: Thread) -> str:
    """Return a thread's texts as material for a model, between two lines that nobody can have guessed."""
    if not thread.title and not thread.texts:
        return ""
    texts = "\n\n".join(
        f"{author or 'somebody'} wrote:\n{text.strip()}" for author, text in thread.texts if text.strip()
    )
    text = f"Title: {thread.title}\n\n{texts}"
    if len(text) > CI_THREAD.value:
        half = CI_THREAD.value // 2
        text = f"{text[:half]}\n[... {len(text) - 2 * half:,} characters are left out ...]\n{text[-half:]}"
    kind = "pull request" if thread.is_pull else "issue"
    return read_prompt("thread", kind=f"{kind} {thread.number}", mark=secrets.token_hex(8), text=text)


async def export_session(job: CiJob, result: AgentResult) -> str:
    """Write the session's page; return the words that lead people there."""
    if not result.session_id:
        return ""
    draft = job.scratch / f"{result.session_id}.html"
    if not await job.agent.export(job.settings.work, result.session_id, "html", draft):
        return ""
    page = write_output(job.settings.output, draft.name, draft.read_bytes())
    url = job.settings.session_url.replace("{file}", page.name)
    return f"[session]({url}) (`{page.name}`)" if url else f"session: `{page}`"


def describe_run(result: AgentResult) -> tuple[str, ...]:
    """Return the sums of a session in short words."""
    steps = f"{result.steps} {'step' if result.steps == 1 else 'steps'}"
    return (steps, f"{result.milliseconds / 1000:.0f} s") if result.steps else ()
