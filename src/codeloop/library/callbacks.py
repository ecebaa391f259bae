"""Calls the callbacks of the program that uses the library, which may block, and reports failures of tasks."""

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from typing import TypeVar, cast

A = TypeVar("A")
R = TypeVar("R")


async def call_callback(function: "Callable[[A], R | Awaitable[R]]", argument: A) -> R:
    """Call a callback and return its value. If it is not async, it runs in a thread, so that it may wait for a user."""
    if inspect.iscoroutinefunction(function):
        return await cast("Awaitable[R]", function(argument))
    value = await asyncio.to_thread(function, argument)
    return await cast("Awaitable[R]", value) if inspect.isawaitable(value) else cast("R", value)


def report_failure(on_failure: Callable[[BaseException], object], task: "asyncio.Task[None]") -> None:
    """Call `on_failure` with the exception of a task that has ended, if it raised one."""
    if not task.cancelled() and (error := task.exception()) is not None:
        on_failure(error)
