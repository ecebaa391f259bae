"""What it costs to run a command in a sandbox: `true` in each kind that can be had here, over `true` without one."""

import asyncio
import os
import statistics
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path

from bench.figures import Bench
from codeloop.schema.config import SandboxConfig
from codeloop.workspace.process.shells import ShellCommand, ShellContext, Shells
from codeloop.workspace.sandbox.policy import PolicyInput
from codeloop.workspace.sandbox.sandboxes import BACKENDS, Backend, Sandboxes, SandboxRefused

_COMMANDS = 20
_SECONDS = 20.0
_ROWS: Mapping[Backend, str] = {"namespaces": "sandbox", "landlock": "sandbox-landlock"}


def sandboxes(bench: Bench) -> None:
    """Measure the first command of a project and those after it, in a repository with few files."""
    folder = bench.folder / "sandboxes"
    folder.mkdir()
    subprocess.run(["git", "init", "--quiet", str(folder)], check=True)
    first: dict[Backend | None, list[float]] = {}
    later: dict[Backend | None, list[float]] = {}
    for _ in range(max(bench.rounds, 3) + 1):
        for backend in (None, *BACKENDS):
            try:
                start, *more = asyncio.run(_commands(folder, backend))
            except SandboxRefused:
                continue
            first.setdefault(backend, []).append(start)
            later.setdefault(backend, []).append(statistics.median(more))
    for place in bench.places:
        for backend, row in _ROWS.items() if place.subject.name == "codeloop" else ():
            if backend in first:
                bench.put(place, row, _over(later[backend], later[None]))
                bench.put(place, f"{row}-start", _over(first[backend], first[None]))


def _over(taken: list[float], plain: list[float]) -> float:
    """Return the median difference of the rounds but the first, which does not count."""
    return statistics.median(one - other for one, other in zip(taken[1:], plain[1:], strict=True))


async def _commands(folder: Path, backend: Backend | None) -> list[float]:
    """Return what each command of a project that is opened anew takes (ms). Raises SandboxRefused."""
    shells = Shells()
    shells.sandboxes = Sandboxes(shells.launcher, (backend,) if backend else ())
    scratch = folder.with_name("scratch")
    place = PolicyInput(folder, folder, scratch, dict(os.environ))
    context = ShellContext("ses_bench", folder, place.environment, scratch)
    taken: list[float] = []
    try:
        for _ in range(_COMMANDS):
            start = time.perf_counter()
            policy = shells.make_policy(place, SandboxConfig()) if backend else None
            if policy is not None:
                await shells.sandboxes.enter(policy)
            await shells.run(context, ShellCommand("true", _SECONDS, None, policy), lambda _: None)
            taken.append((time.perf_counter() - start) * 1000)
    finally:
        await shells.close()
    return taken
