"""`codeloop fleet`: runs a table of jobs, each once and in a clone of its own,
on this machine or on others.
"""

import os
import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import FrameType

import click
import msgspec

from codeloop.cli import exit_codes
from codeloop.cli.group import CommandGroup
from codeloop.cli.options import (
    AGENT_OPTION,
    AUTO_OPTION,
    FILE_TYPE,
    MODEL_OPTION,
    PROFILE_OPTION,
    TRUST_OPTION,
    format_flags,
)
from codeloop.client.formatting import format_cost
from codeloop.config.paths import find_paths
from codeloop.kit.processes import make_undumpable
from codeloop.kit.text.terminal_text import escape_controls, one_line
from codeloop.schema.errors import UsageProblem
from codeloop.schema.wire import JSON
from codeloop_automation.bounds import FLEET_JOB_TIME
from codeloop_automation.commands.fleet_drivers import make_drivers, make_pod_driver
from codeloop_automation.commands.fleet_folders import find_fleet, get_folder
from codeloop_automation.commands.fleet_operator import cancel, remove, retry, stop
from codeloop_automation.commands.fleet_status import MESSAGE_CHARS, show, status
from codeloop_automation.fleet.coordinator import Coordinator, FleetReports
from codeloop_automation.fleet.driver import FleetStopped
from codeloop_automation.fleet.jobs import read_jobs
from codeloop_automation.fleet.ledger import Ledger
from codeloop_automation.fleet.ledger_databases import open_ledger
from codeloop_automation.fleet.ledger_rows import AddedJobs, FleetPullRequest, LedgerRow
from codeloop_automation.fleet.limits import FleetLimits
from codeloop_automation.fleet.report import sum_jobs


@click.group(cls=CommandGroup)
def fleet() -> None:
    """Run a table of jobs, each exactly once and in its own clone."""


@fleet.command()
@click.argument("jobs", type=FILE_TYPE)
@click.option("--name", metavar="NAME", help="The fleet. [default: the name of JOBS]")
@click.option(
    "--on",
    "driver_names",
    multiple=True,
    metavar="PLACE",
    help="`here`, `ssh:[USER@]HOST[:PORT]`, `ray:ADDRESS`; repeatable.",
)
@click.option(
    "--at-once",
    type=click.IntRange(1, 1_000),
    default=4,
    show_default=True,
    help="Jobs to run in parallel at each place.",
)
@click.option(
    "--env",
    "variables",
    multiple=True,
    metavar="NAME",
    help="Pass this variable to the hosts; repeatable.",
)
@click.option(
    "--ssh",
    "program",
    default="ssh",
    metavar="COMMAND",
    help="What starts ssh, such as `ssh -F FILE`.",
)
@click.option(
    "--codeloop",
    "remote",
    default="codeloop",
    metavar="COMMAND",
    help="What starts codeloop on hosts.",
)
@click.option(
    "--max-cost", type=click.FloatRange(min=0), metavar="DOLLARS", help="What each job may cost."
)
@click.option(
    "--timeout",
    type=click.FloatRange(min=1),
    default=FLEET_JOB_TIME.seconds,
    show_default=True,
    metavar="SECONDS",
    help="What each job may take.",
)
@click.option(
    "--budget",
    type=click.FloatRange(min=0),
    metavar="DOLLARS",
    help="What the fleet may cost in all.",
)
@click.option(
    "--deadline",
    type=click.FloatRange(min=1),
    metavar="SECONDS",
    help="When the fleet stops.",
)
@click.option(
    "--pods",
    type=FILE_TYPE,
    metavar="FILE",
    help="Run each job in a pod of Kubernetes, as FILE describes.",
)
@click.option(
    "--table",
    "address",
    metavar="URL",
    help="Keep the table in PostgreSQL, where machines share it.",
)
@click.option(
    "--replay",
    type=click.Path(dir_okay=False, resolve_path=True),
    help="Answer each job from a recording.",
)
@click.option("--publish", is_flag=True, help="Open a pull request in each repository at the end.")
@MODEL_OPTION
@AGENT_OPTION
@PROFILE_OPTION
@AUTO_OPTION
@TRUST_OPTION
def run(
    *,
    jobs: Path,
    name: str | None,
    at_once: int,
    driver_names: tuple[str, ...],
    pods: Path | None,
    **flags: object,
) -> None:
    """Do what is left of a table of jobs.

    JOBS is JSON, JSON Lines, CSV or YAML. What was done before is not done again.

    Exit codes: 0 all are done, 1 some (or pull requests) have failed, 130 stopped.
    """
    job_list = read_jobs(jobs)
    # The flags that are left after this, and after `make_drivers`, are those of `codeloop run`.
    address = str(flags.pop("address") or "")
    publish = bool(flags.pop("publish"))
    secret_variables: Sequence[str] = ()
    if publish:
        from codeloop_automation.fleet.repository_host import TOKEN_VARIABLES

        secret_variables = TOKEN_VARIABLES
        # The tokens are in this process's environment, which agents could read without a sandbox.
        make_undumpable()
    if pods is not None and driver_names:
        raise UsageProblem(
            "Jobs run either in the pods of --pods or on the places of --on. Leave one of them out."
        )
    # Made with --pods, too: this removes their options from `flags`.
    drivers = make_drivers(driver_names or ("here",), flags, secret_variables)
    folder = get_folder(name or jobs.stem)
    ledger = open_ledger(folder, address)
    _report_changes(ledger.add_jobs(job_list), folder.name)
    limits = msgspec.convert(
        {"budget": flags.pop("budget"), "seconds": flags.pop("deadline")}, FleetLimits
    )
    if pods is not None:
        drivers = [make_pod_driver(pods, ledger.get_identity(), flags)]
    reports = FleetReports(_show_result, _notify)
    coordinator = Coordinator(folder, ledger, format_flags(flags), drivers, reports, limits)

    def stop_on_signal(_number: int, _frame: FrameType | None) -> None:
        coordinator.stop()

    # The coordinator works with threads, not with an event loop.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, stop_on_signal)
    coordinator.run_jobs(at_once)
    for reason in coordinator.lost_drivers.values():
        click.echo(f"Jobs wait: {reason}", err=True)
    is_published = not publish or _publish_fleet(folder, ledger, lambda: coordinator.is_stopping)
    sums = sum_jobs(ledger.list_rows(), ledger.sum_removed_cost())
    cancelled = f", {sums['cancelled']} cancelled" if sums["cancelled"] else ""
    click.echo(
        f"{sums['done']} done, {sums['failed']} failed, {sums['waiting']} waiting{cancelled} · "
        f"{format_cost(sums['cost'])}",
        err=True,
    )
    if sums["waiting"]:
        sys.exit(exit_codes.INTERRUPTED)
    sys.exit(exit_codes.DONE if is_published and not sums["failed"] else exit_codes.ERROR)


@fleet.command(hidden=True)
def work() -> None:
    """Do the job that the variable CODELOOP_FLEET_JOB holds, as a pod does."""
    from codeloop_automation.fleet.kubernetes.pod_worker import ORDER_VARIABLE, run_pod_order

    received_signals: list[int] = []

    def note_signal(number: int, _frame: FrameType | None) -> None:
        received_signals.append(number)

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, note_signal)
    # The job is taken out of the environment, which the agent's commands inherit.
    result = run_pod_order(os.environ.pop(ORDER_VARIABLE, ""), lambda: bool(received_signals))
    click.echo(msgspec.json.encode(result))
    sys.exit(int(result.get("exitCode") or 0))


@fleet.command(hidden=True)
def worker() -> None:
    """Do one job of another machine's fleet.

    `fleet run --on ssh:HOST` starts it on the host.
    """
    from codeloop_automation.fleet.remote.worker import CoordinatorConnection, run_worker

    # The job and heartbeats come over stdin.
    connection = CoordinatorConnection(sys.stdin.fileno())

    def give_up_on_signal(_number: int, _frame: FrameType | None) -> None:
        connection.request_end()

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, give_up_on_signal)
    try:
        run_worker(find_paths(os.environ).data / "fleet-worker", connection, sys.stdout.buffer)
    except FleetStopped:
        sys.exit(exit_codes.INTERRUPTED)


@fleet.command("publish")
@click.argument("name")
def publish(name: str) -> None:
    """Open a pull request in each repository.

    With what the fleet's done jobs changed there; one that is open is updated.
    """
    folder = find_fleet(name)
    # As in `run`: the environment holds the tokens of the hosts.
    make_undumpable()
    sys.exit(0 if _publish_fleet(folder, open_ledger(folder), lambda: False) else 1)


def _publish_fleet(folder: Path, ledger: Ledger, is_stopping: Callable[[], bool]) -> bool:
    """Open or update the pull requests, and print the result of each;
    return whether none has a problem.
    """
    from codeloop_automation.fleet.pull_requests import publish_fleet

    problems: list[str] = []

    def print_pull(pull: FleetPullRequest) -> None:
        if pull.problem:
            problems.append(pull.problem)
        state = "problem" if pull.problem else "published"
        click.echo(
            f"{state}  {pull.repository}  {pull.url or pull.branch}  {escape_controls(pull.problem)}".rstrip()
        )

    publish_fleet(folder, ledger, os.environ, print_pull, is_stopping)
    return not problems


def _notify(line: str) -> None:
    click.echo(escape_controls(line), err=True)


def _report_changes(added: AddedJobs, name: str) -> None:
    if added.changed:
        _notify(f"Changed in the table, so they wait again: {', '.join(added.changed)}.")
    if added.ignored:
        _notify(
            f"Changed in the table, but running or done: {', '.join(added.ignored)}. "
            f"`codeloop fleet retry {name} ID` lets a job that is done wait again; then run the table."
        )


def _show_result(row: LedgerRow, result: JSON) -> None:
    state = "done" if result.get("exitCode") == 0 else "failed"
    click.echo(
        f"{state}  {row.job.id}  {one_line(str(result.get('message') or result.get('text') or ''), MESSAGE_CHARS)}"
    )


for command in (status, show, stop, retry, cancel, remove):
    fleet.add_command(command)
