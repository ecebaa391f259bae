"""Finds the next session that waits for the user: of this project, or of all that a server has."""

from collections.abc import Collection
from contextlib import suppress

from codeloop.client.client import Client
from codeloop.kit.terminal_text import one_line
from codeloop.schema.api.session_reports import SessionOverviewQuery
from codeloop.schema.api.session_requests import SessionId
from codeloop.schema.errors import OperationError, UsageProblem
from codeloop.schema.message import Session
from codeloop.schema.operation import SESSION_GET, SESSION_OVERVIEW

_TITLE = 60


async def find_waiting(client: Client, excluded: Collection[str]) -> Session:
    """Return a session that waits and is not among those that are shown. Raises UsageProblem: none, or only elsewhere.

    What another terminal of this project asks can be answered here: questions are stored.
    """
    rows = await client.call(SESSION_OVERVIEW, SessionOverviewQuery())
    waiting = [row for row in rows if row.state == "waits" and row.id not in excluded]
    if not waiting:
        raise UsageProblem("No other session waits for you.")
    for row in waiting:
        with suppress(OperationError):
            return await client.call(SESSION_GET, SessionId(session_id=row.id))
    title = one_line(waiting[0].title, _TITLE)
    raise UsageProblem(f"“{title}” waits for you in another project. Go there: {waiting[0].directory}")
