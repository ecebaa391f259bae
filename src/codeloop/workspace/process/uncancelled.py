"""Waits for work that has to be done to its end, such as ending a process, even when the task is cancelled."""

import asyncio
from collections.abc import Awaitable


async def finish_uncancelled(ending: Awaitable[object]) -> None:
    """Wait until `ending` is done, even when this task is cancelled meanwhile; then raise the cancellation."""
    task = asyncio.ensure_future(ending)
    is_cancelled = False
    while not task.done():
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError:
            is_cancelled = True
    if is_cancelled:
        raise asyncio.CancelledError
