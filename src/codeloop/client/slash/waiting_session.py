"""Finds a session that waits for an answer of the user, for `/next`."""

from collections.abc import Collection
from contextlib import suppress

from codeloop.client.client import Client
from codeloop.kit.text.terminal_text import one_line
from codeloop.schema.api.session_reports import SESSION_OVERVIEW, SessionOverviewQuery
from codeloop.schema.api.session_requests import SESSION_GET, SessionId
from codeloop.schema.errors import OperationError, UsageProblem
from codeloop.schema.message import Session

_MAX_TITLE = 60


async def find_waiting_session(client: Client, excluded: Collection[str]) -> Session:
    """Return a session that waits for the user, other than the `excluded` ids.

    Raises UsageProblem if there is none, or only one of another project.
    """
    # Also sessions that another terminal runs: questions are in the store,
    # so any client can answer them.
    rows = await client.call(SESSION_OVERVIEW, SessionOverviewQuery())
    waiting = [row for row in rows if row.state == "waits" and row.id not in excluded]
    if not waiting:
        raise UsageProblem("No other session waits for you.")
    # The overview lists the sessions of all projects; this client reads those of its own only.
    for row in waiting:
        with suppress(OperationError):
            return await client.call(SESSION_GET, SessionId(session_id=row.id))
    title = one_line(waiting[0].title, _MAX_TITLE)
    raise UsageProblem(
        f"“{title}” waits for you in another project. Go there: {waiting[0].directory}"
    )
