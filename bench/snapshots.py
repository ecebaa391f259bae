"""Measures snapshots: the first of a large work tree, the next one,
and a recorded step in a small project.
"""

import asyncio
import os
import statistics
import subprocess
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from bench.bench_run import BenchRun
from codeloop.workspace.snapshot.snapshots import SkippedSnapshot, Snapshots
from codeloop.workspace.snapshot.step_recorder import StepRecorder

FOLDERS, FILES_EACH = 1_000, 100
CHANGED_FILES = 10
SMALL_FILES = 50
STEP_COUNT = 20


def measure_snapshots(bench: BenchRun) -> None:
    """Measure, in this process, a repository of 100,000 committed files and one of 50."""
    large = make_repository(bench.folder / "snapshot-large", FOLDERS, FILES_EACH)
    rounds = [
        asyncio.run(_time_large(large, bench.folder / f"snapshots-{number}"))
        for number in range(bench.rounds)
    ]
    bench.put_own("snapshot-first", statistics.median(first for first, _ in rounds))
    bench.put_own("snapshot-next", statistics.median(later for _, later in rounds))
    small = make_repository(bench.folder / "snapshot-small", 1, SMALL_FILES)
    step, idle = asyncio.run(_time_steps(small, bench.folder / "snapshots-small"))
    bench.put_own("snapshot-step", step)
    bench.put_own("snapshot-idle", idle)


def make_repository(top: Path, folders: int, each: int) -> Path:
    """Make a repository of small committed files, `each` in every folder; return `top`."""
    text = "def add(a, b):\n    return a + b\n\n\n" * 10
    for folder in range(folders):
        inside = top / f"package_{folder % 20}" / f"module_{folder}"
        inside.mkdir(parents=True)
        for number in range(each):
            (inside / f"file_{number}.py").write_text(f"{text}# {folder} {number}\n")
    author = ("-c", "user.name=bench", "-c", "user.email=bench@localhost")
    for arguments in (("init", "-q"), ("add", "-A"), (*author, "commit", "-q", "-m", "first")):
        subprocess.run(["git", *arguments], cwd=top, check=True, stdin=subprocess.DEVNULL)
    return top


def _open_snapshots(root: Path, home: Path) -> Snapshots:
    return Snapshots(root, home, {"PATH": os.environ["PATH"], "HOME": str(home)})


async def _time_snapshot(work: Callable[[], Awaitable[object]]) -> float:
    """Return the time of a call that takes a snapshot, ms.
    Raises OSError: codeloop has given it up as too slow.
    """
    started = time.perf_counter()
    if isinstance(await work(), SkippedSnapshot):
        raise OSError("a snapshot took too long, so there is none")
    return (time.perf_counter() - started) * 1000


async def _time_large(root: Path, home: Path) -> tuple[float, float]:
    """Return the times of the first snapshot and, after some files changed, of the next."""
    snapshots = _open_snapshots(root, home)
    first = await _time_snapshot(snapshots.take)
    for number in range(CHANGED_FILES):
        (root / f"package_{number}" / f"module_{number}" / "file_7.py").write_text(
            f"{time.time_ns()}\n"
        )
    later = await _time_snapshot(lambda: snapshots.take(fresh=True))
    return first, later


async def _time_steps(root: Path, home: Path) -> tuple[float, float]:
    """Return the median times of a recorded step that changes a file and of
    one that changes nothing.
    """
    snapshots = _open_snapshots(root, home)
    writing: list[float] = []
    idle: list[float] = []

    async def time_step(number: int, *, writes: bool) -> float:
        started = time.perf_counter()
        recorder = StepRecorder(snapshots)
        await recorder.record_before()
        if writes:
            (root / "package_0" / "module_0" / "file_1.py").write_text(f"changed {number}\n")
        await recorder.finish()
        return (time.perf_counter() - started) * 1000

    for number in range(STEP_COUNT):
        writing.append(await time_step(number, writes=True))
        idle.append(await time_step(number, writes=False))
    return statistics.median(writing), statistics.median(idle)
