"""The sandbox's HTTP proxy, which connects only to the hosts of a list."""

import asyncio
import socket
from collections import deque
from collections.abc import AsyncIterator, Callable

from msgspec import Struct

from codeloop.net.http1 import ChunkedBody, NetworkError
from codeloop.schema.limits import (
    PROXY_CONNECTIONS,
    PROXY_HEAD,
    PROXY_HEAD_TIME,
    PROXY_IDLE,
    PROXY_LINGER,
    PROXY_REFUSALS,
)
from codeloop.workspace.sandbox.network.hosts import PORTS, Blocked, HostPort, Hosts
from codeloop.workspace.sandbox.network.outgoing import OutgoingConnections, Stream, Unreachable
from codeloop.workspace.sandbox.network.proxy_request import is_greeting, read_request

_CHUNK = 65_536
_ALERT = b"\x15\x03\x03\x00\x02\x02\x31"  # a TLS alert (21), TLS 1.2, two bytes: fatal (2), access_denied (49)
_HOW = """To allow a host, a person adds its name to the hosts of the sandbox in their configuration:
"sandbox": {"network": "hosts", "hosts": ["example.com"]}
A command that needs more than that can ask to run outside the sandbox.
"""


class Refusal(Struct, frozen=True):
    """One connection that was refused. `number` counts them; `port`: of the proxy, where it was asked for."""

    number: int
    port: int
    text: str


class HostProxy:
    """Serves listening sockets of the sandbox until `close`. A socket for each session tells whose a refusal is."""

    def __init__(self, hosts: Hosts, outgoing: OutgoingConnections) -> None:
        self.count = 0
        """How many connections were refused so far: what `list_refused` takes as `after`."""
        self._hosts = hosts
        self._outgoing = outgoing
        self._servers: list[asyncio.Server] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._refusals: deque[Refusal] = deque(maxlen=PROXY_REFUSALS.value)

    async def serve(self, listener: socket.socket) -> None:
        """Accept the connections of a listening socket, in whatever network it was made."""
        self._servers.append(await asyncio.start_server(self._accept(None), sock=listener, limit=PROXY_HEAD.value))

    async def forward(self, listener: socket.socket, port: int) -> None:
        """Forward connections of a listening socket to that port of the user's machine."""
        self._servers.append(await asyncio.start_server(self._accept(port), sock=listener))

    async def close(self) -> None:
        """Listen no more, and cut every connection."""
        for server in self._servers:
            server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def list_refused(self, after: int, port: int) -> list[str]:
        """Return the refused connections at a port since the count was `after`, a line each, none twice."""
        rows = (row for row in self._refusals if row.number > after and row.port == port)
        return list(dict.fromkeys(row.text for row in rows))

    def _accept(self, service: int | None) -> Callable[[asyncio.StreamReader, asyncio.StreamWriter], None]:
        """Return a handler of new connections. `service`: a port of the user's machine; None: the client names it."""

        def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            if len(self._tasks) >= PROXY_CONNECTIONS.value:
                writer.transport.abort()
                return
            task = asyncio.create_task(self._run(Stream(reader, writer), service))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

        return accept

    async def _run(self, client: Stream, service: int | None) -> None:
        try:
            if service is None:
                await self._exchange(client)
            else:
                server = Stream(*await asyncio.open_connection("localhost", service))
                await _relay(client, server, _read_tunnel(client, server))
            await _finish(client)
        except (OSError, EOFError, NetworkError):
            pass  # the client or the server is gone, or says nothing that can be answered
        finally:
            client.writer.transport.abort()

    async def _exchange(self, client: Stream) -> None:
        try:
            async with asyncio.timeout(PROXY_HEAD_TIME.seconds):
                request = read_request(await client.reader.readuntil(b"\r\n\r\n"))
            rule = self._hosts.find_rule(request.target)
            server = await self._outgoing.connect(request, rule)
        except Blocked as blocked:
            answer = self._note(client, blocked)
            _send_answer(client, f"403 {answer}", f"{answer}.\n{_HOW}")
            return
        except asyncio.LimitOverrunError:
            _send_answer(client, "431 Too long", f"The head of the request exceeds {PROXY_HEAD.value} bytes.\n")
            return
        except Unreachable as error:
            _send_answer(client, f"502 {error}", f"{error}\n")
            return
        try:
            if not request.is_tunnel:
                await _relay(client, server, _read_body(client, request.length))
            elif await self._greet(client, server, request.target, inspect=rule.port in PORTS | {None}):
                await _relay(client, server, _read_tunnel(client, server))
        finally:
            server.writer.transport.abort()

    async def _greet(self, client: Stream, server: Stream, target: HostPort, *, inspect: bool) -> bool:
        """Open the tunnel. `inspect`: the client's first message must be a TLS greeting that names the target."""
        client.writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        hello = b""
        try:
            async with asyncio.timeout(PROXY_HEAD_TIME.seconds):
                while inspect and not is_greeting(hello, target):
                    more = await client.reader.read(_CHUNK)
                    if not more:
                        return False
                    hello += more
        except Blocked as blocked:
            self._note(client, blocked)
            client.writer.write(_ALERT)
            return False
        server.writer.write(hello)
        return True

    def _note(self, client: Stream, blocked: Blocked) -> str:
        self.count += 1
        text = f"blocked: connection to {blocked.authority}, {blocked}"
        self._refusals.append(Refusal(self.count, client.writer.get_extra_info("sockname")[1], text))
        return text


def _send_answer(client: Stream, status: str, text: str) -> None:
    body = text.encode()
    head = f"HTTP/1.1 {status}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {len(body)}\r\n"
    client.writer.write(head.encode("ascii", "replace") + b"Connection: close\r\n\r\n" + body)


async def _relay(client: Stream, server: Stream, client_chunks: AsyncIterator[bytes]) -> None:
    """Relay `client_chunks` to the server and its answer back, until the answer ends or nothing moves for long."""
    clock = asyncio.get_running_loop().time
    last = clock()

    async def pump(chunks: AsyncIterator[bytes], to: Stream) -> None:
        nonlocal last
        # With a limit of 0, `drain` returns only when the system has all bytes: an abort at the end loses none.
        to.writer.transport.set_write_buffer_limits(0)
        async for chunk in chunks:
            to.writer.write(chunk)
            last = clock()
            await to.writer.drain()
            last = clock()

    there = asyncio.create_task(pump(client_chunks, server))
    back = asyncio.create_task(pump(_read_all(server), client))
    try:
        while not back.done() and clock() < last + PROXY_IDLE.seconds:
            pumps = {back} if there.done() else {back, there}
            await asyncio.wait(pumps, timeout=last + PROXY_IDLE.seconds - clock(), return_when=asyncio.FIRST_COMPLETED)
            if there.done() and there.exception() is not None:
                return
    finally:
        there.cancel()
        back.cancel()
        await asyncio.gather(there, back, return_exceptions=True)
        server.writer.transport.abort()


async def _read_all(stream: Stream) -> AsyncIterator[bytes]:
    while data := await stream.reader.read(_CHUNK):
        yield data


async def _read_tunnel(client: Stream, server: Stream) -> AsyncIterator[bytes]:
    """Yield all that a client sends, then end the server's stream."""
    async for data in _read_all(client):
        yield data
    server.writer.write_eof()


async def _read_body(client: Stream, length: int | None) -> AsyncIterator[bytes]:
    """Yield the body of one request, chunks re-framed, and nothing after it: a second request is not checked."""
    chunks = ChunkedBody()
    while length or (length is None and not chunks.is_done):
        data = await client.reader.read(_CHUNK if length is None else min(length, _CHUNK))
        if not data:
            raise EOFError
        if length is not None:
            length -= len(data)
            yield data
        elif plain := chunks.feed(data):
            yield b"%x\r\n%b\r\n" % (len(plain), plain)
    if length is None:
        yield b"0\r\n\r\n"


async def _finish(client: Stream) -> None:
    """End our side of the connection, and drop for a while what the client still sends.

    Closing with unread data would reset the connection, and the client could lose the end of our answer.
    """
    client.writer.write_eof()
    try:
        async with asyncio.timeout(PROXY_LINGER.seconds):
            async for _ in _read_all(client):
                pass
    except TimeoutError:
        return
