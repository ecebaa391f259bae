"""`HttpClient`: reaches a codeloop server over HTTP,
and repeats safe requests after the connection broke.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Coroutine
from contextlib import aclosing
from functools import cache
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import quote

import msgspec

from codeloop.client.client import ServerLost
from codeloop.client.wire.connection_state import ConnectionState
from codeloop.client.wire.error_responses import decode_error_response
from codeloop.client.wire.request_encoding import EncodedRequest, encode_request
from codeloop.client.wire.transport import HttpTransport, Renew, UserAndPassword
from codeloop.net.sse import EventTooLong, SseParser
from codeloop.schema.api.client_tools import TOOL_ASK
from codeloop.schema.api.session_inputs import (
    ABORT,
    COMMAND,
    PROMPT,
    SESSION_INIT,
    SESSION_SHELL,
    SUMMARIZE,
)
from codeloop.schema.errors import CodeloopError, GapError, OperationError
from codeloop.schema.event import Event, StampedEvent
from codeloop.schema.limits import (
    CLIENT_BACKOFF,
    CLIENT_BACKOFF_MOST,
    CLIENT_EVENT,
    CLIENT_HEARTBEAT,
    CLIENT_RESPONSE_TIME,
    CLIENT_STREAM_IDLE,
    CLIENT_UNRESPONSIVE_TIME,
)
from codeloop.schema.live_events import ServerConnected, ServerHeartbeat, ServerResync
from codeloop.schema.operation import AnyOperation, Gives, Operation, Takes
from codeloop.schema.wire import DECODE_ERRORS

if TYPE_CHECKING:
    from httpx2 import Response

HEARTBEAT_HEADER = "x-codeloop-heartbeat"
UNTIMED_OPERATIONS = frozenset(
    {PROMPT.id, COMMAND.id, SUMMARIZE.id, SESSION_SHELL.id, SESSION_INIT.id, TOOL_ASK.id}
)
"""Operations without a timeout: the server answers when a turn ends or the user answers,
which may take days.
"""


class _RetryNow(Exception):
    """Makes the caller send the request again at once,
    with a new credential or over a new connection.
    """


class HttpClient:
    """Reaches one directory of a server; without `directory`,
    the directory that the server was started in.

    Calls wait until a stream begun with `follow` is open, so that it shows their events.
    """

    def __init__(
        self,
        url: str,
        directory: str | None = None,
        credential: UserAndPassword | None = None,
        renew: Renew | None = None,
    ) -> None:
        """Open no connection yet. `renew` returns the new address and credential of a server
        that is gone or refuses.

        Raises CodeloopError when `url` is not the address of a server.
        """
        self._transport = HttpTransport(url, credential, renew)
        self._streams_being_opened: set[asyncio.Future[None]] = set()
        """One future for each. Clients from `for_directory` share the set: calls of any
        wait for all these streams.
        """
        self.directory = directory

    @property
    def url(self) -> str:
        """The server's address."""
        return self._transport.url

    @property
    def connection(self) -> ConnectionState:
        """The state of the connection; set its `on_report` to hear of changes."""
        return self._transport.connection

    @property
    def sends_in_clear(self) -> bool:
        """Whether the password crosses a network without encryption."""
        return self._transport.sends_in_clear

    def for_directory(self, directory: str) -> "HttpClient":
        """Return a client of another directory of the same server, over the same connections."""
        client = HttpClient(self._transport.url, directory)
        client._transport = self._transport
        client._streams_being_opened = self._streams_being_opened
        return client

    async def call(self, operation: Operation[Takes, Gives], args: Takes) -> Gives:
        """Carry out an operation. Raises CodeloopError when it is refused,
        ServerLost when nobody answers.

        If a server that answered before goes away, requests that are safe to repeat
        are retried for up to
        `client.gone`: reads, unsent requests, and prompts (deduplicated by `message_id`). An abort
        is never retried: it could hit a later turn.
        """
        if self._streams_being_opened:
            # A copy: `_mark_open` takes futures out of the set during the wait.
            await asyncio.wait(set(self._streams_being_opened))
        request = encode_request(operation, args)
        # The server stores a message id once, so a prompt that is sent again does
        # not start a second turn.
        is_deduplicated = getattr(args, "message_id", None) is not None and operation.id in {
            PROMPT.id,
            COMMAND.id,
        }
        delay = CLIENT_BACKOFF.seconds
        while True:
            try:
                pending_response = self._send_once(operation, request)
                if is_deduplicated:
                    pending_response = self._wait_unless_reopened(pending_response)
                status, answer = await pending_response
                break
            except _RetryNow:
                continue
            except ServerLost as error:
                is_safe_to_retry = error.is_unsent or is_deduplicated or operation.method == "GET"
                if not is_safe_to_retry or operation.id == ABORT.id:
                    raise
                self._transport.connection.record_loss(error, self._transport.url)
            await asyncio.sleep(delay)
            delay = min(2 * delay, CLIENT_BACKOFF_MOST.seconds)
            self._transport.renew()
        return self._decode_answer(operation, request.path, status, answer)

    async def _send_once(
        self, operation: AnyOperation, request: EncodedRequest
    ) -> tuple[int, bytes]:
        """Send a request; return the status and the body of its response.
        Raises ServerLost, _RetryNow.
        """
        credential = self._transport.credential
        timeout = None if operation.id in UNTIMED_OPERATIONS else CLIENT_RESPONSE_TIME.seconds
        try:
            # A deadline for the whole response: a server that sends a byte now and then never
            # exceeds a read timeout.
            async with asyncio.timeout(timeout):
                headers = self._make_headers(request.body)
                sending = self._transport.send(
                    operation.method, request.path, headers, request.body, timeout
                )
                async with sending as response:
                    answer = await self._transport.read(response)
        except TimeoutError:
            path = request.path.partition("?")[0]
            raise ServerLost(
                f"The server at {self._transport.url} did not answer {operation.method} {path} "
                f"within {CLIENT_RESPONSE_TIME.seconds:g} s. Check whether it is still running.",
                "it was too slow",
            ) from None
        if response.status_code == 401:
            self._raise_if_retryable(
                decode_error_response(401, answer, self._transport.url), credential
            )
        else:
            self._transport.connection.record_answer(self._transport.url)
        return response.status_code, answer

    def _raise_if_retryable(
        self, refusal: CodeloopError, credential: UserAndPassword | None
    ) -> None:
        """Raise _RetryNow if there is a new credential;
        ServerLost if a restarting server may still announce one.

        Otherwise return: the refusal is final.
        `credential`: the refused credential. Another request may have renewed
        the credential meanwhile.
        """
        if self._transport.renew() or self._transport.credential != credential:
            raise _RetryNow
        if self._transport.connection.is_down and self._transport.is_renewable:
            raise ServerLost(str(refusal), "the server rejected the password", is_unsent=True)

    async def _wait_unless_reopened(
        self, pending_response: Coroutine[Any, Any, tuple[int, bytes]]
    ) -> tuple[int, bytes]:
        """Wait for a response. Raises ServerLost; _RetryNow if the event stream
        was reopened meanwhile.

        The stream is reopened after its connection broke;
        the connection of this request may have broken too.
        """
        task = asyncio.create_task(pending_response)
        reopened = self._transport.connection.get_next_opening()
        try:
            await asyncio.wait((task, reopened), return_when=asyncio.FIRST_COMPLETED)
            if task.done():
                return task.result()
            raise _RetryNow
        finally:
            task.cancel()

    def _decode_answer(
        self, operation: Operation[Takes, Gives], path: str, status: int, answer: bytes
    ) -> Gives:
        if status >= 300:
            raise decode_error_response(status, answer, self._transport.url)
        if status == 204:
            return cast("Gives", None)
        try:
            return _get_decoder(operation.id, operation.gives).decode(answer)
        except DECODE_ERRORS as error:
            route = f"{operation.method} {path.partition('?')[0]}"
            # An OpenCode server sends its web page for an unknown route.
            if answer.lstrip().startswith(b"<"):
                raise OperationError(
                    "NotFoundError", f"{self._transport.url} does not offer {route}."
                ) from None
            raise CodeloopError(
                f"The answer of {self._transport.url} to {route} is not understood: {error}. Use its codeloop version."
            ) from None

    async def follow(
        self, after: int | None = None, root: str | None = None
    ) -> AsyncIterator[StampedEvent]:
        """Yield every stored event of the directory after `after` (None: from now on),
        then live ones.

        A lost stream is reopened where it ended: it yields ServerConnected, then the events stored
        meanwhile. Raises GapError when the server no longer keeps these events, CodeloopError when
        the server refuses the stream or stays away for `client.gone`.
        """
        # The server sends the events of all sessions of the directory.
        del root
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._streams_being_opened.add(future)
        try:
            last, delay, connection = after, CLIENT_BACKOFF.seconds, self._transport.connection
            while True:
                try:
                    async with aclosing(self._stream_events(last)) as events:
                        async for event in events:
                            is_reopened = future.done() and isinstance(event.event, ServerConnected)
                            self._mark_open(future)
                            delay = CLIENT_BACKOFF.seconds
                            last = event.seq if event.seq is not None else last
                            if is_reopened:
                                connection.record_reopening()
                            if is_reopened or not isinstance(
                                event.event, ServerConnected | ServerHeartbeat
                            ):
                                yield event
                except _RetryNow:
                    continue
                except ServerLost as error:
                    connection.record_loss(error, self._transport.url)
                await asyncio.sleep(delay)
                delay = min(2 * delay, CLIENT_BACKOFF_MOST.seconds)
                self._transport.renew()
        finally:
            # Calls must not wait for a stream that has failed for good.
            self._mark_open(future)

    def _mark_open(self, future: asyncio.Future[None]) -> None:
        """Let the calls go on that wait for a stream, at its first event."""
        if not future.done():
            future.set_result(None)
            self._streams_being_opened.discard(future)

    async def close(self) -> None:
        """Close every connection. Clients from `for_directory` share them."""
        await self._transport.close()

    async def _stream_events(self, after: int | None) -> AsyncGenerator[StampedEvent, None]:
        """Yield the events of one connection, with ServerConnected and heartbeats.
        Raises ServerLost at its end.
        """
        headers = self._make_headers(None) | {HEARTBEAT_HEADER: str(CLIENT_HEARTBEAT.value)}
        headers |= {} if after is None else {"last-event-id": str(after)}
        parser, last = SseParser(CLIENT_EVENT.value), -1 if after is None else after
        credential = self._transport.credential
        async with self._transport.send(
            "GET", "/event", headers, None, CLIENT_STREAM_IDLE.seconds
        ) as response:
            if response.status_code != 200:
                refusal = decode_error_response(
                    response.status_code, await self._transport.read(response), self._transport.url
                )
                if response.status_code == 401:
                    self._raise_if_retryable(refusal, credential)
                # A server that starts or ends answers 5xx for a moment;
                # every other refusal is final.
                raise (
                    ServerLost(str(refusal), "it is not ready")
                    if response.status_code >= 500
                    else refusal
                )
            if not response.headers.get("content-type", "").startswith("text/event-stream"):
                raise CodeloopError(
                    f"{self._transport.url} is not a codeloop server: its /event is not an event stream."
                )
            async for chunk in self._watch_silence(response):
                try:
                    events = parser.feed_with_ids(chunk)
                except EventTooLong:
                    raise CodeloopError(
                        f"An event of {self._transport.url} is too long and was not read."
                    ) from None
                for seq, data in events:
                    event = _decode_event(data)
                    if isinstance(event, ServerResync):
                        raise GapError(event.properties.reason)
                    # Live events have no number. A stored event that was yielded before is dropped.
                    if event is not None and (
                        seq is None or seq > last or isinstance(event, ServerConnected)
                    ):
                        last = last if seq is None else max(seq, last)
                        yield StampedEvent(seq, event)
        raise ServerLost(
            f"The server at {self._transport.url} ended its stream of events. Check whether it is still running.",
            "the server closed it",
        )

    async def _watch_silence(self, response: "Response") -> AsyncGenerator[bytes, None]:
        """Yield the chunks of a stream; report silence if the server promised
        heartbeats and sends nothing.
        """
        connection, loop = self._transport.connection, asyncio.get_running_loop()
        last_byte_at = loop.time()

        # One timer that looks back at the last byte: to restart a timer for each
        # chunk would cost more.
        def check() -> None:
            nonlocal timer
            remaining = last_byte_at + CLIENT_UNRESPONSIVE_TIME.seconds - loop.time()
            if remaining <= 0:
                connection.record_silence(self._transport.url)
            timer = loop.call_later(
                remaining if remaining > 0 else CLIENT_UNRESPONSIVE_TIME.seconds, check
            )

        timer = (
            loop.call_later(CLIENT_UNRESPONSIVE_TIME.seconds, check)
            if HEARTBEAT_HEADER in response.headers
            else None
        )
        try:
            async for chunk in response.aiter_raw():
                last_byte_at = loop.time()
                connection.record_answer(self._transport.url)
                yield chunk
        finally:
            if timer is not None:
                timer.cancel()

    def _make_headers(self, body: bytes | None) -> dict[str, str]:
        headers = {} if body is None else {"content-type": "application/json"}
        if self.directory is not None:
            headers["x-opencode-directory"] = quote(self.directory, safe="/")
        return headers


@cache
def _get_decoder(operation_id: str, gives: Any) -> msgspec.json.Decoder[Any]:
    # Part of the cache key: result types of two operations may be equal and decode differently.
    del operation_id
    return msgspec.json.Decoder(gives)


@cache
def _get_event_decoder() -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(Event)


def _decode_event(data: bytes) -> Event | None:
    """Return the event; None: an event of a newer server, or not an event."""
    try:
        return _get_event_decoder().decode(data)
    except DECODE_ERRORS:
        return None
