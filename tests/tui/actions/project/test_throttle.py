"""Many events, few drawings."""

import asyncio

import pytest

from codeloop.tui.actions.project.event_handler import (
    FRAME_INTERVAL,
    SCROLL_INTERVAL,
    FrameScheduler,
    Throttle,
)


@pytest.mark.parametrize("scrolls", [False, True])
async def test_a_burst_is_drawn_at_once_and_then_thirty_times_a_second_or_fifteen_times_if_it_scrolls(
    *, scrolls: bool
) -> None:
    drawn: list[float] = []
    clock = asyncio.get_running_loop().time

    def draw() -> bool:
        drawn.append(clock())
        return scrolls

    frames = FrameScheduler(draw)
    began = clock()
    turns = 0
    while len(drawn) < 3:
        frames.request()
        await asyncio.sleep(0)
        turns += not drawn
    assert turns < 3, "the first one waits for nothing"
    assert drawn[-1] - began >= 2 * (SCROLL_INTERVAL if scrolls else FRAME_INTERVAL)


async def test_work_is_begun_once_for_a_burst_and_again_for_what_comes_while_it_goes_on() -> None:
    begun = 0
    gate = asyncio.Event()

    async def work() -> None:
        nonlocal begun
        begun += 1
        await gate.wait()

    lull = Throttle(lambda: asyncio.create_task(work()), 0.01)
    for _ in range(5):
        lull.request()
    while not begun:
        await asyncio.sleep(0.005)
    lull.request()
    await asyncio.sleep(0.03)
    assert begun == 1
    gate.set()
    while begun < 2:
        await asyncio.sleep(0.005)
    await asyncio.sleep(0.03)
    assert begun == 2
