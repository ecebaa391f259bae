"""Counts the bytes that are sent anew although a service's cache holds them,
in a session of 31 requests, by cause.

The session goes on in another process, after a pause of six minutes, over a command of nine, with
another agent and back, and as a fork. A clock that the scenario sets stands
for the time that passes.
"""

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from bench.bench_run import BenchRun
from bench.process_runner import run_command
from bench.recorded_requests import RecordedRequest
from bench.request_cost import count_common_prefix
from bench.scenario_server import Scenario, ScenarioServer
from bench.subjects import Installation, install_subject, make_codeloop
from bench.trajectories import CLOCK_FILE, LONG_COMMAND, NINE_MINUTES, make_project

CACHE_SECONDS = 5 * 60
"""Seconds for which a service keeps the beginning of a request,
from the last request that used it.
"""
PAUSE_SECONDS = 6 * 60
# Starts codeloop with the scenario's clock, which is ahead of the machine's by the
# seconds that the file holds.
_START_CODE = f"""
import time
def read_ahead():
    with open({CLOCK_FILE!r}) as file:
        return int(file.read() or 0)
real, real_ns = time.time, time.time_ns
time.time = lambda: real() + read_ahead()
time.time_ns = lambda: real_ns() + read_ahead() * 10**9
from codeloop.cli.main import main
main()
"""


@dataclass(frozen=True, slots=True)
class Phase:
    """A turn of the session: its trajectory, further flags, and what comes before it.
    `pause`: seconds before it.
    """

    name: str
    flags: tuple[str, ...] = ()
    situation: str = "the same process"
    pause: int = 0


PHASES = (
    Phase("prefix-start"),
    Phase("prefix-resume", ("--continue",), "resumed by another process"),
    Phase("prefix-pause", ("--continue",), "after a pause of six minutes", PAUSE_SECONDS),
    Phase("prefix-command", ("--continue",), "a command of nine minutes"),
    Phase("prefix-plan", ("--continue", "--agent", "plan"), "switched to another agent"),
    Phase("prefix-build", ("--continue", "--agent", "build"), "switched back"),
    Phase("prefix-fork", ("--continue", "--fork"), "forked"),
)


@dataclass(frozen=True, slots=True)
class SentRequest:
    """A request of the session. `at`: seconds by the scenario's clock, from its first one.
    `phase`: its turn.
    """

    at: float
    segments: tuple[bytes, ...]
    """What services cache, in their order: the tools, the system prompt, each message."""
    phase: Phase

    @property
    def size(self) -> int:
        """The bytes of all segments."""
        return sum(map(len, self.segments))


@dataclass(frozen=True, slots=True)
class Resent:
    """Bytes of the request before that were sent anew.
    `is_cached`: whether a cache still held them.
    """

    situation: str
    cause: str
    size: int
    is_cached: bool
    is_ours: bool


def measure_prefix_cache(bench: BenchRun) -> None:
    """Measure what is sent anew, print each cause to stderr, and put the sums."""
    requests = record_session(install_with_clock(bench.folder / "prefix-cache"))
    resent = list_resent(requests)
    for each in resent:
        state = "held by a cache" if each.is_cached else "no longer in a cache"
        print(
            f"  {each.situation}: {each.size:,} bytes sent anew, {state}: {each.cause}",
            file=sys.stderr,
        )
    bench.put_own("prefix-requests", len(requests))
    bench.put_own("prefix-resent", sum(each.size for each in resent if each.is_cached))
    bench.put_own("prefix-ours", sum(each.size for each in resent if each.is_ours))


def install_with_clock(folder: Path) -> Installation:
    """Return an installation of codeloop, in a home and a project of its own,
    that goes by the scenario's clock.
    """
    subject = make_codeloop()
    start = (sys.executable, "-c", _START_CODE, *subject.argv[1:])
    return install_subject(replace(subject, argv=start), folder)


def record_session(installation: Installation) -> list[SentRequest]:
    """Run the session in a project of its own and return its requests."""
    make_project(installation.project)
    clock = installation.project / CLOCK_FILE
    clock.write_text("0")
    sent: list[SentRequest] = []
    first_at: float | None = None
    for phase in PHASES:
        clock.write_text(str(int(clock.read_text()) + phase.pause))
        ahead = int(clock.read_text())
        with ScenarioServer(Scenario("trajectory", name=phase.name), keep_bodies=True) as server:
            run_command(installation.fill((*installation.subject.argv, *phase.flags), server.url))
            requests = server.read_requests()
        first_at = requests[0].received_at if first_at is None else first_at
        for request in requests:
            # The command of nine minutes sets the clock itself: what comes after its
            # call is later by them.
            has_waited = phase.name == "prefix-command" and LONG_COMMAND.encode() in request.body
            at = request.received_at - first_at + ahead + (int(NINE_MINUTES) if has_waited else 0)
            sent.append(SentRequest(at, split_request(request), phase))
    return sent


def split_request(request: RecordedRequest) -> tuple[bytes, ...]:
    """Return the parts of a chat completions request that services cache, in their order."""
    body: dict[str, Any] = json.loads(request.body)
    messages: list[Any] = body["messages"]
    return tuple(
        json.dumps(part, ensure_ascii=False).encode() for part in (body.get("tools", []), *messages)
    )


def list_resent(requests: Sequence[SentRequest]) -> list[Resent]:
    """Return the bytes that each request sends anew of the request before it;
    requests that continue it are left out.
    """
    found: list[Resent] = []
    for number in range(1, len(requests)):
        present, before = requests[number], requests[number - 1]
        warm = [each for each in requests[:number] if present.at - each.at <= CACHE_SECONDS]
        # A cache that was made for an earlier request may hold more than that for the last one.
        common = max((_count_common(each, present) for each in warm or [before]), default=0)
        size = before.size - common
        if size <= 0:
            continue
        cause, is_users = _find_cause(before, present)
        is_cached = bool(warm)
        situation = present.phase.situation
        found.append(Resent(situation, cause, size, is_cached, is_ours=is_cached and not is_users))
    return found


def _count_common(earlier: SentRequest, later: SentRequest) -> int:
    """Return the bytes at the start of two requests that are the same."""
    count = 0
    for one, other in zip(earlier.segments, later.segments, strict=False):
        if one != other:
            return count + count_common_prefix(one, other)
        count += len(one)
    return count


def _find_cause(before: SentRequest, present: SentRequest) -> tuple[str, bool]:
    """Return the first difference, and whether the user has asked for it."""
    pairs = enumerate(zip(before.segments, present.segments, strict=False))
    index = next((index for index, (one, other) in pairs if one != other), len(before.segments))
    if present.phase != before.phase and "--agent" in present.phase.flags and index <= 1:
        return "another agent has other tools and another system prompt", True
    if index == 0:
        return "the tools differ", False
    if index == 1:
        return "the system prompt differs", False
    role = (
        json.loads(present.segments[index])["role"] if index < len(present.segments) else "missing"
    )
    if b"superseded" in present.segments[min(index, len(present.segments) - 1)]:
        return "outputs that were superseded are left out", False
    return f"message {index} ({role}) differs", False
