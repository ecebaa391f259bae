"""`codeloop stats`: cost and tokens by day, model and project."""

import click
import msgspec

from codeloop.cli.output.columns import columns
from codeloop.cli.output.style import count, dollars
from codeloop.cli.target.opened import with_client
from codeloop.kit.terminal_text import inert_json, one_line
from codeloop.schema.api.session_requests import Figures, NamedFigures, Stats, StatsQuery
from codeloop.schema.operation import SESSION_STATS

WIDTH = 60
"""Characters of a name; of a longer one, such as a path, the end is shown."""

HEAD = ["cost", "input", "cached", "output", "sessions", "steps", "calls"]


@click.command()
@click.option("--days", type=click.IntRange(min=1, max=36_500), metavar="N", help="Today and the N - 1 days before.")
@click.option("--all", "everything", is_flag=True, help="Over all projects.")
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
def stats(*, days: int | None, everything: bool, as_json: bool) -> None:
    """Show what was spent in this project: dollars, tokens, sessions, steps and tool calls."""
    found = with_client(lambda client: client.call(SESSION_STATS, StatsQuery(days=days, everything=everything)))
    for reason in found.skipped:
        click.echo(f"codeloop: Left out: {reason}", err=True)
    if as_json:
        click.echo(inert_json(msgspec.json.encode(found).decode()))
    elif not found.total.steps:
        click.echo("Nothing was done yet" + (" in this time." if days else "."), err=True)
    else:
        click.echo(_table(found))


def _table(stats: Stats) -> str:
    """Return the sums by day, model and project, each with a heading, and their total."""
    rows: list[list[str]] = []
    for heading, named in (("day", stats.days), ("model", stats.models), ("project", stats.projects)):
        rows += [[heading, *HEAD], *map(_row, named), [""] * (len(HEAD) + 1)]
    return columns([*rows, ["in all", *_cells(stats.total)]], frozenset(range(1, len(HEAD) + 1)))


def _row(named: NamedFigures) -> list[str]:
    name = one_line(named.name, len(named.name) * 8)
    return [name if len(name) <= WIDTH else f"…{name[1 - WIDTH :]}", *_cells(named.figures)]


def _cells(figures: Figures) -> list[str]:
    tokens = figures.tokens
    numbers = (tokens.input, tokens.cache.read + tokens.cache.write, tokens.output)
    further = (figures.sessions, figures.steps, figures.tool_calls)
    return [dollars(figures.cost, tokens), *map(count, numbers), *map(str, further)]
