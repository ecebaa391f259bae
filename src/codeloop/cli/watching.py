"""What happens in one session, whoever caused it: shown, counted, its questions asked."""

import asyncio
from collections.abc import Callable

from codeloop.cli.ask import Answerer
from codeloop.cli.named import belongs
from codeloop.cli.outcome import Tally
from codeloop.cli.style import Look
from codeloop.cli.view import View
from codeloop.client.client import Client
from codeloop.client.remote import ServerLost
from codeloop.kit.plain import inert
from codeloop.schema.errors import CodeloopError, error_message
from codeloop.schema.event import (
    Event,
    MessageUpdated,
    PartUpdated,
    PermissionAsked,
    PermissionReplied,
    QuestionAsked,
    QuestionRejected,
    QuestionReplied,
    SessionDeleted,
    SessionUpdated,
    session_of,
)
from codeloop.schema.limits import TURN_SETTLE
from codeloop.schema.live import Idle, SessionErrored, SessionIdle, Status, StatusChanged
from codeloop.schema.message import AssistantMessage, Session, UserMessage
from codeloop.schema.operation import PERMISSION_LIST, QUESTION_LIST, SESSION_STATUS
from codeloop.schema.part import FilePart, TextPart
from codeloop.schema.question import QuestionRequest
from codeloop.schema.rules import PermissionRequest
from codeloop.store.follow import GapError

Say = Callable[[str, Look], object]
"""Shows a line to the person."""


class Watcher:
    """Follows a session. `changed` is called when it begins or ends to work.

    `session` is the newest that is known of it, `tally` counts since it was last replaced.
    """

    def __init__(self, client: Client, session: Session, view: View, say: Say) -> None:
        self.session = session
        self.tally = Tally()
        self.is_running = False
        self.changed: Callable[[], object] = lambda: None
        self._client = client
        self._view = view
        self._say = say
        self._prompts: dict[str, str] = {}
        """Prompts of ours that wait for the model, by message id."""
        self._stored: dict[str, asyncio.Future[None]] = {}
        self._others: set[str] = set()
        self._shown: set[str] = set()
        self._questions: dict[str, asyncio.Task[None]] = {}

    async def follow(self, answerer: Answerer) -> None:
        """Show what happens until the task is cancelled. Raises CodeloopError when it can't be followed any more."""
        try:
            while True:
                try:
                    async for stamped in self._client.follow():
                        await self._seen(stamped.event, answerer)
                except GapError as error:
                    self._say(f"Some of what happened is not shown: {error}", "yellow")
                    await self.catch_up(answerer)
        finally:
            for task in self._questions.values():
                task.cancel()

    async def catch_up(self, answerer: Answerer) -> None:
        """Learn what was going on before: whether it works, and what waits for an answer."""
        await self.look()
        if not self.is_running:  # what is left of a server that was killed waits for nobody
            return
        permissions: list[PermissionRequest] = await self._client.call(PERMISSION_LIST)
        questions: list[QuestionRequest] = await self._client.call(QUESTION_LIST)
        for request in (*permissions, *questions):
            await self._ask(request, answerer)

    async def look(self) -> None:
        """Ask whether the session works."""
        statuses: dict[str, Status] = await self._client.call(SESSION_STATUS)
        self._set_running(is_running=self.session.id in statuses)

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

    def expect(self, message_id: str, text: str) -> asyncio.Future[None]:
        """Give what is done when the prompt of this id is stored; its text is shown when it had to wait."""
        stored: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._stored[message_id] = stored
        self._prompts[message_id] = text if self.is_running else ""
        return stored

    async def _seen(self, event: Event, answerer: Answerer) -> None:
        match event:
            case PermissionAsked(properties=request) | QuestionAsked(properties=request):
                await self._ask(request, answerer)
            case PermissionReplied(properties=p) | QuestionReplied(properties=p) | QuestionRejected(properties=p):
                self._answered(p.request_id, answerer)
            case _ if session_of(event) in {self.session.id, None}:
                self.tally.take(event)
                self._told(event)
                self._view.show(event)
            case _:
                pass

    def _told(self, event: Event) -> None:
        match event:
            case SessionUpdated(properties=p):
                self.session = p.info
            case SessionDeleted():
                self._say(f"The session {self.session.id} was deleted. /new begins another one.", "yellow")
            case MessageUpdated(properties=p) if isinstance(p.info, UserMessage):
                stored = self._stored.pop(p.info.id, None)
                if stored is not None and not stored.done():
                    stored.set_result(None)
                elif stored is None and p.info.id not in self._prompts:
                    self._others.add(p.info.id)
            case MessageUpdated(properties=p) if isinstance(p.info, AssistantMessage):
                if text := self._prompts.get(p.info.parent_id):
                    self._prompts[p.info.parent_id] = ""
                    self._say(f"> {text}", "cyan")
            case PartUpdated(properties=p) if self._prompts.get(p.part.message_id):
                if isinstance(p.part, TextPart) and not p.part.synthetic:  # one that waits may be changed
                    self._prompts[p.part.message_id] = p.part.text
            case PartUpdated(properties=p) if p.part.message_id in self._others and p.part.id not in self._shown:
                self._shown.add(p.part.id)
                self._said_by_another(p.part)
            case StatusChanged(properties=p):
                self._set_running(is_running=not isinstance(p.status, Idle))
            case SessionIdle():
                self._set_running(is_running=False)
            case SessionErrored(properties=p):
                self._say(error_message(p.error), "red")
            case _:
                pass

    def _said_by_another(self, part: object) -> None:
        match part:
            case TextPart(text=text) if not part.synthetic:
                self._say("\n".join(f"> {line}" for line in text.splitlines()), "cyan")
            case FilePart(filename=name, url=url):
                self._say(f"> [{name or url[:80]}]", "cyan")
            case _:
                pass

    def _set_running(self, *, is_running: bool) -> None:
        if is_running != self.is_running:
            self.is_running = is_running
            self.changed()

    async def _ask(self, request: PermissionRequest | QuestionRequest, answerer: Answerer) -> None:
        if request.id in self._questions or not await belongs(self._client, request.session_id, self.session.id):
            return
        match request:
            case PermissionRequest():
                answering = answerer.answer(self._client, self._view, request)
            case QuestionRequest():
                answering = answerer.answer_question(self._client, self._view, request)
        task = asyncio.create_task(answering)
        self._questions[request.id] = task
        task.add_done_callback(lambda _: self._questions.pop(request.id, None))
        task.add_done_callback(self._check)

    def _answered(self, request_id: str, answerer: Answerer) -> None:
        """Take a question back that another client answered, or that ended with its turn."""
        task = self._questions.get(request_id)
        if task is not None and request_id in answerer.asked:
            task.cancel()
            self._say("That was answered elsewhere, or is not asked any more.", "yellow")

    def _check(self, task: asyncio.Task[None]) -> None:
        error = None if task.cancelled() else task.exception()
        if isinstance(error, CodeloopError):
            self._say(inert(f"The question could not be answered: {error}"), "red")
        elif error is not None:
            raise error
