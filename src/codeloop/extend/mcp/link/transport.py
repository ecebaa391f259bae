"""How messages go to and from a server: over its program's stdin and stdout, or over HTTP. Uses the package `mcp`."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from codeloop.extend.mcp.link.server_process import MessageTooLong, ServerProcess
from codeloop.schema.limits import MCP_MESSAGE, MCP_STOP
from codeloop.schema.wire import JSON
from codeloop.workspace.process.program_log import ProgramLog

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

    import httpx2
    from mcp.client._transport import Transport, TransportStreams
    from mcp.shared._stream_protocols import WriteStream
    from mcp.shared.message import SessionMessage

_SHOWN = 500  # bytes of a line that is no message


def quiet() -> None:
    """Keep what the package logs out of our terminal: what matters comes as an error or is in the server's log."""
    for name in ("mcp", "client", "httpx2", "httpcore2"):
        logger = logging.getLogger(name)
        logger.propagate = False
        if not logger.handlers:
            logger.addHandler(logging.NullHandler())


@asynccontextmanager
async def over_stdio(
    process: ServerProcess, log: ProgramLog, ended: Callable[[str], None]
) -> "AsyncGenerator[TransportStreams]":
    """Speak with a program that runs; it is ended at the exit. `ended` hears why when it stops by itself."""
    import anyio
    from mcp.shared.message import SessionMessage
    from mcp_types import jsonrpc_message_adapter

    to_session, read_stream = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    write_stream, from_session = anyio.create_memory_object_stream[SessionMessage](0)

    async def read() -> None:
        why = ""
        try:
            async for line in process.lines():
                try:
                    message = jsonrpc_message_adapter.validate_json(line, by_name=False)
                except ValueError:
                    if line.strip():
                        log.note(f"[not a message on stdout: {line[:_SHOWN].decode('utf-8', 'replace')}]")
                    continue
                await to_session.send(SessionMessage(message))
            await process.wait_briefly(MCP_STOP.seconds)
        except MessageTooLong as error:
            why = str(error)
        except (anyio.ClosedResourceError, anyio.BrokenResourceError, OSError):
            pass
        finally:
            to_session.close()
        ended(why or _ending(process.code))

    async def write() -> None:
        try:
            async for message in from_session:
                text = message.message.model_dump_json(by_alias=True, exclude_unset=True)
                await process.write(text.encode())
        except OSError:  # it reads no more: its end, or its silence, is what is told
            pass

    tasks = [asyncio.create_task(read()), asyncio.create_task(write())]
    try:
        yield read_stream, write_stream
    finally:
        write_stream.close()
        read_stream.close()
        tasks[0].cancel()
        await asyncio.wait(tasks, timeout=MCP_STOP.seconds)
        tasks[1].cancel()
        await process.close()
        await asyncio.wait(tasks)
        from_session.close()
        to_session.close()


def _ending(code: int | None) -> str:
    if code is None:
        return "it closed its output"
    return f"it ended with exit code {code}" if code >= 0 else f"it was ended by signal {-code}"


def over_http(url: str, client: "httpx2.AsyncClient") -> "Transport":
    """Speak streamable HTTP."""
    from mcp.client.streamable_http import streamable_http_client

    return streamable_http_client(url, http_client=client, max_sse_event_size=MCP_MESSAGE.value)


def over_sse(url: str, client: "httpx2.AsyncClient") -> "Transport":
    """Speak the older transport: one stream of events, messages posted beside it. Closes the client."""
    from mcp.client.sse import sse_client

    def made(headers: Any = None, timeout: Any = None, auth: Any = None) -> "httpx2.AsyncClient":
        del headers, timeout, auth  # the client has them
        return client

    return sse_client(url, httpx_client_factory=made)


@asynccontextmanager
async def offer_version(transport: "Transport", version: str) -> "AsyncGenerator[TransportStreams]":
    """Speak over a transport, and greet with this version of the protocol: the package offers the latest alone."""
    async with transport as (read_stream, write_stream):
        yield read_stream, _Greeting(write_stream, version)


class _Greeting:
    """A stream of outgoing messages, of which the greeting names a version."""

    def __init__(self, stream: "WriteStream[SessionMessage]", version: str) -> None:
        self._stream = stream
        self._version = version

    async def send(self, item: "SessionMessage", /) -> None:
        params: JSON | None = getattr(item.message, "params", None)
        if getattr(item.message, "method", "") == "initialize" and params is not None:
            params["protocolVersion"] = self._version
        await self._stream.send(item)

    async def aclose(self) -> None:
        await self._stream.aclose()

    async def __aenter__(self) -> "Self":
        await self._stream.__aenter__()
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc_val: BaseException | None, exc_tb: "TracebackType | None"
    ) -> bool | None:
        return await self._stream.__aexit__(exc_type, exc_val, exc_tb)
