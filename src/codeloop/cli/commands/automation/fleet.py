"""`codeloop fleet`: runs a table of jobs, each once and in a clone of its own,
on this machine or on others.
"""

import os
import re
import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import FrameType

import click
import msgspec

from codeloop.automation.fleet.coordinator import Coordinator
from codeloop.automation.fleet.driver import FleetStopped
from codeloop.automation.fleet.jobs import read_jobs
from codeloop.automation.fleet.ledger import FleetPullRequest, Ledger, LedgerRow
from codeloop.automation.fleet.ledger_databases import list_fleets, open_ledger
from codeloop.automation.fleet.report import describe_job, render_page, sum_jobs
from codeloop.cli import exit_codes
from codeloop.cli.commands.automation.fleet_drivers import make_drivers, make_pod_driver
from codeloop.cli.group import CommandGroup
from codeloop.cli.options import (
    AGENT_OPTION,
    AUTO_OPTION,
    FILE_TYPE,
    JSON_OPTION,
    MODEL_OPTION,
    PROFILE_OPTION,
    TRUST_OPTION,
    format_flags,
)
from codeloop.cli.output.columns import align_columns
from codeloop.cli.output.print_json import print_json
from codeloop.client.formatting import format_cost
from codeloop.config.paths import find_paths
from codeloop.kit.new_file import write_new_file
from codeloop.kit.processes import make_undumpable
from codeloop.kit.text.terminal_text import escape_controls, one_line
from codeloop.schema.errors import UsageProblem
from codeloop.schema.wire import JSON

# Characters of a result's message on a line.
MESSAGE_CHARS = 70


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
    "--timeout", type=click.FloatRange(min=1), metavar="SECONDS", help="What each job may take."
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
        from codeloop.automation.fleet.repository_host import TOKEN_VARIABLES

        secret_variables = TOKEN_VARIABLES
        # The tokens are in this process's environment, which agents could read without a sandbox.
        make_undumpable()
    if pods is not None and driver_names:
        raise UsageProblem(
            "Jobs run either in the pods of --pods or on the places of --on. Leave one of them out."
        )
    # Made with --pods, too: this removes their options from `flags`.
    drivers = make_drivers(driver_names or ("here",), flags, secret_variables)
    folder = _get_folder(name or jobs.stem)
    ledger = open_ledger(folder, address)
    ledger.add_jobs(job_list)
    if pods is not None:
        drivers = [make_pod_driver(pods, ledger.get_identity(), flags)]
    coordinator = Coordinator(folder, ledger, format_flags(flags), drivers, _show_result)

    def stop_on_signal(_number: int, _frame: FrameType | None) -> None:
        coordinator.stop()

    # The coordinator works with threads, not with an event loop.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, stop_on_signal)
    coordinator.run_jobs(at_once)
    for reason in coordinator.lost_drivers.values():
        click.echo(f"Jobs wait: {reason}", err=True)
    is_published = not publish or _publish_fleet(folder, ledger, lambda: coordinator.is_stopping)
    sums = sum_jobs(ledger.list_rows())
    click.echo(
        f"{sums['done']} done, {sums['failed']} failed, {sums['waiting']} waiting · {format_cost(sums['cost'])}",
        err=True,
    )
    if sums["waiting"]:
        sys.exit(exit_codes.INTERRUPTED)
    sys.exit(exit_codes.DONE if is_published and not sums["failed"] else exit_codes.ERROR)


@fleet.command(hidden=True)
def work() -> None:
    """Do the job that the variable CODELOOP_FLEET_JOB holds, as a pod does."""
    from codeloop.automation.fleet.kubernetes.pod_worker import ORDER_VARIABLE, run_pod_order

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
    from codeloop.automation.fleet.remote.worker import CoordinatorConnection, run_worker

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


@fleet.command()
@click.argument("name", required=False)
@JSON_OPTION
def status(name: str | None, *, as_json: bool) -> None:
    """Show how jobs stand.

    Without NAME, all fleets.
    """
    if name is None:
        _show_fleets(as_json=as_json)
        return
    folder = _find_fleet(name)
    ledger = open_ledger(folder)
    rows = ledger.list_rows()
    if as_json:
        pulls = ledger.list_pull_requests()
        print_json(
            {
                "name": name,
                **sum_jobs(rows),
                "rows": [describe_job(folder, row, pulls) for row in rows],
            }
        )
        return
    cells = [
        [row.state, row.job.id, one_line(str(row.result.get("message") or ""), MESSAGE_CHARS)]
        for row in rows
    ]
    click.echo(align_columns(cells))


@fleet.command()
@click.argument("name")
@click.argument("job", required=False)
@click.option(
    "--html",
    "page",
    type=FILE_TYPE,
    metavar="FILE",
    help="Write one page with all results and diffs.",
)
@JSON_OPTION
def show(name: str, job: str | None, page: Path | None, *, as_json: bool) -> None:
    """Show what came of jobs.

    The answers and diffs of all, or of one.
    """
    folder = _find_fleet(name)
    ledger = open_ledger(folder)
    rows = [row for row in ledger.list_rows() if job in {None, row.job.id}]
    pulls = ledger.list_pull_requests()
    if not rows:
        raise UsageProblem(
            f"There is no job {job} in {name}. `codeloop fleet status {name}` lists them."
        )
    if page is not None:
        write_new_file(page, render_page(name, folder, rows, pulls).encode())
    elif as_json:
        print_json([describe_job(folder, row, pulls) for row in rows])
    else:
        for row in rows:
            result = row.result
            description = describe_job(folder, row, pulls)
            click.echo(f"{row.job.id}  {row.state}  {description['work']}")
            if (pull := description["pull"]) is not None:
                click.echo(
                    f"{pull['url'] or pull['branch']}  {escape_controls(pull['problem'])}".rstrip()
                )
            texts = [str(result[key]) for key in ("message", "text", "diff") if result.get(key)]
            click.echo(escape_controls("\n".join(texts)))


@fleet.command("publish")
@click.argument("name")
def publish(name: str) -> None:
    """Open a pull request in each repository.

    With what the fleet's done jobs changed there; one that is open is updated.
    """
    folder = _find_fleet(name)
    # As in `run`: the environment holds the tokens of the hosts.
    make_undumpable()
    sys.exit(0 if _publish_fleet(folder, open_ledger(folder), lambda: False) else 1)


@fleet.command()
@click.argument("name", required=False)
def stop(name: str | None) -> None:
    """Stop a fleet, or all.

    Jobs that ran wait, and `fleet run` does them again.
    """
    for folder in [_find_fleet(name)] if name else list_fleets(_get_fleets_folder()):
        open_ledger(folder).set_stopping(on=True)


@fleet.command()
@click.argument("name")
@click.argument("jobs", nargs=-1)
def retry(name: str, jobs: tuple[str, ...]) -> None:
    """Let failed jobs wait again.

    Those named, else all; `fleet run` does them.
    """
    click.echo(
        f"{open_ledger(_find_fleet(name)).requeue_failed(jobs)} to be done again: codeloop fleet run",
        err=True,
    )


def _publish_fleet(folder: Path, ledger: Ledger, is_stopping: Callable[[], bool]) -> bool:
    """Open or update the pull requests, and print the result of each;
    return whether none has a problem.
    """
    from codeloop.automation.fleet.pull_requests import publish_fleet

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


def _show_result(row: LedgerRow, result: JSON) -> None:
    state = "done" if result.get("exitCode") == 0 else "failed"
    click.echo(
        f"{state}  {row.job.id}  {one_line(str(result.get('message') or result.get('text') or ''), MESSAGE_CHARS)}"
    )


def _show_fleets(*, as_json: bool) -> None:
    sums_by_name = {
        folder.name: sum_jobs(open_ledger(folder).list_rows())
        for folder in list_fleets(_get_fleets_folder())
    }
    if as_json:
        print_json(sums_by_name)
        return
    if not sums_by_name:
        click.echo("There are no fleets. `codeloop fleet run JOBS` starts one.", err=True)
    for name, sums in sums_by_name.items():
        click.echo(
            f"{name}  {sums['done']} of {sums['jobs']} done, {sums['failed']} failed · {format_cost(sums['cost'])}"
        )


def _get_fleets_folder() -> Path:
    return find_paths(os.environ).data / "fleet"


def _get_folder(name: str) -> Path:
    # The name becomes that of a folder, so `/`, `..` and a leading dash are refused.
    if re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}", name) is None:
        raise UsageProblem(
            f"The name of a fleet is letters, digits, `.`, `_` and `-`, not {name}. Give one with --name."
        )
    return _get_fleets_folder() / name


def _find_fleet(name: str) -> Path:
    folder = _get_folder(name)
    if folder not in list_fleets(_get_fleets_folder()):
        raise UsageProblem(f"There is no fleet {name}. `codeloop fleet status` lists them.")
    return folder
