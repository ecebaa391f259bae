"""Measures the command `true` in each kind of sandbox that this machine has,
over `true` without a sandbox.
"""

import asyncio
import os
import statistics
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path

from bench.bench_run import BenchRun
from codeloop.schema.config import SandboxConfig
from codeloop.workspace.process.shells import ShellCommand, ShellContext, Shells
from codeloop.workspace.sandbox.policy import PolicyInput
from codeloop.workspace.sandbox.sandboxes import BACKENDS, Backend, Sandboxes, SandboxUnavailable

_COMMAND_COUNT = 20
_TIMEOUT_SECONDS = 20.0
_BUDGET_NAMES: Mapping[Backend, str] = {"namespaces": "sandbox", "landlock": "sandbox-landlock"}


def measure_sandboxes(bench: BenchRun) -> None:
    """Measure the first command of a project and those after it, in a repository with few files."""
    folder = bench.folder / "sandboxes"
    folder.mkdir()
    subprocess.run(["git", "init", "--quiet", str(folder)], check=True)
    first: dict[Backend | None, list[float]] = {}
    later: dict[Backend | None, list[float]] = {}
    for _ in range(max(bench.rounds, 3) + 1):
        for backend in (None, *BACKENDS):
            try:
                start, *more = asyncio.run(_time_commands(folder, backend))
            except SandboxUnavailable:
                continue
            first.setdefault(backend, []).append(start)
            later.setdefault(backend, []).append(statistics.median(more))
    for backend, budget in _BUDGET_NAMES.items():
        if backend in first:
            bench.put_own(budget, _compute_overhead(later[backend], later[None]))
            bench.put_own(f"{budget}-start", _compute_overhead(first[backend], first[None]))


def _compute_overhead(sandboxed: list[float], plain: list[float]) -> float:
    """Return the median difference of all rounds but the first,
    which loads modules and fills caches.
    """
    return statistics.median(
        one - other for one, other in zip(sandboxed[1:], plain[1:], strict=True)
    )


async def _time_commands(folder: Path, backend: Backend | None) -> list[float]:
    """Return the time of each command in newly opened shells, ms. Raises SandboxUnavailable."""
    shells = Shells()
    shells.sandboxes = Sandboxes(shells.launcher, (backend,) if backend else ())
    scratch = folder.with_name("scratch")
    policy_input = PolicyInput(folder, folder, scratch, dict(os.environ))
    context = ShellContext("ses_bench", folder, policy_input.environment, scratch)
    times: list[float] = []
    try:
        for _ in range(_COMMAND_COUNT):
            start = time.perf_counter()
            policy = shells.make_policy(policy_input, SandboxConfig()) if backend else None
            if policy is not None:
                await shells.sandboxes.enter(policy)
            await shells.run(
                context, ShellCommand("true", _TIMEOUT_SECONDS, None, policy), lambda _: None
            )
            times.append((time.perf_counter() - start) * 1000)
    finally:
        await shells.close()
    return times
