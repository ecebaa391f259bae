"""Shows what happens to background commands: in the metadata of sessions, in notices,
and to the model.
"""

import os
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from codeloop.agent.ended_commands import take_ended_commands
from codeloop.agent.engine import Engine
from codeloop.app.runs import Runs
from codeloop.kit.processes import read_start_time
from codeloop.kit.text.terminal_text import one_line
from codeloop.schema.errors import CodeloopError
from codeloop.schema.ids import now_ms
from codeloop.schema.jobs import JOBS_KEY, RunningJob, read_running_jobs
from codeloop.schema.message import Session
from codeloop.schema.wire import replace
from codeloop.store.store import Store
from codeloop.workspace.process.background_jobs import Job, Jobs

if TYPE_CHECKING:
    from codeloop.workspace.sandbox.network.published_ports import PublishedPort

_MAX_COMMAND_CHARS = 200


def get_start_ms(job: Job) -> int:
    """Return when a command was started, in ms since the epoch."""
    return now_ms() - round((time.monotonic() - job.start_time) * 1000)


def follow_jobs(engine: Engine, runs: Runs, jobs: Jobs, notify: Callable[[str], None]) -> None:
    """Have what happens to background commands shown, stored, and told to the model.
    `notify`: shows users a text.
    """
    records, notices = JobRecords(engine.store, jobs), engine.services.notices

    def report_end(job: Job) -> None:
        records.store_jobs(job.session)
        runs.go_on_after(job)

    def report_port(job: Job, port: "PublishedPort") -> None:
        records.store_jobs(job.session)
        notify(f"{job.id} listens on port {port.port}: {port.address}")
        if port.host_port != port.port:
            where = f"they reach it at {port.address}"
            notices.add(
                job.session,
                f"Port {port.port} of {job.id} is in use on the user's machine: {where}.",
            )

    jobs.on_start = lambda job: records.store_jobs(job.session)
    jobs.on_end, jobs.on_listen = report_end, report_port
    notices.sources.append(partial(take_ended_commands, engine))


class JobRecords:
    """Stores what runs whenever a command begins or ends, or gets an address."""

    def __init__(self, store: Store, jobs: Jobs) -> None:
        self._store = store
        self._jobs = jobs
        self._process_started = read_start_time(os.getpid())

    def store_jobs(self, session_id: str) -> None:
        """Store the running commands of a session, with those of its subagents,
        in the topmost one.
        """
        # The session may be deleted, and the disk full: then nobody is told.
        with suppress(CodeloopError):
            top = self._find_top(session_id)
            running = [
                self._make_row(job)
                for job in self._jobs.list_jobs()
                if job.status == "running" and self._find_top(job.session) == top
            ]
            self._store.update_session(top, lambda session: self._change(session, running))

    def _find_top(self, session_id: str) -> str:
        *_, top = self._store.walk_ancestors(session_id)
        return top.id

    def _make_row(self, job: Job) -> RunningJob:
        return RunningJob(
            id=job.id,
            session_id=job.session,
            command=one_line(job.command, _MAX_COMMAND_CHARS),
            started=get_start_ms(job),
            addresses=[*job.addresses.values()],
            pid=os.getpid(),
            process_started=self._process_started,
        )

    def _change(self, session: Session, running: list[RunningJob]) -> Session:
        others = [row for row in read_running_jobs(session.metadata) if row.pid != os.getpid()]
        metadata = {
            key: value for key, value in (session.metadata or {}).items() if key != JOBS_KEY
        }
        if rows := [*others, *running]:
            metadata[JOBS_KEY] = msgspec.to_builtins(rows)
        return replace(session, metadata=metadata or None)
