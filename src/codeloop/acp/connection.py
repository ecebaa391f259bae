"""`EditorConnection`: JSON-RPC 2.0 over lines, with requests of both sides,
their answers and their cancellation.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any, cast

from codeloop.kit.jsonc import is_object
from codeloop.schema.errors import CodeloopError
from codeloop.schema.wire import DECODE_ERRORS, JSON, decode_json, encode_json

PARSE_ERROR, INVALID_REQUEST, METHOD_NOT_FOUND, INVALID_PARAMS, INTERNAL_ERROR = (
    -32700,
    -32600,
    -32601,
    -32602,
    -32603,
)
"""Error codes of JSON-RPC."""
CANCELLED, AUTH_REQUIRED, NOT_FOUND = -32800, -32000, -32002
"""Error codes of the Agent Client Protocol."""

_log = logging.getLogger(__name__)


class RpcError(CodeloopError):
    """An error answer, sent or received. `code`: an error code; `data`: further details as JSON."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.code = code
        self.data = data


HandleMethod = Callable[[str, Any], Coroutine[Any, Any, Any]]
"""Carries out a method with its parameters and returns its result.
Raises RpcError or CodeloopError.
"""


class EditorConnection:
    """The connection to one editor. Requests run as tasks in parallel,
    notifications one after the other.
    """

    def __init__(self, write: Callable[[bytes], None], handle: HandleMethod) -> None:
        self.closed = asyncio.Event()
        """Set when the editor has closed the connection."""
        self._write = write
        self._handle = handle
        # Both sides number their requests on their own,
        # so equal ids of the two sides do not collide.
        self._last_id = 0
        # The answers that we wait for, by the id of our request.
        self._pending: dict[int, asyncio.Future[Any]] = {}
        # The requests of the editor that are carried out, by their id.
        self._running_tasks: dict[str | int, asyncio.Task[Any]] = {}

    async def receive(self, line: bytes | None) -> None:
        """Handle a received line; None: the editor has closed the connection."""
        if line is None:
            self.closed.set()
            return
        try:
            message = decode_json(line)
        except DECODE_ERRORS as error:
            self._send(_make_failure(None, PARSE_ERROR, f"This line is not JSON: {error}"))
            return
        if isinstance(message, list) and message:
            await self._receive_batch(cast("list[Any]", message))
        elif is_object(message):
            await self._receive_message(message, self._send)
        else:
            self._send(_make_failure(None, INVALID_REQUEST, "A message is a JSON object."))

    async def _receive_batch(self, messages: list[Any]) -> None:
        """Handle a batch; the answers to its requests are sent together, as one batch."""
        expected_count = sum(_needs_answer(each) for each in messages)
        answers: list[JSON] = []

        def collect_answer(answer: JSON) -> None:
            answers.append({"jsonrpc": "2.0", **answer})
            if len(answers) == expected_count:
                self._write(encode_json(answers) + b"\n")

        for each in messages:
            if is_object(each):
                await self._receive_message(each, collect_answer)
            else:
                collect_answer(_make_failure(None, INVALID_REQUEST, "A message is a JSON object."))

    async def request(self, method: str, params: JSON) -> Any:
        """Send the editor a request and return the result. Raises RpcError.
        Cancelling tells the editor.
        """
        self._last_id += 1
        request_id = self._last_id
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._pending[request_id] = answer
        self._send({"id": request_id, "method": method, "params": params})
        try:
            return await answer
        # The editor closes the form or the question that it shows for this request.
        except asyncio.CancelledError:
            self.notify("$/cancel_request", {"requestId": request_id})
            raise
        finally:
            del self._pending[request_id]

    def post(self, method: str, params: JSON) -> None:
        """Send the editor a request and ignore its answer."""
        # `_settle` ignores answers to ids that are not pending.
        self._last_id += 1
        self._send({"id": self._last_id, "method": method, "params": params})

    def notify(self, method: str, params: JSON) -> None:
        """Send the editor a notification."""
        self._send({"method": method, "params": params})

    async def close(self) -> None:
        """Cancel the running requests of the editor and wait for their end."""
        for task in self._running_tasks.values():
            task.cancel()
        if self._running_tasks:
            await asyncio.wait(self._running_tasks.values())

    async def _receive_message(self, message: JSON, send_answer: Callable[[JSON], None]) -> None:
        """Handle a request, a notification or an answer.
        `send_answer`: called with the answer to a request.
        """
        method, request_id = message.get("method"), message.get("id")
        if not isinstance(method, str):
            self._settle(message)
        elif request_id is None:
            await self._receive_notification(method, message.get("params"))
        elif not isinstance(request_id, str | int):
            send_answer(_make_failure(None, INVALID_REQUEST, "An id is a string or an integer."))
        elif request_id in self._running_tasks:
            # Without the id: with it, the editor would take the error for the answer to the
            # request that is running.
            send_answer(
                _make_failure(
                    None,
                    INVALID_REQUEST,
                    f"The id {request_id!r} belongs to a request that is running.",
                )
            )
        else:
            task = asyncio.create_task(self._handle(method, message.get("params")))
            self._running_tasks[request_id] = task
            # Also a cancelled request must be answered, so the answer is sent when the
            # task has ended in any way.
            task.add_done_callback(
                lambda done: send_answer(self._make_answer(request_id, method, done))
            )

    async def _receive_notification(self, method: str, params: Any) -> None:
        if method == "$/cancel_request":
            request_id = params.get("requestId") if is_object(params) else None
            if (
                isinstance(request_id, str | int)
                and (task := self._running_tasks.get(request_id)) is not None
            ):
                task.cancel()
            return
        try:
            await self._handle(method, params)
        except CodeloopError as error:
            # A notification has no answer.
            _log.warning("%s: %s", method, error)

    def _make_answer(self, request_id: str | int, method: str, task: asyncio.Task[Any]) -> JSON:
        """Return the answer to a request from its finished task,
        which counts as running no longer.
        """
        self._running_tasks.pop(request_id, None)
        if task.cancelled():
            return _make_failure(request_id, CANCELLED, "Cancelled.")
        error = task.exception()
        match error:
            case None:
                result = task.result()
                return {"id": request_id, "result": {} if result is None else result}
            case RpcError():
                return _make_failure(request_id, error.code, str(error), error.data)
            case CodeloopError():
                return _make_failure(request_id, INTERNAL_ERROR, str(error))
            case _:
                # A defect of ours costs one request, not the connection.
                _log.error("%s failed", method, exc_info=error)
                return _make_failure(
                    request_id,
                    INTERNAL_ERROR,
                    f"{method} failed: {type(error).__name__}. The log has more.",
                )

    def _settle(self, message: JSON) -> None:
        """Complete the pending request that this answer belongs to."""
        request_id = message.get("id")
        answer = self._pending.get(request_id) if isinstance(request_id, int) else None
        if answer is None or answer.done():
            # The answer to a cancelled request.
            return
        if (failure := message.get("error")) is not None:
            error = failure if is_object(failure) else {}
            code = error.get("code")
            answer.set_exception(
                RpcError(
                    code if isinstance(code, int) else INTERNAL_ERROR,
                    str(error.get("message") or ""),
                )
            )
        else:
            answer.set_result(message.get("result"))

    def _send(self, message: JSON) -> None:
        self._write(encode_json({"jsonrpc": "2.0", **message}) + b"\n")


def _needs_answer(message: Any) -> bool:
    """Return whether an entry of a batch gets an answer. Notifications and answers get none;
    invalid entries do.
    """
    return not is_object(message) or (
        isinstance(message.get("method"), str) and message.get("id") is not None
    )


def _make_failure(request_id: str | int | None, code: int, message: str, data: Any = None) -> JSON:
    return {
        "id": request_id,
        "error": {"code": code, "message": message, **({"data": data} if data is not None else {})},
    }
