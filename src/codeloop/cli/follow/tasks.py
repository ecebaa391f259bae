"""Ends asyncio tasks (the main one on a signal, several at once), and reports the failure of one."""

import asyncio
from collections.abc import Callable, Iterable
from typing import Any

from codeloop.cli.bootstrap import list_end_signals


def cancel_on_signals() -> None:
    """Have a signal that ends a command cancel the current task, so that it closes what it has opened."""
    task, loop = asyncio.current_task(), asyncio.get_running_loop()
    for number in list_end_signals():
        loop.add_signal_handler(number, lambda: task.cancel() if task is not None else None)


def report_failure(task: asyncio.Task[Any], on_failure: Callable[[BaseException], object]) -> None:
    """Call `on_failure` with the exception of a finished task, if it raised one; a cancelled task did not."""
    error = None if task.cancelled() else task.exception()
    if error is not None:
        on_failure(error)


async def cancel_all(tasks: Iterable[asyncio.Task[Any] | None]) -> None:
    """Cancel tasks and wait for their end."""
    running = [task for task in tasks if task is not None]
    for task in running:
        task.cancel()
    await asyncio.gather(*running, return_exceptions=True)
