"""What an operator does with the jobs of a fleet: `codeloop fleet stop`, `retry`, `cancel`
and `remove`.
"""

from pathlib import Path

import click

from codeloop.cli import exit_codes
from codeloop.kit.remove_tree import remove_tree
from codeloop.kit.text.terminal_text import escape_controls
from codeloop.schema.errors import CodeloopError, UsageProblem
from codeloop_automation.commands.fleet_folders import find_fleet, get_fleets_folder
from codeloop_automation.fleet.coordinator import Coordinator, FleetReports
from codeloop_automation.fleet.ledger import Ledger
from codeloop_automation.fleet.ledger_databases import list_fleets, open_ledger
from codeloop_automation.fleet.limits import FleetLimits


@click.command()
@click.argument("name", required=False)
def stop(name: str | None) -> None:
    """Stop a fleet, or all.

    Jobs that ran wait, and `fleet run` does them again.
    """
    problems: list[str] = []
    for folder in [find_fleet(name)] if name else list_fleets(get_fleets_folder()):
        # The table of one fleet may be out of reach; the others are stopped.
        try:
            ledger = open_ledger(folder)
            ledger.set_stopping(on=True)
            _end_orphans(folder, ledger)
        except CodeloopError as error:
            problems.append(f"{folder.name}: {error}")
    for problem in problems:
        click.echo(escape_controls(problem), err=True)
    if problems:
        raise SystemExit(exit_codes.ERROR)


@click.command()
@click.argument("name")
@click.argument("jobs", nargs=-1)
def retry(name: str, jobs: tuple[str, ...]) -> None:
    """Let failed jobs wait again.

    Those named, whatever came of them, else all that have failed; `fleet run` does them.
    """
    count = open_ledger(find_fleet(name)).requeue_ended(jobs)
    click.echo(f"{count} to be done again: codeloop fleet run", err=True)


@click.command()
@click.argument("name")
@click.argument("jobs", nargs=-1, required=True)
def cancel(name: str, jobs: tuple[str, ...]) -> None:
    """End jobs, or skip them.

    `fleet retry` lets them wait again.
    """
    count = open_ledger(find_fleet(name)).cancel(jobs)
    click.echo(f"{count} of {len(jobs)} cancelled; the others have ended already.", err=True)


@click.command()
@click.argument("name")
@click.argument("jobs", nargs=-1)
def remove(name: str, jobs: tuple[str, ...]) -> None:
    """Remove jobs with their clones, or a whole fleet.

    What was pushed stays, and so do the sessions of its jobs.
    """
    folder = find_fleet(name)
    ledger = open_ledger(folder)
    if jobs:
        count = ledger.remove(jobs)
        rest = {row.job.id for row in ledger.list_rows()}
        for job in set(jobs) - rest:
            remove_tree(folder / "jobs" / job)
            for earlier in (folder / "earlier").glob(f"{job}.*"):
                if earlier.name.removeprefix(f"{job}.").isdecimal():
                    remove_tree(earlier)
        click.echo(f"{count} of {len(jobs)} removed; a job that runs stays.", err=True)
        return
    if not _end_orphans(folder, ledger):
        raise UsageProblem(f"{name} is worked on. `codeloop fleet stop {name}` ends that.")
    ledger.remove(())
    if running := len(ledger.list_rows()):
        raise UsageProblem(f"{running} jobs of {name} run on other machines. Stop the fleet first.")
    remove_tree(folder)
    click.echo(f"{name} is removed.", err=True)


def _end_orphans(folder: Path, ledger: Ledger) -> bool:
    """End what a killed coordinator has left, which nobody else would end;
    return False if a coordinator works in this folder.
    """
    reports = FleetReports(_ignore, _ignore)
    return Coordinator(folder, ledger, (), (), reports, FleetLimits()).end_orphans()


def _ignore(*_: object) -> None:
    """Nothing is reported: no job is started."""
