"""A thousand agents of a fleet on this machine: what each one holds, how soon all stop, what random kills change.

`python -m bench.fleet_agents --jobs 1000`. Each job adds a line to a file of its clone. Half of the free memory decides
how many agents there are at once: they wait for their model, are measured and stopped. Then the table is worked on,
eight jobs at once, while agents and coordinators are killed at random, until it is done. Ends with 1 when a figure is
missed.
"""

import argparse
import json
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from bench.measure import read_cpu
from tests.cli.program import Desk, bash, serving, steps
from tests.support.answers import Answer
from tests.support.wire import Received

PROGRAM = [sys.executable, "-P", "-m", "codeloop"]
AGENT_MEMORY, COORDINATOR_MEMORY, STOP = 35.0, 100.0, 5.0  # MB, MB, seconds
COORDINATORS_KILLED = 3
WORKING = 8
"""Jobs at once while processes are killed: each of them needs a core, for some of its second."""
SETTLING = 15.0  # seconds after the last request: by then a follower of events polls less often
IDLE = 20.0  # seconds
HOUR = 3_600.0


class Model:
    """Answers as a model that adds a line; while `is_holding`, it lets agents wait, and counts them."""

    def __init__(self) -> None:
        self.is_holding = True
        self.waiting = 0
        self._answer = steps(bash("echo line >> log"), Answer(text="Done."))

    def __call__(self, received: Received) -> Answer:
        """Answer a request."""
        if self.is_holding:
            self.waiting += 1
            return Answer(text="Late.", hang=HOUR)
        return self._answer(received)


def read_memory(pid: int) -> float:
    """Return the memory of a process in MB, its share of what it shares with others (PSS); 0.0: it has ended."""
    with suppress(FileNotFoundError, ProcessLookupError):
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii").splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024 / 1e6
    return 0.0


def list_children(pid: int) -> list[list[int]]:
    """Return the programs that a process has started, each with all of its own, first itself."""
    children: defaultdict[int, list[int]] = defaultdict(list)
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            children[int((folder / "stat").read_text().rpartition(")")[2].split()[1])].append(int(folder.name))

    def tree(root: int) -> list[int]:
        return [root, *(each for child in children[root] for each in tree(child))]

    return [tree(child) for child in children[pid]]


def free_memory() -> float:
    """Return the memory that programs can still have, MB."""
    rows = dict(line.split(":") for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines())
    return int(rows["MemAvailable"].split()[0]) * 1024 / 1e6


class Fleet:
    """A table of jobs in a desk, and the coordinator that works on it."""

    def __init__(self, desk: Desk, jobs: int, at_once: int) -> None:
        self.desk, self.jobs, self.at_once = desk, jobs, at_once
        self._table = desk.folder / "jobs.json"
        rows = [{"id": f"j{at}", "repository": str(desk.work), "prompt": "add a line"} for at in range(jobs)]
        self._table.write_text(json.dumps(rows))

    def start(self, at_once: int) -> subprocess.Popen[str]:
        """Start a coordinator."""
        return subprocess.Popen(
            [*PROGRAM, "fleet", "run", str(self._table), "--at-once", str(at_once)],
            **self.desk.options(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    def call(self, *arguments: str) -> str:
        """Return the output of another `codeloop fleet`."""
        command = [*PROGRAM, "fleet", *arguments]
        return subprocess.run(command, **self.desk.options(), capture_output=True, text=True, check=True).stdout

    def count_wrong(self) -> int:
        """Return how many jobs have not exactly one line and one commit more than the repository."""
        folder = self.desk.home / "data" / "fleet" / "jobs" / "jobs"
        wrong = abs(len(list(folder.iterdir())) - self.jobs)
        for at in range(self.jobs):
            tree = folder / f"j{at}" / "work"
            log = subprocess.run(["git", "-C", tree, "rev-list", "HEAD"], capture_output=True, text=True, check=False)
            wrong += (tree / "log").read_text() != "start\nline\n" or len(log.stdout.split()) != 2
        return wrong


def wait_until(is_so: Callable[[], bool], seconds: float) -> None:
    """Raise TimeoutError when something is not so after a while."""
    deadline = time.monotonic() + seconds
    while not is_so():
        if time.monotonic() > deadline:
            raise TimeoutError
        time.sleep(0.2)


def measure_waiting(fleet: Fleet, model: Model) -> tuple[float, float, float, float]:
    """Let agents wait.

    Returns the MB of one (median), its processor time in a second (ms, mean), the MB of the coordinator, and the
    seconds that a stop takes.
    """
    coordinator = fleet.start(fleet.at_once)
    try:
        wait_until(lambda: model.waiting >= fleet.at_once, HOUR)
        time.sleep(SETTLING)
        agents = list_children(coordinator.pid)
        pids = [pid for agent in agents for pid in agent]
        before = sum(map(read_cpu, pids))
        time.sleep(IDLE)
        cpu = (sum(map(read_cpu, pids)) - before) / len(agents) / IDLE * 1_000
        each = statistics.median(sum(map(read_memory, agent)) for agent in agents)
        own = read_memory(coordinator.pid)
        began = time.monotonic()
        fleet.call("stop", "jobs")
        coordinator.wait(HOUR)
        seconds = time.monotonic() - began
        left = [pid for pid in pids if read_memory(pid)]
        if left:
            raise OSError(f"{len(left)} processes have outlived the stop")
    finally:
        coordinator.kill()
        coordinator.wait()
    return each, cpu, own, seconds


def work_through_kills(fleet: Fleet, draw: random.Random) -> tuple[int, int, float]:
    """Do the table while processes are killed; return agents killed, coordinators killed, the last ones' most MB."""
    killed, coordinators, most = 0, 0, 0.0
    while True:
        coordinator = fleet.start(min(fleet.at_once, WORKING))
        until = time.monotonic() + draw.uniform(5, 30 + fleet.jobs / 20)
        while coordinator.poll() is None:
            time.sleep(draw.uniform(0.2, 2))
            most = max(most, read_memory(coordinator.pid))
            agents = list_children(coordinator.pid)
            if agents and killed < 1 + fleet.jobs // 20:
                with suppress(ProcessLookupError):
                    os.killpg(draw.choice(agents)[0], signal.SIGKILL)
                    killed += 1
            if coordinators < COORDINATORS_KILLED and time.monotonic() > until:
                coordinator.kill()
                coordinators += 1
        if coordinator.wait() == 0:
            return killed, coordinators, most
        fleet.call("retry", "jobs")


def main() -> int:
    """Measure, and print the figures."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--jobs", type=int, default=1_000)
    options.add_argument("--at-once", type=int, help="default: what half of the free memory holds")
    options.add_argument("--seed", type=int, default=1)
    given = options.parse_args()
    at_once = given.at_once or min(given.jobs, int(free_memory() / 2 / AGENT_MEMORY))
    model = Model()
    with tempfile.TemporaryDirectory() as name, serving(model, validate=False, record=False) as server:
        desk = Desk(Path(name))
        desk.use(server)
        (desk.work / "log").write_text("start\n")
        desk.git("init", "-q")
        desk.git("add", ".")
        desk.git("commit", "-qm", "start")
        fleet = Fleet(desk, given.jobs, at_once)
        print(f"{given.jobs} jobs, {at_once} agents at once", flush=True)
        each, cpu, own, seconds = measure_waiting(fleet, model)
        print(f"an agent that waits: {each:.1f} MB, {cpu:.1f} ms of CPU in a second; the coordinator: {own:.1f} MB")
        print(f"all stopped after {seconds:.1f} s")
        model.is_holding = False
        began = time.monotonic()
        killed, coordinators, most = work_through_kills(fleet, random.Random(given.seed))
        wrong = fleet.count_wrong()
        minutes = (time.monotonic() - began) / 60
        print(f"{killed} agents and {coordinators} coordinators killed; {wrong} jobs wrong; {minutes:.1f} minutes")
        print(f"the coordinator at most: {most:.1f} MB")
    own = max(own, most)
    return int(each > AGENT_MEMORY or own > COORDINATOR_MEMORY or seconds > STOP or wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
