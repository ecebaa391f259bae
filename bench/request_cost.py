"""Measures the bytes and number of requests of recorded trajectories,
replayed with real tools in a project.

Also what their input would cost. The rows of the table are named `economy-...`.
"""

import itertools
import json
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from bench.bench_run import BenchRun
from bench.process_runner import run_command
from bench.recorded_requests import RecordedRequest
from bench.scenario_server import Scenario, ScenarioServer
from bench.subjects import Installation, Subject, install_subject
from bench.trajectories import make_project
from tests.support.stored_rows import open_rows

TRAJECTORY_NAMES = ("fix", "refactor", "logs", "resumed", "long")
"""One scenario each; of "resumed" two: `before-break` and, an hour later in the same session,
`after-break`.
"""
TOKEN_PRICES = {"input": 2.0, "output": 10.0, "cache_read": 0.2, "cache_write": 2.5}
"""Dollars per million tokens in the long session.
Reading the cache costs a tenth, as with several services.
"""
BREAK_MS = 60 * 60 * 1000
"""Milliseconds between the two prompts of the session that is resumed."""
_TIME_FIELDS = frozenset({"created", "completed", "start", "end", "updated"})


def measure_request_cost(bench: BenchRun) -> None:
    """Measure bytes and requests of each trajectory, and how much of them is new."""
    for installation in bench.installations:
        for name in TRAJECTORY_NAMES:
            subject = add_prices(installation.subject) if name == "long" else installation.subject
            fresh_installation = install_subject(subject, bench.folder / f"economy-{name}")
            make_project(fresh_installation.project)
            if name == "resumed":
                requests = [*_record_requests(fresh_installation, "before-break")]
                _age_sessions(fresh_installation.home)
                requests += _record_requests(fresh_installation, "after-break", "--continue")
            else:
                requests = _record_requests(fresh_installation, name)
            bench.put(
                installation, f"economy-{name}", sum(len(request.body) for request in requests)
            )
            bench.put(installation, f"economy-{name}-requests", len(requests))
            bench.put(installation, f"economy-{name}-new", compute_new_share(requests))
            if name == "long":
                bench.put(installation, "economy-long-billed", compute_billed_bytes(requests))


def _record_requests(installation: Installation, name: str, *flags: str) -> list[RecordedRequest]:
    with ScenarioServer(Scenario("trajectory", name=name), keep_bodies=True) as server:
        run_command(installation.fill((*installation.subject.argv, *flags), server.url))
        return server.read_requests()


def compute_new_share(requests: Sequence[RecordedRequest]) -> float | None:
    """Return the share of bytes that don't repeat the beginning of the request before;
    None: there is no request.
    """
    bodies = [request.body for request in requests]
    if not bodies:
        return None
    repeated = sum(
        count_common_prefix(earlier, later) for earlier, later in itertools.pairwise(bodies)
    )
    return 1 - repeated / sum(map(len, bodies))


def compute_billed_bytes(requests: Sequence[RecordedRequest]) -> float:
    """Return the bytes of a single request, without a cache,
    that would cost as much as the input of all requests.

    Bytes that repeat the beginning of the request before are read from the cache,
    the others are written to it.
    """
    bodies = [b"", *(request.body for request in requests)]
    read = sum(count_common_prefix(earlier, later) for earlier, later in itertools.pairwise(bodies))
    written = sum(map(len, bodies)) - read
    return (
        read * TOKEN_PRICES["cache_read"] + written * TOKEN_PRICES["cache_write"]
    ) / TOKEN_PRICES["input"]


def add_prices(subject: Subject) -> Subject:
    """Return codeloop with prices for its model; a subject that is configured otherwise
    is returned unchanged.
    """
    text = subject.environ.get("CODELOOP_CONFIG_CONTENT", "")
    if '"bench"' not in text:
        return subject
    config = json.loads(text)
    config["provider"]["bench"]["models"]["m"]["cost"] = TOKEN_PRICES
    return replace(
        subject, environ={**subject.environ, "CODELOOP_CONFIG_CONTENT": json.dumps(config)}
    )


def count_common_prefix(earlier: bytes, later: bytes) -> int:
    """Return the length of the common beginning. Halving compares whole slices,
    which is far quicker than a loop.
    """
    low, high = 0, min(len(earlier), len(later))
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if earlier[:middle] == later[:middle] else (low, middle - 1)
    return low


def _age_sessions(home: Path) -> None:
    """Make all sessions of a home an hour older, in the tables of `codeloop.store`."""
    for path in home.rglob("codeloop.db"):
        with closing(open_rows(path)) as database, database:
            for table, source in (
                ("session", "session"), ("message", "stored_message"), ("part", "stored_part")
            ):  # fmt: skip
                rows = database.execute(f"SELECT id, data FROM {source}").fetchall()
                older = [
                    (json.dumps(shift_times(json.loads(data))).encode(), name)
                    for name, data in rows
                ]
                database.executemany(f"UPDATE {table} SET data = ? WHERE id = ?", older)
            database.execute(f"UPDATE message SET created = created - {BREAK_MS}")


def shift_times(value: Any, key: str = "") -> Any:
    """Return a stored value with every time in it an hour earlier.
    `key` is the field that holds the value.
    """
    if isinstance(value, dict):
        return {
            name: shift_times(member, name)
            for name, member in cast("dict[str, Any]", value).items()
        }
    if isinstance(value, list):
        return [shift_times(member) for member in cast("list[Any]", value)]
    return (
        value - BREAK_MS
        if key in _TIME_FIELDS and isinstance(value, int) and value > BREAK_MS
        else value
    )
