"""The streams of a transport as the package `mcp` gets them:
requests offer a version, results are repaired.
"""

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from codeloop.extend.mcp.transport.repair_messages import repair_result
from codeloop.schema.wire import JSON

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

    from mcp.client._transport import Transport, TransportStreams
    from mcp.shared._stream_protocols import ReadStream, WriteStream
    from mcp.shared.message import SessionMessage


@asynccontextmanager
async def shape_messages(
    transport: "Transport", version: str | None, note: Callable[[str], None]
) -> "AsyncGenerator[TransportStreams]":
    """Use a transport. `version`: the protocol version that `initialize` offers; None: the
    package's latest. `note` gets what is left out of results, and why.
    """
    async with transport as (read_stream, write_stream):
        # The methods of the requests that wait for an answer, by their ids.
        methods: dict[Any, str] = {}
        yield (
            _Incoming(read_stream, methods, note),
            _Outgoing(write_stream, methods, version),
        )


class _Stream:
    """A stream that passes everything on to another."""

    def __init__(self, stream: "ReadStream[Any] | WriteStream[Any]") -> None:
        self._inner = stream

    async def aclose(self) -> None:
        await self._inner.aclose()

    async def __aenter__(self) -> "Self":
        await self._inner.__aenter__()
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc_val: BaseException | None,
        exc_tb: "TracebackType | None",
    ) -> bool | None:
        return await self._inner.__aexit__(exc_type, exc_val, exc_tb)


class _Outgoing(_Stream):
    """Outgoing messages: their methods are noted by their ids."""

    def __init__(
        self, stream: "WriteStream[SessionMessage]", methods: dict[Any, str], version: str | None
    ) -> None:
        super().__init__(stream)
        self._stream = stream
        self._methods = methods
        self._version = version

    async def send(self, item: "SessionMessage", /) -> None:
        message = item.message
        method: str = getattr(message, "method", "")
        params: JSON | None = getattr(message, "params", None)
        if method == "initialize" and params is not None and self._version is not None:
            params["protocolVersion"] = self._version
        number = getattr(message, "id", None)
        if method and number is not None:
            self._methods[str(number)] = method
        # A cancelled request gets no answer.
        elif method == "notifications/cancelled" and params is not None:
            self._methods.pop(str(params.get("requestId")), None)
        await self._stream.send(item)


class _Incoming(_Stream):
    """Incoming messages: their results are repaired."""

    def __init__(
        self,
        stream: "ReadStream[SessionMessage | Exception]",
        methods: dict[Any, str],
        note: Callable[[str], None],
    ) -> None:
        super().__init__(stream)
        self._stream = stream
        self._methods = methods
        self._note = note

    @property
    def last_context(self) -> Any:
        """The context of the latest message's sender, which the package asks for."""
        return getattr(self._stream, "last_context", None)

    async def receive(self) -> "SessionMessage | Exception":
        return self._repair(await self._stream.receive())

    def __aiter__(self) -> "Self":
        return self

    async def __anext__(self) -> "SessionMessage | Exception":
        return self._repair(await self._stream.__anext__())

    def _repair(self, item: "SessionMessage | Exception") -> "SessionMessage | Exception":
        from mcp_types import JSONRPCError, JSONRPCResponse

        message = None if isinstance(item, Exception) else item.message
        if isinstance(message, JSONRPCResponse):
            method = self._methods.pop(str(message.id), "")
            message.result = repair_result(method, message.result, self._note)
        elif isinstance(message, JSONRPCError):
            # An error of nothing is of the one request that waits.
            if message.id is None and len(self._methods) == 1:
                only = next(iter(self._methods))
                message.id = int(only) if only.isdecimal() else only
            self._methods.pop(str(message.id), None)
        return item
