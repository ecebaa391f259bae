"""The sessions that are prompted through `codeloop mcp serve`: their state, open questions,
and results.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from typing import Any

from msgspec import Struct

from codeloop.client.client import Client
from codeloop.client.mcp_server.served_session import ServedSession
from codeloop.client.mcp_server.tools import Report, Status
from codeloop.client.mentions import find_mentions
from codeloop.client.questions.forms import (
    ElicitedForm,
    Request,
    build_form,
    read_permission_form,
    read_question_form,
)
from codeloop.client.questions.requester import find_requester
from codeloop.kit.text.terminal_text import escape_controls, one_line
from codeloop.schema.api.answers import (
    PERMISSION_REPLY,
    QUESTION_REJECT,
    QUESTION_REPLY,
    AnswerPermission,
    AnswerQuestion,
    RejectQuestion,
)
from codeloop.schema.api.session_inputs import (
    ABORT,
    PROMPT,
    MessageWithParts,
    Prompt,
    RunLimits,
    TextPartInput,
)
from codeloop.schema.api.session_messages import SESSION_MESSAGES, ListMessages
from codeloop.schema.api.session_requests import SESSION_DELETE, SESSION_GET, SessionId
from codeloop.schema.errors import CodeloopError, GapError, OperationError
from codeloop.schema.event import (
    Event,
    PermissionAsked,
    PermissionReplied,
    QuestionAsked,
    QuestionRejected,
    QuestionReplied,
    get_session_id,
)
from codeloop.schema.ids import new_id
from codeloop.schema.message import AssistantMessage, ModelRef, Session
from codeloop.schema.part import TextPart
from codeloop.schema.permission import AUTO_MESSAGE, NOBODY_MESSAGE, PermissionRequest
from codeloop.schema.wire import JSON, replace

_MAX_REQUEST = 400
"""Characters of a line about a request."""
_ABORT_RETRY_DELAY = 0.01
"""Seconds between two tries to stop a turn."""
_NO_SECRETS = (
    "A secret is not asked for through another program. Say in your answer what is missing."
)
_NOBODY_ASKED = (
    "Denied, because the program that uses this server can't ask anybody: {}. Start `codeloop mcp serve` "
    "with another --profile or with --auto, or allow it in codeloop.json (`permission`)."
)
_NOBODY_ANSWERED = (
    "Not answered, because the program that uses this server can't ask anybody: “{}” Use a program that shows forms, "
    "or say in the next prompt what the answer is."
)
_STATUS_BY_STOP_REASON: dict[str, Status] = {
    "done": "done",
    "idle": "done",
    "aborted": "stopped",
    "rejected": "denied",
    "limit": "limit",
}


class PromptOptions(Struct, frozen=True):
    """The options of every prompt that this server sends, from its flags.
    `auto`: permission requests are allowed.
    """

    agent: str | None = None
    model: ModelRef | None = None
    limits: RunLimits = RunLimits()
    auto: bool = False


class ServedSessions:
    """Prompts sessions and keeps their state, which `follow` updates by the
    events of the project.
    """

    def __init__(
        self,
        client: Client,
        prompt_options: PromptOptions,
        create_session: Callable[[], Awaitable[Session]],
        resume_session: Callable[[str], Awaitable[Session]],
    ) -> None:
        self._client = client
        self._prompt_options = prompt_options
        self._create_session = create_session
        self._resume_session = resume_session
        self.by_id: dict[str, ServedSession] = {}
        self._background: set[asyncio.Task[None]] = set()

    async def follow(self) -> None:
        """Follow the sessions until cancelled."""
        while True:
            # After a gap in the events, follow from now on: answers of prompts arrive
            # with their own calls.
            with suppress(GapError):
                async for event in self._client.follow():
                    # The session that asked may be deleted.
                    with suppress(OperationError):
                        await self._handle(event.event)

    async def start(self, text: str, *, can_ask: bool) -> ServedSession:
        """Prompt a new session. Raises CodeloopError."""
        served_session = self._keep(await self._create_session())
        await self._send(served_session, text, can_ask=can_ask)
        return served_session

    async def resume(self, session_id: str, text: str, *, can_ask: bool) -> ServedSession:
        """Prompt an existing session. Raises CodeloopError."""
        served_session = await self.find(session_id)
        await self._send(served_session, text, can_ask=can_ask)
        return served_session

    async def find(self, session_id: str) -> ServedSession:
        """Return a session by its id or the beginning of its id. Raises CodeloopError."""
        return self.by_id.get(session_id) or self._keep(await self._resume_session(session_id))

    async def stop(self, served_session: ServedSession) -> None:
        """Stop the session's turn, and wait until the end is stored."""
        # In a loop: while a prompt is being stored there is no turn to abort yet.
        while served_session.is_working:
            await self._client.call(ABORT, SessionId(session_id=served_session.session.id))
            await asyncio.wait({*served_session.tasks}, timeout=_ABORT_RETRY_DELAY)

    def stop_in_background(self, served_session: ServedSession) -> None:
        """Stop the session's turn, without waiting for its end."""
        self._start_in_background(self.stop(served_session))

    async def build_request_form(self, request: Request) -> ElicitedForm | None:
        """Build the form for a request; None: it asks for a secret."""
        return build_form(request, await find_requester(self._client, request))

    async def answer(self, request: Request, content: JSON | None) -> None:
        """Answer a request with the values of its form; None: the user declined."""
        # The request may have been answered elsewhere, or withdrawn.
        with suppress(OperationError):
            if isinstance(request, PermissionRequest):
                form_reply = read_permission_form(request, content)
                await self._client.call(
                    PERMISSION_REPLY,
                    AnswerPermission(
                        request_id=request.id,
                        reply=form_reply.reply,
                        message=form_reply.message,
                        scope=form_reply.scope,
                    ),
                )
            elif (answers := read_question_form(request, content)) is not None:
                await self._client.call(
                    QUESTION_REPLY, AnswerQuestion(request_id=request.id, answers=answers)
                )
            else:
                await self._client.call(QUESTION_REJECT, RejectQuestion(request_id=request.id))

    async def refuse(self, served_session: ServedSession, request: Request, reason: str) -> None:
        """Refuse a request; the model reads the reason, and the turn goes on."""
        with suppress(OperationError):
            if isinstance(request, PermissionRequest):
                refusal = AnswerPermission(request_id=request.id, reply="reject", message=reason)
                await self._client.call(PERMISSION_REPLY, refusal)
            else:
                await self._client.call(
                    QUESTION_REJECT, RejectQuestion(request_id=request.id, message=reason)
                )
        if reason == NOBODY_MESSAGE:
            message = _NOBODY_ASKED if isinstance(request, PermissionRequest) else _NOBODY_ANSWERED
            served_session.report = replace(
                served_session.report, message=message.format(_describe_request(request))
            )

    async def report(self, served_session: ServedSession) -> Report:
        """Return the report of a session, with the answer when the turn has ended."""
        # A session that was deleted meanwhile keeps its last cost.
        with suppress(CodeloopError):
            served_session.session = await self._client.call(
                SESSION_GET, SessionId(session_id=served_session.session.id)
            )
        report = replace(served_session.report, cost=round(served_session.session.cost or 0.0, 6))
        if served_session.pending_requests:
            return replace(
                report,
                status="asking",
                asks=_describe_request(next(iter(served_session.pending_requests.values()))),
            )
        if served_session.is_working:
            return replace(report, status="working", answer="")
        return (
            replace(report, answer=await self._read_last_text(served_session))
            if report.status == "idle"
            else report
        )

    async def close(self) -> None:
        """Stop every session."""
        await asyncio.gather(*map(self.stop, self.by_id.values()))
        for task in self._background:
            task.cancel()

    def _keep(self, session: Session) -> ServedSession:
        """Return the state of a session, which is kept from now on."""
        return self.by_id.setdefault(session.id, ServedSession(session))

    async def _send(self, served_session: ServedSession, text: str, *, can_ask: bool) -> None:
        served_session.can_ask = can_ask
        if not served_session.is_working:
            served_session.lines = [f"session {served_session.session.id}"]
            served_session.report = Report(session_id=served_session.session.id)
        notes: list[str] = []
        parts = [TextPartInput(text=text), *await find_mentions(self._client, text, notes.append)]
        served_session.lines += notes
        prompt = Prompt(
            session_id=served_session.session.id,
            message_id=new_id("msg"),
            parts=parts,
            agent=self._prompt_options.agent,
            model=self._prompt_options.model,
            limits=replace(self._prompt_options.limits, attended=can_ask),
        )
        task = asyncio.create_task(self._client.call(PROMPT, prompt))
        served_session.tasks.add(task)
        task.add_done_callback(lambda task: self._record_end(served_session, task))

    def _record_end(
        self, served_session: ServedSession, task: asyncio.Task[MessageWithParts]
    ) -> None:
        """Record in the report how a prompt ended."""
        served_session.tasks.discard(task)
        if task.cancelled():
            served_session.report = replace(served_session.report, status="stopped")
        elif (error := task.exception()) is not None:
            served_session.report = replace(
                served_session.report, status="failed", message=str(error)
            )
            if not served_session.tasks:
                self._start_in_background(self._delete_if_empty(served_session))
        else:
            answer = task.result()
            stop = answer.stop
            status = (
                _STATUS_BY_STOP_REASON.get(stop.reason, "failed") if stop is not None else "done"
            )
            text = "\n".join(
                part.text
                for part in answer.parts
                if isinstance(part, TextPart) and not part.synthetic
            )
            explanation = (
                stop.message if stop is not None and status not in {"done", "stopped"} else ""
            )
            message = " ".join(filter(None, (served_session.report.message, explanation)))
            served_session.report = replace(
                served_session.report, status=status, answer=text.strip(), message=message
            )
        served_session.pending_requests.clear()
        served_session.announce_change()

    async def _delete_if_empty(self, served_session: ServedSession) -> None:
        """Delete a session whose first prompt could not be stored: it would stay in
        lists without a message.
        """
        with suppress(CodeloopError):
            list_messages = ListMessages(session_id=served_session.session.id, limit=1)
            if not await self._client.call(SESSION_MESSAGES, list_messages):
                self.by_id.pop(served_session.session.id, None)
                await self._client.call(
                    SESSION_DELETE, SessionId(session_id=served_session.session.id)
                )

    async def _read_last_text(self, served_session: ServedSession) -> str:
        """Return the last text of the model, for a session that was prompted elsewhere."""
        messages = await self._client.call(
            SESSION_MESSAGES, ListMessages(session_id=served_session.session.id)
        )
        texts = (
            "\n".join(part.text for part in message.parts if isinstance(part, TextPart))
            for message in reversed(messages)
            if isinstance(message.info, AssistantMessage)
        )
        return next(filter(None, texts), "")

    async def _handle(self, event: Event) -> None:
        match event:
            case PermissionAsked(properties=request) | QuestionAsked(properties=request):
                await self._handle_request(request)
            case (
                PermissionReplied(properties=p)
                | QuestionReplied(properties=p)
                | QuestionRejected(properties=p)
            ):
                for served_session in self.by_id.values():
                    if served_session.pending_requests.pop(p.request_id, None) is not None:
                        served_session.announce_change()
            case _:
                served_session = self.by_id.get(get_session_id(event) or "")
                if served_session is not None:
                    served_session.handle(event)

    async def _handle_request(self, request: Request) -> None:
        """Answer, refuse or keep a request of a session or of one of its subagents."""
        session_id: str | None = request.session_id
        while session_id is not None and session_id not in self.by_id:
            session_id = (
                await self._client.call(SESSION_GET, SessionId(session_id=session_id))
            ).parent_id
        served_session = self.by_id.get(session_id or "")
        if served_session is None or not served_session.is_working:
            return
        if self._prompt_options.auto and isinstance(request, PermissionRequest):
            approval = AnswerPermission(request_id=request.id, reply="once", message=AUTO_MESSAGE)
            with suppress(OperationError):
                await self._client.call(PERMISSION_REPLY, approval)
        elif not served_session.can_ask:
            await self.refuse(served_session, request, NOBODY_MESSAGE)
        elif await self.build_request_form(request) is None:
            await self.refuse(served_session, request, _NO_SECRETS)
        else:
            served_session.pending_requests[request.id] = request
            served_session.announce_change()

    def _start_in_background(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        # The event loop holds only weak references to tasks.
        self._background.add(task)
        task.add_done_callback(self._background.discard)


def _describe_request(request: Request) -> str:
    """Return one line with the subject of a request."""
    if isinstance(request, PermissionRequest):
        return one_line(f"{request.permission} {', '.join(request.patterns)}", _MAX_REQUEST)
    return one_line(escape_controls(request.questions[0].question), _MAX_REQUEST)
