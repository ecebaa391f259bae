"""Handler of usage statistics: the sums of steps, calls, tokens and costs by day,
model and project.
"""

import asyncio
from collections import defaultdict
from contextlib import closing
from datetime import datetime, timedelta
from pathlib import Path

import msgspec

from codeloop.agent.request.spending_sums import find_day_start
from codeloop.app.project import Project
from codeloop.schema.api.session_reports import Figures, NamedFigures, Stats, StatsQuery
from codeloop.schema.errors import OperationError
from codeloop.schema.message import NO_TOKENS, Tokens
from codeloop.schema.wire import replace
from codeloop.store.database import StoreError
from codeloop.store.ledger import PaidRequest, open_ledger

MAX_DAYS = 36_500
"""The longest period in days that a client may request: a hundred years."""


class _UsageSum(msgspec.Struct):
    """A sum of usage, to which steps are added."""

    sessions: set[str] = msgspec.field(default_factory=set[str])
    steps: int = 0
    calls: int = 0
    cost: float = 0.0
    tokens: Tokens = NO_TOKENS

    def add(self, request: PaidRequest) -> None:
        """Add a request."""
        self.sessions |= {request.root_id} if request.root_id else set()
        self.steps += request.is_step
        self.calls += request.tool_calls
        self.cost += request.cost
        self.tokens = self.tokens.plus(request.tokens)

    def to_figures(self) -> Figures:
        """Return the sum in the form of the API."""
        return Figures(
            sessions=len(self.sessions),
            steps=self.steps,
            tool_calls=self.calls,
            cost=self.cost,
            tokens=self.tokens,
        )


class _UsageSums(msgspec.Struct):
    """The sums of all requests, by day, by model and by project;
    `discarded`: of those that were undone or deleted.
    """

    total: _UsageSum = msgspec.field(default_factory=_UsageSum)
    discarded: _UsageSum = msgspec.field(default_factory=_UsageSum)
    days: defaultdict[str, _UsageSum] = msgspec.field(
        default_factory=lambda: defaultdict(_UsageSum)
    )
    models: defaultdict[str, _UsageSum] = msgspec.field(
        default_factory=lambda: defaultdict(_UsageSum)
    )
    projects: defaultdict[str, _UsageSum] = msgspec.field(
        default_factory=lambda: defaultdict(_UsageSum)
    )


async def sum_stats(project: Project, args: StatsQuery) -> Stats:
    """Return the sums of this project, or of all projects: of every request,
    also of what was undone or deleted since.

    Raises OperationError if `days` is below 1 or beyond MAX_DAYS.
    """
    if args.days is not None and not 1 <= args.days <= MAX_DAYS:
        raise OperationError("BadRequest", f"days is {args.days}; it must be from 1 to {MAX_DAYS}.")
    settings = project.settings
    paths = settings.paths.find_databases() if args.everything else [project.store.path]
    directory = None if args.everything else settings.project_root.directory_filter
    sums = await asyncio.to_thread(_read_stats, paths, _find_period_start(args.days), directory)
    budget = project.engine.turn_settings.configured_budget
    return replace(sums, budgets=[] if budget is None else await budget.read())


def _find_period_start(days: int | None) -> int:
    """Return the start of a period of `days` that ends today, in local time (ms since the epoch);
    0 for None.
    """
    if days is None:
        return 0
    return find_day_start(datetime.now().astimezone().date() - timedelta(days=days - 1))


def _read_stats(paths: list[Path], since: int, directory: str | None) -> Stats:
    sums, skipped = _UsageSums(), list[str]()
    for path in paths:
        try:
            _add_database(sums, path, since, directory)
        except StoreError as error:
            skipped.append(str(error))
    return Stats(
        total=sums.total.to_figures(),
        days=[
            NamedFigures(name=name, figures=each.to_figures())
            for name, each in sorted(sums.days.items(), reverse=True)
        ],
        models=_sort_by_cost(sums.models),
        projects=_sort_by_cost(sums.projects),
        skipped=skipped,
        discarded=sums.discarded.to_figures(),
    )


def _add_database(sums: _UsageSums, path: Path, since: int, directory: str | None) -> None:
    with closing(open_ledger(path)) as ledger:
        requests = ledger.list_requests(since)
    for request in requests:
        if directory is not None and request.directory != directory:
            continue
        day = f"{datetime.fromtimestamp(request.time / 1000).astimezone():%Y-%m-%d}"
        for each in (
            sums.total,
            sums.days[day],
            sums.models[request.model],
            sums.projects[_find_top(request)],
        ):
            each.add(request)
        if not request.is_kept:
            sums.discarded.add(request)


def _find_top(request: PaidRequest) -> str:
    """Return the top of a session's work tree, or its directory outside of repositories."""
    below = request.path.strip("/")
    top = request.directory.removesuffix(f"/{below}") if below else request.directory
    return top or "/"


def _sort_by_cost(sums: dict[str, _UsageSum]) -> list[NamedFigures]:
    ordered = sorted(sums.items(), key=lambda item: (-item[1].cost, -item[1].steps, item[0]))
    return [NamedFigures(name=name, figures=each.to_figures()) for name, each in ordered]
