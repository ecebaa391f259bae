"""Questions at the terminal, and what answers them when there is none."""

import asyncio
import os
import sys
import termios
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Protocol

from codeloop.cli.view import View
from codeloop.client.client import Client
from codeloop.kit.plain import inert
from codeloop.schema.errors import OperationError
from codeloop.schema.operation import PERMISSION_REPLY, QUESTION_REJECT, QUESTION_REPLY
from codeloop.schema.question import Question, QuestionRequest
from codeloop.schema.rules import PermissionRequest

NOBODY = "Nobody is there to answer, so this was refused. Find another way or say in your answer what you could not do."


NAMED = ("command", "filepath", "tool")
"""What of a question's metadata names the thing itself."""


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
        reply, message = "once", None
        if not self._auto and self._terminal is None:
            self.refused += 1
            what = inert(f"{request.permission} {', '.join(request.patterns)}")
            view.note(f"Refused, since nobody is there to ask: {what}")
            reply, message = "reject", NOBODY
        elif not self._auto and self._terminal is not None:
            async with self._asking(request.id):
                reply, message = await ask(self._terminal, view, request, self._asker)
        try:
            await client.call(PERMISSION_REPLY, request_id=request.id, reply=reply, message=message)
        except OperationError as error:
            if error.kind != "PermissionNotFoundError":
                raise

    async def answer_question(self, client: Client, view: View, request: QuestionRequest) -> None:
        """Answer what the model asks: at the terminal when there is one, else refuse with the reason."""
        try:
            if self._terminal is None:
                self.refused += 1
                view.note(f"Not answered, since nobody is there: {inert(request.questions[0].question)}")
                await client.call(QUESTION_REJECT, request_id=request.id, message=NOBODY)
                return
            async with self._asking(request.id):
                answers = [
                    await ask_question(self._terminal, view, question, self._asker) for question in request.questions
                ]
            if all(answer is not None for answer in answers):
                await client.call(QUESTION_REPLY, request_id=request.id, answers=answers)
            else:
                await client.call(QUESTION_REJECT, request_id=request.id)
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
    terminal: Terminal, view: View, question: Question, asker: "Asker | None" = None
) -> list[str] | None:
    """Show one question with numbered choices and read the answer: numbers, or words; None at the end of input."""
    view.note(inert(question.question))
    for number, option in enumerate(question.options, 1):
        terminal.write(f"  {number} {inert(option.label)}: {inert(option.description)}\n")
    several = "numbers, as in 1 3" if question.multiple else "a number"
    free = "" if question.custom is False else ", or your own words"
    while True:
        line = await (asker or ask_line)(terminal, f"{several}{free}: " if question.options else "> ")
        if line is None:
            return None
        words = line.replace(",", " ").split()
        numbers = [int(word) for word in words if word.isdigit()]
        if words and len(numbers) == len(words) and all(0 < number <= len(question.options) for number in numbers):
            if len(numbers) == 1 or question.multiple:
                return [question.options[number - 1].label for number in numbers]
        elif words and question.custom is not False:
            return [line.strip()]


async def ask(
    terminal: Terminal, view: View, request: PermissionRequest, asker: "Asker | None" = None
) -> tuple[str, str | None]:
    """Show a question and read the answer: yes, always, no, or words for the model."""
    named = [request.metadata.get(key) for key in NAMED]
    what = [*request.patterns, *(name for name in named if isinstance(name, str) and name not in request.patterns)]
    view.note(f"Allow {request.permission}?\n" + "\n".join(f"  {inert(line)}" for line in what))
    diff = request.metadata.get("diff")
    if isinstance(diff, str) and diff:
        terminal.write(inert(diff).rstrip() + "\n")
    always = f", a = always ({inert(', '.join(request.always))})" if request.always else ""
    while True:
        line = await (asker or ask_line)(terminal, f"y = yes{always}, n = no, or say what to do instead: ")
        if line is None:
            return "reject", None
        match line.strip().lower():
            case "y" | "yes":
                return "once", None
            case "a" | "always" if request.always:
                return "always", None
            case "n" | "no":
                return "reject", None
            case "":
                continue
            case _:
                return "reject", line.strip()


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
