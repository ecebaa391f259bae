"""What a task costs: the requests of recorded trajectories, replayed with real tools in a project of their own."""

import itertools
import json
import os
import sqlite3
import statistics
import subprocess
import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from bench.figures import Bench
from bench.measure import run
from bench.requests import Request
from bench.server import Scenario, Server
from bench.subject import Place, Subject, place
from bench.trajectories import make_project
from codeloop.workspace.project_facts import describe_project

TRAJECTORIES = ("fix", "refactor", "logs", "resumed", "long")
PRICES = {"input": 2.0, "output": 10.0, "cache_read": 0.2, "cache_write": 2.5}
"""Dollars per million tokens in the long session, as several services charge: reading a tenth of the input's price."""
BREAK = 60 * 60 * 1000
"""Milliseconds between the two prompts of the session that is resumed."""
_TIMES = frozenset({"created", "completed", "start", "end", "updated"})


def economy(bench: Bench) -> None:
    """Measure bytes and requests of each trajectory, and how much of them is new."""
    for measured in bench.places:
        for name in TRAJECTORIES:
            subject = with_prices(measured.subject) if name == "long" else measured.subject
            here = place(subject, bench.folder / f"economy-{name}")
            make_project(here.project)
            if name == "resumed":
                seen = [*_requests(here, "before-break")]
                _pass_time(here.home)
                seen += _requests(here, "after-break", "--continue")
            else:
                seen = _requests(here, name)
            bench.put(measured, f"economy-{name}", sum(len(request.body) for request in seen))
            bench.put(measured, f"economy-{name}-requests", len(seen))
            bench.put(measured, f"economy-{name}-new", new_share(seen))
            if name == "long":
                bench.put(measured, "economy-long-billed", count_billed(seen))


def _requests(here: Place, name: str, *flags: str) -> list[Request]:
    with Server(Scenario("trajectory", name=name), keep_bodies=True) as server:
        run(here.fill((*here.subject.argv, *flags), server.url))
        return server.requests()


def new_share(requests: Sequence[Request]) -> float | None:
    """Return the share of all bytes that does not repeat the beginning of the request before; None: no request."""
    bodies = [request.body for request in requests]
    if not bodies:
        return None
    repeated = sum(_same(earlier, later) for earlier, later in itertools.pairwise(bodies))
    return 1 - repeated / sum(map(len, bodies))


def count_billed(requests: Sequence[Request]) -> float:
    """Return the bytes of a single request, without a cache, that would cost as much as the input of all requests.

    What repeats the beginning of the request before is read from the cache, the rest is written to it.
    """
    bodies = [b"", *(request.body for request in requests)]
    read = sum(_same(earlier, later) for earlier, later in itertools.pairwise(bodies))
    written = sum(map(len, bodies)) - read
    return (read * PRICES["cache_read"] + written * PRICES["cache_write"]) / PRICES["input"]


def with_prices(subject: Subject) -> Subject:
    """Return codeloop with a model whose prices are known; another agent as it is."""
    model = json.dumps({"m": {"cost": PRICES}})
    environ = {name: value.replace('{"m": {}}', model) for name, value in subject.environ.items()}
    return replace(subject, environ=environ)


def _same(earlier: bytes, later: bytes) -> int:
    """Return how many bytes at the start are the same, found by halving."""
    low, high = 0, min(len(earlier), len(later))
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if earlier[:middle] == later[:middle] else (low, middle - 1)
    return low


def _pass_time(home: Path) -> None:
    """Make all that a home's sessions hold an hour older."""
    for path in home.rglob("codeloop.db"):
        with closing(sqlite3.connect(path)) as database, database:
            for table in ("session", "message", "part"):
                rows = database.execute(f"SELECT id, data FROM {table}").fetchall()
                older = [(json.dumps(aged(json.loads(data))).encode(), name) for name, data in rows]
                database.executemany(f"UPDATE {table} SET data = ? WHERE id = ?", older)
            database.execute(f"UPDATE message SET created = created - {BREAK}")


def aged(value: Any, key: str = "") -> Any:
    """Return a stored value with every time in it an hour earlier."""
    if isinstance(value, dict):
        return {name: aged(member, name) for name, member in cast("dict[str, Any]", value).items()}
    if isinstance(value, list):
        return [aged(member) for member in cast("list[Any]", value)]
    return value - BREAK if key in _TIMES and isinstance(value, int) and value > BREAK else value


def facts(bench: Bench) -> None:
    """Measure what is found out about a large project when a session begins: CPU, in this process."""
    folder = bench.folder / "facts"
    folder.mkdir()
    make_project(folder)
    for number in range(50_000):
        (folder / f"file-{number}").touch()
    (folder / "package.json").write_text('{"scripts": {"test": "x"}, "pad": "' + "x" * 10_000_000 + '"}')
    git = ("git", "-c", "user.name=bench", "-c", "user.email=bench@localhost")
    for command in (("init", "--quiet"), ("add", "shop", "Makefile"), ("commit", "--quiet", "--message", "start")):
        subprocess.run([*git, *command], cwd=folder, check=True)
    taken: list[float] = []
    for _ in range(max(bench.rounds, 3)):
        start = time.process_time()
        describe_project(folder, folder, os.environ)
        taken.append((time.process_time() - start) * 1000)
    for measured in bench.places:
        if measured.subject.name == "codeloop":
            bench.put(measured, "facts", statistics.median(taken))
