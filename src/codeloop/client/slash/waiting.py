"""Finds the next session that waits for the user, in this process or server."""

from collections.abc import Collection

from codeloop.client.client import Client
from codeloop.kit.terminal_text import one_line
from codeloop.schema.api.session_reports import SessionOverviewQuery
from codeloop.schema.api.session_requests import SessionId
from codeloop.schema.errors import OperationError, UsageProblem
from codeloop.schema.live_events import Idle
from codeloop.schema.message import Session
from codeloop.schema.operation import SESSION_GET, SESSION_OVERVIEW, SESSION_STATUS, NoArguments

_TITLE = 60


async def find_waiting(client: Client, shown: Collection[str]) -> Session:
    """Return a session that waits and is not among those that are shown. Raises UsageProblem: none, or only elsewhere.

    What another terminal asks is answered there.
    """
    rows = await client.call(SESSION_OVERVIEW, SessionOverviewQuery())
    waiting = [row for row in rows if row.state == "waits" and row.id not in shown]
    if not waiting:
        raise UsageProblem("No other session waits for you.")
    running = await client.call(SESSION_STATUS, NoArguments())
    for row in waiting:
        if not isinstance(running.get(row.id, Idle()), Idle):
            try:
                return await client.call(SESSION_GET, SessionId(session_id=row.id))
            except OperationError:
                continue
    title = one_line(waiting[0].title, _TITLE)
    raise UsageProblem(f"“{title}” waits for you in another terminal or server, in {waiting[0].directory}.")
