"""`codeloop status`: lists the sessions of all projects on this machine by their state: waiting,
running, ended.
"""

import asyncio
import sys
from collections import Counter
from pathlib import Path

import click

from codeloop.cli.options import JSON_OPTION
from codeloop.cli.output.print_json import print_json
from codeloop.cli.output.style import TextStyle, can_redraw, has_colour, paint
from codeloop.cli.target.run_with_client import run_with_client
from codeloop.client.client import Client
from codeloop.client.formatting import format_job, format_time
from codeloop.kit.text.terminal_text import escape_controls, one_line
from codeloop.schema.api.session_reports import (
    SESSION_OVERVIEW,
    SessionOverview,
    SessionOverviewQuery,
)

# Seconds between two requests of `--watch`.
WATCH_INTERVAL = 1.0
STATE_STYLES: dict[str, TextStyle] = {
    "waits": "yellow",
    "running": "cyan",
    "failed": "red",
    "finished": "green",
}
# Control sequences: the cursor to the top left, and everything erased.
_CLEAR_SCREEN = "\x1b[H\x1b[2J"
_TITLE_CHARS, _DETAIL_CHARS = 48, 60


@click.command()
@JSON_OPTION
@click.option(
    "--watch", is_flag=True, help="Show it again whenever something has changed, until Ctrl-C."
)
@click.option("--waiting", is_flag=True, help="Only the sessions that wait for you.")
@click.option(
    "-n",
    "--limit",
    type=click.IntRange(min=1),
    default=20,
    show_default=True,
    help="Maximum to show.",
)
def status(*, as_json: bool, watch: bool, waiting: bool, limit: int) -> None:
    """Show how the sessions of all projects on this machine stand.

    Those that wait for you come first, then those that run, then by their latest change.
    With --json, all are printed.
    """

    async def load_rows(client: Client) -> list[SessionOverview]:
        rows = await client.call(SESSION_OVERVIEW, SessionOverviewQuery())
        return [row for row in rows if row.state == "waits"] if waiting else rows

    async def watch_rows(client: Client) -> None:
        last_rows: list[SessionOverview] | None = None
        while True:
            rows = await load_rows(client)
            if rows != last_rows:
                last_rows = rows
                if can_redraw(sys.stdout) and not as_json:
                    click.echo(_CLEAR_SCREEN, nl=False)
                _show_rows(rows, limit, as_json=as_json)
                # A pipe would get nothing until its buffer is full.
                sys.stdout.flush()
            await asyncio.sleep(WATCH_INTERVAL)

    if watch:
        run_with_client(watch_rows)
    else:
        _show_rows(run_with_client(load_rows), limit, as_json=as_json)


def _show_rows(rows: list[SessionOverview], limit: int, *, as_json: bool) -> None:
    if as_json:
        print_json(rows)
        return
    counts = Counter(row.state for row in rows)
    sums = ", ".join(f"{counts[state]} {state}" for state in counts)
    noun = "session" if len(rows) == 1 else "sessions"
    click.echo(f"{len(rows)} {noun}: {sums}" if rows else "No sessions.")
    colour = has_colour(sys.stdout)
    for row in rows[:limit]:
        state = paint(f"{row.state:11}", STATE_STYLES.get(row.state, "dim"), colour=colour)
        folder = _shorten_path(row.directory)
        detail = f"  {one_line(row.detail, _DETAIL_CHARS)}" if row.detail else ""
        click.echo(
            f"{state}  {row.id}  {format_time(row.updated)}  {one_line(row.title, _TITLE_CHARS)}  "
            f"{escape_controls(folder)}{detail}"
        )
        for job in row.jobs:
            click.echo(f"{'':11}  {format_job(job.command, job.started, job.addresses)}")


def _shorten_path(directory: str) -> str:
    home = str(Path.home())
    return f"~{directory.removeprefix(home)}" if directory.startswith(home + "/") else directory
