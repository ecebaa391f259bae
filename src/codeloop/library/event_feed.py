"""`EventFeed` follows the events of an open project, and passes each event to its listeners."""

import asyncio
from collections.abc import Callable, Coroutine, Generator
from contextlib import contextmanager

from codeloop.client.client import Client
from codeloop.kit.asyncio_tasks import report_failure
from codeloop.schema.errors import GapError
from codeloop.schema.event import Event
from codeloop.schema.live_events import ServerConnected


class Listener:
    """The base of listeners to a project's events. Its methods do nothing,
    so subclasses override those they need.
    """

    def on_event(self, event: Event) -> None:
        """Handle an event."""

    def on_resume(self) -> None:
        """Handle a gap in the stream: events may have been missed."""

    def on_failure(self, error: BaseException) -> None:
        """Handle the end of the stream by an error: no more events will come."""

    async def close(self) -> None:
        """Stop the listener's work, because the project is being closed."""


class EventFeed:
    """The events of one client, followed from the first `start` until `close`."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._listeners: list[Listener] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._follow_task: asyncio.Task[None] | None = None

    @contextmanager
    def listen(self, listener: Listener) -> Generator[None]:
        """Pass events to a listener while the block runs."""
        self._listeners.append(listener)
        try:
            yield
        finally:
            self._listeners.remove(listener)

    async def start(self) -> None:
        """Start following, unless it has started: the events of operations that are called
        from now on are received.
        """
        if self._follow_task is None or self._follow_task.done():
            self._follow_task = asyncio.create_task(self._follow())
            self._follow_task.add_done_callback(
                lambda task: report_failure(task, self._report_loss)
            )
            # The task subscribes in its first step, which has to come before the
            # caller's next operation.
            await asyncio.sleep(0)

    def start_background(
        self, work: Coroutine[object, object, None], on_failure: Callable[[BaseException], object]
    ) -> None:
        """Run a coroutine in the background, at most until the feed is closed;
        `on_failure` gets its exception.
        """
        task = asyncio.create_task(work)
        # The event loop only holds weak references to tasks.
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        task.add_done_callback(lambda task: report_failure(task, on_failure))

    async def close(self) -> None:
        """Close the listeners, and stop following and all background work."""
        for listener in tuple(self._listeners):
            await listener.close()
        tasks = [*self._tasks, *([self._follow_task] if self._follow_task is not None else [])]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    async def _follow(self) -> None:
        while True:
            try:
                async for event in self._client.follow():
                    # The first event after a lost connection.
                    is_resumed = isinstance(event.event, ServerConnected)
                    # Copied, as a listener may be removed while the others are called.
                    for listener in tuple(self._listeners):
                        if is_resumed:
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
