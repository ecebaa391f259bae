"""Supervises the running subagents of a project: bounds how many run at once,
and for how long each runs.
"""

import asyncio
from collections.abc import Coroutine
from contextlib import suppress

from msgspec import Struct

from codeloop.schema.limits import RUNNING_SUBAGENTS, SUBAGENT_CHECK, SUBAGENT_IDLE, SUBAGENT_TIME
from codeloop.store.store import Store
from codeloop.store.subagents import is_waiting_for_answer
from codeloop.tool.tool import SubtaskResult, ToolFailure


class Supervisor:
    """The subagents of one project in this process, by session: those that work,
    and those that wait for a slot.
    """

    def __init__(self) -> None:
        self.slots = asyncio.Semaphore(RUNNING_SUBAGENTS.value)
        """Held by each subagent while it works, so that at most RUNNING_SUBAGENTS do at once."""
        self.background_parents = set[str]()
        """The sessions that have started a subagent for which no call waits."""
        self._tasks: dict[str, asyncio.Task[SubtaskResult]] = {}

    @property
    def is_any_running(self) -> bool:
        """Whether a subagent is running or waiting for a slot."""
        return bool(self._tasks)

    def find_task(self, session_id: str) -> asyncio.Task[SubtaskResult] | None:
        """Return the task of the subagent with this session while it works, or waits for a slot;
        else None.
        """
        return self._tasks.get(session_id)

    def list_busy_sessions(self) -> list[str]:
        """Return the sessions of the running and waiting subagents."""
        return list(self._tasks)

    def begin(
        self, session_id: str, work: Coroutine[None, None, SubtaskResult]
    ) -> asyncio.Task[SubtaskResult]:
        """Start a subagent. Raises ToolFailure when it is already running."""
        if session_id in self._tasks:
            # A coroutine that is never awaited causes a warning.
            work.close()
            raise ToolFailure(
                f"The subagent {session_id} is still working.",
                advice="Wait for it, or ask with bash_output.",
            )
        task = asyncio.create_task(work)
        self._tasks[session_id] = task
        task.add_done_callback(lambda task: self._forget(session_id, task))
        return task

    def _forget(self, session_id: str, task: asyncio.Task[SubtaskResult]) -> None:
        """Remove a subagent that has ended; its session stores the outcome."""
        del self._tasks[session_id]
        if not task.cancelled():
            # Marks the exception as retrieved: asyncio would log it otherwise.
            task.exception()

    async def cancel(self, session_id: str) -> None:
        """Cancel a subagent and wait until its state is stored."""
        task = self._tasks.get(session_id)
        if task is not None:
            task.cancel()
            await asyncio.wait([task])

    async def close(self) -> None:
        """Cancel every subagent, and wait until their states are stored."""
        for session_id in list(self._tasks):
            await self.cancel(session_id)


class TimeLimits(Struct, frozen=True):
    """The seconds that a subagent may run, those without any event of its session,
    and those between two checks.
    """

    max_work_seconds: float = SUBAGENT_TIME.seconds
    max_silence_seconds: float = SUBAGENT_IDLE.seconds
    check_interval_seconds: float = SUBAGENT_CHECK.seconds


DEFAULT_LIMITS = TimeLimits()


async def wait_until_overdue(
    store: Store, session_id: str, limits: TimeLimits = DEFAULT_LIMITS
) -> str:
    """Wait until a subagent has exceeded its time limit or its idle limit; return the reason.

    Time spent waiting for the user does not count.
    """
    activity = asyncio.Event()
    listening = asyncio.create_task(_listen(store, session_id, activity))
    active_seconds = silent_seconds = 0.0
    try:
        while True:
            await asyncio.sleep(limits.check_interval_seconds)
            if is_waiting_for_answer(store, session_id):
                silent_seconds = 0.0
                continue
            active_seconds += limits.check_interval_seconds
            silent_seconds = (
                0.0 if activity.is_set() else silent_seconds + limits.check_interval_seconds
            )
            activity.clear()
            if active_seconds > limits.max_work_seconds:
                return (
                    f"It worked for {limits.max_work_seconds / 60:g} minutes, which is the limit."
                )
            if silent_seconds > limits.max_silence_seconds:
                return f"It showed no sign of life for {limits.max_silence_seconds / 60:g} minutes."
    finally:
        listening.cancel()
        with suppress(asyncio.CancelledError):
            await listening


async def _listen(store: Store, session_id: str, activity: asyncio.Event) -> None:
    async for _ in store.follow(session=session_id):
        activity.set()
