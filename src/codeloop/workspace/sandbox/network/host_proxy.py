"""The HTTP proxy of sandboxed commands, which connects only to the hosts of a list.

`session_proxy.py` has one for each network of commands, made with the first connection.
"""

import asyncio
import socket
from collections import deque
from collections.abc import AsyncIterator, Callable

from msgspec import Struct

from codeloop.kit.asyncio_tasks import cancel_all
from codeloop.net.errors import NetworkError
from codeloop.net.http1 import ChunkedBody
from codeloop.schema.limits import (
    PROXY_CONNECTIONS,
    PROXY_HEAD,
    PROXY_HEAD_TIME,
    PROXY_IDLE,
    PROXY_LINGER,
    PROXY_REFUSALS,
)
from codeloop.workspace.sandbox.network.host_list import (
    WEB_PORTS,
    ConnectionBlocked,
    HostList,
    HostPort,
)
from codeloop.workspace.sandbox.network.outgoing_connections import (
    OutgoingConnections,
    Stream,
    TargetUnreachable,
)
from codeloop.workspace.sandbox.network.proxy_request import check_client_hello, parse_request

_CHUNK_BYTES = 65_536
# A TLS alert (21) of TLS 1.2 with two bytes: fatal (2), access_denied (49).
_TLS_ALERT = b"\x15\x03\x03\x00\x02\x02\x31"
_HINT_TO_ALLOW = """To allow a host, a person adds its name to the hosts of the sandbox in their configuration:
"sandbox": {"network": "hosts", "hosts": ["example.com"]}
A command that needs more than that can ask to run outside the sandbox.
"""


class Refusal(Struct, frozen=True):
    """One refused connection. `number`: its number since the start;
    `port`: the proxy's port that received it.
    """

    number: int
    port: int
    text: str


class HostProxy:
    """Serves listening sockets until `close`. A refusal is recorded with the socket's port."""

    def __init__(self, hosts: HostList, outgoing: OutgoingConnections) -> None:
        self.refused_count = 0
        """The number of refused connections so far, for `list_refused`."""
        self._hosts = hosts
        self._outgoing = outgoing
        self._servers: list[asyncio.Server] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._refusals: deque[Refusal] = deque(maxlen=PROXY_REFUSALS.value)

    async def serve(self, listener: socket.socket, service_port: int | None = None) -> None:
        """Serve the connections of a listening socket,
        which may belong to another network namespace. `service_port`: as of `make_handler`.
        """
        handler = self.make_handler(service_port)
        self._servers.append(
            await asyncio.start_server(handler, sock=listener, limit=PROXY_HEAD.value)
        )

    async def close(self) -> None:
        """Stop listening, and cut every connection."""
        for server in self._servers:
            server.close()
        await cancel_all(self._tasks)

    def list_refused(self, after: int, port: int) -> list[str]:
        """Return a line for each connection refused at a port since `refused_count` was `after`,
        each line once.
        """
        refusals = (
            refusal for refusal in self._refusals if refusal.number > after and refusal.port == port
        )
        return list(dict.fromkeys(refusal.text for refusal in refusals))

    def make_handler(
        self, service_port: int | None
    ) -> Callable[[asyncio.StreamReader, asyncio.StreamWriter], None]:
        """Return a handler of new connections. `service_port`: where to forward;
        None: the client names a host.
        """

        def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            if len(self._tasks) >= PROXY_CONNECTIONS.value:
                writer.transport.abort()
                return
            task = asyncio.create_task(self._serve_connection(Stream(reader, writer), service_port))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

        return accept

    async def _serve_connection(self, client: Stream, service_port: int | None) -> None:
        try:
            if service_port is None:
                await self._serve_request(client)
            else:
                server = Stream(*await asyncio.open_connection("localhost", service_port))
                await relay(client, server, read_tunnel(client, server))
            await _finish_answer(client)
        except (OSError, EOFError, NetworkError):
            # The client or the server is gone, or sent something that has no answer.
            pass
        finally:
            client.writer.transport.abort()

    async def _serve_request(self, client: Stream) -> None:
        try:
            async with asyncio.timeout(PROXY_HEAD_TIME.seconds):
                request = parse_request(await client.reader.readuntil(b"\r\n\r\n"))
            rule = self._hosts.find_rule(request.target)
            server = await self._outgoing.connect(request, rule)
        except ConnectionBlocked as blocked:
            text = self._record_refusal(client, blocked)
            _send_answer(client, f"403 {text}", f"{text}.\n{_HINT_TO_ALLOW}")
            return
        except asyncio.LimitOverrunError:
            _send_answer(
                client,
                "431 Too long",
                f"The head of the request exceeds {PROXY_HEAD.value} bytes.\n",
            )
            return
        except TargetUnreachable as error:
            _send_answer(client, f"502 {error}", f"{error}\n")
            return
        try:
            if not request.is_tunnel:
                await relay(client, server, _read_body(client, request.length))
            # On other ports, which an entry has to name, something else than TLS may be spoken.
            elif await self._open_tunnel(
                client, server, request.target, inspect=rule.port in WEB_PORTS | {None}
            ):
                await relay(client, server, read_tunnel(client, server))
        finally:
            server.writer.transport.abort()

    async def _open_tunnel(
        self, client: Stream, server: Stream, target: HostPort, *, inspect: bool
    ) -> bool:
        """Confirm the tunnel to the client. Returns whether it may be used.

        `inspect`: the client's first message must be a TLS ClientHello that names the target.
        Otherwise a command could reach any site of a shared server through a listed
        name (domain fronting).
        """
        client.writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        hello = b""
        try:
            async with asyncio.timeout(PROXY_HEAD_TIME.seconds):
                while inspect and not check_client_hello(hello, target):
                    more = await client.reader.read(_CHUNK_BYTES)
                    if not more:
                        return False
                    hello += more
        except ConnectionBlocked as blocked:
            self._record_refusal(client, blocked)
            client.writer.write(_TLS_ALERT)
            return False
        server.writer.write(hello)
        return True

    def _record_refusal(self, client: Stream, blocked: ConnectionBlocked) -> str:
        """Record a refused connection, and return the text about it."""
        self.refused_count += 1
        text = f"blocked: connection to {blocked.authority}, {blocked}"
        self._refusals.append(
            Refusal(self.refused_count, client.writer.get_extra_info("sockname")[1], text)
        )
        return text


def _send_answer(client: Stream, status: str, text: str) -> None:
    body = text.encode()
    head = f"HTTP/1.1 {status}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {len(body)}\r\n"
    client.writer.write(head.encode("ascii", "replace") + b"Connection: close\r\n\r\n" + body)


async def relay(client: Stream, server: Stream, client_chunks: AsyncIterator[bytes]) -> None:
    """Send `client_chunks` to the server and its answer to the client,
    until the answer ends or both sides are idle.
    """
    clock = asyncio.get_running_loop().time
    last_active = clock()

    async def pump(chunks: AsyncIterator[bytes], target: Stream) -> None:
        nonlocal last_active
        # With a limit of 0, `drain` returns only when the kernel has all bytes,
        # so the abort at the end loses none.
        target.writer.transport.set_write_buffer_limits(0)
        async for chunk in chunks:
            target.writer.write(chunk)
            last_active = clock()
            await target.writer.drain()
            last_active = clock()

    to_server = asyncio.create_task(pump(client_chunks, server))
    to_client = asyncio.create_task(pump(_read_all(server), client))
    try:
        while (
            not to_client.done()
            and (idle_seconds := last_active + PROXY_IDLE.seconds - clock()) > 0
        ):
            pumps = {to_client} if to_server.done() else {to_client, to_server}
            await asyncio.wait(pumps, timeout=idle_seconds, return_when=asyncio.FIRST_COMPLETED)
            if to_server.done() and to_server.exception() is not None:
                return
    finally:
        await cancel_all([to_server, to_client])
        server.writer.transport.abort()


async def _read_all(stream: Stream) -> AsyncIterator[bytes]:
    while data := await stream.reader.read(_CHUNK_BYTES):
        yield data


async def read_tunnel(client: Stream, server: Stream) -> AsyncIterator[bytes]:
    """Yield all that a client sends, then end the server's stream."""
    async for data in _read_all(client):
        yield data
    server.writer.write_eof()


async def _read_body(client: Stream, length: int | None) -> AsyncIterator[bytes]:
    """Yield the body of one request. `length`: in bytes;
    None: it comes in chunks, which are framed anew.
    """
    # Nothing after the body is sent on: it could be a second request, which nobody has checked.
    chunks = ChunkedBody()
    while length or (length is None and not chunks.is_done):
        data = await client.reader.read(
            _CHUNK_BYTES if length is None else min(length, _CHUNK_BYTES)
        )
        if not data:
            raise EOFError
        if length is not None:
            length -= len(data)
            yield data
        elif plain := chunks.feed(data):
            yield b"%x\r\n%b\r\n" % (len(plain), plain)
    if length is None:
        yield b"0\r\n\r\n"


async def _finish_answer(client: Stream) -> None:
    """End our side of the connection, then read and drop what the client still sends,
    for a limited time.
    """
    # Closing with unread data would reset the connection,
    # and the client could lose the end of our answer.
    client.writer.write_eof()
    try:
        async with asyncio.timeout(PROXY_LINGER.seconds):
            async for _ in _read_all(client):
                pass
    except TimeoutError:
        return
