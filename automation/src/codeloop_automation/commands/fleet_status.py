"""`codeloop fleet status` and `show`: how jobs stand, and what came of them."""

import time
from pathlib import Path

import click

from codeloop.cli import exit_codes
from codeloop.cli.options import FILE_TYPE, JSON_OPTION
from codeloop.cli.output.columns import align_columns
from codeloop.cli.output.print_json import print_json
from codeloop.client.formatting import format_cost, format_duration
from codeloop.kit.new_file import write_new_file
from codeloop.kit.text.terminal_text import escape_controls, one_line
from codeloop.schema.errors import CodeloopError, UsageProblem
from codeloop.schema.wire import JSON
from codeloop_automation.commands.fleet_folders import find_fleet, get_fleets_folder
from codeloop_automation.fleet.ledger import Ledger
from codeloop_automation.fleet.ledger_databases import list_fleets, open_ledger
from codeloop_automation.fleet.ledger_rows import LedgerRow, RecordedAttempt
from codeloop_automation.fleet.report import (
    count_failures,
    describe_attempt,
    describe_job,
    describe_progress,
    render_page,
    sum_jobs,
)

MESSAGE_CHARS = 70
"""Characters of a result's message on a line."""


@click.command()
@click.argument("name", required=False)
@JSON_OPTION
def status(name: str | None, *, as_json: bool) -> None:
    """Show how jobs stand.

    Without NAME, all fleets.
    """
    if name is None:
        _show_fleets(as_json=as_json)
        return
    folder = find_fleet(name)
    ledger = open_ledger(folder)
    rows = ledger.list_rows()
    sums, rate = sum_jobs(rows, ledger.sum_removed_cost()), ledger.measure_rate()
    lost = len(ledger.list_orphans(()))
    if as_json:
        pulls = ledger.list_pull_requests()
        print_json(
            {
                "name": name,
                **sums,
                "perMinute": round(rate * 60, 2),
                "lost": lost,
                "rows": [describe_job(folder, row, pulls) for row in rows],
            }
        )
        return
    cells = [
        [row.state, row.job.id, one_line(str(row.result.get("message") or ""), MESSAGE_CHARS)]
        for row in rows
    ]
    click.echo(align_columns(cells))
    click.echo(describe_progress(sums, rate), err=True)
    if failures := count_failures(rows):
        click.echo(f"failed: {', '.join(failures)}", err=True)
    if lost:
        click.echo(
            f"{lost} running jobs have lost their coordinator: `codeloop fleet run` does them again, "
            f"`codeloop fleet stop {name}` ends what is left of them.",
            err=True,
        )


@click.command()
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

    The answers and diffs of all, or of one, with all attempts at it.
    """
    folder = find_fleet(name)
    ledger = open_ledger(folder)
    rows = [row for row in ledger.list_rows(with_diffs=True) if job in {None, row.job.id}]
    pulls = ledger.list_pull_requests()
    if not rows:
        raise UsageProblem(
            f"There is no job {job} in {name}. `codeloop fleet status {name}` lists them."
        )
    if page is not None:
        write_new_file(page, render_page(name, folder, rows, pulls).encode())
    elif as_json:
        print_json(
            [
                describe_job(folder, row, pulls)
                | {"history": [describe_attempt(each) for each in ledger.list_attempts(row.job.id)]}
                for row in rows
            ]
        )
    else:
        for row in rows:
            _show_job(row, describe_job(folder, row, pulls))
            if job is not None:
                _show_attempts(ledger, row, folder)


def _show_job(row: LedgerRow, description: JSON) -> None:
    result = row.result
    click.echo(f"{row.job.id}  {row.state}  {description['work']}")
    if (pull := description["pull"]) is not None:
        click.echo(f"{pull['url'] or pull['branch']}  {escape_controls(pull['problem'])}".rstrip())
    texts = [str(result[key]) for key in ("message", "text", "diff") if result.get(key)]
    click.echo(escape_controls("\n".join(texts)))


def _show_attempts(ledger: Ledger, row: LedgerRow, folder: Path) -> None:
    attempts = ledger.list_attempts(row.job.id)
    if attempts:
        click.echo(align_columns([_describe_cells(each) for each in attempts]))
    ended = folder / "jobs" / row.job.id
    if (ended / "log").is_file():
        click.echo(f"log: {ended / 'log'}")
    session = next((each.session for each in reversed(attempts) if each.session), "")
    if session and (ended / "work").is_dir() and attempts[-1].place == "here":
        click.echo(f"open it: codeloop --dir {ended / 'work'} --session {session}")


def _describe_cells(attempt: RecordedAttempt) -> list[str]:
    took = (attempt.ended or time.time()) - attempt.started
    return [
        f"attempt {attempt.number}",
        attempt.place,
        time.strftime("%Y-%m-%d %H:%M", time.localtime(attempt.started)),
        format_duration(took * 1000),
        format_cost(attempt.cost),
        attempt.session,
        one_line(attempt.reason if attempt.ended else "running", MESSAGE_CHARS),
    ]


def _show_fleets(*, as_json: bool) -> None:
    sums: dict[str, JSON] = {}
    lines: list[str] = []
    problems: list[str] = []
    for folder in list_fleets(get_fleets_folder()):
        # The table of one fleet may be out of reach; the others are shown.
        try:
            ledger = open_ledger(folder)
            counts = sum_jobs(ledger.list_rows(), ledger.sum_removed_cost())
            lines.append(f"{folder.name}  {describe_progress(counts, ledger.measure_rate())}")
            sums[folder.name] = counts
        except CodeloopError as error:
            problems.append(f"{folder.name}: {error}")
    if as_json:
        print_json(sums)
    elif not sums and not problems:
        click.echo("There are no fleets. `codeloop fleet run JOBS` starts one.", err=True)
    else:
        click.echo("\n".join(lines))
    for problem in problems:
        click.echo(escape_controls(problem), err=True)
    if problems:
        raise SystemExit(exit_codes.ERROR)
