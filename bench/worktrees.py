"""What many at once cost: a work tree of a repository of 100,000 files, and how 1,000 sessions stand."""

import asyncio
import os
import statistics
import time
from pathlib import Path

from bench.figures import Bench
from bench.snapshots import FILES_EACH, FOLDERS, repository
from codeloop.app.project import Project, open_project
from codeloop.app.settings import Startup
from codeloop.client.local import LocalClient
from codeloop.schema.api.session_reports import SessionOverviewQuery
from codeloop.schema.api.session_requests import CreateSession
from codeloop.schema.api.worktrees import CreateWorktree, RemoveWorktree
from codeloop.schema.event import make_message_updated
from codeloop.schema.ids import new_id
from codeloop.schema.message import ModelRef, UserMessage, UserTime
from codeloop.schema.operation import SESSION_CREATE, SESSION_OVERVIEW
from codeloop.schema.server_operation import WORKTREE_CREATE, WORKTREE_REMOVE

SESSIONS = 1_000
SPARSE = "package_3"
"""A twentieth of the files."""


def worktrees(bench: Bench) -> None:
    """Measure in this process: making work trees, all files and a twentieth of them; one answer about all sessions."""
    place = bench.places[0]
    large = repository(bench.folder / "worktree-large", FOLDERS, FILES_EACH)
    found = asyncio.run(_measure(large, bench.folder / "worktree-home", bench.rounds))
    for name, times in found.items():
        bench.put(place, name, statistics.median(times))


async def _measure(root: Path, home: Path, rounds: int) -> dict[str, list[float]]:
    environment = {"PATH": os.environ["PATH"], "HOME": str(home), "CODELOOP_HOME": str(home)}
    project = await open_project(Startup(directory=root, environment=environment))
    found: dict[str, list[float]] = {"worktree": [], "worktree-sparse": [], "status-thousand": []}
    try:
        client = LocalClient(project)
        for number in range(rounds):
            for name, sparse in (("worktree", None), ("worktree-sparse", [SPARSE])):
                started = time.perf_counter()
                made = await client.call(WORKTREE_CREATE, CreateWorktree(name=f"{name}-{number}", sparse=sparse))
                found[name].append((time.perf_counter() - started) * 1000)
                await client.call(WORKTREE_REMOVE, RemoveWorktree(directory=made.directory))
        await _fill(client, project)
        for _ in range(rounds):
            started = time.perf_counter()
            rows = await client.call(SESSION_OVERVIEW, SessionOverviewQuery())
            found["status-thousand"].append((time.perf_counter() - started) * 1000)
            if len(rows) != SESSIONS:
                raise OSError(f"{len(rows)} sessions stand, not {SESSIONS}")
    finally:
        await project.close()
    return found


async def _fill(client: LocalClient, project: Project) -> None:
    """Make 1,000 sessions with a message each."""
    model = ModelRef(provider_id="bench", model_id="m")
    for _ in range(SESSIONS):
        session = await client.call(SESSION_CREATE, CreateSession(title="A session of the bench"))
        created = UserTime(created=session.time.created)
        message = UserMessage(id=new_id("msg"), session_id=session.id, time=created, agent="build", model=model)
        project.store.append(make_message_updated(message))
