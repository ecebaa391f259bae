"""Keeps the open sessions up to date: reads their stored messages,
and applies the events that follow.
"""

import asyncio
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from typing import NamedTuple

from codeloop.client.client import Client
from codeloop.client.target import Target
from codeloop.kit.asyncio_tasks import cancel_all
from codeloop.schema.api.answers import PERMISSION_LIST, QUESTION_LIST
from codeloop.schema.api.session_messages import (
    SESSION_MESSAGES,
    ListMessages,
    make_cursor_before_time,
    make_cursor_of_page,
)
from codeloop.schema.api.session_requests import (
    SESSION_CHILDREN,
    SESSION_GET,
    SESSION_STATUS,
    SESSION_TODO,
    SessionId,
)
from codeloop.schema.errors import CodeloopError, GapError, OperationError
from codeloop.schema.event import (
    Event,
    PermissionAsked,
    PermissionReplied,
    QuestionAsked,
    QuestionRejected,
    QuestionReplied,
    SessionCreated,
    SessionUpdated,
    TodoUpdated,
)
from codeloop.schema.live_events import (
    Idle,
    ServerConnected,
    ServerResync,
    SessionIdle,
    StatusChanged,
)
from codeloop.schema.message import Session
from codeloop.schema.operation import NoArguments
from codeloop.tui.state.session_view import SessionView

PAGE_SIZE = 40
"""Messages that are read at once."""
_STATE_EVENTS = (
    SessionCreated,
    SessionUpdated,
    StatusChanged,
    SessionIdle,
    TodoUpdated,
    PermissionAsked,
    PermissionReplied,
    QuestionAsked,
    QuestionReplied,
    QuestionRejected,
)
"""The events that change what a session is, does, has to do and asks;
none is doubled when it is applied again.
"""


class SessionReading(NamedTuple):
    """A session that is being read, and the events that have arrived since."""

    view: SessionView
    events: list[Event]


class OpenSessions:
    """The open sessions of one target.

    `on_event` is called with every event after it was applied,
    `on_failure` with the error that ended the stream.
    `views`: the open sessions by id. `changed_ids`: the ids of sessions to be redrawn.
    """

    def __init__(
        self,
        target: Target,
        on_event: Callable[[Event], object],
        on_failure: Callable[[str], object],
    ) -> None:
        self.target = target
        self.views: dict[str, SessionView] = {}
        self.changed_ids: set[str] = set()
        self._on_event = on_event
        self._on_failure = on_failure
        self._follow_task: asyncio.Task[None] | None = None
        """Follows the events of the target."""
        self._tasks: set[asyncio.Task[None]] = set()
        """Read sessions again after events were missed."""
        self._readings: list[SessionReading] = []

    @property
    def client(self) -> Client:
        """The client of the directory that the UI was started in."""
        return self.target.client

    def get_session_client(self, session: Session) -> Client:
        """Return the client of a session's directory.
        Raises CodeloopError if it can't be reached.
        """
        return self.target.get_session_client(session)

    async def start(self) -> None:
        """Start following events."""
        self._follow_task = asyncio.create_task(self._follow())
        # Lets the task begin, so that no event is missed.
        await asyncio.sleep(0)

    async def stop(self) -> None:
        """Stop following."""
        await cancel_all((self._follow_task, *self._tasks))

    async def open(self, session: Session) -> SessionView:
        """Return a session's view, read from the store if it is not open yet.
        Raises CodeloopError.
        """
        view = self.views.get(session.id)
        if view is None:
            # Added before it is read, so that no event is missed.
            view = self.views[session.id] = SessionView(session)
            is_read = False
            try:
                await self._load(view)
                is_read = True
            finally:
                if not is_read:
                    self.close(session.id)
        return view

    def close(self, session_id: str) -> None:
        """Stop updating a session."""
        self.views.pop(session_id, None)
        self.changed_ids.discard(session_id)

    async def load_older(self, view: SessionView) -> None:
        """Read the page of messages before the oldest loaded one. Raises CodeloopError."""
        if (cursor := view.cursor) is not None:
            # A second call while this one reads must not load the same page.
            view.cursor = None
            await self._load_page(view, cursor)

    async def load_first(self, view: SessionView) -> None:
        """Read the session's first page. `load_older` then fills the gap between it
        and the loaded messages.

        Raises CodeloopError.
        """
        if view.cursor is None or not view.log.ids:
            return
        client = self.get_session_client(view.session)
        # A page can only be requested by the time that it ends before. The first page is the one
        # that is neither empty nor full, so its end is found by halving the span between a time
        # whose page is empty and one whose is full.
        empty, full = 0, view.log.messages[view.log.ids[0]].info.time.created
        while True:
            middle = (empty + full) // 2
            before = make_cursor_before_time(middle if full - empty > 1 else full)
            query = ListMessages(session_id=view.session.id, limit=PAGE_SIZE, before=before)
            page = await client.call(SESSION_MESSAGES, query)
            if 0 < len(page) < PAGE_SIZE or full - empty <= 1:
                break
            if page:
                full = min(page[0].info.time.created, middle)
            else:
                empty = middle
        view.log.add(page)
        self.changed_ids.add(view.session.id)

    async def _load(self, view: SessionView, *, is_again: bool = False) -> None:
        """Read all that is shown of a session: its newest messages, status, subagents,
        todos and requests.

        `is_again`: the session itself, too. What can't be read stays as it is shown.
        Raises CodeloopError.
        """
        client, session = (
            self.get_session_client(view.session),
            SessionId(session_id=view.session.id),
        )
        with self._collect_events(view) as events:
            try:
                if is_again:
                    view.update_session(await client.call(SESSION_GET, session))
                await self._load_page(view, None)
                for child in await client.call(SESSION_CHILDREN, session):
                    view.update_session(child)
                # After the subagents: of those that they start from now on, events come.
                statuses = await client.call(SESSION_STATUS, NoArguments())
                for session_id in statuses:
                    await _add_nested_subagent(client, view, session_id)
                todos = await client.call(SESSION_TODO, session)
                # Requests that were made before this program started,
                # too: another terminal may have begun the turn.
                permissions = await client.call(PERMISSION_LIST, NoArguments())
                questions = await client.call(QUESTION_LIST, NoArguments())
                view.set_status(statuses.get(view.session.id, Idle()))
                view.todos = todos
                view.requests.clear()
                view.add_requests(permissions)
                view.add_requests(questions)
            finally:
                for event in events:
                    if isinstance(event, _STATE_EVENTS):
                        view.apply_event(event)
        self.changed_ids.add(view.session.id)

    async def _load_page(self, view: SessionView, cursor: str | None) -> None:
        query = ListMessages(session_id=view.session.id, limit=PAGE_SIZE, before=cursor)
        with self._collect_events(view) as events:
            page = await self.get_session_client(view.session).call(SESSION_MESSAGES, query)
        is_joined = cursor is not None and any(each.info.id in view.log.messages for each in page)
        older = (
            make_cursor_of_page(page[0].info) if len(page) == PAGE_SIZE and not is_joined else None
        )
        if cursor is None:
            view.load(page, older, events)
        else:
            view.load_older(page, older)
        self.changed_ids.add(view.session.id)

    @contextmanager
    def _collect_events(self, view: SessionView) -> Generator[list[Event]]:
        """Yield the events of a session that arrive while it is read: what is read
        may be older than they are.
        """
        reading = SessionReading(view, [])
        self._readings.append(reading)
        try:
            yield reading.events
        finally:
            self._readings = [each for each in self._readings if each is not reading]

    async def _follow(self) -> None:
        while True:
            try:
                async for event in self.client.follow():
                    self._apply_event(event.event)
            # The server has dropped events that were not fetched in time;
            # following goes on with newer ones.
            except GapError:
                self._schedule_reread()
            except CodeloopError as error:
                self._on_failure(str(error))
                return
            else:
                return

    def _apply_event(self, event: Event) -> None:
        if isinstance(event, ServerConnected | ServerResync):
            self._schedule_reread()
        # What is being read may be older than the events that arrive meanwhile,
        # which are applied once more afterwards.
        for session_id, view in self.views.items():
            if view.apply_event(event):
                self.changed_ids.add(session_id)
                for reading in self._readings:
                    if reading.view is view:
                        reading.events.append(event)
        self._on_event(event)

    def _schedule_reread(self) -> None:
        """Read the open sessions again, because events were missed."""
        task = asyncio.create_task(self._reread_sessions())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _reread_sessions(self) -> None:
        for view in list(self.views.values()):
            # A session that can't be read stays as it is shown.
            with suppress(CodeloopError):
                await self._load(view, is_again=True)


async def _add_nested_subagent(client: Client, view: SessionView, session_id: str) -> None:
    """Add a session that works to a view, with those between,
    if it is a subagent of the view's subagents.

    It may ask something, and a view shows the questions of the sessions that it knows.
    """
    lineage: list[Session] = []
    while not view.owns(session_id):
        try:
            session = await client.call(SESSION_GET, SessionId(session_id=session_id))
        except OperationError:
            return  # it was deleted meanwhile
        if session.parent_id is None:
            return
        lineage.append(session)
        session_id = session.parent_id
    for session in reversed(lineage):
        view.update_session(session)
