"""Measures work trees of a repository of 100,000 files, and the overview of 1,000 sessions."""

import asyncio
import os
import statistics
import time
from pathlib import Path

from bench.bench_run import BenchRun
from bench.snapshots import FILES_EACH, FOLDERS, make_repository
from codeloop.app.project import Project, open_project
from codeloop.app.settings import Startup
from codeloop.client.local import LocalClient
from codeloop.schema.api.session_reports import SESSION_OVERVIEW, SessionOverviewQuery
from codeloop.schema.api.session_requests import SESSION_CREATE, CreateSession
from codeloop.schema.api.worktrees import (
    WORKTREE_CREATE,
    WORKTREE_REMOVE,
    CreateWorktree,
    RemoveWorktree,
)
from codeloop.schema.event import make_message_updated
from codeloop.schema.ids import new_id
from codeloop.schema.message import ModelRef, UserMessage, UserTime

SESSION_COUNT = 1_000
SPARSE_FOLDER = "package_3"
"""The folder with a twentieth of the files."""


def measure_worktrees(bench: BenchRun) -> None:
    """Measure, in this process, work trees of all files and of a twentieth,
    and one overview of all sessions.
    """
    large = make_repository(bench.folder / "worktree-large", FOLDERS, FILES_EACH)
    times_by_budget = asyncio.run(
        _time_operations(large, bench.folder / "worktree-home", bench.rounds)
    )
    for name, times in times_by_budget.items():
        bench.put_own(name, statistics.median(times))


async def _time_operations(root: Path, home: Path, rounds: int) -> dict[str, list[float]]:
    environment = {"PATH": os.environ["PATH"], "HOME": str(home), "CODELOOP_HOME": str(home)}
    project = await open_project(Startup(directory=root, environment=environment))
    times: dict[str, list[float]] = {"worktree": [], "worktree-sparse": [], "status-thousand": []}
    try:
        client = LocalClient(project)
        for number in range(rounds):
            for name, sparse in (("worktree", None), ("worktree-sparse", [SPARSE_FOLDER])):
                started = time.perf_counter()
                made = await client.call(
                    WORKTREE_CREATE, CreateWorktree(name=f"{name}-{number}", sparse=sparse)
                )
                times[name].append((time.perf_counter() - started) * 1000)
                await client.call(WORKTREE_REMOVE, RemoveWorktree(directory=made.directory))
        await _create_sessions(client, project)
        for _ in range(rounds):
            started = time.perf_counter()
            rows = await client.call(SESSION_OVERVIEW, SessionOverviewQuery())
            times["status-thousand"].append((time.perf_counter() - started) * 1000)
            if len(rows) != SESSION_COUNT:
                raise OSError(f"the overview has {len(rows)} sessions, not {SESSION_COUNT}")
    finally:
        await project.close()
    return times


async def _create_sessions(client: LocalClient, project: Project) -> None:
    """Create 1,000 sessions with a message each."""
    model = ModelRef(provider_id="bench", model_id="m")
    for _ in range(SESSION_COUNT):
        session = await client.call(SESSION_CREATE, CreateSession(title="A session of the bench"))
        created = UserTime(created=session.time.created)
        message = UserMessage(
            id=new_id("msg"), session_id=session.id, time=created, agent="build", model=model
        )
        project.store.append(make_message_updated(message))
