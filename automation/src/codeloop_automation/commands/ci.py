"""`codeloop ci`: works on issues and reviews pull requests, in a CI job of GitHub,
GitLab or another git host.
"""

import asyncio
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click

from codeloop.cli.bootstrap import INTERRUPTED_EXIT_CODE, list_end_signals
from codeloop.cli.group import CommandGroup
from codeloop.cli.options import (
    AGENT_OPTION,
    DIR_OPTION,
    FILE_TYPE,
    MODEL_OPTION,
    OFFLINE_OPTION,
    PROFILE_OPTION,
    TRUST_OPTION,
    add_options,
)

if TYPE_CHECKING:
    from codeloop_automation.ci.agent_program import AgentLimits
    from codeloop_automation.ci.event import CiEvent
    from codeloop_automation.ci.hosts.host import Host
    from codeloop_automation.ci.job import JobSettings

# The options of `ci run` and `ci review`.
_JOB_OPTIONS = (
    click.option(
        "--host",
        type=click.Choice(["github", "gitlab", "git"]),
        help="The host. [default: found by its variables]",
    ),
    click.option("--remote", metavar="URL", help="Where branches are fetched from and pushed to."),
    click.option(
        "--base",
        metavar="BRANCH",
        help="The branch that changes go into. [default: the host's default branch]",
    ),
    click.option(
        "--max-cost",
        type=click.FloatRange(min=0),
        default=2.0,
        metavar="DOLLARS",
        help="Stop at this cost. [default: 2]",
    ),
    click.option(
        "--max-steps",
        type=click.IntRange(min=1),
        default=100,
        help="Maximum number of requests to the model. [default: 100]",
    ),
    click.option(
        "--timeout",
        type=click.FloatRange(min=0, min_open=True),
        default=1200.0,
        metavar="SECONDS",
        help="Stop after this time. [default: 1200]",
    ),
    click.option(
        "--output",
        type=click.Path(path_type=Path, file_okay=False),
        default=Path("codeloop-ci"),
        help="Folder for the session's page and the result. [default: codeloop-ci]",
    ),
    click.option(
        "--session-url",
        metavar="URL",
        help="Where people find a file of --output; {file} is its name.",
    ),
    click.option(
        "--key",
        metavar="NAME",
        help="What names this request: one that was carried out is not done again.",
    ),
    click.option("--config", type=FILE_TYPE, help="Additional configuration file."),
    click.option(
        "--env",
        "variables",
        multiple=True,
        metavar="NAME",
        help="Pass this variable to the agent although it looks like a secret; repeatable.",
    ),
    MODEL_OPTION,
    AGENT_OPTION,
    PROFILE_OPTION,
    TRUST_OPTION,
    OFFLINE_OPTION,
    DIR_OPTION,
)


@click.group(cls=CommandGroup)
def ci() -> None:
    """Work on issues and pull requests in a job of GitHub, GitLab or any other host,
    and review changes.
    """


@ci.command()
@click.option(
    "--host",
    type=click.Choice(["github", "gitlab"]),
    default="github",
    help="The host. [default: github]",
)
@click.option(
    "--trigger", default="/codeloop", help="The line that starts work. [default: /codeloop]"
)
@click.option(
    "--secret",
    metavar="NAME",
    default="",
    help="The variable of the model's key. [default: the provider's]",
)
@click.option(
    "--minutes",
    type=click.IntRange(min=1),
    default=60,
    help="When the host ends a job. [default: 60]",
)
@click.option(
    "--max-cost",
    type=click.FloatRange(min=0),
    metavar="DOLLARS",
    help="Stop each job at this cost.",
)
@click.option(
    "--install-from",
    metavar="URL@COMMIT",
    help="The repository and commit of codeloop that the job installs. [default: those of this installation]",
)
@click.option("--force", is_flag=True, help="Replace a file that differs.")
@MODEL_OPTION
@DIR_OPTION
def setup(
    *,
    host: str,
    trigger: str,
    secret: str,
    minutes: int,
    max_cost: float | None,
    force: bool,
    **flags: Any,
) -> None:
    """Write the file that starts codeloop in jobs of a host, and say what is left to do."""
    from codeloop_automation.ci.setup_file.install_source import (
        find_install_source,
        parse_install_source,
    )
    from codeloop_automation.ci.setup_file.setup_file import make_setup_file, write_setup_file

    named = flags["install_from"]
    source = find_install_source() if named is None else parse_install_source(named)
    setup_file = make_setup_file(
        host=host,
        source=source,
        model=flags["model"] or "",
        trigger=trigger,
        secret=secret,
        minutes=minutes,
        max_cost=max_cost,
    )
    is_new = write_setup_file(flags["directory"] or Path.cwd(), setup_file, force=force)
    click.echo(f"{'Wrote' if is_new else 'Unchanged:'} {setup_file.path}")
    click.echo(f"The job installs codeloop from {source.address} at {source.commit}.")
    for number, step in enumerate(setup_file.steps, 1):
        click.echo(f"{number}. {step}")


@ci.command()
@click.option(
    "--event", metavar="NAME", help="The event, as GitHub names it. [default: GITHUB_EVENT_NAME]"
)
@click.option(
    "--event-path",
    type=FILE_TYPE,
    help="The file with the event. [default: GITHUB_EVENT_PATH, TRIGGER_PAYLOAD]",
)
@click.option(
    "--task", metavar="TEXT", help="What to do on a schedule, by hand, or on a plain git host."
)
@click.option(
    "--trigger", default="/codeloop", help="The line that starts work. [default: /codeloop]"
)
@click.option(
    "--label",
    default="codeloop",
    help="The label that starts work on an issue. [default: codeloop]",
)
@click.option(
    "--no-review", is_flag=True, help="Do not review pull requests that nobody asked to review."
)
@add_options(_JOB_OPTIONS)
def run(**flags: Any) -> None:
    """Handle one event of the host: change files, push a branch, open a pull request,
    and say so in one comment.
    """
    _exit_with_job(flags)


@ci.command()
@click.option(
    "--number", type=click.IntRange(min=1), help="The pull request. [default: that of the event]"
)
@click.option("--head", metavar="BRANCH", help="On a plain git host: the branch to review.")
@add_options(_JOB_OPTIONS)
def review(**flags: Any) -> None:
    """Review a pull request: post the bugs that a run has reproduced, each once,
    on lines that changed.
    """
    _exit_with_job(flags, is_review=True)


def _make_limits(flags: dict[str, Any]) -> "AgentLimits":
    from codeloop_automation.ci.agent_program import AgentLimits

    return AgentLimits(
        cost=flags["max_cost"],
        steps=flags["max_steps"],
        seconds=flags["timeout"],
        profile=flags["profile"] or "auto",
        model=flags["model"] or "",
        agent=flags["agent"] or "",
        is_trusted=flags["trust"],
        config=str(Path(flags["config"]).resolve()) if flags["config"] else "",
        variables=flags["variables"],
    )


def _exit_with_job(flags: dict[str, Any], *, is_review: bool = False) -> NoReturn:
    """Run the job of a command, and exit. Raises CodeloopError."""
    from codeloop.schema.errors import CodeloopError
    from codeloop_automation.ci.job_log import make_log_line

    try:
        sys.exit(_run_job(flags, is_review=is_review))
    except CodeloopError as error:
        # It is printed into the log of the job, and may quote the host, git or the model.
        error.args = (make_log_line(str(error)), *error.args[1:])
        raise


def _write_log(text: str) -> None:
    from codeloop_automation.ci.job_log import make_log_line

    click.echo(f"codeloop: {make_log_line(text)}", err=True)


def _run_job(flags: dict[str, Any], *, is_review: bool = False) -> int:
    """Handle the event of this job, and return the exit code.
    Raises UsageProblem, CodeloopError.
    """
    from codeloop.kit.processes import make_undumpable
    from codeloop.schema.errors import UsageProblem
    from codeloop_automation.ci.event import Skip
    from codeloop_automation.ci.job import JobSettings
    from codeloop_automation.ci.job_environment import (
        JobFlags,
        find_host_name,
        find_run_id,
        find_session_url,
        make_host,
        read_event,
    )

    # The host's token is in this process's environment,
    # which the agent's commands could read without a sandbox.
    make_undumpable()
    work = Path(flags["directory"] or Path.cwd()).resolve()
    # A link of the checkout is not followed; one in an absolute path was named by the user.
    output = Path(os.path.normpath(work / flags["output"]))
    if flags["output"].is_absolute():
        output = output.resolve()
    options = JobFlags(
        host=flags["host"] or "",
        event=flags.get("event") or "",
        event_path=flags.get("event_path"),
        task=flags.get("task") or "",
        number=flags.get("number") or 0,
        is_review=is_review,
        remote=flags["remote"] or "",
        base=flags["base"] or "",
        head=flags.get("head") or "",
        key=flags["key"] or "",
    )
    name = find_host_name(options.host, os.environ)
    if is_review and name == "git" and not options.head:
        raise UsageProblem("--head is missing: the branch to review.")
    event = read_event(name, options, os.environ)
    if isinstance(event, Skip):
        _write_log(f"Nothing to do: {event.reason}.")
        return 0
    settings = JobSettings(
        work=work,
        output=output,
        limits=_make_limits(flags),
        run_id=find_run_id(name, os.environ),
        session_url=flags["session_url"]
        or find_session_url(name, os.environ, flags["output"].as_posix()),
        trigger=flags.get("trigger") or "/codeloop",
        label=flags.get("label") or "codeloop",
        reviews_every_pull=not flags.get("no_review"),
        base=options.base,
    )
    host = make_host(name, options, os.environ, output)
    try:
        return asyncio.run(_run_until_signal(host, event, settings))
    except asyncio.CancelledError:
        return INTERRUPTED_EXIT_CODE


async def _run_until_signal(host: "Host", event: "CiEvent", settings: "JobSettings") -> int:
    """Handle an event, and return the exit code; the first signal cancels that.
    Closes the host's client.
    """
    from codeloop_automation.ci.event_runner import run_event

    task, loop = asyncio.current_task(), asyncio.get_running_loop()
    signals = list_end_signals()

    def cancel_once() -> None:
        # Hosts send several signals; a second one would cut off the comment that reports the end.
        for number in signals:
            loop.add_signal_handler(number, lambda: None)
        if task is not None:
            task.cancel()

    for number in signals:
        loop.add_signal_handler(number, cancel_once)
    try:
        return await run_event(host, event, settings, _write_log)
    finally:
        await host.close()
