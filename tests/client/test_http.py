"""The client over HTTP against servers that misbehave: real sockets, answers byte by byte."""

import asyncio
import base64
import json
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from codeloop.client import http
from codeloop.client.client import ServerLost
from codeloop.client.http import HttpClient
from codeloop.client.wire import connection_state
from codeloop.schema.api.config import CONFIG_UPDATE
from codeloop.schema.api.files import FIND_FILES
from codeloop.schema.api.pty import PTY_TICKET
from codeloop.schema.api.session_inputs import ABORT, PROMPT_ASYNC, TextPartInput
from codeloop.schema.api.session_requests import (
    SESSION_GET,
    SESSION_LIST,
    SESSION_UPDATE,
    ArchiveTime,
    SessionId,
)
from codeloop.schema.errors import CodeloopError, GapError, OperationError
from codeloop.schema.event import StampedEvent
from codeloop.schema.ids import new_id
from codeloop.schema.limits import Limit
from codeloop.schema.live_events import ServerConnected, ToastShown
from tests.support.scripted_project import wait_for_result

OPEN = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n"
CONNECTED = b'id: %d\ndata: {"id":"evt_1","type":"server.connected","properties":{}}\n\n'
HEARTBEAT = b'data: {"id":"evt_2","type":"server.heartbeat","properties":{}}\n\n'
UNKNOWN = b'data: {"id":"evt_3","type":"some.news","properties":{"x":1}}\n\n'


class Request:
    """One request as it came."""

    def __init__(self, line: str, headers: dict[str, str], body: bytes) -> None:
        self.method, self.target, _ = line.split(" ")
        self.headers = headers
        self.body = body

    @property
    def json(self) -> Any:
        return json.loads(self.body)


Answer = bytes | Callable[[asyncio.StreamWriter], Any]
"""What a connection is answered with; a function may go on to write."""


class Wire:
    """A server that answers each request with the next of its answers,
    the last one for all that follow.
    """

    def __init__(self, *answers: Answer) -> None:
        self.requests: list[Request] = []
        self.url = ""
        self._answers = list(answers)

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
            headers = {
                name.lower(): value
                for name, _, value in (line.partition(": ") for line in head[1:] if line)
            }
            body = await reader.readexactly(int(headers.get("content-length", "0")))
            self.requests.append(Request(head[0], headers, body))
            answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
            if isinstance(answer, bytes):
                writer.write(answer)
            else:
                await answer(writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()


def said(status: str, body: bytes = b"", *more: str) -> bytes:
    head = [
        f"HTTP/1.1 {status}",
        f"content-length: {len(body)}",
        "connection: close",
        *more,
        "",
        "",
    ]
    return "\r\n".join(head).encode() + body


@asynccontextmanager
async def wire(*answers: Answer) -> AsyncGenerator[Wire]:
    made = Wire(*answers)
    server = await asyncio.start_server(made.answer, "127.0.0.1", 0)
    made.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield made
    finally:
        server.close()


@asynccontextmanager
async def client(url: str, directory: str | None = None) -> AsyncGenerator[HttpClient]:
    made = HttpClient(url, directory, ("me", "secret ü"))
    try:
        yield made
    finally:
        await made.close()


def limit(monkeypatch: pytest.MonkeyPatch, name: str, value: int) -> None:
    modules = [module for module in (http, connection_state) if hasattr(module, f"CLIENT_{name}")]
    assert modules, name
    for module in modules:
        monkeypatch.setattr(
            module, f"CLIENT_{name}", Limit(f"client.{name.lower()}", value, "ms", "")
        )


@pytest.fixture(autouse=True)
def _hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (
        ("BACKOFF", 5),
        ("BACKOFF_MOST", 20),
        ("GONE_TIME", 60_000),
        ("STREAM_IDLE", 60_000),
    ):
        limit(monkeypatch, name, value)


def toast(seq: int | None, text: str) -> bytes:
    properties = {"message": text, "variant": "info"}
    data = json.dumps(
        {"id": new_id("evt"), "type": "tui.toast.show", "properties": properties}
    ).encode()
    return (b"id: %d\n" % seq if seq is not None else b"") + b"data: " + data + b"\n\n"


async def taken(it: HttpClient, count: int, after: int | None = None) -> list[StampedEvent]:
    found: list[StampedEvent] = []
    async for stamped in it.follow(after):
        if not isinstance(stamped.event, ServerConnected):
            found.append(stamped)
        if len(found) == count:
            break
    return found


def texts(found: list[StampedEvent]) -> list[str]:
    return [each.event.properties.message for each in found if isinstance(each.event, ToastShown)]


async def test_a_request_says_what_its_row_of_the_table_says() -> None:
    async with wire(said("204 No Content")) as server, client(server.url, "/a dir/ä%") as it:
        calls: list[tuple[Any, dict[str, Any], str, Any]] = [
            (ABORT, {"session_id": "ses_ä/?"}, "POST /session/ses_%C3%A4%2F%3F/abort", {}),
            (
                SESSION_LIST,
                {"roots": True, "search": "a b&ü"},
                "GET /session?roots=true&search=a+b%26%C3%BC",
                None,
            ),
            (
                SESSION_UPDATE,
                {"session_id": "ses_1", "time": ArchiveTime()},
                "PATCH /session/ses_1",
                {"time": {}},
            ),
            (CONFIG_UPDATE, {"config": {"a": [1]}}, "PATCH /config", {"a": [1]}),
            (
                FIND_FILES,
                {"query": "x", "dirs": "false"},
                "GET /find/file?query=x&dirs=false",
                None,
            ),
            (
                PROMPT_ASYNC,
                {"session_id": "ses_1", "parts": [TextPartInput(text="hi")]},
                "POST /session/ses_1/prompt_async",
                {"parts": [{"type": "text", "text": "hi"}]},
            ),
            (PTY_TICKET, {"pty_id": "pty_1"}, "POST /pty/pty_1/connect-token", {}),
        ]
        for operation, args, line, body in calls:
            assert await it.call(operation, operation.takes(**args)) is None
            request = server.requests[-1]
            assert f"{request.method} {request.target}" == line
            assert (request.json if request.body else None) == body
            assert request.headers["x-opencode-directory"] == "/a%20dir/%C3%A4%25"
            assert request.headers["authorization"] == "Basic bWU6c2VjcmV0IMO8"
            assert request.headers["accept-encoding"] == "identity"
        assert server.requests[-1].headers["x-opencode-ticket"] == "1"


@pytest.mark.parametrize("session_id", ["", ".", ".."])
async def test_a_value_that_would_change_the_path_is_never_sent(session_id: str) -> None:
    async with wire(said("200 OK", b"true")) as server, client(server.url) as it:
        with pytest.raises(OperationError, match="sessionID can't be"):
            await it.call(ABORT, SessionId(session_id=session_id))
        assert server.requests == []


@pytest.mark.parametrize(
    ("status", "body", "words"),
    [
        ("401 Unauthorized", b"", "--password"),
        (
            "403 Forbidden",
            b'{"name":"Refused","data":{"message":"Not from there."}}',
            "Not from there.",
        ),
        ("421 Misdirected Request", b"", "address that it printed"),
        ("500 Oops", b"<html>", "answered 500"),
        ("500 Oops", b'{"name":"UnknownError","data":{"message":"It broke."}}', "It broke."),
        (
            "404 Not Found",
            b'{"name":"NotFoundError","data":{"message":"Session not found: x"}}',
            "Session not found: x",
        ),
        ("409 Conflict", b'{"_tag":"SessionBusyError","sessionID":"s","message":"Busy."}', "Busy."),
        ("400 Bad Request", b'{"name":"BadRequest","data":["odd"]}', "answered 400"),
        ("200 OK", b"not JSON", "not understood"),
        ("200 OK", b'{"id":1}', "not understood"),
        ("200 OK", b"[" * 100_000, "not understood"),
    ],
)
async def test_an_answer_that_is_none_is_told(status: str, body: bytes, words: str) -> None:
    async with wire(said(status, body)) as server, client(server.url) as it:
        with pytest.raises(CodeloopError, match=words):
            await it.call(SESSION_GET, SessionId(session_id="ses_1"))


@pytest.mark.parametrize(
    "head", [b"HTTP/1.1 200 OK\r\ncontent-length: 9999\r\n\r\n", b"HTTP/1.1 200 OK\r\nx: "]
)
async def test_an_answer_that_comes_a_byte_at_a_time_has_a_deadline(
    head: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def drip(writer: asyncio.StreamWriter) -> None:
        writer.write(head)
        while True:
            writer.write(b" ")
            await writer.drain()
            await asyncio.sleep(0.02)

    monkeypatch.setattr(http, "CLIENT_RESPONSE_TIME", Limit("client.response_time", 300, "ms", ""))
    async with wire(drip) as server, client(server.url) as it:
        with pytest.raises(ServerLost, match="did not answer PATCH /session/ses_1 within"):
            await wait_for_result(
                it.call(
                    SESSION_UPDATE, SESSION_UPDATE.takes(session_id="ses_1", time=ArchiveTime())
                )
            )


async def test_the_credential_goes_to_the_named_server_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with wire(said("200 OK", b"true")) as other, client(other.url) as unused:
        assert unused.url == other.url
        for name in ("http_proxy", "HTTP_PROXY", "ALL_PROXY"):
            monkeypatch.setenv(name, other.url)
        async with (
            wire(said("302 Found", b"", f"location: {other.url}/session")) as server,
            client(server.url) as it,
        ):
            with pytest.raises(CodeloopError, match="sends clients elsewhere"):
                await it.call(ABORT, SessionId(session_id="ses_1"))
            assert len(server.requests) == 1
        assert other.requests == []


@pytest.mark.parametrize(
    "url",
    [
        "",
        "localhost:4096",
        "ftp://x",
        "http://",
        "http://a:b@host",
        "http://h?x=1",
        "http://h:99999",
        "http://[x",
    ],
)
def test_what_is_no_address_is_refused(url: str) -> None:
    with pytest.raises(CodeloopError, match="address"):
        HttpClient(url)


def test_a_password_in_clear_is_noticed() -> None:
    for url, clear in (
        ("http://127.0.0.1:1", False),
        ("http://[::1]:1", False),
        ("http://h:1", True),
        ("http://localhost.evil.example:1", True),
        ("http://127.0.0.1.nip.io:1", True),
        ("http://LOCALHOST:1", False),
        ("https://h", False),
    ):
        assert HttpClient(url, None, ("a", "b")).sends_in_clear is clear
        assert not HttpClient(url).sends_in_clear


async def test_nobody_there_says_what_to_do() -> None:
    async with wire(b"") as server:
        url = server.url
    await asyncio.sleep(0)
    async with client(url) as it:
        for wait in (it.call(ABORT, SessionId(session_id="ses_1")), taken(it, 1)):
            with pytest.raises(ServerLost, match="codeloop serve"):
                await wait_for_result(wait)


async def test_a_server_that_goes_away_in_an_answer_is_told() -> None:
    async with (
        wire(b"HTTP/1.1 200 OK\r\ncontent-length: 50\r\n\r\n{") as server,
        client(server.url) as it,
    ):
        with pytest.raises(ServerLost, match="was lost"):
            await it.call(SESSION_GET, SessionId(session_id="ses_1"))


async def test_a_lost_stream_goes_on_where_it_was() -> None:
    first = OPEN + CONNECTED % 4 + UNKNOWN + toast(None, "live") + toast(5, "a") + HEARTBEAT
    second = OPEN + CONNECTED % 5 + toast(5, "a") + toast(6, "b")
    async with wire(first, said("503 Starting"), second) as server, client(server.url, "/d") as it:
        found = await wait_for_result(taken(it, 3))
        assert texts(found) == ["live", "a", "b"]
        assert [each.seq for each in found] == [None, 5, 6]
        assert [request.headers.get("last-event-id") for request in server.requests] == [
            None,
            "5",
            "5",
        ]
        assert {request.headers["x-opencode-directory"] for request in server.requests} == {"/d"}


async def test_following_begins_where_it_is_told_and_knows_its_place_without_an_event() -> None:
    async with (
        wire(OPEN + CONNECTED % 4, OPEN + CONNECTED % 4 + toast(5, "a")) as server,
        client(server.url) as it,
    ):
        assert texts(await wait_for_result(taken(it, 1, after=3))) == ["a"]
        assert [request.headers["last-event-id"] for request in server.requests] == ["3", "4"]


async def test_a_silent_stream_is_opened_again(monkeypatch: pytest.MonkeyPatch) -> None:
    limit(monkeypatch, "STREAM_IDLE", 100)

    async def silent(writer: asyncio.StreamWriter) -> None:
        writer.write(OPEN + CONNECTED % 4)
        await asyncio.sleep(600)

    async with (
        wire(silent, OPEN + CONNECTED % 4 + toast(5, "a")) as server,
        client(server.url) as it,
    ):
        assert texts(await wait_for_result(taken(it, 1))) == ["a"]


async def test_what_is_no_longer_kept_is_a_gap() -> None:
    resync = b'data: {"id":"evt_9","type":"server.resync","properties":{"reason":"too old"}}\n\n'
    async with wire(OPEN + CONNECTED % 4 + resync) as server, client(server.url) as it:
        with pytest.raises(GapError, match="too old"):
            await wait_for_result(taken(it, 1, after=1))


async def test_a_server_that_stays_away_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    async def gone(writer: asyncio.StreamWriter) -> None:
        writer.write(said("503 Gone"))
        if len(server.requests) > 3:
            limit(monkeypatch, "GONE_TIME", 1)

    async with wire(OPEN + CONNECTED % 4, gone) as server, client(server.url) as it:
        with pytest.raises(ServerLost, match="did not come back"):
            await wait_for_result(taken(it, 1))
        assert len(server.requests) > 3


async def test_a_server_that_was_restarted_with_another_password_is_told_that_one() -> None:
    current = ["new"]
    answers = (
        said("401 No"),
        said("200 OK", b"true"),
        said("401 No"),
        OPEN + CONNECTED % 4 + toast(5, "a"),
    )
    async with wire(*answers) as server:
        it = HttpClient(server.url, None, ("me", "old"), lambda: (server.url, ("me", current[0])))
        assert await it.call(ABORT, SessionId(session_id="ses_1")) is True
        following = asyncio.create_task(taken(it, 1))
        await asyncio.sleep(0)
        current[0] = "newer"
        assert texts(await wait_for_result(following)) == ["a"]
        await it.close()
        given = [
            base64.b64decode(request.headers["authorization"].split()[1])
            for request in server.requests
        ]
        assert given == [b"me:old", b"me:new", b"me:new", b"me:newer"]


async def test_a_request_that_was_on_its_way_when_another_found_the_new_password_is_sent_again() -> (
    None
):
    renewed = asyncio.Event()

    async def late(writer: asyncio.StreamWriter) -> None:
        await renewed.wait()
        writer.write(said("401 No"))

    async def welcome(writer: asyncio.StreamWriter) -> None:
        writer.write(said("200 OK", b"true"))
        await writer.drain()
        renewed.set()

    async with wire(said("401 No"), late, welcome) as server:
        it = HttpClient(server.url, None, ("me", "old"), lambda: (server.url, ("me", "new")))
        calls = [it.call(ABORT, SessionId(session_id=name)) for name in ("ses_1", "ses_2")]
        assert await wait_for_result(asyncio.gather(*calls)) == [True, True]
        await it.close()
        given = [
            base64.b64decode(request.headers["authorization"].split()[1])
            for request in server.requests
        ]
        assert given == [b"me:old", b"me:old", b"me:new", b"me:new"]


async def test_a_wrong_password_that_stays_the_same_is_said_once() -> None:
    async with wire(said("401 No")) as server:
        it = HttpClient(server.url, None, ("me", "old"), lambda: (server.url, ("me", "old")))
        with pytest.raises(CodeloopError, match="--password"):
            await it.call(ABORT, SessionId(session_id="ses_1"))
        await it.close()
        assert len(server.requests) == 1


@pytest.mark.parametrize(
    "answer", [said("401 Unauthorized"), said("200 OK", b"{}", "content-type: text/html")]
)
async def test_a_server_that_refuses_the_stream_is_not_asked_again(answer: bytes) -> None:
    async with wire(OPEN + CONNECTED % 4, answer) as server, client(server.url) as it:
        with pytest.raises(CodeloopError):
            await wait_for_result(taken(it, 1))
        assert len(server.requests) == 2
