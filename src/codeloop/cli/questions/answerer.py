"""Answers what a session asks: permissions and the model's questions, by a person, or by itself without one."""

import asyncio
import shutil
import sys
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress

from codeloop.cli.output.style import has_colour, paint
from codeloop.cli.output.view import View
from codeloop.cli.questions.permission_text import LABEL, Asking, in_words, marked
from codeloop.cli.questions.prompter import Prompter
from codeloop.cli.questions.reply_words import chosen, meaning
from codeloop.cli.tasks import report, stop_all
from codeloop.client.client import Client
from codeloop.kit.terminal_text import inert, one_line
from codeloop.schema.api.session_inputs import AnswerPermission, AnswerQuestion, RejectQuestion
from codeloop.schema.api.session_requests import MessageId, SessionId
from codeloop.schema.errors import OperationError
from codeloop.schema.event import (
    Event,
    PermissionAsked,
    PermissionReplied,
    QuestionAsked,
    QuestionRejected,
    QuestionReplied,
)
from codeloop.schema.operation import MESSAGE_GET, PERMISSION_REPLY, QUESTION_REJECT, QUESTION_REPLY, SESSION_GET
from codeloop.schema.part import ToolPart
from codeloop.schema.permission import NOBODY, PermissionRequest, Reply
from codeloop.schema.question import QuestionInfo, QuestionRequest

WITHDRAWN = "Already answered elsewhere, or withdrawn."


class Answerer:
    """Answers requests: permissions by yes with `auto`, all by the person at the prompter, without one by no."""

    def __init__(self, prompter: Prompter | None, *, auto: bool) -> None:
        self._prompter = prompter
        self._auto = auto
        self._turn = asyncio.Lock()
        self.refused = 0
        self.asked: set[str] = set()
        """Ids of the requests that wait for the person."""

    async def answer(self, client: Client, view: View, request: PermissionRequest) -> None:
        """Answer a permission request. One is asked at a time; one that another client has answered is skipped."""
        reply: Reply = "once"
        message = None
        if not self._auto and self._prompter is None:
            what = inert(f"{request.permission} {', '.join(request.patterns)}")
            self._refuse(view, f"Denied, because nobody can be asked: {what}")
            reply, message = "reject", NOBODY
        elif not self._auto and self._prompter is not None:
            async with self._asking(request.id):
                view.note("")
                reply, message = await ask(self._prompter, request, await origin(client, request))
        try:
            await client.call(PERMISSION_REPLY, AnswerPermission(request_id=request.id, reply=reply, message=message))
        except OperationError as error:
            if error.kind != "PermissionNotFoundError":
                raise

    async def answer_question(self, client: Client, view: View, request: QuestionRequest) -> None:
        """Answer what the model asks; without a person refuse it with the reason."""
        try:
            if self._prompter is None:
                self._refuse(view, f"Not answered, because nobody can be asked: {inert(request.questions[0].question)}")
                await client.call(QUESTION_REJECT, RejectQuestion(request_id=request.id, message=NOBODY))
                return
            async with self._asking(request.id):
                who = (await origin(client, request)).subagent or "model"
                answers: list[list[str]] = []
                for question in request.questions:
                    view.note("")
                    answer = await ask_question(self._prompter, question, who)
                    if answer is not None:
                        answers.append(answer)
            if len(answers) == len(request.questions):
                await client.call(QUESTION_REPLY, AnswerQuestion(request_id=request.id, answers=answers))
            else:
                await client.call(QUESTION_REJECT, RejectQuestion(request_id=request.id))
        except OperationError as error:
            if error.kind != "QuestionNotFoundError":
                raise

    def _refuse(self, view: View, note: str) -> None:
        self.refused += 1
        view.note(note)

    @asynccontextmanager
    async def _asking(self, request_id: str) -> AsyncGenerator[None]:
        self.asked.add(request_id)
        try:
            async with self._turn:
                yield
        finally:
            self.asked.discard(request_id)


class OpenRequests:
    """The requests of a session and of its subagents, each answered by a task; `failed` hears what prevents that."""

    def __init__(
        self, client: Client, session_id: str, view: View, answerer: Answerer, failed: Callable[[BaseException], object]
    ) -> None:
        self._client = client
        self._session_id = session_id
        self._view = view
        self._answerer = answerer
        self._failed = failed
        self._tasks: dict[str, asyncio.Task[None]] = {}

    @property
    def is_asking(self) -> bool:
        """Whether the person is asked."""
        return bool(self._answerer.asked)

    async def take(self, event: Event) -> bool:
        """Take in an event; return whether it was about a request."""
        match event:
            case PermissionAsked(properties=request) | QuestionAsked(properties=request):
                await self.add(request)
            case PermissionReplied(properties=p) | QuestionReplied(properties=p) | QuestionRejected(properties=p):
                self._withdraw(p.request_id)
            case _:
                return False
        return True

    async def add(self, request: PermissionRequest | QuestionRequest) -> None:
        """Answer a request unless it is another session's or is already being answered."""
        if request.id in self._tasks or not await self._is_ours(request.session_id):
            return
        if isinstance(request, PermissionRequest):
            answering = self._answerer.answer(self._client, self._view, request)
        else:
            answering = self._answerer.answer_question(self._client, self._view, request)
        task = asyncio.create_task(answering)
        self._tasks[request.id] = task
        task.add_done_callback(lambda _: self._tasks.pop(request.id, None))
        task.add_done_callback(lambda task: report(task, self._failed))

    async def stop(self) -> None:
        """Ask no more."""
        await stop_all(self._tasks.values())

    async def _is_ours(self, session_id: str) -> bool:
        while session_id != self._session_id:
            session = await self._client.call(SESSION_GET, SessionId(session_id=session_id))
            if session.parent_id is None:
                return False
            session_id = session.parent_id
        return True

    def _withdraw(self, request_id: str) -> None:
        """Stop asking what another client has answered, or what ended with its turn."""
        task = self._tasks.get(request_id)
        if task is not None and request_id in self._answerer.asked:
            task.cancel()
            self._view.note(WITHDRAWN)


async def ask(prompter: Prompter, request: PermissionRequest, asking: Asking) -> tuple[Reply, str | None]:
    """Ask for a permission and return the reply, with words for the model if it is denied with some."""
    words = in_words(request, asking, columns())
    colour = has_colour(sys.stderr)
    shown = paint(words.title, "yellow", colour=colour) + "\n"
    shown += "".join(f"{paint(row, look, colour=colour)}\n" for look, row in words.rows)
    shown += "  y  allow once\n"
    if words.always:
        shown += f"  a  allow always: {words.always}\n"
    shown += f"  n  deny, and stop the {'subagent' if asking.subagent else 'turn'}\n"
    letters = "y, a, n" if words.always else "y, n"
    problem = ""
    while True:
        line = await prompter.ask(f"{shown}{problem}{letters}, or what to do instead: ")
        if line is None:
            return "reject", None
        match meaning(line, always=bool(words.always)):
            case "yes":
                return "once", None
            case "always":
                return "always", None
            case "no":
                return "reject", None
            case "words":
                return "reject", line.strip()
            case "unclear":
                problem = f"“{one_line(line, 40)}” is not an answer here.\n" if line.strip() else ""


async def ask_question(prompter: Prompter, question: QuestionInfo, who: str) -> list[str] | None:
    """Ask with numbered options and return the chosen ones, or the person's words; None at the end of the input."""
    several, free = bool(question.multiple), question.custom is not False
    labels = [option.label for option in question.options]
    how = "Your answer: "
    if labels:
        how = ("Numbers (such as 1 3)" if several else "A number") + (", or your own words: " if free else ": ")
    shown = f"The {who} asks:\n" + "\n".join(marked(question.question, columns())) + "\n"
    for number, option in enumerate(question.options, 1):
        text = one_line(f"{option.label}: {option.description}" if option.description else option.label, 400)
        shown += f"  {number}  {text}\n"
    problem = ""
    while True:
        line = await prompter.ask(f"{shown}{problem}{how}")
        if line is None:
            return None
        answer = chosen(line, labels, several=several, free=free)
        if answer.labels:
            return answer.labels
        problem = f"{answer.problem}\n" if answer.problem else ""


async def origin(client: Client, request: PermissionRequest | QuestionRequest) -> Asking:
    """Return which tool asks, and which subagent; empty where that can't be found."""
    tool = subagent = ""
    with suppress(OperationError):
        session = await client.call(SESSION_GET, SessionId(session_id=request.session_id))
        if session.parent_id is not None:
            subagent = one_line(f"subagent {session.agent or ''}", LABEL) + f" “{one_line(session.title, LABEL)}”"
    if request.tool is not None:
        named = MessageId(session_id=request.session_id, message_id=request.tool.message_id)
        with suppress(OperationError):
            message = await client.call(MESSAGE_GET, named)
            call_id = request.tool.call_id
            parts = (part for part in message.parts if isinstance(part, ToolPart) and part.call_id == call_id)
            tool = next((one_line(part.tool, LABEL) for part in parts), "")
    return Asking(tool, subagent)


def columns() -> int:
    """Return the terminal's width."""
    return shutil.get_terminal_size().columns
