"""The streams of `codeloop mcp serve` that the `mcp` package reads and writes: messages on stdin,
and on stdout.
"""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING

from codeloop.client.wire.stdio_lines import open_stdio_lines
from codeloop.schema.limits import OUTPUT_READER_TIME

if TYPE_CHECKING:
    from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
    from mcp.shared.message import SessionMessage

    Streams = tuple[
        MemoryObjectReceiveStream[SessionMessage | Exception],
        MemoryObjectSendStream[SessionMessage],
    ]


@asynccontextmanager
async def open_stdio_streams() -> "AsyncGenerator[Streams]":
    """Yield the stream of messages from stdin, and the stream of messages to stdout."""
    import anyio
    from mcp.shared.message import SessionMessage
    from mcp_types import jsonrpc_message_adapter

    # Size 0: the next line is read only when the server has taken the message before it.
    inbound_writer, inbound = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    outbound, outbound_reader = anyio.create_memory_object_stream[SessionMessage](0)

    async def receive(line: bytes | None) -> None:
        if line is None:
            inbound_writer.close()
            return
        try:
            message: SessionMessage | Exception = SessionMessage(
                jsonrpc_message_adapter.validate_json(line, by_name=False)
            )
        except ValueError as error:
            message = error
        # The server may have ended.
        with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
            await inbound_writer.send(message)

    async with open_stdio_lines() as lines:

        async def send() -> None:
            async for message in outbound_reader:
                lines.write(
                    message.message.model_dump_json(by_alias=True, exclude_unset=True).encode()
                    + b"\n"
                )

        send_task = asyncio.create_task(send())
        lines.start(receive)
        try:
            yield inbound, outbound
        finally:
            outbound.close()
            inbound.close()
            # Let the last answers be written.
            await asyncio.wait({send_task}, timeout=OUTPUT_READER_TIME.seconds)
            send_task.cancel()
