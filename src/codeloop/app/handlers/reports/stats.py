"""Sums over what is stored: by day, model and project."""

import asyncio
from collections import defaultdict
from contextlib import closing
from datetime import datetime, timedelta
from pathlib import Path

import msgspec

from codeloop.app.handlers import handles
from codeloop.app.handlers.reports.databases import find_databases, own_directory
from codeloop.app.handlers.reports.spending import read_budgets
from codeloop.app.project import Project
from codeloop.schema import operation
from codeloop.schema.api.session_requests import Figures, NamedFigures, Stats, StatsQuery
from codeloop.schema.errors import OperationError
from codeloop.schema.message import NO_TOKENS, Session, Tokens
from codeloop.schema.wire import replace
from codeloop.store.database import StoreError
from codeloop.store.queries import ALL, RequestCount, SessionFilter, open_queries

LONGEST = 36_500
"""Days that may be asked for."""


class _Sum(msgspec.Struct):
    """Figures in the making."""

    sessions: set[str] = msgspec.field(default_factory=set[str])
    steps: int = 0
    calls: int = 0
    cost: float = 0.0
    tokens: Tokens = NO_TOKENS

    def add(self, root: str, counted: RequestCount) -> None:
        """Add a step of a session that `root` is, or is an ancestor of."""
        self.sessions.add(root)
        self.steps += counted.is_step
        self.calls += counted.calls
        self.cost += counted.cost
        self.tokens = self.tokens.plus(counted.tokens)

    def figures(self) -> Figures:
        """Return the sums."""
        return Figures(
            sessions=len(self.sessions), steps=self.steps, tool_calls=self.calls, cost=self.cost, tokens=self.tokens
        )


class _Sums(msgspec.Struct):
    """All sums in the making."""

    total: _Sum = msgspec.field(default_factory=_Sum)
    days: defaultdict[str, _Sum] = msgspec.field(default_factory=lambda: defaultdict(_Sum))
    models: defaultdict[str, _Sum] = msgspec.field(default_factory=lambda: defaultdict(_Sum))
    projects: defaultdict[str, _Sum] = msgspec.field(default_factory=lambda: defaultdict(_Sum))


@handles(operation.SESSION_STATS)
async def stats(project: Project, args: StatsQuery) -> Stats:
    """Add up the stored steps, of this project or of all; copies made by forks do not count twice.

    Raises OperationError when `days` is below 1 or beyond a hundred years.
    """
    if args.days is not None and not 1 <= args.days <= LONGEST:
        raise OperationError("BadRequest", f"days is {args.days}; it must be from 1 to {LONGEST}.")
    paths = find_databases(project) if args.everything else [project.store.path]
    directory = None if args.everything else own_directory(project)
    sums = await asyncio.to_thread(_stats, paths, _start_of_days(args.days), directory)
    return replace(sums, budgets=await read_budgets(project))


def _start_of_days(days: int | None) -> int:
    """Return where the first day begins, local time (ms since the epoch)."""
    if days is None:
        return 0
    today = datetime.now().astimezone().replace(hour=0, minute=0, second=0, microsecond=0)
    return int((today - timedelta(days=days - 1)).timestamp() * 1000)


def _stats(paths: list[Path], since: int, directory: str | None) -> Stats:
    sums, skipped = _Sums(), list[str]()
    for path in paths:
        try:
            _add(sums, path, since, directory)
        except StoreError as error:
            skipped.append(str(error))
    return Stats(
        total=sums.total.figures(),
        days=[
            NamedFigures(name=name, figures=each.figures()) for name, each in sorted(sums.days.items(), reverse=True)
        ],
        models=_by_cost(sums.models),
        projects=_by_cost(sums.projects),
        skipped=skipped,
    )


def _add(sums: _Sums, path: Path, since: int, directory: str | None) -> None:
    with closing(open_queries(path)) as queries:
        steps = queries.steps(since)
        session_filter = SessionFilter(directory=directory, limit=ALL)
        sessions = {each.id: each for each in queries.sessions(session_filter)} if steps else {}
    for counted in steps:
        session = sessions.get(counted.session_id)
        if session is None:  # deleted since, or another directory's
            continue
        root = session
        while root.parent_id in sessions:
            root = sessions[root.parent_id]
        day = f"{datetime.fromtimestamp(counted.created / 1000).astimezone():%Y-%m-%d}"
        for each in (sums.total, sums.days[day], sums.models[counted.model], sums.projects[_project(session)]):
            each.add(root.id, counted)


def _project(session: Session) -> str:
    """Return the top of a session's work tree; outside of repositories, its directory."""
    below = (session.path or "").strip("/")
    top = session.directory.removesuffix(f"/{below}") if below else session.directory
    return top or "/"


def _by_cost(sums: dict[str, _Sum]) -> list[NamedFigures]:
    ordered = sorted(sums.items(), key=lambda item: (-item[1].cost, -item[1].steps, item[0]))
    return [NamedFigures(name=name, figures=each.figures()) for name, each in ordered]
