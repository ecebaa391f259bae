"""What snapshots cost: the first of a large work tree, the next one, and a step with one in a small project."""

import asyncio
import os
import statistics
import subprocess
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from bench.figures import Bench
from codeloop.workspace.snapshot.snapshots import SkippedSnapshot, Snapshots
from codeloop.workspace.snapshot.step_recorder import StepRecorder

FOLDERS, FILES_EACH = 1_000, 100
CHANGED = 10
SMALL = 50
STEPS = 20


def snapshots(bench: Bench) -> None:
    """Measure in this process: a repository of 100,000 committed files, and one of 50."""
    place = bench.places[0]
    large = repository(bench.folder / "snapshot-large", FOLDERS, FILES_EACH)
    rounds = [asyncio.run(_large(large, bench.folder / f"snapshots-{number}")) for number in range(bench.rounds)]
    bench.put(place, "snapshot-first", statistics.median(first for first, _ in rounds))
    bench.put(place, "snapshot-next", statistics.median(later for _, later in rounds))
    small = repository(bench.folder / "snapshot-small", 1, SMALL)
    step, idle = asyncio.run(_small(small, bench.folder / "snapshots-small"))
    bench.put(place, "snapshot-step", step)
    bench.put(place, "snapshot-idle", idle)


def repository(top: Path, folders: int, each: int) -> Path:
    """Make a repository of small files, all committed."""
    text = "def add(a, b):\n    return a + b\n\n\n" * 10
    for folder in range(folders):
        inside = top / f"package_{folder % 20}" / f"module_{folder}"
        inside.mkdir(parents=True)
        for number in range(each):
            (inside / f"file_{number}.py").write_text(f"{text}# {folder} {number}\n")
    author = ("-c", "user.name=bench", "-c", "user.email=bench@localhost")
    for line in (("init", "-q"), ("add", "-A"), (*author, "commit", "-q", "-m", "first")):
        subprocess.run(["git", *line], cwd=top, check=True, stdin=subprocess.DEVNULL)
    return top


def _kept(root: Path, home: Path) -> Snapshots:
    return Snapshots(root, home, {"PATH": os.environ["PATH"], "HOME": str(home)})


async def _timed(work: Callable[[], Awaitable[object]]) -> float:
    """Return how long it takes, in ms."""
    started = time.perf_counter()
    if isinstance(await work(), SkippedSnapshot):
        raise OSError("a snapshot took too long, so there is none")
    return (time.perf_counter() - started) * 1000


async def _large(root: Path, home: Path) -> tuple[float, float]:
    """Return the times of the first snapshot and, after some files changed, of the next."""
    kept = _kept(root, home)
    first = await _timed(kept.take)
    for number in range(CHANGED):
        (root / f"package_{number}" / f"module_{number}" / "file_7.py").write_text(f"{time.time_ns()}\n")
    later = await _timed(lambda: kept.take(fresh=True))
    return first, later


async def _small(root: Path, home: Path) -> tuple[float, float]:
    """Return the median times of a recorded step that changes a file and of one that changes nothing."""
    kept = _kept(root, home)
    times: dict[bool, list[float]] = {True: [], False: []}

    async def step(number: int, *, writes: bool) -> None:
        recorder = StepRecorder(kept)
        await recorder.record_before()
        if writes:
            (root / "package_0" / "module_0" / "file_1.py").write_text(f"changed {number}\n")
        await recorder.finish()

    for number in range(STEPS):
        for writes, found in times.items():
            started = time.perf_counter()
            await step(number, writes=writes)
            found.append((time.perf_counter() - started) * 1000)
    return statistics.median(times[True]), statistics.median(times[False])
