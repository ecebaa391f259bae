"""Handler that reports the tokens and the cost of one session with its subagents."""

import asyncio
from collections import defaultdict
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from codeloop.app.project import Project
from codeloop.schema.api.session_reports import ModelUse, SessionCost, SubagentUse
from codeloop.schema.api.session_requests import SessionId
from codeloop.schema.errors import CodeloopError, SessionNotFound
from codeloop.schema.message import NO_TOKENS, Session, Tokens
from codeloop.store.ledger import PaidRequest, open_ledger

_LEAST_COST = 1e-6


async def sum_cost(project: Project, args: SessionId) -> SessionCost:
    """Return the usage of a session and its subagents, by model.
    Raises OperationError: no such session.
    """
    session = project.store.find_session(args.session_id)
    if session is None:
        raise SessionNotFound(args.session_id)
    family = project.store.list_family(session)
    requests = await asyncio.to_thread(
        _read_requests, project.store.path, session.id, [each.id for each in family]
    )
    by_model: defaultdict[str, list[PaidRequest]] = defaultdict(list)
    for request in requests:
        by_model[request.model].append(request)
    models = [
        ModelUse(
            model=name,
            steps=sum(each.is_step for each in model_requests),
            tokens=_sum_tokens(model_requests),
            cost=sum(each.cost for each in model_requests),
            is_priced=_is_priced(project, name, model_requests),
        )
        for name, model_requests in by_model.items()
    ]
    return SessionCost(
        tokens=_sum_tokens(requests),
        cost=sum(each.cost for each in requests),
        models=sorted(models, key=lambda each: (-each.cost, each.model)),
        subagents=sorted(_sum_subagents(session, family, requests), key=lambda each: -each.cost),
        discarded=sum(each.cost for each in requests if not each.is_kept),
        before=_find_cost_before(session, requests),
    )


def _find_cost_before(session: Session, requests: Sequence[PaidRequest]) -> float:
    """Return the dollars of a session's sum that were paid elsewhere: before it was copied,
    or imported.
    """
    rest = (session.cost or 0.0) - sum(each.cost for each in requests)
    # Sums of fractions differ in their last digits.
    return rest if rest >= _LEAST_COST else 0.0


def _read_requests(path: Path, session_id: str, family_ids: Sequence[str]) -> list[PaidRequest]:
    """Return the requests of a session and its subagents. Blocks."""
    with closing(open_ledger(path)) as ledger:
        return ledger.list_session_requests(session_id, family_ids)


def _sum_subagents(
    session: Session, family: Sequence[Session], requests: Sequence[PaidRequest]
) -> list[SubagentUse]:
    """Return the use of each subagent that the session started, with that of its own subagents."""
    # Parents come before their subagents. The session itself has no branch.
    branches: dict[str, str] = {}
    for each in family[1:]:
        branches[each.id] = (
            each.id if each.parent_id == session.id else branches.get(each.parent_id or "", "")
        )
    by_branch: defaultdict[str, list[PaidRequest]] = defaultdict(list)
    for request in requests:
        by_branch[branches.get(request.session_id, "")].append(request)
    return [
        SubagentUse(
            session_id=each.id,
            title=each.title,
            agent=each.agent or "",
            tokens=_sum_tokens(by_branch[each.id]),
            cost=sum(request.cost for request in by_branch[each.id]),
        )
        for each in family
        if each.parent_id == session.id
    ]


def _sum_tokens(requests: Sequence[PaidRequest]) -> Tokens:
    total = NO_TOKENS
    for request in requests:
        total = total.plus(request.tokens)
    return total


def _is_priced(project: Project, ref: str, requests: Sequence[PaidRequest]) -> bool:
    """Return whether the prices of all requests to a model are known;
    a price may depend on a request's length.
    """
    try:
        prices = project.models.open(ref).info.prices
    except CodeloopError:
        return any(each.cost for each in requests)
    if not prices.is_known:
        return any(each.cost for each in requests)
    return all(prices.select_tier(each.tokens).is_known for each in requests)
