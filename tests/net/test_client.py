"""Tests of the HTTP client: deadlines, kept connections, closing at once, proxies."""

import asyncio
import json
import socket
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from codeloop.model.chat import ModelRequest, TextDelta, TextPiece, UserModelMessage
from codeloop.net.client import OriginClient
from codeloop.schema.errors import APIError
from tests.support.answers import Answer
from tests.support.model_server import ModelServer
from tests.support.scripted_project import wait_until


def chunk(delta: dict[str, Any] | None = None, finish: str | None = None, **fields: Any) -> str:
    choice = {"index": 0, "delta": delta or {}, "finish_reason": finish}
    return json.dumps({"choices": [choice], **fields})


@pytest.mark.parametrize("kind", ["first-byte", "idle", "late body"])
async def test_silence_has_a_deadline(kind: str, openai: Any, asking: Any) -> None:
    answer = {
        "first-byte": Answer(hang=60),
        "idle": Answer(text="a b", deltas=0, stall_after=2, pieces=10_000),
    }.get(kind, Answer(text="a", stall_after=0))
    deadlines = (
        {"first_byte": 30.0, "idle": 0.1} if kind == "idle" else {"first_byte": 0.1, "idle": 30.0}
    )
    async with ModelServer([answer]) as server:
        got = await asking(openai(server, **deadlines))
        await wait_until(lambda: server.aborted == 1)
    assert isinstance(got.end.error, APIError)
    assert got.end.error.data.is_retryable
    assert (got.end.error.data.metadata or {})["kind"] == (
        "idle" if kind == "idle" else "first-byte"
    )
    assert got.text == ("a " if kind == "idle" else "")


@pytest.mark.slow
async def test_pings_keep_a_slow_answer_alive(openai: Any, asking: Any) -> None:
    async with ModelServer([Answer(text="a b c d e f", deltas=0, delay=0.3)]) as server:
        got = await asking(openai(server, idle=2))
    assert got.text == "a b c d e f"


@pytest.mark.slow
async def test_a_service_that_never_closes_after_its_end_is_not_waited_for(
    openai: Any, asking: Any
) -> None:
    async with ModelServer([Answer(text="a", stall_after=3)]) as server:
        got = await asyncio.wait_for(asking(openai(server, idle=3_600)), 30)
    assert (got.text, got.end.reason) == ("a", "stop")


async def test_connections_are_used_again_and_dropped_ones_replaced(
    openai: Any, asking: Any
) -> None:
    async with ModelServer([Answer(text="a")]) as server:
        model = openai(server)
        for _ in range(3):
            assert (await asking(model)).text == "a"
        assert server.connections == 1
        port = server.port
    async with ModelServer([Answer(text="b")], port=port) as server:
        assert (await asking(model)).text == "b"


async def test_a_kept_connection_that_closes_while_it_is_used_is_replaced(
    openai: Any, asking: Any
) -> None:
    async with dropping_second() as (url, seen):
        model = openai(url)
        assert (await asking(model)).text == "x"
        assert (await asking(model)).text == "x"
    assert len(seen) == 3


@asynccontextmanager
async def dropping_second() -> AsyncGenerator[tuple[str, list[int]], None]:
    """A service that reads the second request of its first connection and then
    hangs up without a word.
    """
    seen: list[int] = []
    data = b"data: " + chunk({"content": "x"}).encode() + b"\n\ndata: [DONE]\n\n"
    answer = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(data), data)

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for turn in range(2):
            head = await reader.readuntil(b"\r\n\r\n")
            await reader.readexactly(
                int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
            )
            seen.append(turn)
            if turn == 1:
                break
            writer.write(answer)
            if len(seen) > 1:
                break
        writer.close()

    server = await asyncio.start_server(handle, "127.0.0.1", 0)
    yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1", seen
    server.close()


@pytest.mark.parametrize("how", ["aclose", "cancel"])
async def test_stopping_closes_the_connection_at_once(how: str, openai: Any, asking: Any) -> None:
    async with ModelServer([Answer(text="a b c", deltas=3, stall_after=3)]) as server:
        model = openai(server, idle=30.0, first_byte=30.0)
        if how == "aclose":
            stream = model.stream(
                ModelRequest(system="", messages=(UserModelMessage((TextPiece("x"),)),))
            )
            assert isinstance(await anext(stream), TextDelta)
            await stream.aclose()
        else:
            task = asyncio.create_task(asking(model))
            await wait_until(lambda: server.requests)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        await wait_until(lambda: server.aborted == 1)


@pytest.mark.parametrize("of_asyncio", [True, False])
async def test_an_ipv6_address_that_nobody_answers_at_is_passed_over(
    monkeypatch: pytest.MonkeyPatch, openai: Any, asking: Any, *, of_asyncio: bool
) -> None:
    loop = asyncio.get_running_loop()
    connect = loop.sock_connect
    make_connection = loop.create_connection

    async def connect_plainly(
        factory: Any,
        host: Any = None,
        port: Any = None,
        *,
        ssl: Any = None,
        sock: Any = None,
        server_hostname: Any = None,
    ) -> Any:
        """What other event loops have, such as uvloop's: no parameter for silent addresses."""
        return await make_connection(
            factory, host, port, ssl=ssl, sock=sock, server_hostname=server_hostname
        )

    async def resolve(_host: str, port: int, **_: Any) -> list[Any]:
        silent = (socket.AF_INET6, socket.SOCK_STREAM, 6, "", ("100::1", port, 0, 0))
        return [silent, (socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", port))]

    async def hang(sock: socket.socket, address: Any) -> None:
        await (asyncio.sleep(3_600) if sock.family == socket.AF_INET6 else connect(sock, address))

    monkeypatch.setattr(loop, "getaddrinfo", resolve)
    monkeypatch.setattr(loop, "sock_connect", hang)
    if not of_asyncio:
        monkeypatch.setattr(loop, "create_connection", connect_plainly)
    async with ModelServer([Answer(text="by IPv4")]) as server:
        got = await asking(openai(f"http://models.test:{server.port}/v1", connect=20.0))
    assert got.text == "by IPv4"


@pytest.mark.parametrize(
    ("number", "says"),
    [
        (socket.EAI_NONAME, "(the name is not known)"),
        (socket.EAI_AGAIN, "(the name could not be looked up)"),
        (socket.EAI_SYSTEM, "(the name could not be looked up)"),
    ],
)
async def test_a_name_server_that_is_away_does_not_make_a_name_unknown(
    number: int, says: str, monkeypatch: pytest.MonkeyPatch, openai: Any, asking: Any
) -> None:
    async def resolve(*_: Any, **__: Any) -> list[Any]:
        raise socket.gaierror(number, "said by the system")

    monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", resolve)
    assert says in (await asking(openai("http://models.test/v1"))).message


async def test_a_proxy_of_the_environment_is_used(
    monkeypatch: pytest.MonkeyPatch, openai: Any, asking: Any
) -> None:
    async with ModelServer([Answer(text="by proxy")]) as proxy:
        monkeypatch.setenv("HTTP_PROXY", proxy.url.removesuffix("/v1"))
        got = await asking(openai("http://models.invalid/v1"))
        assert got.text == "by proxy"
        assert proxy.requests[0].path == "http://models.invalid/v1/chat/completions"
        assert (await asking(openai(proxy))).text == "by proxy"
        assert proxy.requests[1].path == "/v1/chat/completions", (
            "no proxy is asked for this machine's own servers"
        )


async def test_what_came_while_this_program_stood_still_is_not_late() -> None:
    """As after Ctrl-Z: the deadline is over, and the answer is there."""
    loop = asyncio.get_running_loop()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.setblocking(False)
        client = OriginClient(f"http://127.0.0.1:{listener.getsockname()[1]}", 60, 60)
        asking = asyncio.create_task(client.post("/", {}, b""))
        service, _ = await loop.sock_accept(listener)
        with service:

            async def stand_still(waiting: Any, sent: bytes) -> Any:
                task = asyncio.create_task(waiting)
                await asyncio.sleep(0)
                service.sendall(sent)
                time.sleep(0.1)  # the loop stands still
                return await task

            service.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n")
            response = await asking
            assert await stand_still(response.read(0.05), b"late") == b"late"
            response.close()
            client._first_byte = 0.05
            answer = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
            response = await stand_still(client.post("/", {}, b""), answer)
            assert (response.status, await response.read(60)) == (200, b"")
            response.close()
        await client.aclose()


@pytest.mark.parametrize(
    ("url_end", "path"), [("", "/"), ("?key=k", "/?key=k"), ("/hook", "/hook")]
)
async def test_a_url_without_a_path_is_posted_to(url_end: str, path: str) -> None:
    async with ModelServer([Answer(text="a")]) as server:
        client = OriginClient(server.url.removesuffix("/v1") + url_end, 60.0, 60.0)
        response = await client.post("", {"content-type": "application/json"}, b'{"messages":[]}')
        response.close()
        await client.aclose()
    assert [request.path for request in server.requests] == [path]


@pytest.mark.parametrize("end", ["", "/"])
@pytest.mark.parametrize("is_by_proxy", [False, True])
async def test_the_query_of_a_base_url_comes_after_the_path(
    monkeypatch: pytest.MonkeyPatch, *, is_by_proxy: bool, end: str
) -> None:
    async with ModelServer([Answer(text="a"), Answer(text="b")]) as server:
        base_url = "http://models.invalid" if is_by_proxy else server.url.removesuffix("/v1")
        if is_by_proxy:
            monkeypatch.setenv("HTTP_PROXY", server.url.removesuffix("/v1"))
        client = OriginClient(f"{base_url}/v1{end}?key=k", 60.0, 60.0)
        for path in ("/chat/completions", "/chat/completions?alt=sse"):
            response = await client.post(
                path, {"content-type": "application/json"}, b'{"messages":[]}'
            )
            response.close()
        await client.aclose()
    prefix = base_url if is_by_proxy else ""
    assert [request.path for request in server.requests] == [
        f"{prefix}/v1/chat/completions?key=k",
        f"{prefix}/v1/chat/completions?alt=sse&key=k",
    ]


async def test_a_socks_proxy_of_the_environment_is_used(
    monkeypatch: pytest.MonkeyPatch, openai: Any, asking: Any
) -> None:
    async with (
        ModelServer([Answer(text="by socks")]) as service,
        socks(service.port) as (port, wanted),
    ):
        monkeypatch.setenv("ALL_PROXY", f"socks5h://user:word@127.0.0.1:{port}")
        assert (await asking(openai("http://models.invalid:81/v1"))).text == "by socks"
    assert wanted == [b"user:word", b"models.invalid:81"]


@asynccontextmanager
async def socks(target: int) -> AsyncGenerator[tuple[int, list[bytes]]]:
    """Serve SOCKS5 (RFC 1928, RFC 1929), connecting to a port of this machine;
    yield the port, and what clients say.
    """
    said: list[bytes] = []

    async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(65_536):
            writer.write(data)
        writer.close()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        _, methods = await reader.readexactly(2)
        assert 2 in await reader.readexactly(methods)
        writer.write(b"\5\2")
        _, length = await reader.readexactly(2)
        user = await reader.readexactly(length)
        said.append(user + b":" + await reader.readexactly((await reader.readexactly(1))[0]))
        writer.write(b"\1\0")
        assert (await reader.readexactly(4)) == b"\5\1\0\3"
        name = await reader.readexactly((await reader.readexactly(1))[0])
        said.append(name + b":" + str(int.from_bytes(await reader.readexactly(2))).encode())
        writer.write(b"\5\0\0\1\0\0\0\0\0\0")
        back, there = await asyncio.open_connection("127.0.0.1", target)
        await asyncio.gather(pump(reader, there), pump(back, writer))

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1], said
    finally:
        server.close()


async def test_a_proxy_that_cannot_be_used_is_named_as_the_reason(
    monkeypatch: pytest.MonkeyPatch, openai: Any, asking: Any
) -> None:
    for proxy in ("socks5://127.0.0.1:1", "gopher://127.0.0.1:1"):
        monkeypatch.setenv("ALL_PROXY", proxy)
        got = await asking(openai("http://models.invalid/v1"))
        assert "The proxy to models.invalid:80 failed" in got.message
