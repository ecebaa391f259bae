"""`codeloop stats`: shows cost and tokens by day, model and project,
and what is left of budgets.
"""

import click

from codeloop.cli.options import JSON_OPTION
from codeloop.cli.output.columns import align_columns
from codeloop.cli.output.print_json import print_json
from codeloop.cli.target.run_with_client import run_with_client
from codeloop.client.formatting import format_cost, format_count
from codeloop.kit.text.terminal_text import one_line
from codeloop.schema.api.session_reports import (
    SESSION_STATS,
    Figures,
    NamedFigures,
    Stats,
    StatsQuery,
)

# Characters of a name. Of a longer one, such as a path, the end is shown,
# which tells more than its start.
NAME_CHARS = 60
NO_BUDGET = 'No budget is set. One is set in the configuration: "budget": {"day": 5, "month": 50}, in dollars.'
HEADER = ["cost", "input", "cached", "output", "sessions", "steps", "calls"]


@click.command()
@click.option(
    "--days", type=click.IntRange(min=1, max=36_500), metavar="N", help="Only the last N days."
)
@click.option("--all", "everything", is_flag=True, help="Include all projects.")
@click.option(
    "--budget", is_flag=True, help="Only what is left of the budgets of the configuration."
)
@JSON_OPTION
def stats(*, days: int | None, everything: bool, budget: bool, as_json: bool) -> None:
    """Show what this project has used: dollars, tokens, sessions, steps and tool calls."""
    stats = run_with_client(
        lambda client: client.call(SESSION_STATS, StatsQuery(days=days, everything=everything))
    )
    for reason in stats.skipped:
        click.echo(f"codeloop: Left out: {reason}", err=True)
    if as_json:
        print_json(stats.budgets if budget else stats)
    elif budget:
        click.echo(_format_budgets(stats) if stats.budgets else NO_BUDGET, err=not stats.budgets)
    elif not stats.models:
        when = "in this time" if days else "yet"
        if everything:
            text = f"Nothing was used {when}. `codeloop run MESSAGE` starts a session."
        else:
            text = f"Nothing was used in this project {when}. `codeloop stats --all` counts all projects."
        click.echo(text, err=True)
    else:
        click.echo(_format_table(stats))
        if stats.budgets:
            click.echo(f"\n{_format_budgets(stats)}")


def _format_table(stats: Stats) -> str:
    """Return the sums by day, model and project, each under a heading, and their total."""
    rows: list[list[str]] = []
    for heading, named_figures in (
        ("day", stats.days),
        ("model", stats.models),
        ("project", stats.projects),
    ):
        rows += [[heading, *HEADER], *map(_format_figures, named_figures), [""] * (len(HEADER) + 1)]
    rows.append(["total", *_list_cells(stats.total)])
    if stats.discarded.cost or stats.discarded.tokens.all:
        rows.append(["of which undone or deleted", *_list_cells(stats.discarded)])
    return align_columns(rows, right=frozenset(range(1, len(HEADER) + 1)))


def _format_budgets(stats: Stats) -> str:
    """Return a row for each budget of the configuration."""
    rows = [
        [
            f"budget.{each.name}",
            f"${each.spent:.2f}",
            f"${each.limit:.2f}",
            f"${max(each.limit - each.spent, 0):.2f}",
        ]
        for each in stats.budgets
    ]
    return align_columns([["budget", "spent", "limit", "left"], *rows], right=frozenset((1, 2, 3)))


def _format_figures(named_figures: NamedFigures) -> list[str]:
    # Only to escape control characters, each of which becomes several; the name is cut below.
    name = one_line(named_figures.name, len(named_figures.name) * 8)
    return [
        name if len(name) <= NAME_CHARS else f"…{name[1 - NAME_CHARS :]}",
        *_list_cells(named_figures.figures),
    ]


def _list_cells(figures: Figures) -> list[str]:
    tokens = figures.tokens
    numbers = (tokens.input, tokens.cache.read + tokens.cache.write, tokens.output)
    return [
        format_cost(figures.cost, tokens),
        *map(format_count, numbers),
        *map(str, (figures.sessions, figures.steps, figures.tool_calls)),
    ]
