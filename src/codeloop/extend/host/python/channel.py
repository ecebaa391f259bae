"""The host's end of the connection: thread-safe writing, and answers for waiting threads."""

import asyncio
import itertools
import socket
from collections.abc import Iterator
from threading import Lock
from typing import Any, NamedTuple

from codeloop.extend.host.protocol import (
    AnswerError,
    AnswerResult,
    CallProgress,
    EventsTaken,
    HostQuestion,
    LogLine,
    OperationCall,
    ToHost,
    decode_to_host,
    encode,
)
from codeloop.schema.bounds.extension import HOST_MESSAGE_BYTES


class QuestionRefused(Exception):
    """A request was refused or failed; the text says why."""


class _WaitingRequest(NamedTuple):
    """A request of ours without an answer yet: its future,
    and the loop of the thread that waits for it.
    """

    loop: asyncio.AbstractEventLoop
    future: "asyncio.Future[Any]"


class HostChannel:
    """The connection to codeloop: read in one thread, written from any thread."""

    def __init__(self, descriptor: int) -> None:
        self._socket = socket.socket(fileno=descriptor)
        # Programs that extensions start must not hold the connection open, or write into it.
        self._socket.set_inheritable(False)
        self._lock = Lock()
        self._numbers = itertools.count(1)
        self._waiting: dict[int, _WaitingRequest] = {}

    def read_messages(self) -> Iterator[ToHost]:
        """Yield the messages to this host until the end; answers go to their waiting threads."""
        with self._socket.makefile("rb") as lines:
            for line in lines:
                message = decode_to_host(line)
                if isinstance(message, AnswerResult | AnswerError):
                    self._take_answer(message)
                else:
                    yield message

    def send(self, message: Any) -> None:
        """Write a message; a too long answer becomes an error.
        Raises ValueError for other long messages.
        """
        line = encode(message)
        if len(line) > HOST_MESSAGE_BYTES.value:
            size = f"it gave {len(line):,} bytes; a message holds {HOST_MESSAGE_BYTES.value:,}"
            text = f"{size}. Give less, or write it to a file."
            if not isinstance(message, AnswerResult | AnswerError):
                raise ValueError(text)
            line = encode(AnswerError(message.id, "invalid", text))
        # Several extensions write from their own threads, and a message must not be cut by another.
        with self._lock:
            self._socket.sendall(line + b"\n")

    async def ask(self, question: type[HostQuestion | OperationCall], **fields: Any) -> Any:
        """Ask codeloop a question with these fields, and return the answer.
        Raises QuestionRefused.
        """
        number = next(self._numbers)
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Any] = loop.create_future()
        self._waiting[number] = _WaitingRequest(loop, future)
        try:
            self.send(question(id=number, **fields))
            return await future
        finally:
            self._waiting.pop(number, None)

    def report(self, call: int, title: str | None, metadata: Any) -> None:
        """Report the progress of a call."""
        self.send(CallProgress(call, title, metadata))

    def log(self, message: str, level: str = "info", extra: Any = None) -> None:
        """Write a line to our log."""
        self.send(LogLine(message, level, extra))

    def acknowledge(self, count: int) -> None:
        """Acknowledge events as handled."""
        self.send(EventsTaken(count))

    def _take_answer(self, message: AnswerResult | AnswerError) -> None:
        waiting = self._waiting.get(message.id)
        if waiting is not None:
            # The future belongs to the loop of another thread.
            waiting.loop.call_soon_threadsafe(_set_outcome, waiting.future, message)


def _set_outcome(future: "asyncio.Future[Any]", message: AnswerResult | AnswerError) -> None:
    if future.done():
        return
    if isinstance(message, AnswerResult):
        future.set_result(message.value)
    else:
        future.set_exception(QuestionRefused(message.message))
