"""An open connection to a server: one task owns it from beginning to end, any task may call through it."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any, cast

from codeloop.extend.mcp.known.listing import Listing
from codeloop.extend.mcp.link.change_stream import ChangeStream
from codeloop.extend.mcp.link.failures import CONNECTION_CLOSED
from codeloop.extend.mcp.link.listed import listing_of
from codeloop.schema.bounds.extension import MCP_CALL_LONGEST
from codeloop.schema.errors import CodeloopError
from codeloop.schema.limits import MCP_STOP, SHELL_TERM
from codeloop.schema.wire import JSON

if TYPE_CHECKING:
    from mcp import Client

Progress = Callable[[float, float | None, str | None], None]
Entering = Callable[["ServerConnection"], "AbstractAsyncContextManager[Client]"]


class ServerConnection:
    """See the module. `ended` says why it is over, once it is; `fatal`: the error that ended it.

    `status`: the latest answer's, over HTTP. `seconds`: how long listing what it offers may take.
    """

    def __init__(self, transport: str, entering: Entering, seconds: float) -> None:
        self.transport = transport
        self.ended = ""
        self.fatal: BaseException | None = None
        self.status = 0
        self.on_end: Callable[[], None] = lambda: None
        self._entering = entering
        self._seconds = seconds
        self._client: Client | None = None
        self._changes: ChangeStream | None = None
        self._owner: asyncio.Task[None] | None = None
        self._closing = asyncio.Event()

    async def open(self, seconds: float) -> Listing | None:
        """Start or reach the server and return what it offers; None: it ended, `fatal` and `ended` say why.

        Raises TimeoutError; what was begun is ended then, as when the caller is cancelled.
        """
        opened: asyncio.Future[Listing] = asyncio.get_running_loop().create_future()
        self._owner = asyncio.create_task(self._own(opened))
        is_kept = False
        try:
            async with asyncio.timeout(seconds):
                await asyncio.wait({self._owner, opened}, return_when=asyncio.FIRST_COMPLETED)
            is_kept = opened.done()
        finally:
            if not is_kept:
                await self.close()
        self._note_end()
        if is_kept:
            self._owner.add_done_callback(lambda _: self._lost())
        return opened.result() if is_kept else None

    async def close(self) -> None:
        """End the connection, and a local server with its processes."""
        if self._owner is None:
            return
        self._closing.set()
        if self._client is None:
            self._owner.cancel()
        most = 2 * MCP_STOP.seconds + 2 * SHELL_TERM.seconds
        _, late = await asyncio.wait({self._owner}, timeout=most)
        if late:
            self._owner.cancel()
            await asyncio.wait({self._owner}, timeout=most)

    def end(self, why: str) -> None:
        """Take up that the server is gone."""
        if not self._closing.is_set():
            self.ended = why
            self._closing.set()
            self.on_end()

    @property
    def is_open(self) -> bool:
        """Return whether requests can be made."""
        return self._client is not None and not self._closing.is_set()

    async def request(
        self, make: "Callable[[Client, Progress], Awaitable[Any]]", most: float, progress: Progress
    ) -> JSON:
        """Make one request and return its result as JSON. Ends after `most` seconds without a sign of progress.

        Signs of progress do not keep it open for ever (`MCP_CALL_LONGEST`).

        Raises what it fails with, TimeoutError, or CodeloopError when the connection ends meanwhile.
        """
        client, owner = self._client, self._owner
        if client is None or owner is None:
            raise CodeloopError(self.ended or "it is not connected")
        loop = asyncio.get_running_loop()
        until = [loop.time() + most]
        last = loop.time() + max(most, MCP_CALL_LONGEST.seconds)

        def heard(done: float, total: float | None, words: str | None) -> None:
            until[0] = min(loop.time() + most, last)
            progress(done, total, words)

        async def made() -> JSON:
            result = await make(client, heard)
            return cast("JSON", result.model_dump(by_alias=True, mode="json", exclude_none=True))

        work = asyncio.create_task(made())
        try:
            while not work.done():
                if (left := until[0] - loop.time()) <= 0:
                    raise TimeoutError
                await asyncio.wait({work, owner}, timeout=left, return_when=asyncio.FIRST_COMPLETED)
                if owner.done() and not work.done():
                    break
        finally:
            if not work.done():
                work.cancel()
                await asyncio.wait({work}, timeout=MCP_STOP.seconds)
        if not work.cancelled() and work.done() and getattr(work.exception(), "code", None) == CONNECTION_CLOSED:
            await asyncio.wait({owner}, timeout=MCP_STOP.seconds)  # which says why
        if work.cancelled() or not work.done():
            raise CodeloopError(self.ended or "the connection ended")
        return work.result()

    async def watch(self, uri: str) -> None:
        """Hear of changes of a resource from now on. Raises what a request raises."""
        if self._changes is not None:
            async with asyncio.timeout(self._seconds):
                await self._changes.watch(uri)

    async def listed(self) -> Listing:
        """List the server's offers now. Raises what a request raises."""
        if self._client is None:
            raise CodeloopError(self.ended or "it is not connected")
        async with asyncio.timeout(self._seconds):
            return await listing_of(self._client, self.transport)

    async def _own(self, opened: "asyncio.Future[Listing]") -> None:
        """Hold the connection from its opening to its end, in one task."""
        async with self._entering(self) as client:
            try:
                is_listed = False
                try:
                    async with asyncio.timeout(self._seconds):
                        listing = await listing_of(client, self.transport)
                    is_listed = True
                finally:
                    if not is_listed:
                        self._closing.set()  # that its program ends from now on is no cause
                self._client, self._changes = client, ChangeStream(client)
                opened.set_result(listing)
                listening = asyncio.create_task(self._changes.run())
                try:
                    await self._closing.wait()
                finally:
                    listening.cancel()
                    await asyncio.wait({listening}, timeout=MCP_STOP.seconds)
            finally:
                self._client = self._changes = None

    def _lost(self) -> None:
        """Take up that the owner has ended, as it may by itself."""
        self._note_end()
        self.end("the connection was lost")

    def _note_end(self) -> None:
        """Take up why the owner has ended, if it has."""
        owner = self._owner
        if owner is not None and owner.done() and not owner.cancelled():
            self.fatal = owner.exception()
