"""Follows a project's events while it is open, and hands each of them to everybody who listens."""

import asyncio
from collections.abc import Callable, Coroutine, Generator
from contextlib import contextmanager

from codeloop.client.client import Client
from codeloop.library.callbacks import report_failure
from codeloop.schema.errors import GapError
from codeloop.schema.event import Event
from codeloop.schema.live_events import ServerConnected


class Listener:
    """Somebody who listens. All may be left as they are."""

    def on_event(self, event: Event) -> None:
        """Take in an event."""

    def on_resume(self) -> None:
        """Take in that events may be missing."""

    def on_failure(self, error: BaseException) -> None:
        """Take in that no more events will come."""

    async def close(self) -> None:
        """Stop what goes on: the project is closed."""


class EventFeed:
    """The events of one client, followed from the first time that they are wanted until it is closed."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._listeners: list[Listener] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._following: asyncio.Task[None] | None = None

    @contextmanager
    def listen(self, listener: Listener) -> Generator[None]:
        """Hand events to a listener."""
        self._listeners.append(listener)
        try:
            yield
        finally:
            self._listeners.remove(listener)

    async def start(self) -> None:
        """Follow, if that is not done yet: what is called from now on is seen."""
        if self._following is None or self._following.done():
            self._following = asyncio.create_task(self._follow())
            self._following.add_done_callback(lambda task: report_failure(self._report_loss, task))
            await asyncio.sleep(0)

    def start_background(
        self, work: Coroutine[object, object, None], on_failure: Callable[[BaseException], object]
    ) -> None:
        """Run something in the background, at most until the feed is closed."""
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        task.add_done_callback(lambda task: report_failure(on_failure, task))

    async def close(self) -> None:
        """Stop the listeners, the following, and all background work."""
        for listener in tuple(self._listeners):
            await listener.close()
        tasks = [*self._tasks, *([self._following] if self._following is not None else [])]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    async def _follow(self) -> None:
        while True:
            try:
                async for event in self._client.follow():
                    is_again = isinstance(event.event, ServerConnected)
                    for listener in tuple(self._listeners):
                        if is_again:
                            listener.on_resume()
                        else:
                            listener.on_event(event.event)
            except GapError:
                for listener in tuple(self._listeners):
                    listener.on_resume()
            else:
                return

    def _report_loss(self, error: BaseException) -> None:
        for listener in tuple(self._listeners):
            listener.on_failure(error)
