"""Questions at the terminal, and what answers them when there is none."""

import asyncio
import os
import shutil
import sys
import termios
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Protocol

from codeloop.cli.output.style import has_colour, paint
from codeloop.cli.output.view import View
from codeloop.cli.questions.permission_text import LABEL, Asking, in_words, marked
from codeloop.cli.questions.reply_words import chosen, meaning
from codeloop.client.client import Client
from codeloop.kit.terminal_text import inert, one_line
from codeloop.schema.api.session_inputs import AnswerPermission, AnswerQuestion, RejectQuestion
from codeloop.schema.api.session_requests import MessageId, SessionId
from codeloop.schema.errors import OperationError
from codeloop.schema.operation import MESSAGE_GET, PERMISSION_REPLY, QUESTION_REJECT, QUESTION_REPLY, SESSION_GET
from codeloop.schema.part import ToolPart
from codeloop.schema.permission import NOBODY, PermissionRequest, Reply
from codeloop.schema.question import QuestionInfo, QuestionRequest

UNKNOWN = Asking()


class Terminal(Protocol):
    """Where a person is asked."""

    def write(self, text: str) -> None:
        """Write after all that was written before."""
        ...

    async def drain(self) -> None:
        """Wait until all of it is written."""
        ...


class Answerer:
    """Answers permission questions: yes to all with `auto`, at the terminal when there is one, else no."""

    def __init__(self, terminal: Terminal | None, *, auto: bool, asker: "Asker | None" = None) -> None:
        """Take who can be asked; `asker`: how a line is asked for, unless it is read from stdin."""
        self._terminal = terminal
        self._auto = auto
        self._asker = asker or ask_line
        self._turn = asyncio.Lock()
        self.refused = 0
        self.asked: set[str] = set()
        """Ids of the requests that wait for the person."""

    async def answer(self, client: Client, view: View, request: PermissionRequest) -> None:
        """Answer one question; one is asked at a time, and one that another client answered is passed over."""
        reply: Reply = "once"
        message = None
        if not self._auto and self._terminal is None:
            self.refused += 1
            what = inert(f"{request.permission} {', '.join(request.patterns)}")
            view.note(f"Refused, since nobody is there to ask: {what}")
            reply, message = "reject", NOBODY
        elif not self._auto and self._terminal is not None:
            async with self._asking(request.id):
                asking = await origin(client, request)
                reply, message = await ask(self._terminal, view, request, self._asker, asking)
        try:
            await client.call(PERMISSION_REPLY, AnswerPermission(request_id=request.id, reply=reply, message=message))
        except OperationError as error:
            if error.kind != "PermissionNotFoundError":
                raise

    async def answer_question(self, client: Client, view: View, request: QuestionRequest) -> None:
        """Answer what the model asks: at the terminal when there is one, else refuse with the reason."""
        try:
            if self._terminal is None:
                self.refused += 1
                view.note(f"Not answered, since nobody is there: {inert(request.questions[0].question)}")
                await client.call(QUESTION_REJECT, RejectQuestion(request_id=request.id, message=NOBODY))
                return
            async with self._asking(request.id):
                whom = (await origin(client, request)).subagent
                given = [
                    await ask_question(self._terminal, view, question, self._asker, whom)
                    for question in request.questions
                ]
            answers = [answer for answer in given if answer is not None]
            if len(answers) == len(given):
                await client.call(QUESTION_REPLY, AnswerQuestion(request_id=request.id, answers=answers))
            else:
                await client.call(QUESTION_REJECT, RejectQuestion(request_id=request.id))
        except OperationError as error:
            if error.kind != "QuestionNotFoundError":
                raise

    @asynccontextmanager
    async def _asking(self, request_id: str) -> AsyncGenerator[None]:
        self.asked.add(request_id)
        try:
            async with self._turn:
                yield
        finally:
            self.asked.discard(request_id)


async def ask_question(
    terminal: Terminal, view: View, question: QuestionInfo, asker: "Asker | None" = None, whom: str = ""
) -> list[str] | None:
    """Show one question with numbered choices and read the answer: numbers, or words; None at the end of input."""
    several, free = bool(question.multiple), question.custom is not False
    labels = [option.label for option in question.options]
    how = "Say it in your own words: "
    if labels:
        how = ("Numbers, as in 1 3" if several else "A number") + (", or your own words: " if free else ": ")
    shown = "\n".join(marked(question.question, columns()))
    for number, option in enumerate(question.options, 1):
        text = one_line(f"{option.label}: {option.description}" if option.description else option.label, 400)
        shown += f"\n  {number}  {text}"
    shown = f"A question of the {whom or 'model'}:\n{shown}"
    view.note("")
    problem = ""
    while True:
        line = await (asker or ask_line)(terminal, f"{shown}\n{problem}{how}")
        if line is None:
            return None
        answer = chosen(line, labels, several=several, free=free)
        if answer.labels:
            return answer.labels
        problem = f"{answer.problem}\n" if answer.problem else ""


async def ask(
    terminal: Terminal, view: View, request: PermissionRequest, asker: "Asker | None" = None, asking: Asking = UNKNOWN
) -> tuple[Reply, str | None]:
    """Show a question and read the answer: yes, always, no, or words for the model."""
    words = in_words(request, asking, columns())
    view.note("")
    colour = has_colour(sys.stderr)
    shown = paint(words.title, "yellow", colour=colour) + "\n"
    shown += "".join(f"{paint(row, look, colour=colour)}\n" for look, row in words.rows)
    shown += "  y  yes, this once\n"
    if words.always:
        shown += f"  a  always: {words.always}\n"
    shown += f"  n  no: it is not done, and the {'subagent' if asking.subagent else 'turn'} ends\n"
    letters = "y, a, n" if words.always else "y, n"
    problem = ""
    while True:
        line = await (asker or ask_line)(terminal, f"{shown}{problem}{letters}, or say what to do instead: ")
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
                problem = f"“{one_line(line, 40)}” is no answer here.\n" if line.strip() else ""


async def origin(client: Client, request: PermissionRequest | QuestionRequest) -> Asking:
    """Look up which tool asks, and which subagent; what can't be found stays empty."""
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
    """Return how wide the terminal is."""
    return shutil.get_terminal_size().columns


Asker = Callable[[Terminal, str], Awaitable[str | None]]
"""Asks a question and gives the line that answers it; None at the end of input."""


async def ask_line(terminal: Terminal, question: str) -> str | None:
    """Ask, and read the answer; None at the end of input. What was typed before the question was shown is no answer."""
    await terminal.drain()
    with suppress(termios.error):  # the terminal is gone
        termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)
    terminal.write(question)
    await terminal.drain()
    return await read_line()


async def read_line() -> str | None:
    """Read one line from the terminal without blocking the loop; None at its end."""
    loop = asyncio.get_running_loop()
    descriptor = sys.stdin.fileno()
    ready: asyncio.Future[bytes] = loop.create_future()

    def read() -> None:
        if not ready.done():
            try:
                ready.set_result(os.read(descriptor, 65_536))
            except OSError:  # the terminal is gone
                ready.set_result(b"")

    loop.add_reader(descriptor, read)
    try:
        data = await ready
    finally:
        loop.remove_reader(descriptor)
    return data.decode(sys.stdin.encoding or "utf-8", "replace").partition("\n")[0] if data else None
