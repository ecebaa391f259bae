"""Measures a thousand agents of a fleet: memory and CPU of each one, the time to stop all,
the effect of random kills.

`python -m bench.fleet_agents --jobs 1000`. Each job adds a line to a file of its clone. First, as
many agents run at once as fit into half of the free memory: they wait for their model, are measured
and stopped. Then all jobs are done, eight at once, while agents and coordinators are killed at
random. The exit code is 1 if a figure is over its limit.
"""

import argparse
import json
import os
import random
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from bench.process_stats import list_process_trees, read_cpu, read_proportional_memory
from codeloop.kit.remove_tree import temporary_folder
from tests.cli.program import Desk, bash, serving, steps
from tests.support.answers import Answer
from tests.support.http_connection import ReceivedRequest

CODELOOP_COMMAND = [sys.executable, "-P", "-m", "codeloop"]
MAX_AGENT_MB, MAX_COORDINATOR_MB, MAX_STOP_SECONDS = 35.0, 100.0, 5.0
COORDINATOR_KILLS = 3
CONCURRENT_JOBS = 8
"""Jobs at once while processes are killed: unlike agents that wait for their model,
they need CPU.
"""
# So long after the last request, a follower of events polls less often.
SETTLE_SECONDS = 15.0
IDLE_SECONDS = 20.0
HOUR_SECONDS = 3_600.0


class HoldingModel:
    """A model that answers with a call that adds a line.
    While `is_holding`, it only counts the requests.
    """

    def __init__(self) -> None:
        self.is_holding = True
        self.waiting = 0
        self._answer = steps(bash("echo line >> log"), Answer(text="Done."))

    def __call__(self, received: ReceivedRequest) -> Answer:
        """Answer a request."""
        if self.is_holding:
            self.waiting += 1
            return Answer(text="Late.", hang=HOUR_SECONDS)
        return self._answer(received)


def read_free_memory() -> float:
    """Return the memory that programs can still get, MB."""
    rows = dict(
        line.split(":") for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
    )
    return int(rows["MemAvailable"].split()[0]) * 1024 / 1e6


class WaitingFigures(NamedTuple):
    """Figures of agents that wait for their model."""

    agent_memory: float
    """The median, MB."""
    agent_cpu: float
    """The mean, milliseconds in a second."""
    coordinator_memory: float
    """MB."""
    stop_seconds: float


class KillFigures(NamedTuple):
    """How many processes were killed, and the peak memory of a coordinator, MB."""

    agents: int
    coordinators: int
    coordinator_memory: float


class Fleet:
    """A table of jobs, and the coordinators that work on it."""

    def __init__(self, desk: Desk, jobs: int, at_once: int) -> None:
        self.desk, self.jobs, self.at_once = desk, jobs, at_once
        self._table = desk.folder / "jobs.json"
        rows = [
            {"id": f"j{number}", "repository": str(desk.work), "prompt": "add a line"}
            for number in range(jobs)
        ]
        self._table.write_text(json.dumps(rows))

    def start(self, at_once: int) -> subprocess.Popen[str]:
        """Start a coordinator."""
        return subprocess.Popen(
            [*CODELOOP_COMMAND, "fleet", "run", str(self._table), "--at-once", str(at_once)],
            **self.desk.options(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    def call(self, *arguments: str) -> str:
        """Run another command of `codeloop fleet` and return its output."""
        command = [*CODELOOP_COMMAND, "fleet", *arguments]
        return subprocess.run(
            command, **self.desk.options(), capture_output=True, text=True, check=True
        ).stdout

    def count_wrong(self) -> int:
        """Return the number of jobs that have not added exactly one line and one commit."""
        folder = self.desk.home / "data" / "fleet" / "jobs" / "jobs"
        wrong = abs(len(list(folder.iterdir())) - self.jobs)
        for number in range(self.jobs):
            tree = folder / f"j{number}" / "work"
            log = subprocess.run(
                ["git", "-C", tree, "rev-list", "HEAD"], capture_output=True, text=True, check=False
            )
            wrong += (tree / "log").read_text() != "start\nline\n" or len(log.stdout.split()) != 2
        return wrong


def wait_until(is_true: Callable[[], bool], seconds: float) -> None:
    """Wait for a condition, for so many seconds at most. Raises TimeoutError."""
    deadline = time.monotonic() + seconds
    while not is_true():
        if time.monotonic() > deadline:
            raise TimeoutError
        time.sleep(0.2)


def measure_waiting_agents(fleet: Fleet, model: HoldingModel) -> WaitingFigures:
    """Start as many agents as fit, and stop them all while they wait for their model."""
    coordinator = fleet.start(fleet.at_once)
    try:
        wait_until(lambda: model.waiting >= fleet.at_once, HOUR_SECONDS)
        time.sleep(SETTLE_SECONDS)
        agents = list_process_trees(coordinator.pid)
        pids = [pid for agent in agents for pid in agent]
        before = sum(map(read_cpu, pids))
        time.sleep(IDLE_SECONDS)
        cpu = (sum(map(read_cpu, pids)) - before) / len(agents) / IDLE_SECONDS * 1_000
        agent_memory = statistics.median(
            sum(map(read_proportional_memory, agent)) for agent in agents
        )
        coordinator_memory = read_proportional_memory(coordinator.pid)
        began = time.monotonic()
        fleet.call("stop", "jobs")
        coordinator.wait(HOUR_SECONDS)
        seconds = time.monotonic() - began
        left = [pid for pid in pids if read_proportional_memory(pid)]
        if left:
            raise OSError(f"{len(left)} processes have outlived the stop")
    finally:
        coordinator.kill()
        coordinator.wait()
    return WaitingFigures(agent_memory, cpu, coordinator_memory, seconds)


def finish_despite_kills(fleet: Fleet, draw: random.Random) -> KillFigures:
    """Do all jobs while agents and coordinators are killed at random."""
    agents_killed, coordinators_killed, peak = 0, 0, 0.0
    while True:
        coordinator = fleet.start(min(fleet.at_once, CONCURRENT_JOBS))
        until = time.monotonic() + draw.uniform(5, 30 + fleet.jobs / 20)
        while coordinator.poll() is None:
            time.sleep(draw.uniform(0.2, 2))
            peak = max(peak, read_proportional_memory(coordinator.pid))
            agents = list_process_trees(coordinator.pid)
            if agents and agents_killed < 1 + fleet.jobs // 20:
                # The agent may have ended by itself.
                with suppress(ProcessLookupError):
                    os.killpg(draw.choice(agents)[0], signal.SIGKILL)
                    agents_killed += 1
            if coordinators_killed < COORDINATOR_KILLS and time.monotonic() > until:
                coordinator.kill()
                coordinators_killed += 1
        if coordinator.wait() == 0:
            return KillFigures(agents_killed, coordinators_killed, peak)
        fleet.call("retry", "jobs")


def main() -> int:
    """Measure, and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=1_000)
    parser.add_argument("--at-once", type=int, help="default: what half of the free memory holds")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    at_once = options.at_once or min(options.jobs, int(read_free_memory() / 2 / MAX_AGENT_MB))
    model = HoldingModel()
    with temporary_folder() as folder, serving(model, validate=False, record=False) as server:
        desk = Desk(folder)
        desk.use(server)
        (desk.work / "log").write_text("start\n")
        desk.git("init", "-q")
        desk.git("add", ".")
        desk.git("commit", "-qm", "start")
        fleet = Fleet(desk, options.jobs, at_once)
        print(f"{options.jobs} jobs, {at_once} agents at once", flush=True)
        waiting = measure_waiting_agents(fleet, model)
        agent = f"{waiting.agent_memory:.1f} MB, {waiting.agent_cpu:.1f} ms of CPU in a second"
        print(f"an agent that waits: {agent}; the coordinator: {waiting.coordinator_memory:.1f} MB")
        print(f"all stopped after {waiting.stop_seconds:.1f} s")
        model.is_holding = False
        began = time.monotonic()
        kills = finish_despite_kills(fleet, random.Random(options.seed))
        wrong = fleet.count_wrong()
        minutes = (time.monotonic() - began) / 60
        print(f"{kills.agents} agents and {kills.coordinators} coordinators killed", end="; ")
        print(f"{wrong} jobs wrong; {minutes:.1f} minutes")
        print(f"the coordinator at most: {kills.coordinator_memory:.1f} MB")
    coordinator_memory = max(waiting.coordinator_memory, kills.coordinator_memory)
    is_over_limit = (
        waiting.agent_memory > MAX_AGENT_MB
        or coordinator_memory > MAX_COORDINATOR_MB
        or waiting.stop_seconds > MAX_STOP_SECONDS
        or wrong > 0
    )
    return int(is_over_limit)


if __name__ == "__main__":
    sys.exit(main())
