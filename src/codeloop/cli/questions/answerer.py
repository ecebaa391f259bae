"""Answers the requests of a session, which are for permissions or questions of the model:
by a user, or without one.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager

from codeloop.cli.output.view import View
from codeloop.cli.questions.prompter import Prompter
from codeloop.client.client import Client, belongs_to
from codeloop.kit.asyncio_tasks import cancel_all, report_failure
from codeloop.kit.text.terminal_text import one_line
from codeloop.schema.api.answers import (
    PERMISSION_REPLY,
    QUESTION_REJECT,
    QUESTION_REPLY,
    AnswerPermission,
    AnswerQuestion,
    RejectQuestion,
)
from codeloop.schema.errors import OperationError
from codeloop.schema.event import (
    Event,
    PermissionAsked,
    PermissionReplied,
    QuestionAsked,
    QuestionRejected,
    QuestionReplied,
)
from codeloop.schema.permission import (
    AUTO_MESSAGE,
    NOBODY_MESSAGE,
    AlwaysScope,
    PermissionRequest,
    Reply,
)
from codeloop.schema.question import QuestionRequest

# Characters of a denied request in the note about it.
SUBJECT_CHARS = 400
DENIED_MESSAGE = (
    "A request was denied because nobody could be asked. Allow it in codeloop.json (`permission`), choose another "
    "--profile, or use --auto."
)
UNANSWERED_MESSAGE = (
    "A question was not answered because nobody could be asked. Say in the prompt what the answer is, or use codeloop "
    "in a terminal."
)
WITHDRAWN_NOTE = "Already answered elsewhere, or withdrawn."


class Answerer:
    """Answers requests: permissions are given with `auto`; else the user is asked;
    without a user, they are refused.

    `prompter`: asks the user; None: there is none. `refusal`: words for the user about the first
    request that was refused because nobody could be asked; "": there is none. `leave_open`: called
    with a request that the user answers in another terminal; None: they can't.
    """

    def __init__(
        self,
        prompter: Prompter | None,
        *,
        auto: bool,
        leave_open: Callable[[str], object] | None = None,
    ) -> None:
        self._prompter = prompter
        self._auto = auto
        self._leave_open = leave_open
        self._question_lock = asyncio.Lock()
        self.refusal = ""
        self.asked_ids: set[str] = set()
        """The ids of the requests that wait for the user."""

    async def answer(self, client: Client, view: View, request: PermissionRequest) -> None:
        """Answer a permission request, after those before it;
        one that another client has answered is skipped.
        """
        if self._leave_open is not None and not self._auto:
            self._leave_open(f"{request.permission} {', '.join(request.patterns)}")
            return
        reply: Reply = "once"
        always: list[str] | None = None
        scope: AlwaysScope = "directory"
        message = AUTO_MESSAGE if self._auto else None
        if not self._auto and self._prompter is None:
            subject = one_line(
                f"{request.permission} {', '.join(request.patterns)}".replace("\n", "⏎"),
                SUBJECT_CHARS,
            )
            self._refuse(view, f"Denied, because nobody can be asked: {subject}", DENIED_MESSAGE)
            reply, message = "reject", NOBODY_MESSAGE
        elif not self._auto and self._prompter is not None:
            async with self._wait_for_terminal(request.id):
                # An empty line above the question. Most runs ask nothing,
                # so the module is loaded here.
                view.note("")
                from codeloop.cli.questions.terminal_questions import ask_permission

                reply, message, always, scope = await ask_permission(
                    self._prompter, client, request
                )
        try:
            answer = AnswerPermission(
                request_id=request.id, reply=reply, message=message, always=always, scope=scope
            )
            await client.call(PERMISSION_REPLY, answer)
        except OperationError as error:
            # Another client has answered, or the turn has ended.
            if error.kind != "PermissionNotFoundError":
                raise

    async def answer_question(self, client: Client, view: View, request: QuestionRequest) -> None:
        """Answer a question of the model; without a user, refuse it with the reason."""
        if self._leave_open is not None:
            self._leave_open(request.questions[0].question)
            return
        try:
            if self._prompter is None:
                question = one_line(request.questions[0].question, SUBJECT_CHARS)
                self._refuse(
                    view,
                    f"Not answered, because nobody can be asked: {question}",
                    UNANSWERED_MESSAGE,
                )
                await client.call(
                    QUESTION_REJECT, RejectQuestion(request_id=request.id, message=NOBODY_MESSAGE)
                )
                return
            async with self._wait_for_terminal(request.id):
                from codeloop.cli.questions.terminal_questions import ask_questions

                answers = await ask_questions(
                    self._prompter, client, request, lambda: view.note("")
                )
            # Fewer answers: the input has ended.
            if len(answers) == len(request.questions):
                await client.call(
                    QUESTION_REPLY, AnswerQuestion(request_id=request.id, answers=answers)
                )
            else:
                await client.call(QUESTION_REJECT, RejectQuestion(request_id=request.id))
        except OperationError as error:
            if error.kind != "QuestionNotFoundError":
                raise

    def _refuse(self, view: View, note: str, refusal: str) -> None:
        self.refusal = self.refusal or refusal
        view.note(note)

    @asynccontextmanager
    async def _wait_for_terminal(self, request_id: str) -> AsyncGenerator[None]:
        """Wait until no other request is asked at the terminal, and keep it for this one."""
        self.asked_ids.add(request_id)
        try:
            async with self._question_lock:
                yield
        finally:
            self.asked_ids.discard(request_id)


class OpenRequests:
    """The open requests of a session and its subagents, each with a task that answers it.

    `on_failure`: called with the error of such a task.
    """

    def __init__(
        self,
        client: Client,
        session_id: str,
        view: View,
        answerer: Answerer,
        on_failure: Callable[[BaseException], object],
    ) -> None:
        self._client = client
        self._session_id = session_id
        self._view = view
        self._answerer = answerer
        self._on_failure = on_failure
        self._tasks: dict[str, asyncio.Task[None]] = {}

    @property
    def is_asking(self) -> bool:
        """Whether a request waits for the user."""
        return bool(self._answerer.asked_ids)

    async def handle_event(self, event: Event) -> bool:
        """Take in an event; return whether it is about a request."""
        match event:
            case PermissionAsked(properties=request) | QuestionAsked(properties=request):
                await self.add(request)
            case (
                PermissionReplied(properties=p)
                | QuestionReplied(properties=p)
                | QuestionRejected(properties=p)
            ):
                await self._withdraw(p.request_id)
            case _:
                return False
        return True

    async def add(self, request: PermissionRequest | QuestionRequest) -> None:
        """Start to answer a request, unless it belongs to another session,
        or is being answered already.
        """
        if request.id in self._tasks or not await belongs_to(
            self._client, request.session_id, self._session_id
        ):
            return
        if isinstance(request, PermissionRequest):
            call = self._answerer.answer(self._client, self._view, request)
        else:
            call = self._answerer.answer_question(self._client, self._view, request)
        task = asyncio.create_task(call)
        self._tasks[request.id] = task
        task.add_done_callback(lambda _: self._tasks.pop(request.id, None))
        task.add_done_callback(lambda task: report_failure(task, self._on_failure))

    async def stop(self) -> None:
        """Stop answering requests; the session still waits for them."""
        await cancel_all(self._tasks.values())

    async def _withdraw(self, request_id: str) -> None:
        """Stop asking about a request that another client has answered,
        or that ended with its turn.
        """
        task = self._tasks.get(request_id)
        if task is not None and request_id in self._answerer.asked_ids:
            # The question is removed first; otherwise it would be drawn again below the note.
            await cancel_all([task])
            self._view.note(WITHDRAWN_NOTE)
