"""A connection is bounded in size and time, and a server ends in order."""

import asyncio
import socket
import time
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from codeloop.model.testing.script import ScriptedAnswer, ScriptedCall
from codeloop.schema.bounds.server import (
    SERVER_BODY,
    SERVER_BODY_IDLE,
    SERVER_CONNECTIONS,
    SERVER_GRACE,
    SERVER_HEADER,
    SERVER_HEADER_TIME,
    SERVER_HEADERS,
    SERVER_URL,
    SERVER_WRITE,
)
from codeloop.schema.errors import CodeloopError
from codeloop.schema.limits import Limit
from codeloop.schema.wire import replace
from codeloop.server import http_protocol
from codeloop.server.server import ListenOptions
from tests.cli.program import UNCONFINED, lives
from tests.server.support.raw import UPGRADE, ask, basic, port_of, read, request
from tests.server.support.serving import PASSWORD, Served, served
from tests.support.scripted_project import wait_until

DEADLINE = 60
LONG = 3_600_000
"""Milliseconds of a deadline that is not what ends a connection."""
Connection = tuple[asyncio.StreamReader, asyncio.StreamWriter]


async def connected(it: Served) -> Connection:
    return await asyncio.open_connection(urlsplit(it.url).hostname, port_of(it.url))


async def ends_within(reader: asyncio.StreamReader, seconds: float) -> bool:
    """Return whether the server hangs up."""
    try:
        async with asyncio.timeout(seconds):
            while await reader.read(1 << 16):
                pass
    except ConnectionError:
        return True
    except TimeoutError:
        return False
    return True


def answering(it: Served) -> int:
    """Return how many requests the server is at."""
    return len(it.server._server.server_state.tasks)


def limited(monkeypatch: pytest.MonkeyPatch, limit: Limit, name: str, milliseconds: int) -> None:
    """Have the protocol use another deadline."""
    assert getattr(http_protocol, name) is limit
    monkeypatch.setattr(http_protocol, name, replace(limit, value=milliseconds))


async def test_headers_and_urls_have_a_size(tmp_path: Path) -> None:
    async with served(tmp_path) as it:
        large = "x-large: " + "a" * SERVER_HEADER.value
        many = [f"x-{n}: a" for n in range(SERVER_HEADERS.value + 1)]
        long = "/session?a=" + "a" * SERVER_URL.value
        assert (await ask(it.url, request(it.url, "GET", "/session", basic(), large))).status == 431
        assert (await ask(it.url, request(it.url, "GET", "/session", basic(), *many))).status == 431
        assert (await ask(it.url, request(it.url, "GET", long, basic()))).status == 414
        fine = [f"x-{n}: {'a' * 500}" for n in range(SERVER_HEADERS.value - 10)]
        assert (await ask(it.url, request(it.url, "GET", "/session", basic(), *fine))).status == 200


async def test_a_header_that_never_ends_is_cut_before_it_fills_the_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    limited(monkeypatch, SERVER_HEADER_TIME, "SERVER_HEADER_TIME", LONG)
    limited(monkeypatch, SERVER_BODY_IDLE, "SERVER_BODY_IDLE", LONG)
    async with served(tmp_path) as it:
        reader, writer = await connected(it)
        writer.write(
            f"GET /session HTTP/1.1\r\nhost: {urlsplit(it.url).netloc}\r\nx-long: ".encode()
        )
        sent = 0
        try:
            while sent < 64 * SERVER_HEADER.value and not writer.is_closing():
                writer.write(b"a" * 16384)
                sent += 16384
                await writer.drain()
        except ConnectionError:
            pass
        assert sent < 64 * SERVER_HEADER.value, "it took everything"
        assert await ends_within(reader, DEADLINE)


async def test_what_follows_a_body_has_a_size_and_is_no_header(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    limited(monkeypatch, SERVER_HEADER_TIME, "SERVER_HEADER_TIME", LONG)
    limited(monkeypatch, SERVER_BODY_IDLE, "SERVER_BODY_IDLE", LONG)
    async with served(tmp_path) as it:
        chunked = (
            request(it.url, "POST", "/session", "transfer-encoding: chunked", host=None)
            + b"2\r\n{}\r\n0\r\n"
        )
        forged = f"host: {urlsplit(it.url).netloc}\r\n{basic()}\r\n\r\n".encode()
        assert (await ask(it.url, chunked + forged)).status == 421, "a host after the body"
        reader, writer = await connected(it)
        writer.write(
            request(it.url, "POST", "/session", "transfer-encoding: chunked")
            + b"2\r\n{}\r\n0\r\nx-long: "
        )
        writer.write(b"a" * 8 * SERVER_HEADER.value)
        assert await ends_within(reader, DEADLINE)
        writer.close()


async def test_a_large_body_is_refused_before_it_comes(tmp_path: Path) -> None:
    async with served(tmp_path) as it:
        length = f"content-length: {SERVER_BODY.value + 1}"
        assert (
            await ask(it.url, request(it.url, "POST", "/session", basic(), length))
        ).status == 413


@pytest.mark.parametrize(
    ("start", "more"),
    [
        (b"", b""),
        (b"GET /sess", b"x"),
        (b"GET /session HTTP/1.1\r\nx-a: b\r\n", b"x"),
        (b"\r\n", b"\r\n"),
    ],
)
async def test_slow_headers_end_the_connection(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, start: bytes, more: bytes
) -> None:
    limited(monkeypatch, SERVER_HEADER_TIME, "SERVER_HEADER_TIME", 400)
    async with served(tmp_path) as it:
        begun = time.monotonic()
        reader, writer = await connected(it)
        writer.write(start)
        dribble = asyncio.create_task(dribbled(writer, more))
        assert await ends_within(reader, DEADLINE)
        assert time.monotonic() - begun > 0.3
        dribble.cancel()
        writer.close()


async def dribbled(writer: asyncio.StreamWriter, piece: bytes) -> None:
    while not writer.is_closing():
        writer.write(piece)
        await asyncio.sleep(0.05)


async def test_the_second_requests_headers_have_a_deadline_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    limited(monkeypatch, SERVER_HEADER_TIME, "SERVER_HEADER_TIME", 1000)
    async with served(tmp_path) as it:
        reader, writer = await connected(it)
        writer.write(request(it.url, "GET", "/session", basic()))
        assert (await read(reader)).status == 200
        await asyncio.sleep(1.1)
        writer.write(request(it.url, "GET", "/session", basic()))
        assert (await read(reader)).status == 200, (
            "a connection that waits for a request is kept longer"
        )
        writer.write(b"GET /")
        assert await ends_within(reader, DEADLINE)
        writer.close()


async def test_the_rest_of_a_refused_body_can_not_be_dribbled_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    limited(monkeypatch, SERVER_HEADER_TIME, "SERVER_HEADER_TIME", 1000)
    async with served(tmp_path) as it:
        reader, writer = await connected(it)
        writer.write(request(it.url, "POST", "/session", "content-length: 1000000"))
        assert (await read(reader)).status == 401
        dribble = asyncio.create_task(dribbled(writer, b"x"))
        assert await ends_within(reader, DEADLINE)
        dribble.cancel()
        writer.close()


async def test_a_client_that_leaves_in_the_middle_of_a_body_is_no_fault(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with served(tmp_path) as it:
        _, writer = await connected(it)
        writer.write(
            request(it.url, "POST", "/session", basic(), "content-length: 14") + b'{"title"'
        )
        await wait_until(lambda: answering(it) == 1)
        writer.close()
        await wait_until(lambda: answering(it) == 0)
        assert (await ask(it.url, request(it.url, "GET", "/session", basic()))).status == 200
    assert [record for record in caplog.records if record.levelname == "ERROR"] == []


async def test_a_body_that_stalls_ends_the_connection_one_that_comes_slowly_does_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with served(tmp_path) as it:
        reader, writer = await connected(it)
        writer.write(request(it.url, "POST", "/session", basic(), "content-length: 12"))
        await wait_until(lambda: answering(it) == 1)
        (protocol,) = it.server._server.server_state.connections
        assert isinstance(protocol, http_protocol.BoundedProtocol)
        for piece in (b'{"', b"ti", b"tle", b'":', b'"a"'):
            before = protocol._deadline
            writer.write(piece)
            # Each piece has a new one.
            await wait_until(lambda before=before: protocol._deadline is not before)
        limited(monkeypatch, SERVER_BODY_IDLE, "SERVER_BODY_IDLE", 300)
        writer.write(b"}")
        assert (await read(reader)).status == 400, "one character is missing"
        writer.write(
            request(it.url, "POST", "/session", basic(), "content-length: 14") + b'{"title"'
        )
        assert await ends_within(reader, DEADLINE)
        writer.close()


@pytest.mark.parametrize(
    "data",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET http://[ HTTP/1.1\r\nhost: localhost\r\n\r\n",
        b"CONNECT evil.example:443 HTTP/1.1\r\nhost: localhost\r\n\r\n",
        b"GET /\xff\xfe HTTP/1.1\r\nhost: localhost\r\n\r\n",
        b"GET / HTTP/1.1\r\nhost: localhost\r\ncontent-length: 1\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
        b"GET / HTTP/1.1\r\nhost: localhost\r\ncontent-length: -1\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"OPTIONS * HTTP/1.1\r\nhost: localhost\r\n\r\n",
        b"GET / HTTP/1.1\r\nhost: localhost\r\nx\x00: y\r\n\r\n",
    ],
)
async def test_what_is_hardly_http_is_refused_and_the_server_goes_on(
    tmp_path: Path, data: bytes
) -> None:
    async with served(tmp_path) as it:
        answer = await ask(it.url, data)
        assert answer.status == 0 or 400 <= answer.status < 500
        assert (await ask(it.url, request(it.url, "GET", "/session", basic()))).status == 200


async def test_a_websocket_with_an_endless_header_is_refused(tmp_path: Path) -> None:
    async with served(tmp_path) as it:
        long = "x-long: " + "a" * (SERVER_HEADER.value // 2)
        assert (
            await ask(it.url, request(it.url, "GET", "/pty/x/connect", *UPGRADE, basic(), long))
        ).status == 431
        path = "/pty/x/connect?directory=" + "a" * (SERVER_URL.value - 100)
        assert (await ask(it.url, request(it.url, "GET", path, *UPGRADE, basic()))).status == 431


async def test_connections_beyond_the_bound_are_told_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with served(tmp_path) as it:
        assert it.server._server.config.limit_concurrency == SERVER_CONNECTIONS.value
        it.server._server.config.limit_concurrency = 3
        kept = [await connected(it) for _ in range(3)]
        assert (await ask(it.url, request(it.url, "GET", "/session", basic()))).status == 503
        for _, writer in kept:
            writer.close()


async def test_a_client_that_floods_with_connections_is_cut(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_protocol, "SERVER_CONNECTIONS", replace(SERVER_CONNECTIONS, value=5))
    limited(monkeypatch, SERVER_HEADER_TIME, "SERVER_HEADER_TIME", LONG)
    async with served(tmp_path) as it:
        kept = [await asking(it, basic()) for _ in range(10)]
        reader, writer = await connected(it)
        assert await ends_within(reader, DEADLINE)
        for _, each in (*kept, (reader, writer)):
            each.close()


async def asking(it: Served, *lines: str) -> Connection:
    """Ask once and keep the connection."""
    reader, writer = await connected(it)
    writer.write(request(it.url, "GET", "/global/health", *lines))
    await read(reader)
    return reader, writer


async def test_strangers_do_not_keep_out_who_has_the_credential(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_protocol, "SERVER_CONNECTIONS", replace(SERVER_CONNECTIONS, value=6))
    limited(monkeypatch, SERVER_HEADER_TIME, "SERVER_HEADER_TIME", LONG)
    async with served(tmp_path) as it:
        it.server._server.config.limit_concurrency = 6
        own = await asking(it, basic())
        strangers = [await connected(it) for _ in range(8)] + [await asking(it) for _ in range(8)]
        assert (await ask(it.url, request(it.url, "GET", "/session", basic()))).status == 200
        own[1].write(request(it.url, "GET", "/session", basic()))
        assert (await read(own[0])).status == 200, "who was let in stays"
        assert await ends_within(strangers[0][0], DEADLINE)
        for _, each in (own, *strangers):
            each.close()


async def test_a_client_that_reads_nothing_of_an_answer_is_cut_a_slow_one_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_protocol, "SERVER_WRITE", replace(SERVER_WRITE, value=600))
    async with served(tmp_path) as it:
        await asyncio.to_thread((it.work / "large.txt").write_text, "x" * 8_000_000)
        large = request(it.url, "GET", "/file/content?path=large.txt", basic())
        (silent, one), (slow, two) = [await listening_little(it) for _ in range(2)]
        one.write(large)
        two.write(large)
        taken = 0
        while taken < 8_000_000 and (piece := await slow.read(400_000)):
            taken += len(piece)
            await asyncio.sleep(0.01)
        assert taken >= 8_000_000
        await wait_until(lambda: len(it.server._server.server_state.connections) == 1)
        for writer in (one, two):
            writer.close()
        del silent


async def listening_little(it: Served) -> Connection:
    """Connect with little room for what comes."""
    sock = socket.socket()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65_536)
    sock.setblocking(False)
    await asyncio.get_running_loop().sock_connect(
        sock, (urlsplit(it.url).hostname, port_of(it.url))
    )
    return await asyncio.open_connection(sock=sock, limit=65_536)


async def test_a_forwarded_address_does_not_count(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with served(tmp_path) as it:
        await ask(
            it.url, request(it.url, "GET", "/session", basic("x"), "x-forwarded-for: 203.0.113.9")
        )
    assert "203.0.113.9" not in caplog.text
    assert "127.0.0.1" in caplog.text


async def test_a_port_that_is_taken_is_said_or_another_one_is_used(tmp_path: Path) -> None:
    async with served(tmp_path) as it:
        port = port_of(it.url)
        with pytest.raises(
            CodeloopError, match=r"Can't listen on 127\.0\.0\.1:\d+: Address already in use"
        ):
            async with served(tmp_path, listening=ListenOptions(port=port, password=PASSWORD)):
                pass
        async with served(
            tmp_path, listening=ListenOptions(port=port, accepts_other_port=True, password=PASSWORD)
        ) as other:
            assert port_of(other.url) != port
            assert (
                await ask(other.url, request(other.url, "GET", "/session", basic()))
            ).status == 200


async def test_stopping_ends_streams_sockets_and_turns_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("codeloop.server.server.SERVER_GRACE", replace(SERVER_GRACE, value=LONG))
    command = "echo $$ > pid; exec sleep 100"
    call = ScriptedCall("bash", f'{{"command": "{command}", "description": "Waits"}}')
    async with served(tmp_path, [ScriptedAnswer(calls=(call,))], **UNCONFINED) as it:
        session_id = await it.session()
        streams = [await streaming(it, path) for path in ("/event", "/global/event")]
        turn = asyncio.create_task(it.http.post(f"/session/{session_id}/message", json=SAID))
        pid = await started(it.work / "pid")
        async with asyncio.timeout(DEADLINE):
            await it.server.stop()
        assert not lives(pid)
        assert (await turn).status_code == 200, "the turn's answer tells that it was aborted"
        for reader, writer in streams:
            assert await ends_within(reader, DEADLINE)
            writer.close()


SAID = {"parts": [{"type": "text", "text": "go"}]}


async def streaming(it: Served, path: str) -> Connection:
    reader, writer = await connected(it)
    writer.write(request(it.url, "GET", path, basic()))
    await reader.readuntil(b"server.connected")
    return reader, writer


async def started(file: Path) -> int:
    async with asyncio.timeout(DEADLINE):
        while not (file.exists() and file.read_text().strip()):
            await asyncio.sleep(0.02)
    return int(file.read_text())


async def test_a_client_that_reads_nothing_does_not_keep_a_server_from_stopping(
    tmp_path: Path,
) -> None:
    async with served(tmp_path) as it:
        kept: Sequence[Connection] = [await connected(it) for _ in range(5)]
        for _, writer in kept:
            writer.write(request(it.url, "POST", "/session", basic(), "content-length: 100") + b"{")
        await wait_until(lambda: answering(it) == 5)
        async with asyncio.timeout(DEADLINE):
            await it.server.stop()
        for _, writer in kept:
            writer.close()
