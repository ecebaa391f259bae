"""`SessionFollower`: shows and counts the events of a session, and has its requests answered.

The session is in this process or on a server. Used by the turns of `run` and by
conversations line by line.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress

from msgspec import Struct

from codeloop.cli.follow.subagents import SessionSubagents
from codeloop.cli.output.result import Tally
from codeloop.cli.output.view import View
from codeloop.cli.questions.answerer import Answerer, OpenRequests
from codeloop.client.client import Client, ServerLost
from codeloop.kit.asyncio_tasks import cancel_all, report_failure
from codeloop.schema.api.answers import PERMISSION_LIST, QUESTION_LIST
from codeloop.schema.api.session_requests import SESSION_CHILDREN, SESSION_STATUS, SessionId
from codeloop.schema.errors import CodeloopError, GapError
from codeloop.schema.event import Event, get_session_id
from codeloop.schema.limits import REDRAW_INTERVAL, TURN_EVENTS_TIME
from codeloop.schema.live_events import Idle, ServerConnected, SessionIdle, StatusChanged
from codeloop.schema.message import Session
from codeloop.schema.operation import NoArguments


def _ignore(*_: object) -> None:
    return


class FollowCallbacks(Struct, frozen=True):
    """The callbacks of a follower.

    `on_failure`: called with the error when a request could not be answered. `on_loss`: with the
    error that ended the following. `on_event`: with each event of the session, after it is shown.
    `on_change`: when the session starts or stops working.
    """

    on_failure: Callable[[BaseException], object]
    on_loss: Callable[[BaseException], object]
    on_event: Callable[[Event], object] = _ignore
    on_change: Callable[[], object] = _ignore


class SessionFollower:
    """Shows and counts the events of one session,
    and answers its requests and those of its subagents.
    """

    def __init__(
        self,
        client: Client,
        session: Session,
        view: View,
        answerer: Answerer,
        callbacks: FollowCallbacks,
    ) -> None:
        self.tally = Tally(session)
        """The counts of the present turn; replaced at the start of each turn."""
        self.is_running = False
        self.subagents = SessionSubagents(session.id)
        self._client = client
        self._session_id = session.id
        self._view = view
        self._callbacks = callbacks
        self._requests = OpenRequests(client, session.id, view, answerer, callbacks.on_failure)
        self._idle = asyncio.Event()
        self._follow_task: asyncio.Task[None] | None = None
        self._tasks: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        """Start to follow the session."""
        self._follow_task = asyncio.create_task(self._follow())
        self._follow_task.add_done_callback(
            lambda task: report_failure(task, self._callbacks.on_loss)
        )
        if self._view.is_live:
            self._tasks.append(asyncio.create_task(self._tick_view()))
        # Let the task subscribe, so that it misses no event of what the caller does next.
        await asyncio.sleep(0)

    async def stop(self) -> None:
        """Show the events that have already arrived, then stop following."""
        # Each pass of the event loop lets the follower's task handle events that are in its queue.
        for _ in range(4):
            await asyncio.sleep(0)
        await self._requests.stop()
        await cancel_all([self._follow_task, *self._tasks])

    async def wait_until_shown(self) -> None:
        """Wait until the events of the turn are shown, the following has ended,
        or TURN_EVENTS_TIME is over.
        """
        # From a server, events may arrive later than the answer to the prompt.
        idle_task = asyncio.create_task(self._idle.wait())
        tasks: set[asyncio.Task[object]] = {idle_task}
        if self._follow_task is not None:
            tasks.add(self._follow_task)
        await asyncio.wait(
            tasks, timeout=TURN_EVENTS_TIME.seconds, return_when=asyncio.FIRST_COMPLETED
        )
        idle_task.cancel()

    async def confirm_end(self) -> None:
        """Ask the server whether the session still works,
        unless an event reports its end within TURN_EVENTS_TIME.
        """
        await asyncio.sleep(TURN_EVENTS_TIME.seconds)
        while self.is_running:
            try:
                await self._check_running()
            # The connection may come back; only then the state is known.
            except ServerLost:
                await asyncio.sleep(TURN_EVENTS_TIME.seconds)
            else:
                return

    async def catch_up(self) -> None:
        """Load the state that events before now have made: whether a turn runs,
        its subagents and open requests.
        """
        await self._check_running()
        # Requests of a session at rest were left behind by a killed server;
        # no turn waits for their answers.
        if not self.is_running:
            return
        for child in await self._client.call(
            SESSION_CHILDREN, SessionId(session_id=self._session_id)
        ):
            self.subagents.add_session(child)
        permissions = await self._client.call(PERMISSION_LIST, NoArguments())
        questions = await self._client.call(QUESTION_LIST, NoArguments())
        for request in (*permissions, *questions):
            await self._requests.add(request)

    async def _check_running(self) -> None:
        """Ask the server whether the session works, and note the answer."""
        statuses = await self._client.call(SESSION_STATUS, NoArguments())
        self._set_running(is_running=self._session_id in statuses)

    async def _catch_up_quietly(self) -> None:
        # A server that is gone for good is reported by the event stream, once.
        with suppress(CodeloopError):
            await self.catch_up()

    async def _follow(self) -> None:
        while True:
            try:
                async for event in self._client.follow(root=self._session_id):
                    await self._handle_event(event.event)
            # The follower was too slow, and events were dropped.
            except GapError as error:
                self._view.note(f"Some events are not shown: {error}")
                await self.catch_up()
            else:
                return

    async def _tick_view(self) -> None:
        """Redraw the progress every REDRAW_INTERVAL,
        except while a question waits for its answer.
        """
        while True:
            await asyncio.sleep(REDRAW_INTERVAL.seconds)
            if not self._requests.is_asking:
                self._view.tick()

    async def _handle_event(self, event: Event) -> None:
        # The stream has connected again: requests and the end of a turn may have been missed.
        if isinstance(event, ServerConnected):
            self._tasks.append(asyncio.create_task(self._catch_up_quietly()))
        elif await self._requests.handle_event(event):
            pass
        elif get_session_id(event) in {self._session_id, None}:
            self.tally.handle_event(event)
            self._view.show(event)
            if isinstance(event, StatusChanged | SessionIdle):
                status = event.properties.status if isinstance(event, StatusChanged) else Idle()
                self._set_running(is_running=not isinstance(status, Idle))
            self._callbacks.on_event(event)
        elif (title := self.subagents.handle_event(event)) is not None:
            self.tally.handle_change(event)
            self._view.show_subagent(event, title)

    def _set_running(self, *, is_running: bool) -> None:
        if is_running:
            self._idle.clear()
        else:
            self._idle.set()
        if is_running != self.is_running:
            self.is_running = is_running
            self._callbacks.on_change()
