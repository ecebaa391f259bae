"""Background commands as the metadata of a session names them, for every client and process."""

from collections.abc import Iterable

import msgspec

from codeloop.kit.processes import is_alive
from codeloop.schema.message import Session
from codeloop.schema.wire import JSON, Wire

JOBS_KEY = "jobs"
"""The key in the metadata of a topmost session for the running background commands
of it and its subagents.
"""


class RunningJob(Wire):
    """A command in the background. `started`: ms since the epoch;
    `addresses`: where a browser reaches its ports.

    `pid`, `process_started`: the process that runs it, and when that began, in the system's unit.
    """

    id: str
    session_id: str
    command: str
    started: int
    addresses: list[str] = []
    pid: int = 0
    process_started: str = ""


def read_running_jobs(metadata: JSON | None, *, on_server: bool = False) -> list[RunningJob]:
    """Return the background commands that the metadata of a session name.

    Those of a process that was killed are left out, unless it runs `on_server`,
    maybe on another machine.
    """
    try:
        rows = msgspec.convert((metadata or {}).get(JOBS_KEY, []), list[RunningJob])
    except msgspec.ValidationError:
        return []
    return [row for row in rows if on_server or is_alive(row.pid, row.process_started)]


def count_running_jobs(sessions: Iterable[Session | None], *, on_server: bool) -> int:
    """Return how many background commands different sessions have,
    with those of their subagents.
    """
    metadata = {
        session.id: session.metadata
        for session in sessions
        if session is not None and session.metadata
    }
    return sum(len(read_running_jobs(each, on_server=on_server)) for each in metadata.values())
