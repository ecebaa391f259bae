"""The client of a server: the same two methods, over HTTP."""

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
from codeloop.schema.event import Event, Stamped
from codeloop.schema.limits import (
    CLIENT_BACKOFF,
    CLIENT_BACKOFF_MOST,
    CLIENT_EVENT,
    CLIENT_HEARTBEAT,
    CLIENT_PATIENCE,
    CLIENT_QUIET,
    CLIENT_SILENCE,
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
"""Operations that are answered when a turn ends or the user answers: it may take days."""

_PLACEHOLDER = re.compile(r"\{(\w+)\}")


class _Again(Exception):
    """The request is to be sent again at once: there is another credential now, or another connection."""


class HttpClient:
    """Reaches a directory of a server; without a directory the server's own.

    What is called after `follow` began to be read is seen by it: the call waits until the stream is open.
    """

    def __init__(
        self,
        url: str,
        directory: str | None = None,
        credential: Credential | None = None,
        renew: Renew | None = None,
    ) -> None:
        """Connect to nothing yet. `renew` finds address and credential again when the server is gone or refuses.

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
        """Whether the server answers; its `on_report` may be set."""
        return self._remote.link

    @property
    def sends_in_clear(self) -> bool:
        """Return whether the password crosses a network without encryption."""
        return self._remote.sends_in_clear

    def for_directory(self, directory: str) -> "HttpClient":
        """Return a client of another directory of the same server, over the same connections."""
        client = HttpClient(self._remote.url, directory)
        client._remote, client._opening = self._remote, self._opening
        return client

    async def call(self, operation: Operation[Takes, Gives], args: Takes) -> Gives:
        """Carry out an operation. Raises CodeloopError when it is refused, ServerLost when nobody answers.

        A server that answered before may go away for `client.gone`: what can't have been carried out twice is sent
        again, a prompt by its `message_id`. An abort is not, as it would be meant for another turn by then.
        """
        if self._opening:
            await asyncio.wait(set(self._opening))
        request = _request(operation, args)
        is_known = getattr(args, "message_id", None) is not None and operation.id in {PROMPT.id, COMMAND.id}
        wait = CLIENT_BACKOFF.seconds
        while True:
            try:
                asking = self._ask_once(operation, request)
                status, answer = await (self._until_reopened(asking) if is_known else asking)
                break
            except _Again:
                continue
            except ServerLost as error:
                is_harmless = error.is_unsent or is_known or operation.method == "GET"
                if not is_harmless or operation.id == ABORT.id:
                    raise
                self._remote.link.report_loss(error, self._remote.url)
            await asyncio.sleep(wait)
            wait = min(2 * wait, CLIENT_BACKOFF_MOST.seconds)
            self._remote.renew()
        return self._answer(operation, request[0], status, answer)

    async def _ask_once(self, operation: AnyOperation, request: tuple[str, bytes | None]) -> tuple[int, bytes]:
        """Ask once; return status and body. Raises ServerLost."""
        path, body = request
        credential = self._remote.credential
        silence = None if operation.id in ENDLESS else CLIENT_PATIENCE.seconds
        try:
            # In all, since a server that sends a byte now and then is never silent.
            async with asyncio.timeout(silence):
                async with self._remote.ask(operation.method, path, self._headers(body), body, silence) as response:
                    answer = await self._remote.read(response)
        except TimeoutError:
            raise ServerLost(
                f"The server at {self._remote.url} did not answer {operation.method} {path.partition('?')[0]} within "
                f"{CLIENT_PATIENCE.seconds:g} s. Look whether it still runs.",
                "it was too slow",
            ) from None
        if response.status_code == 401:
            self._raise_refusal(refusal_of(401, answer, self._remote.url), credential)
        else:
            self._remote.link.report_answer(self._remote.url)
        return response.status_code, answer

    def _raise_refusal(self, refusal: CodeloopError, credential: Credential | None) -> None:
        """Raise _Again when there is another credential by now, ServerLost when a server that restarts may say one.

        `credential`: the one that was refused. Another request may have found the new one meanwhile.
        """
        if self._remote.renew() or self._remote.credential != credential:
            raise _Again
        if self._remote.link.is_down and self._remote.is_renewable:
            raise ServerLost(str(refusal), "the server wants another password", is_unsent=True)

    async def _until_reopened(self, asking: Coroutine[Any, Any, tuple[int, bytes]]) -> tuple[int, bytes]:
        """Wait for a response. Raises ServerLost; _Again when the stream of events was opened again meanwhile.

        The connection of the request may be as dead as that of the stream was.
        """
        task = asyncio.create_task(asking)
        reopened = self._remote.link.next_opening()
        try:
            await asyncio.wait((task, reopened), return_when=asyncio.FIRST_COMPLETED)
            if task.done():
                return task.result()
            raise _Again
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
            what = f"{operation.method} {path.partition('?')[0]}"
            if answer.lstrip().startswith(b"<"):  # the reference answers a route that it hasn't with its page
                raise OperationError("NotFoundError", f"{self._remote.url} does not offer {what}.") from None
            raise CodeloopError(
                f"The answer of {self._remote.url} to {what} is not understood: {error}. Use a codeloop of its version."
            ) from None

    async def follow(self, after: int | None = None) -> AsyncIterator[Stamped]:
        """Yield every stored event of the directory after `after` (None: from now on), then live ones.

        A stream that is lost is opened again and goes on where it was: ServerConnected says so, then comes what was
        stored between. Raises GapError when the server no longer keeps that, CodeloopError when it refuses, or stays
        away for `client.gone`.
        """
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._opening.add(future)
        try:
            last, wait, link = after, CLIENT_BACKOFF.seconds, self._remote.link
            while True:
                try:
                    async with aclosing(self._stream(last)) as events:
                        async for event in events:
                            is_again = future.done() and isinstance(event.event, ServerConnected)
                            self._mark_open(future)
                            wait = CLIENT_BACKOFF.seconds
                            last = event.seq if event.seq is not None else last
                            if is_again:
                                link.report_reopening()
                            if is_again or not isinstance(event.event, ServerConnected | ServerHeartbeat):
                                yield event
                except _Again:
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
        """Drop every connection, those of `for_directory` too."""
        await self._remote.close()

    async def _stream(self, after: int | None) -> AsyncGenerator[Stamped, None]:
        """Yield the events of one connection, greetings and heartbeats too. Raises ServerLost at its end."""
        headers = self._headers(None) | {HEARTBEAT: str(CLIENT_HEARTBEAT.value)}
        headers |= {} if after is None else {"last-event-id": str(after)}
        parser, last = SseParser(CLIENT_EVENT.value), -1 if after is None else after
        credential = self._remote.credential
        async with self._remote.ask("GET", "/event", headers, None, CLIENT_SILENCE.seconds) as response:
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
                    raise CodeloopError(f"An event of {self._remote.url} is too long. It was not read.") from None
                for seq, data in events:
                    event = _event(data)
                    if isinstance(event, ServerResync):
                        raise GapError(event.properties.reason)
                    if event is not None and (seq is None or seq > last or isinstance(event, ServerConnected)):
                        last = last if seq is None else max(seq, last)
                        yield Stamped(seq, event)
        raise ServerLost(
            f"The server at {self._remote.url} ended its stream of events. Look whether it still runs.",
            "the server closed it",
        )

    async def _watch_silence(self, response: "Response") -> AsyncGenerator[bytes, None]:
        """Yield the pieces of a stream; report silence when the server had promised heartbeats."""
        link, loop = self._remote.link, asyncio.get_running_loop()
        last_byte_at = loop.time()

        def look() -> None:
            nonlocal timer
            rest = last_byte_at + CLIENT_QUIET.seconds - loop.time()
            if rest <= 0:
                link.report_silence(self._remote.url)
            timer = loop.call_later(rest if rest > 0 else CLIENT_QUIET.seconds, look)

        timer = loop.call_later(CLIENT_QUIET.seconds, look) if HEARTBEAT in response.headers else None
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
    """Return path with query, and body. Raises OperationError when a field can't be part of the path."""
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
        return path, _json(msgspec.to_builtins(getattr(args, operation.body)))
    return path, _json(fields)


def _format_value(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _json(value: Any) -> bytes:
    try:
        return msgspec.json.encode(value)
    except UnicodeEncodeError:  # words of the command line need not be characters
        return msgspec.json.encode(_characters(value))


def _characters(value: Any) -> Any:
    match value:
        case str():
            return value.encode("utf-8", "replace").decode()
        case dict():
            entries = cast("dict[str, Any]", value).items()
            return {_characters(name): _characters(inner) for name, inner in entries}
        case list():
            return [_characters(inner) for inner in cast("list[Any]", value)]
        case _:
            return value


@cache
def _decoder(operation_id: str, gives: Any) -> msgspec.json.Decoder[Any]:
    del operation_id  # one type may be written in two ways that are equal
    return msgspec.json.Decoder(gives)


@cache
def _events() -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(Event)


def _event(data: bytes) -> Event | None:
    """Decode an event; None for one that we do not know."""
    try:
        return _events().decode(data)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return None
