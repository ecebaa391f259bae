"""A `Client` that reaches a codeloop server over HTTP."""

import asyncio
import re
from collections.abc import AsyncGenerator, AsyncIterator, Coroutine
from contextlib import aclosing
from functools import cache
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import quote, urlencode

import msgspec

from codeloop.client.link import Link, ServerLost
from codeloop.client.wire.refusal import refusal_of
from codeloop.client.wire.remote import Credential, Remote, Renew
from codeloop.net.sse import EventTooLong, SseParser
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
from codeloop.schema.operation import (
    ABORT,
    COMMAND,
    PROMPT,
    SESSION_INIT,
    SESSION_SHELL,
    SUMMARIZE,
    TOOL_ASK,
    AnyOperation,
    Gives,
    Operation,
    Takes,
)
from codeloop.schema.wire import JSON

if TYPE_CHECKING:
    from httpx2 import Response

HEARTBEAT = "x-codeloop-heartbeat"
ENDLESS = frozenset({PROMPT.id, COMMAND.id, SUMMARIZE.id, SESSION_SHELL.id, SESSION_INIT.id, TOOL_ASK.id})
"""Operations without a timeout: the server answers when a turn ends or the user answers, which may take days."""

_PLACEHOLDER = re.compile(r"\{(\w+)\}")


class _RetryNow(Exception):
    """Makes the caller send the request again at once, with a new credential or over a new connection."""


class HttpClient:
    """Reaches one directory of a server; without `directory`, the directory that the server was started in.

    Calls wait until a stream begun with `follow` is open, so that it shows their events.
    """

    def __init__(
        self,
        url: str,
        directory: str | None = None,
        credential: Credential | None = None,
        renew: Renew | None = None,
    ) -> None:
        """Open no connection yet. `renew` returns the new address and credential of a server that is gone or refuses.

        Raises CodeloopError when `url` is not the address of a server.
        """
        self._remote = Remote(url, credential, renew)
        self._opening: set[asyncio.Future[None]] = set()
        self.directory = directory

    @property
    def url(self) -> str:
        """The server's address."""
        return self._remote.url

    @property
    def link(self) -> Link:
        """The state of the connection; set its `on_report` to hear of changes."""
        return self._remote.link

    @property
    def sends_in_clear(self) -> bool:
        """Whether the password crosses a network without encryption."""
        return self._remote.sends_in_clear

    def for_directory(self, directory: str) -> "HttpClient":
        """Return a client of another directory of the same server, over the same connections."""
        client = HttpClient(self._remote.url, directory)
        client._remote, client._opening = self._remote, self._opening
        return client

    async def call(self, operation: Operation[Takes, Gives], args: Takes) -> Gives:
        """Carry out an operation. Raises CodeloopError when it is refused, ServerLost when nobody answers.

        If a server that answered before goes away, requests that are safe to repeat are retried for up to
        `client.gone`: reads, unsent requests, and prompts (deduplicated by `message_id`). An abort is never retried:
        it could hit a later turn.
        """
        if self._opening:
            await asyncio.wait(set(self._opening))
        request = _request(operation, args)
        is_deduplicated = getattr(args, "message_id", None) is not None and operation.id in {PROMPT.id, COMMAND.id}
        wait = CLIENT_BACKOFF.seconds
        while True:
            try:
                pending_response = self._ask_once(operation, request)
                status, answer = await (self._until_reopened(pending_response) if is_deduplicated else pending_response)
                break
            except _RetryNow:
                continue
            except ServerLost as error:
                is_safe_to_retry = error.is_unsent or is_deduplicated or operation.method == "GET"
                if not is_safe_to_retry or operation.id == ABORT.id:
                    raise
                self._remote.link.report_loss(error, self._remote.url)
            await asyncio.sleep(wait)
            wait = min(2 * wait, CLIENT_BACKOFF_MOST.seconds)
            self._remote.renew()
        return self._answer(operation, request[0], status, answer)

    async def _ask_once(self, operation: AnyOperation, request: tuple[str, bytes | None]) -> tuple[int, bytes]:
        """Send the request once; return the status and the body of the response. Raises ServerLost."""
        path, body = request
        credential = self._remote.credential
        timeout = None if operation.id in ENDLESS else CLIENT_RESPONSE_TIME.seconds
        try:
            # A deadline for the whole response: a server that sends a byte now and then never exceeds a read timeout.
            async with asyncio.timeout(timeout):
                async with self._remote.ask(operation.method, path, self._headers(body), body, timeout) as response:
                    answer = await self._remote.read(response)
        except TimeoutError:
            raise ServerLost(
                f"The server at {self._remote.url} did not answer {operation.method} {path.partition('?')[0]} within "
                f"{CLIENT_RESPONSE_TIME.seconds:g} s. Check whether it is still running.",
                "it was too slow",
            ) from None
        if response.status_code == 401:
            self._raise_refusal(refusal_of(401, answer, self._remote.url), credential)
        else:
            self._remote.link.report_answer(self._remote.url)
        return response.status_code, answer

    def _raise_refusal(self, refusal: CodeloopError, credential: Credential | None) -> None:
        """Raise _RetryNow if there is a new credential; ServerLost if a restarting server may still announce one.

        `credential`: the refused credential. Another request may have renewed the credential meanwhile.
        """
        if self._remote.renew() or self._remote.credential != credential:
            raise _RetryNow
        if self._remote.link.is_down and self._remote.is_renewable:
            raise ServerLost(str(refusal), "the server rejected the password", is_unsent=True)

    async def _until_reopened(self, pending_response: Coroutine[Any, Any, tuple[int, bytes]]) -> tuple[int, bytes]:
        """Wait for a response. Raises ServerLost; _RetryNow if the event stream was reopened meanwhile.

        The stream is reopened after its connection broke; the connection of this request may have broken too.
        """
        task = asyncio.create_task(pending_response)
        reopened = self._remote.link.next_opening()
        try:
            await asyncio.wait((task, reopened), return_when=asyncio.FIRST_COMPLETED)
            if task.done():
                return task.result()
            raise _RetryNow
        finally:
            task.cancel()

    def _answer(self, operation: Operation[Takes, Gives], path: str, status: int, answer: bytes) -> Gives:
        if status >= 300:
            raise refusal_of(status, answer, self._remote.url)
        if status == 204:
            return cast("Gives", None)
        try:
            return _decoder(operation.id, operation.gives).decode(answer)
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
            route = f"{operation.method} {path.partition('?')[0]}"
            if answer.lstrip().startswith(b"<"):  # a server of the reference sends its web page for an unknown route
                raise OperationError("NotFoundError", f"{self._remote.url} does not offer {route}.") from None
            raise CodeloopError(
                f"The answer of {self._remote.url} to {route} is not understood: {error}. Use its codeloop version."
            ) from None

    async def follow(self, after: int | None = None, root: str | None = None) -> AsyncIterator[StampedEvent]:
        """Yield every stored event of the directory after `after` (None: from now on), then live ones.

        A lost stream is reopened where it ended: it yields ServerConnected, then the events stored meanwhile. Raises
        GapError when the server no longer keeps these events, CodeloopError when the server refuses the stream or
        stays away for `client.gone`.
        """
        del root  # the server sends the events of all sessions of the directory
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._opening.add(future)
        try:
            last, wait, link = after, CLIENT_BACKOFF.seconds, self._remote.link
            while True:
                try:
                    async with aclosing(self._stream(last)) as events:
                        async for event in events:
                            is_reopened = future.done() and isinstance(event.event, ServerConnected)
                            self._mark_open(future)
                            wait = CLIENT_BACKOFF.seconds
                            last = event.seq if event.seq is not None else last
                            if is_reopened:
                                link.report_reopening()
                            if is_reopened or not isinstance(event.event, ServerConnected | ServerHeartbeat):
                                yield event
                except _RetryNow:
                    continue
                except ServerLost as error:
                    link.report_loss(error, self._remote.url)
                await asyncio.sleep(wait)
                wait = min(2 * wait, CLIENT_BACKOFF_MOST.seconds)
                self._remote.renew()
        finally:
            self._mark_open(future)

    def _mark_open(self, future: asyncio.Future[None]) -> None:
        if not future.done():
            future.set_result(None)
            self._opening.discard(future)

    async def close(self) -> None:
        """Close every connection, including those of clients made with `for_directory`."""
        await self._remote.close()

    async def _stream(self, after: int | None) -> AsyncGenerator[StampedEvent, None]:
        """Yield the events of one connection, with ServerConnected and heartbeats. Raises ServerLost at its end."""
        headers = self._headers(None) | {HEARTBEAT: str(CLIENT_HEARTBEAT.value)}
        headers |= {} if after is None else {"last-event-id": str(after)}
        parser, last = SseParser(CLIENT_EVENT.value), -1 if after is None else after
        credential = self._remote.credential
        async with self._remote.ask("GET", "/event", headers, None, CLIENT_STREAM_IDLE.seconds) as response:
            if response.status_code != 200:
                refusal = refusal_of(response.status_code, await self._remote.read(response), self._remote.url)
                if response.status_code == 401:
                    self._raise_refusal(refusal, credential)
                raise ServerLost(str(refusal), "it is not ready") if response.status_code >= 500 else refusal
            if not response.headers.get("content-type", "").startswith("text/event-stream"):
                raise CodeloopError(f"{self._remote.url} is not a codeloop server: its /event is not an event stream.")
            async for chunk in self._watch_silence(response):
                try:
                    events = parser.feed_with_ids(chunk)
                except EventTooLong:
                    raise CodeloopError(f"An event of {self._remote.url} is too long and was not read.") from None
                for seq, data in events:
                    event = _decode_event(data)
                    if isinstance(event, ServerResync):
                        raise GapError(event.properties.reason)
                    if event is not None and (seq is None or seq > last or isinstance(event, ServerConnected)):
                        last = last if seq is None else max(seq, last)
                        yield StampedEvent(seq, event)
        raise ServerLost(
            f"The server at {self._remote.url} ended its stream of events. Check whether it is still running.",
            "the server closed it",
        )

    async def _watch_silence(self, response: "Response") -> AsyncGenerator[bytes, None]:
        """Yield the chunks of a stream; report silence if the server promised heartbeats and sends nothing."""
        link, loop = self._remote.link, asyncio.get_running_loop()
        last_byte_at = loop.time()

        def check() -> None:
            nonlocal timer
            remaining = last_byte_at + CLIENT_UNRESPONSIVE_TIME.seconds - loop.time()
            if remaining <= 0:
                link.report_silence(self._remote.url)
            timer = loop.call_later(remaining if remaining > 0 else CLIENT_UNRESPONSIVE_TIME.seconds, check)

        timer = loop.call_later(CLIENT_UNRESPONSIVE_TIME.seconds, check) if HEARTBEAT in response.headers else None
        try:
            async for chunk in response.aiter_raw():
                last_byte_at = loop.time()
                link.report_answer(self._remote.url)
                yield chunk
        finally:
            if timer is not None:
                timer.cancel()

    def _headers(self, body: bytes | None) -> dict[str, str]:
        headers = {} if body is None else {"content-type": "application/json"}
        if self.directory is not None:
            headers["x-opencode-directory"] = quote(self.directory, safe="/")
        return headers


def _request(operation: AnyOperation, args: msgspec.Struct) -> tuple[str, bytes | None]:
    """Return the path with its query, and the body. Raises OperationError when a field can't be part of the path."""
    fields: JSON = msgspec.to_builtins(args)

    def fill(match: re.Match[str]) -> str:
        value = str(fields.pop(match[1]))
        if value in {"", ".", ".."}:
            raise OperationError("BadRequest", f"{match[1]} can't be {value!r}.")
        return quote(value.encode("utf-8", "replace"), safe="")

    path = _PLACEHOLDER.sub(fill, operation.path)
    if not operation.takes_body:
        query = {name: _format_value(value) for name, value in fields.items() if value is not None}
        return (f"{path}?{urlencode(query, errors='replace')}" if query else path), None
    if operation.body is not None:
        return path, _encode_json(msgspec.to_builtins(getattr(args, operation.body)))
    return path, _encode_json(fields)


def _format_value(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _encode_json(value: Any) -> bytes:
    try:
        return msgspec.json.encode(value)
    except UnicodeEncodeError:  # arguments of the command line may hold bytes that are not UTF-8
        return msgspec.json.encode(_replace_surrogates(value))


def _replace_surrogates(value: Any) -> Any:
    match value:
        case str():
            return value.encode("utf-8", "replace").decode()
        case dict():
            entries = cast("dict[str, Any]", value).items()
            return {_replace_surrogates(name): _replace_surrogates(inner) for name, inner in entries}
        case list():
            return [_replace_surrogates(inner) for inner in cast("list[Any]", value)]
        case _:
            return value


@cache
def _decoder(operation_id: str, gives: Any) -> msgspec.json.Decoder[Any]:
    del operation_id  # part of the cache key: result types of two operations may be equal and decode differently
    return msgspec.json.Decoder(gives)


@cache
def _event_decoder() -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(Event)


def _decode_event(data: bytes) -> Event | None:
    """Return the event; None: an event of a newer server, or not an event."""
    try:
        return _event_decoder().decode(data)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return None
