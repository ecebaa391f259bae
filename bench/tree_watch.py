"""Measures watching a large work tree: the start, and the wait for changes."""

import asyncio
import time
from pathlib import Path
from typing import NamedTuple

from bench.bench_run import BenchRun
from codeloop.workspace.watch.ignored_files import IgnoredFiles
from codeloop.workspace.watch.tree_watch import TreeWatch

FOLDER_COUNT, FILES_PER_FOLDER = 10_000, 20
IDLE_SECONDS = 5
MAX_WATCHES_FILE = Path("/proc/sys/fs/inotify/max_user_watches")


class WatchTimes(NamedTuple):
    """Times in milliseconds."""

    scan_cpu: float
    longest_stall: float
    """The longest time in which no other task of the event loop had a turn, while the scan ran."""
    idle_cpu: float
    """In a second in which nothing changes."""


def measure_tree_watch(bench: BenchRun) -> None:
    """Measure 200,000 files. Nothing is measured where inotify is missing
    or its limit is too low.
    """
    # A watch is needed for each folder; other programs of the user need some, too.
    if (
        not MAX_WATCHES_FILE.exists()
        or int(MAX_WATCHES_FILE.read_text(encoding="ascii")) < 2 * FOLDER_COUNT
    ):
        return
    root = bench.folder / "watched"
    for folder in range(FOLDER_COUNT):
        inside = root / f"d{folder % 100}" / f"e{folder}"
        inside.mkdir(parents=True)
        for number in range(FILES_PER_FOLDER):
            (inside / f"file_{number}.py").touch()
    times = asyncio.run(_time_watch(root))
    bench.put_own("watch-large-cpu", times.scan_cpu)
    bench.put_own("watch-large-stall", times.longest_stall)
    bench.put_own("watch-idle", times.idle_cpu)


async def _time_watch(root: Path) -> WatchTimes:
    tree = TreeWatch(root, None, IgnoredFiles(root, None, [], {}))
    longest = 0.0

    async def measure_stalls() -> None:
        nonlocal longest
        while True:
            began = time.monotonic()
            await asyncio.sleep(0.001)
            longest = max(longest, time.monotonic() - began)

    stalls, cpu_before = asyncio.create_task(measure_stalls()), time.process_time()
    await tree.scan()
    scan_cpu = time.process_time() - cpu_before
    stalls.cancel()
    waiting = asyncio.create_task(tree.wait_for_changes())
    # The start of the wait is not part of the idle time.
    await asyncio.sleep(0.5)
    began, cpu_before = time.monotonic(), time.process_time()
    await asyncio.sleep(IDLE_SECONDS)
    idle_cpu = (time.process_time() - cpu_before) / (time.monotonic() - began)
    waiting.cancel()
    await asyncio.wait([waiting])
    tree.close()
    return WatchTimes(scan_cpu * 1000, longest * 1000, idle_cpu * 1000)
