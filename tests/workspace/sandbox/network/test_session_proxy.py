"""The network of a work tree's commands: one proxy, a port of it for each session,
services of the user's machine.
"""

import asyncio
import socket

from codeloop.schema.limits import PROXY_SESSIONS
from codeloop.workspace.sandbox.network.host_list import parse_host_list
from codeloop.workspace.sandbox.network.session_proxy import SessionProxy


async def listen(port: int) -> socket.socket:
    return socket.create_server(("127.0.0.1", port))


async def ask(url: str, what: bytes = b"CONNECT evil.example:443 HTTP/1.1\r\n\r\n") -> bytes:
    host, _, port = url.removeprefix("http://").partition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(what)
    try:
        return await reader.read()
    finally:
        writer.close()


async def test_a_session_has_a_port_of_its_own_and_hears_of_its_own_refusals() -> None:
    network = SessionProxy(parse_host_list([]), {"HTTPS_PROXY": "http://127.0.0.1:1"}, listen)
    try:
        one, two = [
            (await network.make_environment(session))["HTTPS_PROXY"] for session in ("one", "two")
        ]
        assert one != two
        assert (await network.make_environment("one"))["https_proxy"] == one
        before = network.refused_count
        assert b"403 blocked: connection to evil.example:443" in await ask(one)
        assert network.list_refused("one", before) == [
            "blocked: connection to evil.example:443, not among the hosts of the sandbox"
        ]
        assert network.list_refused("two", before) == []
        assert network.list_refused("one", network.refused_count) == []
    finally:
        await network.close()


async def test_a_service_of_the_machine_is_reached_where_commands_run() -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"got " + await reader.readline())
        writer.close()

    service = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = service.sockets[0].getsockname()[1]
    inside = dict[int, socket.socket]()

    async def elsewhere(wanted: int) -> socket.socket:
        inside[wanted] = await listen(0)  # stands for the same port of another network
        return inside[wanted]

    network = SessionProxy(parse_host_list([f"localhost:{port}"]), {}, elsewhere)
    try:
        await network.make_environment("one")
        there = inside[port].getsockname()[1]
        assert await ask(f"http://127.0.0.1:{there}", b"hello\n") == b"got hello\n"
    finally:
        await network.close()
        service.close()


async def test_nothing_listens_before_a_command_needs_it() -> None:
    async def never(port: int) -> socket.socket:
        raise AssertionError

    network = SessionProxy(parse_host_list(["localhost:1"]), {}, never)
    assert (network.refused_count, network.list_refused("one", 0)) == (0, [])
    await network.close()


async def test_many_sessions_keep_no_more_sockets_than_the_limit() -> None:
    opened: list[socket.socket] = []

    async def listen_and_note(port: int) -> socket.socket:
        opened.append(await listen(port))
        return opened[-1]

    network = SessionProxy(parse_host_list([]), {}, listen_and_note)
    try:
        first = (await network.make_environment("first"))["HTTPS_PROXY"]
        for number in range(PROXY_SESSIONS.value + 20):
            await network.make_environment(f"session {number}")
            # One that is used goes on with its port, however many others come.
            assert (await network.make_environment("first"))["HTTPS_PROXY"] == first
        assert sum(each.fileno() >= 0 for each in opened) == PROXY_SESSIONS.value
        again = (await network.make_environment("session 0"))["HTTPS_PROXY"]
        assert b"403 blocked" in await ask(again)
    finally:
        await network.close()
    assert all(each.fileno() < 0 for each in opened)
