"""Handler that reports the tokens and the cost of one session with its subagents."""

import asyncio
from collections import defaultdict
from collections.abc import Iterable, Mapping
from contextlib import closing
from pathlib import Path

from codeloop.app.handlers import handles
from codeloop.app.project import Project
from codeloop.schema import operation
from codeloop.schema.api.session_reports import ModelUse, SessionCost, SubagentUse
from codeloop.schema.api.session_requests import SessionId
from codeloop.schema.errors import CodeloopError, SessionNotFound
from codeloop.schema.message import NO_TOKENS, Session, Tokens
from codeloop.store.queries import NO_LIMIT, RequestUsage, SessionFilter, open_queries


@handles(operation.SESSION_COST)
async def sum_cost(project: Project, args: SessionId) -> SessionCost:
    """Return the usage of a session and its subagents, by model. Raises OperationError: no such session."""
    session = project.store.find_session(args.session_id)
    if session is None:
        raise SessionNotFound(args.session_id)
    family, requests = await asyncio.to_thread(_read_requests, project.store.path, session)
    by_model: defaultdict[str, list[RequestUsage]] = defaultdict(list)
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
    subagents = [
        SubagentUse(
            session_id=each.id,
            title=each.title,
            agent=each.agent or "",
            tokens=each.tokens or NO_TOKENS,
            cost=each.cost or 0.0,
        )
        for each in family
        if each.parent_id == session.id
    ]
    return SessionCost(
        tokens=session.tokens or _sum_tokens(requests),
        cost=session.cost or 0.0,
        models=sorted(models, key=lambda each: (-each.cost, each.model)),
        subagents=sorted(subagents, key=lambda each: -each.cost),
    )


def _read_requests(path: Path, session: Session) -> tuple[list[Session], list[RequestUsage]]:
    """Return a session with all its subagents' sessions, and their requests to models. Blocks."""
    with closing(open_queries(path)) as queries:
        sessions = queries.find_sessions(SessionFilter(limit=NO_LIMIT))
        family = {session.id: session}
        children = _find_children(sessions, family)
        while children:
            family |= children
            children = _find_children(sessions, family)
        requests = [each for each in queries.list_request_usages(session.time.created) if each.session_id in family]
    return list(family.values()), requests


def _find_children(sessions: Iterable[Session], family: Mapping[str, Session]) -> dict[str, Session]:
    """Return the subagents' sessions of a family that are not in it yet, by id."""
    return {each.id: each for each in sessions if each.parent_id in family and each.id not in family}


def _sum_tokens(requests: list[RequestUsage]) -> Tokens:
    total = NO_TOKENS
    for request in requests:
        total = total.plus(request.tokens)
    return total


def _is_priced(project: Project, ref: str, requests: list[RequestUsage]) -> bool:
    """Return whether the prices of all requests to a model are known; a price may depend on a request's length."""
    try:
        prices = project.models.open(ref).info.prices
    except CodeloopError:
        return any(each.cost for each in requests)
    if not prices.is_known:
        return any(each.cost for each in requests)
    return all(prices.select_tier(each.tokens).is_known for each in requests)
