"""JSON-RPC over a server's pipes: requests with deadlines, notifications,
and answers to the server's requests.

A server may be broken or hostile, so the rate of its messages and what it
leaves unread are bounded.
"""

import asyncio
import re
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import msgspec

from codeloop.kit.jsonc import is_object
from codeloop.kit.program import Program
from codeloop.schema.bounds.language_tools import (
    LSP_GARBAGE,
    LSP_MESSAGE,
    LSP_MESSAGE_RATE,
    LSP_UNREAD,
)
from codeloop.schema.errors import CodeloopError
from codeloop.schema.wire import DECODE_ERRORS, JSON, bound_depth

# `Content-Length: 52` before or after `Content-Type: ...`, then at most four further fields,
# and an empty line.
_HEADER_PATTERN = (
    rb"(?i)(?:Content-Type:[^\r\n]{1,200}\r\n)?"
    rb"Content-Length:[ \t]*([0-9]{1,12})[ \t]*\r\n(?:[^\r\n]{1,200}\r\n){0,4}\r\n"
)
_decode = bound_depth(msgspec.json.Decoder().decode)


class InvalidStream(CodeloopError):
    """The output of a server is not the protocol, or too large."""


def encode_message(message: JSON) -> bytes:
    """Encode a message with its header."""
    body = msgspec.json.encode(message)
    return b"Content-Length: %d\r\n\r\n%b" % (len(body), body)


class MessageReader:
    """Splits a stream into messages. Text between them (such as a wrapper's
    greeting) is skipped.
    """

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._position = 0
        """Where the next header or message begins in the buffer."""
        self._length = -1
        """The bytes of the message whose header was read; -1: a header comes next."""
        self._skipped_bytes = 0
        """Of the whole stream."""

    def feed(self, data: bytes) -> Iterator[JSON]:
        """Add bytes and yield the messages that are complete. Raises InvalidStream."""
        self._buffer += data
        while True:
            if self._length < 0 and not self._read_header():
                break
            if len(self._buffer) - self._position < self._length:
                break
            end = self._position + self._length
            body = bytes(self._buffer[self._position : end])
            self._position, self._length = end, -1
            yield _decode_message(body)
        if self._position:
            del self._buffer[: self._position]
            self._position = 0

    def _read_header(self) -> bool:
        """Read the next header; return whether all of it is there. Raises InvalidStream."""
        match = re.compile(_HEADER_PATTERN).search(self._buffer, self._position)
        skipped_bytes = (match.start() if match else len(self._buffer)) - self._position
        if self._skipped_bytes + skipped_bytes > LSP_GARBAGE.value:
            raise InvalidStream("it writes something other than the language server protocol")
        if match is None:
            return False
        self._skipped_bytes += skipped_bytes
        self._position, self._length = match.end(), int(match[1])
        if self._length > LSP_MESSAGE.value:
            raise InvalidStream(f"it sent a message of more than {LSP_MESSAGE.value:,} bytes")
        return True


def _decode_message(body: bytes) -> JSON:
    try:
        value: Any = _decode(body)
    except DECODE_ERRORS as error:
        raise InvalidStream(f"it sent something that is not JSON: {error}") from error
    if not is_object(value):
        raise InvalidStream("it sent a message that is not an object")
    return value


# The code MethodNotFound of JSON-RPC.
_UNKNOWN_METHOD = -32601
# The codes ContentModified and ServerCancelled of the protocol.
_OUTDATED_CODES = (-32801, -32802)
FENCE_METHOD = "codeloop/fence"
"""A method that no server knows: the error that it answers with shows that it
has read everything before.
"""
CONNECTION_LOST = "codeloop/lost"
"""The method of a notification that no server sends: `on_message` gets it once,
when the server is gone.
"""


class ServerGone(CodeloopError):
    """The server has ended or was killed; the text is the reason."""


class ErrorAnswer(CodeloopError):
    """The server answered a request with an error.

    `is_outdated`: the content changed meanwhile; a retry may succeed.
    """

    def __init__(self, text: str, *, is_outdated: bool = False) -> None:
        super().__init__(text)
        self.is_outdated = is_outdated


MessageHandler = Callable[[str, Any], None]
RequestHandlers = Mapping[str, Callable[[Any], Any]]


class LspConnection:
    """A connection. `on_message` is called with the method and the parameters of each notification.

    `handlers`, by method, answer the server's requests.

    `listen` has to run in a task; when it returns, the server is gone,
    and `loss_reason` is the reason.
    """

    def __init__(
        self, pipes: Program, on_message: MessageHandler, handlers: RequestHandlers
    ) -> None:
        self.loss_reason = ""
        self.pipes = pipes
        self._on_message = on_message
        self._handlers = handlers
        self._futures: dict[int, asyncio.Future[Any]] = {}
        """The answers of pending requests, by the request's id."""
        self._fences: dict[int, Callable[[], None]] = {}
        self._request_count = 0

    async def listen(self) -> None:
        """Read until the end. Raises only when cancelled, whatever the server does."""
        reader, second_began_at, count = MessageReader(), time.monotonic(), 0
        try:
            while data := await self.pipes.read():
                for message in reader.feed(data):
                    self._handle(message)
                    count += 1
                if time.monotonic() - second_began_at > 1:
                    second_began_at, count = time.monotonic(), 0
                # A flooding server is throttled: its pipe fills, and it waits.
                # With 0, only other tasks get their turn.
                await asyncio.sleep(1 if count > LSP_MESSAGE_RATE.value else 0)
        except InvalidStream as error:
            self.mark_lost(str(error))
        except OSError:
            pass
        finally:
            self.mark_lost(self.pipes.ending or "it closed its output")

    def mark_lost(self, reason: str) -> None:
        """Mark the server as gone: pending requests fail."""
        if self.loss_reason:
            return
        self.loss_reason = reason
        for future in self._futures.values():
            if not future.done():
                future.set_exception(ServerGone(self.loss_reason))
                # Marks the error as seen: asyncio logs it if the caller was cancelled
                # and never reads it.
                future.exception()
        self._futures.clear()
        self._on_message(CONNECTION_LOST, None)

    def fence(self, on_passed: Callable[[], None]) -> None:
        """Send an unknown request. Its refusal means that everything before it is processed,
        and calls `on_passed`.
        """
        if not self.loss_reason:
            request_id, _ = self._post(FENCE_METHOD, {})
            self._fences[request_id] = on_passed

    def _post(self, method: str, params: Any) -> "tuple[int, asyncio.Future[Any]]":
        """Send a request; return its id and the future of its answer. Raises ServerGone."""
        if self.loss_reason:
            raise ServerGone(self.loss_reason)
        self._request_count += 1
        answer = self._futures[self._request_count] = asyncio.get_running_loop().create_future()
        self._send(
            {"jsonrpc": "2.0", "id": self._request_count, "method": method, "params": params}
        )
        return self._request_count, answer

    async def request(self, method: str, params: Any, seconds: float) -> Any:
        """Return the result of a request. Raises ErrorAnswer, ServerGone, TimeoutError."""
        request_id, answer = self._post(method, params)
        try:
            async with asyncio.timeout(seconds):
                return await answer
        except (TimeoutError, asyncio.CancelledError):
            self.notify("$/cancelRequest", {"id": request_id})
            raise
        finally:
            self._futures.pop(request_id, None)

    def notify(self, method: str, params: Any) -> None:
        """Send a notification. Ignored if the server is gone."""
        self._send({"jsonrpc": "2.0", "method": method, "params": params})

    def _send(self, message: JSON) -> None:
        if self.loss_reason:
            return
        try:
            unread = self.pipes.write(encode_message(message))
        except OSError:
            # The server is gone; `listen` reports its end.
            return
        if unread > LSP_UNREAD.value:
            self.mark_lost("it does not read what it is sent")

    def _handle(self, message: JSON) -> None:
        method, request_id = message.get("method"), message.get("id")
        if not isinstance(method, str):
            self._settle_request(request_id, message)
        elif request_id is None:
            self._on_message(method, message.get("params"))
        elif method in self._handlers:
            result = self._handlers[method](message.get("params"))
            self._send({"jsonrpc": "2.0", "id": request_id, "result": result})
        else:
            error = {"code": _UNKNOWN_METHOD, "message": f"{method} is not supported"}
            self._send({"jsonrpc": "2.0", "id": request_id, "error": error})

    def _settle_request(self, request_id: Any, message: JSON) -> None:
        if not isinstance(request_id, int):
            # Requests of this client have numbers as ids, so it answers none of them.
            return
        future = self._futures.pop(request_id, None)
        if on_passed := self._fences.pop(request_id, None):
            # At once, not in a task: messages in the same chunk are handled next, and depend on it.
            on_passed()
        if future is None or future.done():
            return
        error = message.get("error")
        if error is None:
            future.set_result(message.get("result"))
            return
        text = error.get("message") if is_object(error) else error
        is_outdated = is_object(error) and error.get("code") in _OUTDATED_CODES
        future.set_exception(ErrorAnswer(str(text)[:1_000], is_outdated=is_outdated))
        # Marks the error as seen, as in `mark_lost`.
        future.exception()
