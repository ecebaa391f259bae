"""Measures 20 concurrent sessions: in one server, and as 20 programs."""

import os
import subprocess
import threading
from collections.abc import Collection, Generator
from contextlib import contextmanager

from bench.bench_run import BenchRun
from bench.process_runner import MeasurementFailed
from bench.process_stats import list_process_trees, read_proportional_memory
from bench.scenario_server import Scenario, ScenarioServer
from bench.server_process import prompt_all, run_server
from bench.subjects import Installation

SESSION_COUNT = 20
DELTA_COUNT = 6_000
"""In each session. They last three seconds, so that all sessions stream at the same time."""
SAMPLE_INTERVAL_SECONDS = 0.3


def measure_concurrent_sessions(bench: BenchRun) -> None:
    """Measure CPU and peak memory of 20 sessions that stream at once, each way."""
    installation = bench.codeloop
    with ScenarioServer(Scenario("paced", DELTA_COUNT)) as model:
        with run_server(installation, model.url) as server:
            with _sample_memory({server.process.pid}) as samples:
                prompt_all(server, SESSION_COUNT)
            bench.put(installation, "twenty-server-cpu", server.cpu * 1000)
            bench.put(installation, "twenty-server-memory", max(samples))
        cpu, memory = _run_programs(installation, model.url)
        bench.put(installation, "twenty-programs-cpu", cpu)
        bench.put(installation, "twenty-programs-memory", memory)


def _run_programs(installation: Installation, url: str) -> tuple[float, float]:
    """Run 20 programs; return the CPU of all (ms) and their peak memory (MB).
    Raises MeasurementFailed.
    """
    command = installation.fill(installation.subject.argv, url)
    programs = [
        subprocess.Popen(
            list(command.argv),
            cwd=command.cwd,
            env=dict(command.environ),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for _ in range(SESSION_COUNT)
    ]
    cpu = 0.0
    with _sample_memory({program.pid for program in programs}) as samples:
        for program in programs:
            _, status, usage = os.wait4(program.pid, 0)
            program.returncode = os.waitstatus_to_exitcode(status)
            cpu += (usage.ru_utime + usage.ru_stime) * 1000
    if failed := sum(program.returncode != 0 for program in programs):
        raise MeasurementFailed(f"{failed} of {SESSION_COUNT} runs failed")
    return cpu, max(samples)


def _sum_memory(pids: Collection[int]) -> float:
    """Return the memory of some children of this process and of all processes below them, MB."""
    trees = [tree for tree in list_process_trees(os.getpid()) if tree[0] in pids]
    return sum(read_proportional_memory(pid) for tree in trees for pid in tree)


@contextmanager
def _sample_memory(pids: Collection[int]) -> Generator[list[float]]:
    """Yield a list that gets the memory of some children of this process (MB) every
    0.3 s until the block ends.
    """
    samples, is_over = [_sum_memory(pids)], threading.Event()

    def sample() -> None:
        while not is_over.wait(SAMPLE_INTERVAL_SECONDS):
            samples.append(_sum_memory(pids))

    thread = threading.Thread(target=sample)
    thread.start()
    try:
        yield samples
    finally:
        is_over.set()
        thread.join()
