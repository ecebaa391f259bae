"""Handler that stops the turns in all codeloop processes of this user, of all projects."""

import asyncio
import time
from contextlib import closing, suppress
from pathlib import Path

from codeloop.app.project import Project
from codeloop.schema.api.session_requests import StoppedSession, StoppedSessions
from codeloop.schema.bounds.session import STOP_ALL_TIME, STOP_POLL
from codeloop.schema.errors import OperationError
from codeloop.schema.operation import NoArguments
from codeloop.store.database import StoreError
from codeloop.store.lease import request_stop
from codeloop.store.queries import open_queries


async def stop_all(project: Project, _args: NoArguments) -> StoppedSessions:
    """Ask all processes to stop their turns, and wait up to STOP_ALL_TIME;
    `left`: the sessions that still run.

    Raises OperationError if the request can't be written.
    """
    databases = project.settings.paths.find_databases()
    running_before = await asyncio.to_thread(_list_running, databases)
    try:
        request_stop(project.settings.paths.stop_file)
    except OSError as error:
        raise OperationError("UnknownError", f"Nothing could be stopped: {error}") from error
    deadline, running = time.monotonic() + STOP_ALL_TIME.seconds, running_before
    while running and time.monotonic() < deadline:
        # Twice as often as the processes look for the request, so that their ends are soon seen.
        await asyncio.sleep(STOP_POLL.seconds / 2)
        # Turns that were started after the request are not meant.
        running_now = await asyncio.to_thread(_list_running, databases)
        running = [each for each in running_now if each in running_before]
    return StoppedSessions(
        stopped=[each for each in running_before if each not in running], left=running
    )


def _list_running(databases: list[Path]) -> list[StoppedSession]:
    """Return the sessions of all projects in which a living process runs a turn. Blocks."""
    sessions: list[StoppedSession] = []
    for path in databases:
        with suppress(StoreError), closing(open_queries(path)) as queries:
            for session_id in queries.list_busy_sessions():
                session = queries.find_session(session_id)
                if session is not None:
                    sessions.append(
                        StoppedSession(
                            id=session.id, title=session.title, directory=session.directory
                        )
                    )
    return sessions
