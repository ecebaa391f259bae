"""Handler that reports the states of the latest sessions of all projects on this machine."""

import asyncio
from contextlib import closing, suppress

from codeloop.app.project import Project
from codeloop.schema.api.session_reports import SessionOverview, SessionOverviewQuery
from codeloop.store.database import StoreError
from codeloop.store.queries import open_queries

_ORDER_BY_STATE = {"waits": 0, "running": 1}
"""The order of the states that come first."""


async def list_session_states(
    project: Project, args: SessionOverviewQuery
) -> list[SessionOverview]:
    """Return the sessions: first those that wait for the user, then running ones, then the others,
    newest first.
    """

    def read() -> list[SessionOverview]:
        session_overviews: list[SessionOverview] = []
        for path in project.settings.paths.find_databases():
            with suppress(StoreError), closing(open_queries(path)) as queries:
                session_overviews += queries.list_session_overviews(args.limit)
        return sorted(
            session_overviews, key=lambda each: (_ORDER_BY_STATE.get(each.state, 2), -each.updated)
        )

    return await asyncio.to_thread(read)
