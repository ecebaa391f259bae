"""What a conversation has asked for and waits for."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from codeloop.schema.api.session_inputs import MessageWithParts


class Work:
    """Calls that are answered when a turn ends. `failed` is told of errors, `changed` when one is over."""

    def __init__(self, failed: Callable[[BaseException], object], changed: Callable[[], object]) -> None:
        self.answer: MessageWithParts | None = None
        """The last answer of a turn that was not summed up yet."""
        self._failed = failed
        self._changed = changed
        self._calls: set[asyncio.Task[Any]] = set()
        self._asides: set[asyncio.Task[Any]] = set()

    @property
    def is_empty(self) -> bool:
        """Whether nothing is waited for."""
        return not self._calls

    def start(self, call: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        """Wait for a call."""
        task = asyncio.create_task(call)
        self._calls.add(task)
        task.add_done_callback(self._done)
        return task

    def aside(self, call: Coroutine[Any, Any, Any]) -> None:
        """Do something that nothing waits for."""
        task = asyncio.create_task(call)
        self._asides.add(task)
        task.add_done_callback(self._asides.discard)
        task.add_done_callback(self._check)

    async def stop(self) -> None:
        """Wait for nothing any more; what runs on the server goes on."""
        tasks = [*self._calls, *self._asides]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _done(self, task: asyncio.Task[Any]) -> None:
        self._calls.discard(task)
        self._check(task)
        if not task.cancelled() and task.exception() is None and isinstance(task.result(), MessageWithParts):
            self.answer = task.result()
        self._changed()

    def _check(self, task: asyncio.Task[Any]) -> None:
        error = None if task.cancelled() else task.exception()
        if error is not None:
            self._failed(error)
