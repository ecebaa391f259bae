"""Follows a session wherever it runs: its events are shown and counted, what it asks is answered."""

import asyncio
from collections.abc import Callable
from contextlib import suppress

from codeloop.cli.follow.subagents import Subagents
from codeloop.cli.output.view import View
from codeloop.cli.questions.answerer import Answerer
from codeloop.cli.run.result import Tally
from codeloop.cli.target.named import belongs
from codeloop.client.client import Client
from codeloop.client.link import ServerLost
from codeloop.schema.api.session_requests import SessionId
from codeloop.schema.errors import CodeloopError
from codeloop.schema.event import (
    Event,
    PermissionAsked,
    PermissionReplied,
    QuestionAsked,
    QuestionRejected,
    QuestionReplied,
    session_of,
)
from codeloop.schema.limits import REDRAW, TURN_SETTLE
from codeloop.schema.live_events import Idle, ServerConnected, SessionIdle, StatusChanged
from codeloop.schema.message import Session
from codeloop.schema.operation import PERMISSION_LIST, QUESTION_LIST, SESSION_CHILDREN, SESSION_STATUS, NoArguments
from codeloop.schema.permission import PermissionRequest
from codeloop.schema.question import QuestionRequest
from codeloop.store.follow import GapError

ELSEWHERE = "That was answered elsewhere, or is not asked any more."


class RunFollower:
    """Shows and counts the events of one session, and answers the questions of it and of its subagents.

    `heard` is called with each event after it was shown, `changed` when the session begins or ends to work, `failed`
    with what kept a question from being answered, `lost` with what ended the following. `tally` counts since it was
    last replaced.
    """

    def __init__(self, client: Client, session: Session, view: View, answerer: Answerer) -> None:
        self.tally = Tally(session)
        self.is_running = False
        self.heard: Callable[[Event], object] = lambda _: None
        self.changed: Callable[[], object] = lambda: None
        self.failed: Callable[[BaseException], object] = lambda _: None
        self.lost: Callable[[BaseException], object] = lambda _: None
        self._client = client
        self._session_id = session.id
        self._view = view
        self._answerer = answerer
        self._idle = asyncio.Event()
        self.subagents = Subagents(session.id)
        self._ticking: asyncio.Task[None] | None = None
        self._questions: dict[str, asyncio.Task[None]] = {}
        self._following: asyncio.Task[None] | None = None
        self._resuming: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Follow from now on."""
        self._following = asyncio.create_task(self._follow())
        self._following.add_done_callback(lambda task: _report(task, self.lost))
        if self._view.is_live:
            self._ticking = asyncio.create_task(self._tick())
        await asyncio.sleep(0)

    async def stop(self) -> None:
        """Show what is already there, then follow no more."""
        for _ in range(3):
            await asyncio.sleep(0)
        tasks = [*self._questions.values(), *filter(None, (self._following, self._resuming, self._ticking))]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def settled(self) -> None:
        """Wait until the turn is shown to its end: from a server that may come after the prompt's answer."""
        ended = asyncio.create_task(self._idle.wait())
        tasks = {ended, *([self._following] if self._following else [])}
        await asyncio.wait(tasks, timeout=TURN_SETTLE.seconds, return_when=asyncio.FIRST_COMPLETED)
        ended.cancel()

    async def settle(self) -> None:
        """Ask as `look` does, should the stream not tell soon that the session no longer works."""
        await asyncio.sleep(TURN_SETTLE.seconds)
        while self.is_running:
            try:
                await self.look()
            except ServerLost:
                await asyncio.sleep(TURN_SETTLE.seconds)
            else:
                return

    async def look(self) -> None:
        """Ask whether the session works."""
        statuses = await self._client.call(SESSION_STATUS, NoArguments())
        self._set_running(is_running=self._session_id in statuses)

    async def catch_up(self) -> None:
        """Learn what was going on before: whether it works, and what waits for an answer."""
        await self.look()
        if not self.is_running:  # what is left of a server that was killed waits for nobody
            return
        for child in await self._client.call(SESSION_CHILDREN, SessionId(session_id=self._session_id)):
            self.subagents.learn(child)
        permissions = await self._client.call(PERMISSION_LIST, NoArguments())
        questions = await self._client.call(QUESTION_LIST, NoArguments())
        for request in (*permissions, *questions):
            await self._ask(request)

    async def _resumed(self) -> None:
        with suppress(CodeloopError):  # when it is gone for good, the stream says so
            await self.catch_up()

    async def _follow(self) -> None:
        while True:
            try:
                async for stamped in self._client.follow():
                    await self._seen(stamped.event)
            except GapError as error:
                self._view.note(f"Some of what happened is not shown: {error}")
                await self.catch_up()
            else:
                return

    async def _tick(self) -> None:
        """Show what goes on, except below a question that waits for its answer."""
        while True:
            await asyncio.sleep(REDRAW.seconds)
            if not self._answerer.asked:
                self._view.tick()

    async def _seen(self, event: Event) -> None:
        match event:
            case ServerConnected():  # again: what was asked, and the end of a turn, may have been missed
                self._resuming = asyncio.create_task(self._resumed())
            case PermissionAsked(properties=request) | QuestionAsked(properties=request):
                await self._ask(request)
            case PermissionReplied(properties=p) | QuestionReplied(properties=p) | QuestionRejected(properties=p):
                self._take_back(p.request_id)
            case _ if session_of(event) in {self._session_id, None}:
                self.tally.take(event)
                self._view.show(event)
                self._mark(event)
                self.heard(event)
            case _ if (title := self.subagents.take(event)) is not None:
                self._view.show_subagent(event, title)
            case _:
                pass

    def _mark(self, event: Event) -> None:
        match event:
            case StatusChanged(properties=p):
                self._set_running(is_running=not isinstance(p.status, Idle))
            case SessionIdle():
                self._set_running(is_running=False)
            case _:
                pass

    def _set_running(self, *, is_running: bool) -> None:
        if is_running:
            self._idle.clear()
        else:
            self._idle.set()
        if is_running != self.is_running:
            self.is_running = is_running
            self.changed()

    async def _ask(self, request: PermissionRequest | QuestionRequest) -> None:
        if request.id in self._questions or not await belongs(self._client, request.session_id, self._session_id):
            return
        match request:
            case PermissionRequest():
                answering = self._answerer.answer(self._client, self._view, request)
            case QuestionRequest():
                answering = self._answerer.answer_question(self._client, self._view, request)
        task = asyncio.create_task(answering)
        self._questions[request.id] = task
        task.add_done_callback(lambda _: self._questions.pop(request.id, None))
        task.add_done_callback(lambda task: _report(task, self.failed))

    def _take_back(self, request_id: str) -> None:
        """Take a question back that another client answered, or that ended with its turn."""
        task = self._questions.get(request_id)
        if task is not None and request_id in self._answerer.asked:
            task.cancel()
            self._view.note(ELSEWHERE)


def _report(task: asyncio.Task[None], report: Callable[[BaseException], object]) -> None:
    error = None if task.cancelled() else task.exception()
    if error is not None:
        report(error)
