"""The sandbox's proxy over real sockets: where it connects, what it sends on,
what it says of what it refuses.
"""

import asyncio
import socket
import ssl
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

import pytest

from codeloop.schema import limits
from codeloop.schema.limits import Limit
from codeloop.workspace.sandbox.network import host_proxy as proxy_module
from codeloop.workspace.sandbox.network import outgoing_connections as outgoing_module
from codeloop.workspace.sandbox.network.host_list import parse_host_list
from codeloop.workspace.sandbox.network.host_proxy import HostProxy
from codeloop.workspace.sandbox.network.outgoing_connections import OutgoingConnections
from tests.workspace.sandbox.network.hello import extension, hello, made, names
from tests.workspace.sandbox.network.test_host_list import LITERALS, TRICKS
from tests.workspace.sandbox.network.test_proxy_request import REFUSED, head

PUBLIC, OTHER = "93.184.216.34", "151.101.1.69"
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok"


@dataclass
class Origin:
    """A server that keeps what it was sent; `answer` comes once `enough` was sent,
    then it hangs up.
    """

    port: int = 0
    got: list[bytes] = field(default_factory=list[bytes])


@asynccontextmanager
async def origin(
    answer: bytes = OK, until: bytes = b"\r\n\r\n", *, tls: ssl.SSLContext | None = None
) -> AsyncGenerator[Origin]:
    found = Origin()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        at = len(found.got)
        found.got.append(b"")
        try:
            while until not in found.got[at]:
                data = await reader.read(65536)
                if not data:
                    break
                found.got[at] += data
            else:
                writer.write(answer)
                await writer.drain()
        except OSError:
            pass
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=tls)
    found.port = server.sockets[0].getsockname()[1]
    try:
        yield found
    finally:
        server.close()


@dataclass
class Net:
    """Names with their addresses, which of our ports stands for an address and port,
    and the way to the proxy.
    """

    names: Mapping[str, Sequence[str]] = field(
        default_factory=lambda: {"pypi.org": [PUBLIC], "good.test": [PUBLIC]}
    )
    ports: Mapping[int, int] = field(default_factory=dict[int, int])
    environment: Mapping[str, str] = field(default_factory=dict[str, str])
    looked_up: list[str] = field(default_factory=list[str])
    dialled: list[tuple[str, int]] = field(default_factory=list[tuple[str, int]])
    port: int = 0

    async def resolve(self, host: str, port: int) -> Sequence[str]:
        self.looked_up.append(host)
        if host not in self.names:
            raise OSError(-2, "Name or service not known")
        return self.names[host]

    def dial(self, address: str, port: int) -> tuple[str, int]:
        self.dialled.append((address, port))
        return "127.0.0.1", self.ports.get(port, 1)

    async def talk(self, *pieces: bytes, port: int = 0) -> bytes:
        """Send the pieces, each after something has come back on the one before,
        and return all that came.
        """
        reader, writer = await asyncio.open_connection("127.0.0.1", port or self.port)
        got = b""
        try:
            async with asyncio.timeout(60):
                for index, piece in enumerate(pieces):
                    if index:
                        got += await reader.read(65536)
                    writer.write(piece)
                got += await reader.read()
        except ConnectionResetError:
            pass
        finally:
            writer.close()
        return got


@asynccontextmanager
async def proxying(net: Net, *entries: str) -> AsyncGenerator[HostProxy]:
    proxy = HostProxy(
        parse_host_list(("good.test", *entries)),
        OutgoingConnections(net.environment, net.resolve, net.dial),
    )
    listener = socket.create_server(("127.0.0.1", 0))
    net.port = listener.getsockname()[1]
    await proxy.serve(listener)
    try:
        yield proxy
    finally:
        await proxy.close()


def connect(where: str, *more: str) -> bytes:
    return f"CONNECT {where} HTTP/1.1\r\n".encode() + head(*more)


def shorter(monkeypatch: pytest.MonkeyPatch, row: Limit, value: int) -> None:
    name = next(name for name, each in vars(limits).items() if each is row)
    for module in (proxy_module, outgoing_module):
        if hasattr(module, name):
            monkeypatch.setattr(module, name, Limit(row.name, value, row.unit, row.why))


async def test_a_request_is_sent_on_to_the_address_that_was_checked() -> None:
    async with origin() as server:
        net = Net(ports={80: server.port})
        async with proxying(net) as proxy:
            assert await net.talk(head("GET http://good.test/a HTTP/1.1", "Host: good.test")) == OK
            assert (net.looked_up, net.dialled) == (["good.test"], [(PUBLIC, 80)])
            assert server.got == [
                b"GET /a HTTP/1.1\r\nHost: good.test\r\nConnection: close\r\n\r\n"
            ]
            assert proxy.list_refused(0, net.port) == []


async def test_a_tunnel_carries_tls_for_the_host_and_its_bytes_as_they_are() -> None:
    greeting = hello("good.test")
    async with origin(b"anything" * 100_000, until=greeting[-20:] + b"more") as server:
        net = Net(ports={443: server.port})
        async with proxying(net) as proxy:
            got = await net.talk(connect("good.test:443"), greeting + b"more")
            assert got == b"HTTP/1.1 200 Connection established\r\n\r\n" + b"anything" * 100_000
            assert server.got == [greeting + b"more"]
            assert proxy.list_refused(0, net.port) == []


@pytest.mark.parametrize(
    "where", [*TRICKS, *LITERALS, "evil.example:443", "localhost:443", "good.test:22"]
)
async def test_no_spelling_leads_anywhere_else(where: str) -> None:
    net = Net(names={"pypi.org": [PUBLIC], "evil.example": [PUBLIC], "localhost": ["127.0.0.1"]})
    async with proxying(net) as proxy:
        lines = [f"CONNECT {where} HTTP/1.1", f"GET http://{where}/ HTTP/1.1"]
        for line in lines[
            : 1 if where.startswith(("pypi.org/", "pypi.org?")) or where == "pypi.org" else 2
        ]:
            got = await net.talk(line.encode("utf-8", "surrogateescape") + b"\r\n\r\n")
            assert got.startswith(b"HTTP/1.1 403 blocked: connection to ")
            assert b"Content-Length" in got
        assert (net.looked_up, net.dialled) == ([], [])
        assert proxy.refused_count > 0


@pytest.mark.parametrize(("lines", "why"), REFUSED)
async def test_a_request_of_two_meanings_is_answered_and_not_sent_on(
    lines: list[str], why: str
) -> None:
    net = Net()
    async with proxying(net):
        assert (await net.talk(head(*lines))).startswith(b"HTTP/1.1 403 blocked: connection to ")
        assert net.dialled == []


async def test_a_refusal_says_what_was_blocked_and_how_it_could_be_allowed() -> None:
    net = Net()
    async with proxying(net) as proxy:
        got = (await net.talk(connect("Example.com:443", "Host: example.com:443"))).decode()
        first, _, text = got.partition("\r\n\r\n")
        line = "blocked: connection to example.com:443, not among the hosts of the sandbox"
        assert first.startswith(f"HTTP/1.1 403 {line}\r\n")
        assert text.startswith(f"{line}.\nTo allow a host, ")
        assert '"hosts": ["example.com"]' in text
        assert proxy.list_refused(0, net.port) == [line]


async def test_refusals_are_kept_for_whoever_was_refused() -> None:
    net = Net()
    async with proxying(net) as proxy:
        other = socket.create_server(("127.0.0.1", 0))
        await proxy.serve(other)
        await net.talk(connect("before.test:443"))
        refused_count = proxy.refused_count
        for _ in range(2):
            await net.talk(connect("one.test:443"))
        await net.talk(connect("two.test:80"), port=other.getsockname()[1])
        one, two = (
            f"blocked: connection to {name}, not among the hosts of the sandbox"
            for name in ("one.test:443", "two.test:80")
        )
        assert proxy.list_refused(refused_count, net.port) == [one]
        assert proxy.list_refused(refused_count, other.getsockname()[1]) == [two]
        assert len(proxy.list_refused(0, net.port)) == 2
        assert proxy.list_refused(proxy.refused_count, net.port) == []


@pytest.mark.parametrize(
    "sent",
    [
        hello("evil.example"),
        hello(None),
        made(names(b"good.test", b"evil.example")),
        made(names(b"good.test"), extension(0xFE0D, b"x")),
        b"GET / HTTP/1.1\r\nHost: good.test\r\n\r\n",
        b"SSH-2.0-client\r\n",
    ],
)
async def test_a_tunnel_carries_nothing_but_tls_for_its_host(sent: bytes) -> None:
    async with origin() as server:
        net = Net(ports={443: server.port})
        async with proxying(net) as proxy:
            got = await net.talk(connect("good.test:443"), sent)
            assert got == b"HTTP/1.1 200 Connection established\r\n\r\n\x15\x03\x03\x00\x02\x02\x31"
            assert [
                line.startswith("blocked: connection to good.test:443, ")
                for line in proxy.list_refused(0, net.port)
            ] == [True]
            assert server.got in ([], [b""])


async def test_a_tunnel_to_a_port_that_was_named_carries_any_protocol() -> None:
    async with origin(b"+PONG\r\n", until=b"PING\r\n") as server:
        net = Net(ports={6379: server.port})
        async with proxying(net, "good.test:6379"):
            assert (await net.talk(connect("good.test:6379"), b"PING\r\n")).endswith(
                b"\r\n\r\n+PONG\r\n"
            )


async def test_port_443_is_looked_at_even_where_it_was_named() -> None:
    async with origin() as server:
        net = Net(ports={443: server.port})
        async with proxying(net, "good.test:443") as proxy:
            await net.talk(connect("good.test:443"), hello("evil.example"))
            assert proxy.refused_count == 1


@pytest.mark.parametrize(
    ("addresses", "why"),
    [
        (["127.0.0.1"], "127.0.0.1 is not public (loopback)"),
        (["10.0.0.1"], "10.0.0.1 is not public (private)"),
        (["169.254.169.254"], "169.254.169.254 is not public (a cloud's metadata service)"),
        (["::ffff:10.0.0.1"], "::ffff:10.0.0.1 is not public (an IPv4 address written as IPv6)"),
        (["::1"], "::1 is not public (loopback)"),
        (["fe80::1%eth0"], "fe80::1%eth0 is not public (link-local)"),
        ([PUBLIC, "192.168.0.1"], "192.168.0.1 is not public (private)"),
    ],
)
async def test_a_name_with_an_address_that_is_not_public_is_refused(
    addresses: list[str], why: str
) -> None:
    net = Net(names={"pypi.org": addresses})
    async with proxying(net) as proxy:
        assert b" 403 blocked: " in await net.talk(connect("pypi.org:443"))
        assert proxy.list_refused(0, net.port) == [
            f"blocked: connection to pypi.org:443, whose address {why}"
        ]
        assert net.dialled == []


async def test_a_name_is_looked_up_once_and_that_address_is_dialled() -> None:
    async with origin() as server:
        net = Net(ports={80: server.port})
        answers = [[PUBLIC], ["127.0.0.1"]]

        async def rebinding(host: str, port: int) -> Sequence[str]:
            return answers.pop(0)

        net.resolve = rebinding
        async with proxying(net) as proxy:
            assert await net.talk(head("GET http://good.test/ HTTP/1.1")) == OK
            assert net.dialled == [(PUBLIC, 80)]
            assert b" 403 " in await net.talk(head("GET http://good.test/ HTTP/1.1"))
            assert (net.dialled, proxy.refused_count) == ([(PUBLIC, 80)], 1)


async def test_what_follows_a_request_on_its_connection_is_never_sent_on() -> None:
    smuggled = head("GET http://good.test/second HTTP/1.1")
    async with origin(until=b"body") as server:
        net = Net(ports={80: server.port})
        async with proxying(net):
            first = head("POST http://good.test/ HTTP/1.1", "Content-Length: 4")
            assert await net.talk(first + b"body" + smuggled) == OK
            assert server.got == [
                b"POST / HTTP/1.1\r\nHost: good.test\r\nConnection: close\r\nContent-Length: 4\r\n\r\nbody"
            ]
    async with origin(until=b"0\r\n\r\n") as server:
        net = Net(ports={80: server.port})
        async with proxying(net):
            first = head("POST http://good.test/ HTTP/1.1", "Transfer-Encoding: chunked")
            assert (
                await net.talk(
                    first + b"2;x=y\r\nbo\r\n 0x2 \r\ndy\r\n0\r\nTrailer: x\r\n\r\n" + smuggled
                )
                == OK
            )
            assert server.got[0].partition(b"\r\n\r\n")[2] == b"4\r\nbody\r\n0\r\n\r\n"


async def test_a_host_that_cannot_be_reached_is_an_error_with_its_reason() -> None:
    net = Net(names={"good.test": [PUBLIC], "pypi.org": []})
    async with proxying(net, "unknown.test") as proxy:
        assert b"502 unknown.test can't be resolved: Name or service not known." in await net.talk(
            connect("unknown.test:443")
        )
        assert b"502 pypi.org:443 can't be reached: it has no address." in await net.talk(
            connect("pypi.org:443")
        )
        assert b"502 good.test:443 can't be reached: " in await net.talk(connect("good.test:443"))
        assert proxy.refused_count == 0


async def test_the_next_address_is_tried_when_one_does_not_answer() -> None:
    async with origin() as server:
        net = Net(names={"good.test": [OTHER, PUBLIC]})
        net.dial = lambda address, port: ("127.0.0.1", server.port if address == PUBLIC else 1)
        async with proxying(net):
            assert await net.talk(head("GET http://good.test/ HTTP/1.1")) == OK


UPSTREAM = [
    ("http://me:p%40ss@127.0.0.1:{}", b"Proxy-Authorization: Basic bWU6cEBzcw==\r\n"),
    ("127.0.0.1:{}", b""),
]


@pytest.mark.parametrize(("url", "proof"), UPSTREAM)
async def test_the_users_own_proxy_is_asked_by_name(url: str, proof: bytes) -> None:
    async with origin(b"HTTP/1.1 200 fine\r\n\r\n") as upstream:
        environment = {
            "HTTPS_PROXY": url.format(upstream.port),
            "HTTP_PROXY": url.format(upstream.port),
        }
        net = Net(names={}, environment=environment)
        async with proxying(net) as proxy:
            greeting = hello("good.test")
            assert (await net.talk(connect("good.test:443"), greeting)).startswith(b"HTTP/1.1 200 ")
            await net.talk(head("GET http://good.test/x HTTP/1.1"))
            assert net.dialled == []
            assert (
                upstream.got[0]
                == b"CONNECT good.test:443 HTTP/1.1\r\nHost: good.test:443\r\n" + proof + b"\r\n"
            )
            line = b"GET http://good.test:80/x HTTP/1.1\r\n"
            assert upstream.got[1] == line + proof + b"Host: good.test\r\nConnection: close\r\n\r\n"
            assert b" 403 " in await net.talk(connect("evil.example:443"))
            assert (len(upstream.got), proxy.refused_count) == (2, 1)


async def test_a_users_proxy_that_refuses_is_an_error_without_its_password() -> None:
    async with origin(b"HTTP/1.1 407 Who are you\r\n\r\n") as upstream:
        net = Net(environment={"https_proxy": f"http://me:hunter2@127.0.0.1:{upstream.port}"})
        async with proxying(net):
            got = await net.talk(connect("good.test:443"))
            assert (
                b"the proxy 127.0.0.1 of your environment did not connect: it answers 407 Who are you"
                in got
            )
            assert b"hunter2" not in got


async def test_hosts_that_the_user_excludes_from_their_proxy_are_connected_to_directly() -> None:
    async with origin() as server:
        net = Net(
            ports={80: server.port},
            environment={"http_proxy": "http://127.0.0.1:1", "no_proxy": ".test"},
        )
        async with proxying(net):
            assert await net.talk(head("GET http://good.test/ HTTP/1.1")) == OK


@pytest.mark.parametrize("login", ["", "me:secret@"])
async def test_a_socks_proxy_of_the_user_is_asked_by_name(login: str) -> None:
    asked = list[bytes]()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append(await reader.readexactly(4 if login else 3))
        writer.write(b"\5\2" if login else b"\5\0")
        if login:
            asked.append(await reader.readexactly(11))
            writer.write(b"\1\0")
        asked.append(await reader.readexactly(5 + 9 + 2))
        writer.write(b"\5\0\0\1\1\2\3\4\0\1")
        asked.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(OK)
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    net = Net(
        names={},
        environment={
            "ALL_PROXY": f"socks5h://{login}127.0.0.1:{server.sockets[0].getsockname()[1]}"
        },
    )
    async with proxying(net):
        assert await net.talk(head("GET http://good.test/ HTTP/1.1")) == OK
    server.close()
    assert asked[-2] == b"\5\1\0\3\x09good.test\0\x50"
    assert asked[1] == (b"\1\2me\6secret" if login else asked[-2])


async def test_a_service_of_the_users_machine_is_forwarded_to() -> None:
    async with origin(b"+PONG\r\n", until=b"PING\r\n") as server:
        net = Net()
        async with proxying(net) as proxy:
            listener = socket.create_server(("127.0.0.1", 0))
            net.port = listener.getsockname()[1]
            await proxy.serve(listener, server.port)
            assert await net.talk(b"PING\r\n") == b"+PONG\r\n"


async def test_every_wait_and_size_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    established = b"HTTP/1.1 200 Connection established\r\n\r\n"

    async def resolve_and_shorten(host: str, port: int) -> Sequence[str]:
        """Return the address, and shorten the wait for the greeting: the head has come by now."""
        shorter(monkeypatch, limits.PROXY_HEAD_TIME, 50)
        return [PUBLIC]

    async def never(host: str, port: int) -> Sequence[str]:
        await asyncio.Event().wait()
        return ()

    shorter(monkeypatch, limits.PROXY_LINGER, 50)
    async with origin(until=b"never") as silent:
        net = Net(ports={443: silent.port, 80: silent.port})
        async with proxying(net) as proxy:
            shorter(monkeypatch, limits.PROXY_HEAD_TIME, 50)
            assert await net.talk(b"CONNECT good.te") == b""
            # A machine that stands still for a moment must not cut what has come in time.
            shorter(monkeypatch, limits.PROXY_HEAD_TIME, 60_000)
            shorter(monkeypatch, limits.PROXY_IDLE, 50)
            assert await net.talk(connect("good.test:443"), hello("good.test")) == established
            assert await net.talk(head("GET http://good.test/ HTTP/1.1")) == b""
            too_long = head("GET http://good.test/ HTTP/1.1", f"X: {'x' * limits.PROXY_HEAD.value}")
            assert (await net.talk(too_long)).startswith(b"HTTP/1.1 431 ")
            assert proxy.refused_count == 0
        net.resolve = resolve_and_shorten
        async with proxying(net) as proxy:
            assert await net.talk(connect("good.test:443")) == established
            assert proxy.refused_count == 0
        shorter(monkeypatch, limits.PROXY_HEAD_TIME, 60_000)
        shorter(monkeypatch, limits.PROXY_CONNECT, 50)
        net.resolve = never
        async with proxying(net):
            assert b"502 good.test can't be resolved: it took too long" in await net.talk(
                connect("good.test:443")
            )


async def test_connections_beyond_the_bound_are_cut_and_closing_cuts_them_all(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shorter(monkeypatch, limits.PROXY_CONNECTIONS, 2)
    net = Net()
    async with proxying(net) as proxy:
        open_ones = [await asyncio.open_connection("127.0.0.1", net.port) for _ in range(2)]
        for _, writer in open_ones:
            writer.write(b"CONNECT ")
        assert await net.talk(b"") == b""
        await proxy.close()
        for reader, writer in open_ones:
            with suppress(ConnectionResetError):
                assert await reader.read() == b""
            writer.close()
