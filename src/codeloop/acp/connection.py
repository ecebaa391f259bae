"""JSON-RPC 2.0 over lines: requests of both sides, their answers and their cancelling."""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any, cast

import msgspec

from codeloop.kit.jsonc import is_object
from codeloop.schema.errors import CodeloopError
from codeloop.schema.wire import JSON

PARSE_ERROR, INVALID_REQUEST, NO_METHOD, INVALID_PARAMS, INTERNAL = -32700, -32600, -32601, -32602, -32603
CANCELLED, AUTH_REQUIRED, NOT_FOUND = -32800, -32000, -32002

_log = logging.getLogger(__name__)


class RpcError(CodeloopError):
    """An error as the protocol defines it, from either side."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.code = code
        self.data = data


Handler = Callable[[str, Any], Coroutine[Any, Any, Any]]
"""Carries out a method with its parameters and returns the result. Raises RpcError or CodeloopError."""


class EditorConnection:
    """One client. Each of its requests is carried out in a task of its own; notifications in the order they came."""

    def __init__(self, write: Callable[[bytes], None], handle: Handler) -> None:
        self.closed = asyncio.Event()
        """Set when the client is gone."""
        self._write = write
        self._handle = handle
        self._last_id = 0
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        self._running: dict[str | int, asyncio.Task[Any]] = {}

    async def take(self, line: bytes | None) -> None:
        """Take a line that came; None: there will be no more."""
        if line is None:
            self.closed.set()
            return
        try:
            message = msgspec.json.decode(line)
        except msgspec.DecodeError as error:
            self._send(_failure(None, PARSE_ERROR, f"This line is not JSON: {error}"))
            return
        if isinstance(message, list) and message:
            await self._take_batch(cast("list[Any]", message))
        elif is_object(message):
            await self._take_message(message, self._send)
        else:
            self._send(_failure(None, INVALID_REQUEST, "A message is a JSON object."))

    async def _take_batch(self, messages: list[Any]) -> None:
        """Take several messages; the answers to their requests are sent together."""
        due = sum(_is_answered(each) for each in messages)
        answers: list[JSON] = []

        def collect(answer: JSON) -> None:
            answers.append({"jsonrpc": "2.0", **answer})
            if len(answers) == due:
                self._write(msgspec.json.encode(answers) + b"\n")

        for each in messages:
            if is_object(each):
                await self._take_message(each, collect)
            else:
                collect(_failure(None, INVALID_REQUEST, "A message is a JSON object."))

    async def request(self, method: str, params: JSON) -> Any:
        """Ask the client, and return its result. Raises RpcError. Cancelled, it tells the client so."""
        self._last_id += 1
        number = self._last_id
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._waiting[number] = answer
        self._send({"id": number, "method": method, "params": params})
        try:
            return await answer
        except asyncio.CancelledError:
            self.notify("$/cancel_request", {"requestId": number})
            raise
        finally:
            del self._waiting[number]

    def post(self, method: str, params: JSON) -> None:
        """Ask the client for something whose result nobody waits for."""
        self._last_id += 1
        self._send({"id": self._last_id, "method": method, "params": params})

    def notify(self, method: str, params: JSON) -> None:
        """Send the client a notification."""
        self._send({"method": method, "params": params})

    async def close(self) -> None:
        """End what still runs."""
        for task in self._running.values():
            task.cancel()
        if self._running:
            await asyncio.wait(self._running.values())

    async def _take_message(self, message: JSON, answer: Callable[[JSON], None]) -> None:
        method, number = message.get("method"), message.get("id")
        if not isinstance(method, str):
            self._settle(message)
        elif number is None:
            await self._take_notification(method, message.get("params"))
        elif isinstance(number, str | int):
            task = asyncio.create_task(self._handle(method, message.get("params")))
            self._running[number] = task
            task.add_done_callback(lambda done: answer(self._answer(number, method, done)))
        else:
            answer(_failure(None, INVALID_REQUEST, "An id is a string or an integer."))

    async def _take_notification(self, method: str, params: Any) -> None:
        if method == "$/cancel_request":
            number = params.get("requestId") if is_object(params) else None
            if isinstance(number, str | int) and (task := self._running.get(number)) is not None:
                task.cancel()
            return
        try:
            await self._handle(method, params)
        except CodeloopError as error:  # a notification has no answer
            _log.warning("%s: %s", method, error)

    def _answer(self, number: str | int, method: str, task: asyncio.Task[Any]) -> JSON:
        """Return the answer of a request's task."""
        self._running.pop(number, None)
        if task.cancelled():
            return _failure(number, CANCELLED, "Cancelled.")
        error = task.exception()
        match error:
            case None:
                result = task.result()
                return {"id": number, "result": {} if result is None else result}
            case RpcError():
                return _failure(number, error.code, str(error), error.data)
            case CodeloopError():
                return _failure(number, INTERNAL, str(error))
            case _:
                _log.error("%s failed", method, exc_info=error)
                return _failure(number, INTERNAL, f"{method} failed: {type(error).__name__}. The log has more.")

    def _settle(self, message: JSON) -> None:
        """Hand an answer to the request that waits for it."""
        number = message.get("id")
        answer = self._waiting.get(number) if isinstance(number, int) else None
        if answer is None or answer.done():
            return  # the answer to what was cancelled
        if (failure := message.get("error")) is not None:
            error = failure if is_object(failure) else {}
            code = error.get("code")
            answer.set_exception(RpcError(code if isinstance(code, int) else INTERNAL, str(error.get("message") or "")))
        else:
            answer.set_result(message.get("result"))

    def _send(self, message: JSON) -> None:
        self._write(msgspec.json.encode({"jsonrpc": "2.0", **message}) + b"\n")


def _is_answered(message: Any) -> bool:
    """Return whether an entry of a batch gets an answer: notifications and answers get none."""
    return not is_object(message) or (isinstance(message.get("method"), str) and message.get("id") is not None)


def _failure(number: str | int | None, code: int, message: str, data: Any = None) -> JSON:
    return {"id": number, "error": {"code": code, "message": message, **({"data": data} if data is not None else {})}}
