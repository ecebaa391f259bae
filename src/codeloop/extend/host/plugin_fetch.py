"""Model requests sent through the `fetch` of a sign-in plugin."""

import asyncio
import math
from collections.abc import Awaitable, Callable
from typing import Any

from codeloop.extend.hooks.hooks import ExtensionRaised, HookFailed
from codeloop.extend.host.host import ExtensionHost
from codeloop.extend.host.protocol import (
    FetchChunk,
    FetchedRequest,
    FetchHead,
    LoadSpec,
    PluginRequest,
)
from codeloop.net.client import BodyStream, HttpResponse, join_url
from codeloop.net.errors import NetworkError
from codeloop.schema.wire import JSON

_ResponsePiece = FetchHead | FetchChunk | NetworkError | None
"""None: the response is complete."""


class PluginFetch:
    """A `RequestClient` that sends through a plugin.
    `read_credential` is called for each request.
    """

    def __init__(
        self,
        host: ExtensionHost,
        extension: LoadSpec,
        base_url: str,
        read_credential: Callable[[], JSON],
        first_byte_seconds: float,
    ) -> None:
        """`first_byte_seconds`: the limit until the head of a response; infinity: none."""
        self._host = host
        self._extension = extension
        self._base_url = base_url
        self._read_credential = read_credential
        self._first_byte_seconds = first_byte_seconds

    async def post(self, path: str, headers: dict[str, str], body: bytes) -> HttpResponse:
        """Send `body` to the base URL plus `path`. Raises NetworkError,
        and what `read_credential` raises.
        """
        request = FetchedRequest(join_url(self._base_url, path), "POST", headers, body.decode())
        credential = self._read_credential()
        stream = _FetchStream()
        name = self._extension.name
        asking = self._host.ask(
            self._extension,
            lambda number: PluginRequest(number, name, request, credential),
            # A response may stream for as long as the model works;
            # the caller has its own limits between two chunks.
            math.inf,
            receive_piece=stream.pieces.put_nowait,
        )
        stream.work = asyncio.create_task(stream.fill(asking))
        try:
            # `asyncio.timeout` takes None, not infinity, for no limit.
            async with asyncio.timeout(
                None if math.isinf(self._first_byte_seconds) else self._first_byte_seconds
            ):
                head = await stream.pieces.get()
        except TimeoutError:
            stream.close()
            raise NetworkError("first-byte") from None
        except asyncio.CancelledError:
            stream.close()
            raise
        if isinstance(head, NetworkError):
            raise head
        if not isinstance(head, FetchHead):
            stream.close()
            raise NetworkError("protocol", f"{name} answered without a status")
        return HttpResponse(
            self, stream, head.status, {key.lower(): value for key, value in head.headers}
        )

    def release(self, source: BodyStream) -> None:
        """Cancel the rest of a request."""
        source.close()

    async def aclose(self) -> None:
        """Do nothing: the connections belong to the plugin."""


class _FetchStream:
    """The stream of one response's pieces."""

    def __init__(self) -> None:
        self.pieces: asyncio.Queue[_ResponsePiece] = asyncio.Queue()
        self.work: asyncio.Task[None] | None = None

    async def fill(self, asking: Awaitable[Any]) -> None:
        """Wait for the end of the response, and add it to the pieces: None, or the error."""
        end: _ResponsePiece = None
        try:
            await asking
        except (HookFailed, ExtensionRaised) as error:
            end = NetworkError("cut", str(error))
        self.pieces.put_nowait(end)

    async def read(self) -> bytes:
        """Return more of the body, b"" at its end. Raises NetworkError."""
        while isinstance(piece := await self.pieces.get(), FetchChunk):
            # An empty chunk would read as the end of the body.
            if piece.data:
                return piece.data
        if isinstance(piece, NetworkError):
            raise piece
        return b""

    def close(self) -> None:
        """Cancel the plugin's request."""
        if self.work is not None:
            self.work.cancel()
