"""The context, settings and outcome of a CI job, and what the outcome says about its session."""

from pathlib import Path

from msgspec import Struct

from codeloop_automation.ci.agent_program import AgentLimits, AgentProgram, AgentResult
from codeloop_automation.ci.hosts.host import Host
from codeloop_automation.ci.job_repository import JobRepository
from codeloop_automation.ci.output_files import write_output

DEFAULT_TRIGGER, DEFAULT_LABEL = "/codeloop", "codeloop"


class JobSettings(Struct, frozen=True, kw_only=True):
    """The settings of a job, from the command line and the host's variables.

    `work`: the folder of the checkout. `output`: the folder for files that users can download.
    """

    work: Path
    output: Path
    limits: AgentLimits
    run_id: str = ""
    """The host's id of the job. On GitHub, a job that is started again keeps it;
    on GitLab, it gets a new one.
    """
    session_url: str = ""
    """The address at which users find a file of `output`;
    `{file}`, if it is in it, stands for the file's name.

    "": there is none.
    """
    trigger: str = DEFAULT_TRIGGER
    label: str = DEFAULT_LABEL
    reviews_every_pull: bool = True
    """Whether pull requests are reviewed also without a comment that asks for it."""
    base: str = ""
    """The branch that changes are merged into; "": the host's default branch."""


class CiJob(Struct, frozen=True):
    """The context of a job on one event."""

    host: Host
    repository: JobRepository
    agent: AgentProgram
    settings: JobSettings
    scratch: Path
    """A temporary folder, which is removed when the job ends."""


class CiOutcome(Struct, frozen=True):
    """The outcome of a job: title and text of the comment, and the exit code. `cost` in dollars.

    `facts`: short facts for the comment's last line, such as the number of steps.
    """

    title: str
    text: str
    exit_code: int
    cost: float = 0.0
    facts: tuple[str, ...] = ()
    is_done: bool = True
    """Whether the event is dealt with, so that a second delivery of it is ignored."""


async def export_session(job: CiJob, result: AgentResult) -> str:
    """Write the session as an HTML page into the output folder;
    return a link to it or its path, "" if that failed.
    """
    if not result.session_id:
        return ""
    draft = job.scratch / f"{result.session_id}.html"
    if not await job.agent.export(job.settings.work, result.session_id, "html", draft):
        return ""
    page = write_output(job.settings.output, draft.name, draft.read_bytes())
    url = job.settings.session_url.replace("{file}", page.name)
    return f"[session]({url}) (`{page.name}`)" if url else f"session: `{page}`"


def describe_run(result: AgentResult) -> tuple[str, ...]:
    """Return the number of steps and the duration of a run as short facts;
    none for a run without steps.
    """
    steps = f"{result.steps} {'step' if result.steps == 1 else 'steps'}"
    return (steps, f"{result.milliseconds / 1000:.0f} s") if result.steps else ()
