"""Ends asyncio tasks, and reports the failure of one that nobody awaits."""

import asyncio
from collections.abc import Callable, Iterable
from typing import Any


def report_failure(task: asyncio.Task[Any], on_failure: Callable[[BaseException], object]) -> None:
    """Call `on_failure` with the exception of a finished task, if it raised one;
    a cancelled task did not.
    """
    error = None if task.cancelled() else task.exception()
    if error is not None:
        on_failure(error)


async def cancel_all(tasks: Iterable[asyncio.Task[Any] | None]) -> None:
    """Cancel tasks and wait until all have ended; their results and errors are dropped.

    None stands for a task that was never started. If the caller is cancelled meanwhile, the tasks
    are cancelled once more, and it still waits for them; where that could interrupt the end of a
    process, use `asyncio.wait`.
    """
    running = [task for task in tasks if task is not None]
    for task in running:
        task.cancel()
    await asyncio.gather(*running, return_exceptions=True)
