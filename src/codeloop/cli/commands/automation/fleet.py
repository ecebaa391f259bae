"""`codeloop fleet`: a table of jobs, each done once in a clone of its own, so many at once."""

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
from codeloop.automation.fleet.driver import Driver, FleetStopped
from codeloop.automation.fleet.jobs import read_jobs
from codeloop.automation.fleet.ledger import FleetPull, Ledger, LedgerRow
from codeloop.automation.fleet.ledger_databases import list_fleets, open_ledger
from codeloop.automation.fleet.local_driver import LocalDriver
from codeloop.automation.fleet.remote.ray_driver import RayDriver
from codeloop.automation.fleet.remote.ssh_driver import SshDriver, SshSettings
from codeloop.automation.fleet.report import describe_job, render_page, sum_jobs
from codeloop.cli import options
from codeloop.cli.options import AGENT_OPTION, AUTO_OPTION, FILE_TYPE, MODEL_OPTION, PROFILE_OPTION, TRUST_OPTION
from codeloop.cli.output.style import align_columns, print_json
from codeloop.config.paths import find_paths
from codeloop.kit.processes import make_undumpable
from codeloop.kit.small_files import write_atomically
from codeloop.kit.terminal_text import escape_controls, one_line
from codeloop.schema.errors import UsageProblem
from codeloop.schema.wire import JSON

MESSAGE_CHARS = 70
"""Characters of a message in a line."""


@click.group()
def fleet() -> None:
    """Do a table of jobs, each once, in clones of their own."""


@fleet.command()
@click.argument("jobs", type=FILE_TYPE)
@click.option("--name", metavar="NAME", help="The fleet. [default: the name of JOBS]")
@click.option(
    "--on",
    "places",
    multiple=True,
    metavar="PLACE",
    help="`here`, `ssh:[USER@]HOST[:PORT]`, `ray:ADDRESS`; repeatable.",
)
@click.option("--at-once", type=click.IntRange(1, 1_000), default=4, show_default=True, help="Jobs at once in a place.")
@click.option("--env", "variables", multiple=True, metavar="NAME", help="Give hosts this variable; repeatable.")
@click.option("--ssh", "program", default="ssh", metavar="COMMAND", help="What starts ssh, such as `ssh -F FILE`.")
@click.option("--codeloop", "remote", default="codeloop", metavar="COMMAND", help="What starts codeloop on hosts.")
@click.option("--max-cost", type=click.FloatRange(min=0), metavar="DOLLARS", help="What each job may cost.")
@click.option("--timeout", type=click.FloatRange(min=1), metavar="SECONDS", help="What each job may take.")
@click.option("--pods", type=FILE_TYPE, metavar="FILE", help="Run each job in a pod of Kubernetes, as FILE describes.")
@click.option("--table", "address", metavar="URL", help="Keep the table in PostgreSQL, where machines share it.")
@click.option("--replay", type=click.Path(dir_okay=False, resolve_path=True), help="Answer each job from a recording.")
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
    places: tuple[str, ...],
    pods: Path | None,
    **flags: object,
) -> None:
    """Do what is left of a table of jobs.

    JOBS is JSON, JSON Lines, CSV or YAML. What was done before is not done again.

    Exit codes: 0 all are done, 1 some (or pull requests) have failed, 130 stopped.
    """
    read = read_jobs(jobs)
    address, publish = str(flags.pop("address") or ""), bool(flags.pop("publish"))
    secret_variables: Sequence[str] = ()
    if publish:
        from codeloop.automation.fleet.repository_host import TOKEN_VARIABLES

        secret_variables = TOKEN_VARIABLES
        # The tokens are in our environment, which agents could read where there is no sandbox.
        make_undumpable()
    if pods is not None and places:
        raise UsageProblem("Jobs run either in the pods of --pods or on the places of --on. Leave one of them out.")
    drivers = _make_drivers(places or ("here",), flags, secret_variables)
    folder = _get_folder(name or jobs.stem)
    ledger = open_ledger(folder, address)
    ledger.add_jobs(read)
    if pods is not None:
        drivers = [_make_pod_driver(pods, ledger.identity, flags)]
    coordinator = Coordinator(folder, ledger, _format_flags(flags), drivers, _show_result)

    def end(_number: int, _frame: FrameType | None) -> None:
        coordinator.stop()

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, end)
    coordinator.run_jobs(at_once)
    for reason in coordinator.lost_drivers.values():
        click.echo(f"Jobs wait: {reason}", err=True)
    is_published = not publish or _publish_fleet(folder, ledger, lambda: coordinator.is_stopping)
    sums = sum_jobs(ledger.list_rows())
    click.echo(
        f"{sums['done']} done, {sums['failed']} failed, {sums['waiting']} waiting · ${sums['cost']:.4f}", err=True
    )
    sys.exit(130 if sums["waiting"] else 0 if is_published and not sums["failed"] else 1)


@fleet.command(hidden=True)
def work() -> None:
    """Do the job that the variable CODELOOP_FLEET_JOB holds, as a pod does."""
    from codeloop.automation.fleet.kubernetes.pod_worker import ORDER_VARIABLE, run_pod_order

    codes: list[int] = []

    def end(number: int, _frame: FrameType | None) -> None:
        codes.append(number)

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, end)
    result = run_pod_order(os.environ.pop(ORDER_VARIABLE, ""), lambda: bool(codes))
    click.echo(msgspec.json.encode(result))
    sys.exit(int(result.get("exitCode") or 0))


@fleet.command(hidden=True)
def worker() -> None:
    """Do one job of another machine's fleet.

    `fleet run --on ssh:HOST` starts it on the host.
    """
    from codeloop.automation.fleet.remote.worker import CoordinatorConnection, run_worker

    connection = CoordinatorConnection(sys.stdin.fileno())

    def end(_number: int, _frame: FrameType | None) -> None:
        connection.request_end()

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, end)
    try:
        run_worker(find_paths(os.environ).data / "fleet-worker", connection, sys.stdout.buffer)
    except FleetStopped:
        sys.exit(130)


@fleet.command()
@click.argument("name", required=False)
@options.JSON_OPTION
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
        pulls = ledger.list_pulls()
        print_json({"name": name, **sum_jobs(rows), "rows": [describe_job(folder, row, pulls) for row in rows]})
        return
    cells = [[row.state, row.job.id, one_line(str(row.result.get("message") or ""), MESSAGE_CHARS)] for row in rows]
    click.echo(align_columns(cells))


@fleet.command()
@click.argument("name")
@click.argument("job", required=False)
@click.option("--html", "page", type=FILE_TYPE, metavar="FILE", help="Write one page with all results and diffs.")
@options.JSON_OPTION
def show(name: str, job: str | None, page: Path | None, *, as_json: bool) -> None:
    """Show what came of jobs.

    The answers and diffs of all, or of one.
    """
    folder = _find_fleet(name)
    ledger = open_ledger(folder)
    rows, pulls = [row for row in ledger.list_rows() if job in {None, row.job.id}], ledger.list_pulls()
    if not rows:
        raise UsageProblem(f"There is no job {job} in {name}. `codeloop fleet status {name}` lists them.")
    if page is not None:
        write_atomically(page, render_page(name, folder, rows, pulls).encode())
    elif as_json:
        print_json([describe_job(folder, row, pulls) for row in rows])
    else:
        for row in rows:
            result = row.result
            description = describe_job(folder, row, pulls)
            click.echo(f"{row.job.id}  {row.state}  {description['work']}")
            if (pull := description["pull"]) is not None:
                click.echo(f"{pull['url'] or pull['branch']}  {escape_controls(pull['problem'])}".rstrip())
            click.echo(
                escape_controls("\n".join(str(result[key]) for key in ("message", "text", "diff") if result.get(key)))
            )


@fleet.command("publish")
@click.argument("name")
def publish(name: str) -> None:
    """Open a pull request in each repository.

    With what the fleet's done jobs changed there; one that is open is updated.
    """
    folder = _find_fleet(name)
    make_undumpable()
    sys.exit(0 if _publish_fleet(folder, open_ledger(folder), lambda: False) else 1)


@fleet.command()
@click.argument("name", required=False)
def stop(name: str | None) -> None:
    """Stop a fleet, or all.

    Jobs that ran wait, and `fleet run` does them again.
    """
    for folder in [_find_fleet(name)] if name else list_fleets(_get_root()):
        open_ledger(folder).set_stopping(on=True)


@fleet.command()
@click.argument("name")
@click.argument("jobs", nargs=-1)
def retry(name: str, jobs: tuple[str, ...]) -> None:
    """Let failed jobs wait again.

    Those named, else all; `fleet run` does them.
    """
    click.echo(f"{open_ledger(_find_fleet(name)).requeue_failed(jobs)} to be done again: codeloop fleet run", err=True)


def _publish_fleet(folder: Path, ledger: Ledger, is_stopping: Callable[[], bool]) -> bool:
    """Open the pull requests, and say what came of each; returns whether all are as they should be."""
    from codeloop.automation.fleet.pull_requests import publish_fleet

    problems: list[str] = []

    def tell(pull: FleetPull) -> None:
        if pull.problem:
            problems.append(pull.problem)
        state = "problem" if pull.problem else "published"
        click.echo(f"{state}  {pull.repository}  {pull.url or pull.branch}  {escape_controls(pull.problem)}".rstrip())

    publish_fleet(folder, ledger, os.environ, tell, is_stopping)
    return not problems


def _make_drivers(places: Sequence[str], flags: dict[str, object], secret_variables: Sequence[str]) -> list[Driver]:
    """Return a driver for each place; what is meant for them is taken out of the flags.

    `secret_variables`: variables that agents on this machine don't get.
    """
    names = msgspec.convert(flags.pop("variables"), tuple[str, ...])
    if missing := [name for name in names if name not in os.environ]:
        raise UsageProblem(f"{missing[0]} is not set. Set it, or leave out `--env {missing[0]}`.")
    environment = {name: os.environ[name] for name in names}
    settings = SshSettings(str(flags.pop("program")), str(flags.pop("remote")), environment)
    drivers: list[Driver] = []
    for driver_name in dict.fromkeys(places):
        kind, _, address = driver_name.partition(":")
        if driver_name == "here":
            drivers.append(LocalDriver(secret_variables))
        elif kind == "ssh":
            drivers.append(SshDriver(address, settings))
        elif kind == "ray":
            drivers.append(RayDriver(address or "auto", settings.codeloop, environment))
        else:
            raise UsageProblem(
                f"`--on {driver_name}` is no place for jobs. Write `here`, `ssh:[USER@]HOST[:PORT]` or `ray:ADDRESS`."
            )
    return drivers


def _show_result(row: LedgerRow, result: JSON) -> None:
    state = "failed" if result.get("exitCode") else "done"
    click.echo(
        f"{state}  {row.job.id}  {one_line(str(result.get('message') or result.get('text') or ''), MESSAGE_CHARS)}"
    )


def _show_fleets(*, as_json: bool) -> None:
    rows = {folder.name: sum_jobs(open_ledger(folder).list_rows()) for folder in list_fleets(_get_root())}
    if as_json:
        print_json(rows)
    elif not rows:
        click.echo("There are no fleets. `codeloop fleet run JOBS` starts one.", err=True)
    for name, sums in rows.items() if not as_json else ():
        click.echo(f"{name}  {sums['done']} of {sums['jobs']} done, {sums['failed']} failed · ${sums['cost']:.4f}")


def _make_pod_driver(file: Path, identity: str, flags: dict[str, object]) -> Driver:
    from codeloop.automation.fleet.kubernetes.cluster_access import find_access
    from codeloop.automation.fleet.kubernetes.driver import KubernetesDriver
    from codeloop.automation.fleet.kubernetes.manifest import read_pod_settings

    settings = read_pod_settings(file)
    access = find_access(os.environ, settings.context, settings.namespace)
    seconds = flags.get("timeout")
    return KubernetesDriver(access, identity, settings, seconds if isinstance(seconds, float) else None)


def _format_flags(flags: dict[str, object]) -> list[str]:
    """Return the flags of `codeloop run` that were given here."""
    found: list[str] = []
    for key, value in flags.items():
        if value:
            found += [f"--{key.replace('_', '-')}", *([] if value is True else [str(value)])]
    return found


def _get_root() -> Path:
    return find_paths(os.environ).data / "fleet"


def _get_folder(name: str) -> Path:
    if re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}", name) is None:
        raise UsageProblem(
            f"The name of a fleet is letters, digits, `.`, `_` and `-`, not {name}. Give one with --name."
        )
    return _get_root() / name


def _find_fleet(name: str) -> Path:
    folder = _get_folder(name)
    if folder not in list_fleets(_get_root()):
        raise UsageProblem(f"There is no fleet {name}. `codeloop fleet status` lists them.")
    return folder
