"""Measures how long an event loop stands still during some work,
in CPU time of this process: load does not count.
"""

import asyncio
import gc
import math
import time
from collections.abc import Awaitable, Callable

from tests.support.machine_speed import measure_slowness

MAX_STALL_SECONDS = 0.2
"""Seconds of the process's own CPU time between two turns of the loop: twice what is promised.

What has no bound takes many times as long.
"""
MAX_TRIES = 3
MAX_CPU_SECONDS = 15.0
"""Seconds of CPU time in all, several times what the slowest row takes;
what has no bound takes minutes.
"""


async def measure_stall(work: Callable[[], Awaitable[object]]) -> tuple[float, float]:
    """Return the longest time between two turns of the loop while `work` runs,
    and what it took in all; CPU seconds.
    """
    gc.collect()
    # A collection of the objects of earlier tests would take longer than the measured work.
    gc.freeze()
    longest, is_over = 0.0, False

    async def tick() -> None:
        nonlocal longest
        before = time.process_time()
        while not is_over:
            await asyncio.sleep(0.001)
            now = time.process_time()
            longest = max(longest, now - before)
            before = now

    ticker = asyncio.create_task(tick())
    await asyncio.sleep(0.002)
    begun = time.process_time()
    try:
        async with asyncio.timeout(300):
            await work()
    finally:
        taken = time.process_time() - begun
        is_over = True
        await ticker
    return longest, taken


async def check_loop_turns(
    work: Callable[[], Awaitable[object]], prepare: Callable[[], Awaitable[object]] | None = None
) -> None:
    """Fail unless the loop keeps turning while `work` runs, after `prepare`,
    and `work` comes to an end.

    What has no bound stands still each time; a machine that is busy with other
    things makes it look so once.
    """
    shortest = math.inf
    for _ in range(MAX_TRIES):
        if prepare is not None:
            await prepare()
        longest, taken = await measure_stall(work)
        if longest < MAX_STALL_SECONDS and taken < MAX_CPU_SECONDS:
            return
        slowness = measure_slowness()
        assert taken < MAX_CPU_SECONDS * slowness, f"it took {taken:.1f} s of CPU time"
        shortest = min(shortest, longest / slowness)
        if shortest < MAX_STALL_SECONDS:
            return
    raise AssertionError(f"the loop stood still for {shortest * 1000:.0f} ms")
