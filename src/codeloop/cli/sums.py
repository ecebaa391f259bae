"""Sums as a table for people."""

from codeloop.cli.style import count, dollars
from codeloop.cli.table import columns
from codeloop.kit.plain import one_line
from codeloop.schema.sessions import Figures, NamedFigures, Stats

WIDTH = 60
"""Characters of a name; of a longer one, such as a path, the end is shown."""

HEAD = ["cost", "input", "cached", "output", "sessions", "steps", "calls"]


def shown(stats: Stats) -> str:
    """Give the sums by day, model and project, each with a heading, and their total."""
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
    return [dollars(figures.cost), *map(count, numbers), *map(str, further)]
