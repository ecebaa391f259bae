"""Stops the turns of all processes of this user: servers, terminals and runs, of every project."""

import asyncio
import time
from contextlib import closing, suppress
from pathlib import Path

from codeloop.app.handlers import handles
from codeloop.app.handlers.reports.databases import find_databases
from codeloop.app.project import Project
from codeloop.schema import operation
from codeloop.schema.api.session_reports import StoppedSession, StoppedSessions
from codeloop.schema.bounds.session import STOP_ALL, STOP_LOOK
from codeloop.schema.errors import OperationError
from codeloop.schema.operation import NoArguments
from codeloop.store.database import StoreError
from codeloop.store.queries import open_queries
from codeloop.store.stop_request import request_stop


@handles(operation.STOP_ALL)
async def stop_all(project: Project, _args: NoArguments) -> StoppedSessions:
    """Stop every session that is worked on, and return which have stopped and which still have not."""
    databases = find_databases(project)
    working = await asyncio.to_thread(_list_working, databases)
    try:
        request_stop(project.settings.paths.stop_file)
    except OSError as error:
        raise OperationError("UnknownError", f"Nothing could be stopped: {error}") from error
    deadline, stopped_sessions = time.monotonic() + STOP_ALL.seconds, working
    while stopped_sessions and time.monotonic() < deadline:
        await asyncio.sleep(STOP_LOOK.seconds / 2)
        stopped_sessions = [each for each in await asyncio.to_thread(_list_working, databases) if each in working]
    return StoppedSessions(stopped=[each for each in working if each not in stopped_sessions], left=stopped_sessions)


def _list_working(databases: list[Path]) -> list[StoppedSession]:
    """Return the sessions of all projects that a living process works on."""
    stopped_sessions: list[StoppedSession] = []
    for path in databases:
        with suppress(StoreError), closing(open_queries(path)) as queries:
            for session_id in queries.list_busy_sessions():
                session = queries.session(session_id)
                if session is not None:
                    stopped_sessions.append(
                        StoppedSession(id=session.id, title=session.title, directory=session.directory)
                    )
    return stopped_sessions
