"""The streams of messages that the `mcp` package reads from stdin and writes to stdout."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING

from codeloop.client.wire.standard_lines import open_standard_lines
from codeloop.schema.limits import OUTPUT_READER_TIME

if TYPE_CHECKING:
    from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
    from mcp.shared.message import SessionMessage

    Streams = tuple[MemoryObjectReceiveStream[SessionMessage | Exception], MemoryObjectSendStream[SessionMessage]]


@asynccontextmanager
async def open_standard_wire() -> "AsyncGenerator[Streams]":
    """Yield a stream of messages from stdin and a stream of messages to stdout."""
    import anyio
    from mcp.shared.message import SessionMessage
    from mcp_types import jsonrpc_message_adapter

    incoming, inbound = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    outbound, outgoing = anyio.create_memory_object_stream[SessionMessage](0)

    async def receive(line: bytes | None) -> None:
        if line is None:
            incoming.close()
            return
        try:
            message: SessionMessage | Exception = SessionMessage(
                jsonrpc_message_adapter.validate_json(line, by_name=False)
            )
        except ValueError as error:
            message = error
        with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
            await incoming.send(message)

    async with open_standard_lines() as lines:

        async def send() -> None:
            async for message in outgoing:
                lines.write(message.message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n")

        sending = asyncio.create_task(send())
        lines.start(receive)
        try:
            yield inbound, outbound
        finally:
            outbound.close()
            inbound.close()
            await asyncio.wait({sending}, timeout=OUTPUT_READER_TIME.seconds)
            sending.cancel()
