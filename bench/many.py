"""What 20 sessions at once cost: in one server, and as 20 programs."""

import os
import subprocess
import threading
from collections.abc import Collection, Generator
from contextlib import contextmanager

from bench.figures import Bench
from bench.fleet_agents import list_children, read_memory
from bench.measure import Failed
from bench.server import Scenario, Server
from bench.serving import prompt_all, serving
from bench.subject import Place

SESSIONS = 20
DELTAS = 6_000
"""Three seconds of them, so that all sessions stream at the same time."""
LOOK = 0.3  # seconds


def many(bench: Bench) -> None:
    """Measure CPU and most memory of 20 sessions that stream at once, each way; their model is a server."""
    place = next((each for each in bench.places if each.subject.name == "codeloop"), None)
    if place is None:
        return
    with Server(Scenario("paced", DELTAS)) as model:
        with serving(place, model.url) as server:
            with _sampling({server.process.pid}) as most:
                prompt_all(server, SESSIONS)
            bench.put(place, "twenty-server-cpu", server.cpu * 1000)
            bench.put(place, "twenty-server-memory", max(most))
        cpu, memory = _run_programs(place, model.url)
        bench.put(place, "twenty-programs-cpu", cpu)
        bench.put(place, "twenty-programs-memory", memory)


def _run_programs(place: Place, url: str) -> tuple[float, float]:
    """Run 20 programs to their ends; return the CPU of all, ms, and their most memory, MB. Raises Failed."""
    command = place.fill(place.subject.argv, url)
    programs = [
        subprocess.Popen(
            list(command.argv),
            cwd=command.cwd,
            env=dict(command.environ),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for _ in range(SESSIONS)
    ]
    cpu = 0.0
    with _sampling({program.pid for program in programs}) as most:
        for program in programs:
            _, status, usage = os.wait4(program.pid, 0)
            program.returncode = os.waitstatus_to_exitcode(status)
            cpu += (usage.ru_utime + usage.ru_stime) * 1000
    if failed := sum(program.returncode != 0 for program in programs):
        raise Failed(f"{failed} of {SESSIONS} runs failed")
    return cpu, max(most)


def _weigh(pids: Collection[int]) -> float:
    """Return the memory of children of this process with all that they have started, MB."""
    return sum(read_memory(each) for tree in list_children(os.getpid()) if tree[0] in pids for each in tree)


@contextmanager
def _sampling(pids: Collection[int]) -> Generator[list[float]]:
    """Collect the memory of programs while something goes on."""
    samples, is_over = [_weigh(pids)], threading.Event()

    def sample() -> None:
        while not is_over.wait(LOOK):
            samples.append(_weigh(pids))

    thread = threading.Thread(target=sample)
    thread.start()
    try:
        yield samples
    finally:
        is_over.set()
        thread.join()
